"""A request as JSON data → its typed document, with every fault at once, in either vocabulary. Linear time.

Structure is read here and in node_reader.py; plan_check.py looks at names, expressions and the graph of what could
be read. A path in a fault has the words that were sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.core.uniqueness import UniqueMode
from oraculo.plans import limits
from oraculo.plans.faults import Fault, FaultCode, Faults, Path, error_of, shown
from oraculo.plans.fields import ObjectFields
from oraculo.plans.model import (
    CallNode,
    JoinMode,
    Node,
    NotifyTargets,
    PlanDocument,
    RequestDocument,
    RequestOptions,
    StagesDocument,
    TypeDocument,
    UniqueRule,
)
from oraculo.plans.node_reader import NodeReader, both
from oraculo.plans.plan_check import check
from oraculo.plans.words import FIELDS, FIELDS_TO_PORTUGUESE

COMMON_FIELDS = ("timeout_s", "correlation_id", "notificar", "rotulos", "unica")
UNIQUE_FIELDS = ("modo", "janela_s", "chave")
NOT_OF_CHILDREN = ("correlation_id", "unica")
# The word that tells a shape → the words that go with it.
SHAPES = {
    "tarefas": ("tarefas", "entrada", "saida"),
    "tipo": ("tipo", "parametros"),
    "coletas": ("coletas", "execucoes", "fan_in"),
}
STAGE_MODES = (JoinMode.TODOS, JoinMode.QUORUM, JoinMode.PRIMEIRO)
_REQUEST_FIELDS = (*(word for words in SHAPES.values() for word in words), *COMMON_FIELDS)


@dataclass(frozen=True, slots=True)
class Reading:
    """`request` is None when there are faults. `fault_count` counts those beyond the ones that are kept, too."""

    request: RequestDocument | None
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...] = ()
    fault_count: int = 0


def read(value: object) -> Reading:
    """Read a request of any shape. Never raises."""
    english = isinstance(value, dict) and any(word in FIELDS_TO_PORTUGUESE for word in value)
    faults, warnings = Faults(english), Faults(english)
    reader = _RequestReader(faults)
    request = reader.request(value, (), level=1)
    if request is not None:
        check(request, reader.broken, faults, warnings)
    found = tuple(as_sent(fault, value) for fault in faults.kept)
    noted = tuple(as_sent(fault, value) for fault in warnings.kept)
    return Reading(None if faults.count else request, found, noted, faults.count)


def load(value: object) -> RequestDocument:
    """The document of a request; WireError with every fault when it has any."""
    reading = read(value)
    if reading.request is None:
        raise error_of(reading.faults)
    return reading.request


def as_sent(fault: Fault, value: object) -> Fault:
    """The same with the words of its path as they stand in `value`."""
    path: list[str | int] = []
    here = value
    for step in fault.path:
        if isinstance(here, dict) and isinstance(step, str):
            word = step if step in here else FIELDS.get(step, step)
            path.append(word)
            here = here.get(word)
        else:
            path.append(step)
            here = here[step] if isinstance(here, list) and isinstance(step, int) and step < len(here) else None
    return Fault(tuple(path), fault.code, fault.message, fault.column)


class _RequestReader:
    """`broken`: id of a plan's document → names of its tasks that could not be read; they count as known."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.broken: dict[int, frozenset[str]] = {}

    def request(self, value: object, path: Path, level: int) -> RequestDocument | None:
        what = "a request" if level == 1 else both("filha")
        if not isinstance(value, dict):
            self._faults.add(path, FaultCode.WRONG_KIND, f"{what} is an object, not {shown(value)}")
            return None
        if level > limits.MAX_CHILD_LEVELS:
            message = f"children are nested more than {limits.MAX_CHILD_LEVELS} levels deep"
            self._faults.add(path, FaultCode.TOO_MUCH, message)
            return None
        fields = ObjectFields(value, path, _REQUEST_FIELDS, self._faults, what)
        shape = next((word for word, words in SHAPES.items() if word in fields or words[1] in fields), None)
        if "tipo" in fields and "tarefas" not in fields:
            shape = "tipo"
        if shape is None:
            choices = "tarefas (tasks), coletas (collects) and execucoes (executes), or tipo (type)"
            self._faults.add(path, FaultCode.MISSING, f"{what} has {choices}; this one has none of them")
            return None
        self._refuse(fields, shape)
        options = self._options(fields, child=level > 1)
        match shape:
            case "tarefas":
                return self._plan(fields, options, level)
            case "tipo":
                return self._type(fields, options)
            case _:
                return self._stages(fields, options, level)

    def _refuse(self, fields: ObjectFields, shape: str) -> None:
        for other, words in SHAPES.items():
            for word in words:
                if other != shape and word in fields:
                    message = f"{fields.word(word)} does not go with {fields.word(shape)}; a request has one shape"
                    fields.fault(word, FaultCode.AMBIGUOUS, message)

    def _options(self, fields: ObjectFields, *, child: bool) -> RequestOptions:
        if child and "correlation_id" in fields:
            fields.fault("correlation_id", FaultCode.NOT_ALLOWED, "a child has the id <correlation_id>/<task>")
        if child and "unica" in fields:
            message = f"a child is a run of its own; {both('unica')} is for whole requests"
            fields.fault("unica", FaultCode.NOT_ALLOWED, message)
        return RequestOptions(
            fields.number("timeout_s", limits.WAIT_MAX_SECONDS),
            fields.text("correlation_id", limits.CORRELATION_ID, limits.CORRELATION_ID_RULE),
            self._notify(fields),
            fields.texts("rotulos", limits.SHORT_TEXT, limits.SHORT_TEXT_RULE, limits.MAX_LABELS),
            None if child else self._unique(fields),
        )

    def _notify(self, outer: ObjectFields) -> NotifyTargets | None:
        value = outer.mapping("notificar") if outer.raw("notificar") is not None else None
        if value is None:
            return None
        fields = ObjectFields(value, outer.at("notificar"), ("webhook", "fila"), self._faults, both("notificar"))
        return NotifyTargets(
            fields.text("webhook", limits.WEBHOOK, limits.WEBHOOK_RULE),
            fields.text("fila", limits.QUEUE, limits.QUEUE_RULE),
        )

    def _unique(self, outer: ObjectFields) -> UniqueRule | None:
        value = outer.mapping("unica") if outer.raw("unica") is not None else None
        if value is None:
            return None
        fields = ObjectFields(value, outer.at("unica"), UNIQUE_FIELDS, self._faults, both("unica"))
        fields.need("modo")
        mode = fields.choice("modo", UniqueMode, UniqueMode.OPEN)
        window = fields.number("janela_s", limits.WAIT_MAX_SECONDS)
        if mode is UniqueMode.WINDOW:
            fields.need("janela_s")
        elif "janela_s" in fields:
            message = f"{fields.word('janela_s')} goes with the mode janela (window)"
            fields.fault("janela_s", FaultCode.NOT_ALLOWED, message)
        return UniqueRule(mode, window, fields.text("chave", limits.SHORT_TEXT, limits.SHORT_TEXT_RULE))

    def _nodes(self, level: int) -> NodeReader:
        return NodeReader(self._faults, lambda value, path: self.request(value, path, level + 1))

    # -- shapes ------------------------------------------------------------------------------------------------------

    def _plan(self, fields: ObjectFields, options: RequestOptions, level: int) -> PlanDocument | None:
        fields.need("tarefas")
        given = fields.mapping("tarefas")
        entrada, saida = fields.params("entrada"), fields.json("saida")
        if given is None:
            return None
        if not 0 < len(given) <= limits.MAX_TASKS:
            message = f"{len(given)} tasks; a plan has from 1 to {limits.MAX_TASKS}"
            fields.fault("tarefas", FaultCode.TOO_MUCH if given else FaultCode.MISSING, message)
            return None
        nodes = self._nodes(level)
        tasks: dict[str, Node] = {}
        broken: set[str] = set()
        for name, value in given.items():
            at = (*fields.at("tarefas"), str(name)[:100])
            if not self._task_name(name, at):
                continue
            node = nodes.node(value, at)
            if node is None:
                broken.add(str(name))
            else:
                tasks[str(name)] = node
        document = PlanDocument(tasks, entrada, saida, options)
        self.broken[id(document)] = frozenset(broken)
        return document

    def _task_name(self, name: object, at: Path) -> bool:
        if not isinstance(name, str) or not limits.IDENTIFIER.fullmatch(name):
            self._faults.add(at, FaultCode.BAD_NAME, f"{shown(name)} is no name for a task: {limits.IDENTIFIER_RULE}")
            return False
        if name in limits.RESERVED_NAMES:
            message = f"{name!r} is no name for a task: it means something else in expressions"
            self._faults.add(at, FaultCode.BAD_NAME, message)
            return False
        return True

    def _type(self, fields: ObjectFields, options: RequestOptions) -> TypeDocument:
        tipo = fields.text("tipo", limits.DESTINATION, limits.DESTINATION_RULE)
        if tipo is None and fields.raw("tipo") is None:
            fields.wrong("tipo", limits.DESTINATION_RULE)
        return TypeDocument(tipo or "", fields.params("parametros") if "parametros" in fields else None, options)

    def _stages(self, fields: ObjectFields, options: RequestOptions, level: int) -> StagesDocument | None:
        nodes = self._nodes(level)
        collects = self._calls(fields, "coletas", "fonte", nodes)
        executes = self._calls(fields, "execucoes", "executador", nodes)
        fan_in = nodes.join(fields, JoinMode.TODOS, STAGE_MODES)
        given = len(collects or executes)
        if not given and not self._faults.count:
            self._faults.add(fields.path, FaultCode.MISSING, "coletas and execucoes are both empty; a task is needed")
        if fan_in is not None and fan_in.at_least is not None and fan_in.at_least > given > 0:
            message = f"fan_in needs {fan_in.at_least} of {given} tasks"
            fields.fault("fan_in", FaultCode.NOT_ALLOWED, message)
        return StagesDocument(collects, executes, fan_in, options)

    def _calls(self, outer: ObjectFields, field: str, kind: str, nodes: NodeReader) -> tuple[CallNode, ...]:
        values = outer.sequence(field)
        if values is None:
            return ()
        if len(values) > limits.MAX_TASKS:
            outer.fault(field, FaultCode.TOO_MUCH, f"{len(values)} tasks; at most {limits.MAX_TASKS}")
            return ()
        found = []
        for number, value in enumerate(values):
            at = (*outer.at(field), number)
            if isinstance(value, dict):
                known = (kind, "parametros", "timeout_s", "max_tentativas")
                fields = ObjectFields(value, at, known, self._faults, f"an entry of {both(field)}")
                fields.need(kind)
                found.append(nodes.call(fields, kind))
            else:
                self._faults.add(
                    at, FaultCode.WRONG_KIND, f"an entry of {both(field)} is an object, not {shown(value)}"
                )
        return tuple(found)
