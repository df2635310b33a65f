"""One task of a plan: JSON → node. Structure only; names and expressions are looked at when all tasks are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from oraculo.core.vocabulary import Kind
from oraculo.core.waits import instant_of
from oraculo.expressions.template import OPENING
from oraculo.plans import limits
from oraculo.plans.faults import FaultCode, Faults, Path, shown
from oraculo.plans.fields import ObjectFields
from oraculo.plans.model import (
    ITEM_NAME,
    ApprovalWait,
    Body,
    CallNode,
    ChildNode,
    InstantWait,
    JoinMode,
    JoinRule,
    Json,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    Otherwise,
    RequestDocument,
    RetryRule,
    SignalWait,
    TimerWait,
    UndoRule,
    Wait,
    WaitNode,
)
from oraculo.plans.words import FIELDS

CALLS = {"fonte": Kind.COLETA, "executador": Kind.EXECUCAO}
# What a task is → the words that go with it.
KINDS: Mapping[str, tuple[str, ...]] = {
    "fonte": ("parametros",),
    "executador": ("parametros",),
    "para_cada": ("como", "ao_mesmo_tempo", "faz"),
    "espera": (),
    "filha": (),
    "repete": (),
}
OPTIONS = (
    "depende", "quando", "timeout_s", "max_tentativas", "retentativa", "desfaz", "opcional", "prioridade", "fan_in",
)  # fmt: skip
BODY_OPTIONS = ("quando", "timeout_s", "max_tentativas", "retentativa", "desfaz", "prioridade")
BODY_KINDS = ("fonte", "executador", "filha")
UNDO_FIELDS = ("fonte", "executador", "parametros", "timeout_s", "max_tentativas", "retentativa")
WAIT_KINDS = ("sinal", "aprovacao", "segundos", "ate")
WAIT_FIELDS = (*WAIT_KINDS, "timeout_s", "ao_expirar", "ao_recusar")
LOOP_FIELDS = ("faz", "pare_quando", "no_maximo", "pausa_s", "ao_esgotar")
_IN_WAIT = dict.fromkeys((*WAIT_KINDS, "ao_expirar", "ao_recusar"), "belongs in espera (wait)")
_IN_LOOP = dict.fromkeys(("pare_quando", "no_maximo", "pausa_s", "ao_esgotar"), "belongs in repete (repeat)")
_IN_APPROVAL = dict.fromkeys(("pergunta", "papeis"), "belongs in espera.aprovacao (wait.approval)")
_ELSEWHERE = {
    **_IN_WAIT,
    **_IN_LOOP,
    **_IN_APPROVAL,
    **dict.fromkeys(("modo", "minimo"), "belongs in fan_in"),
    **dict.fromkeys(("base_s", "teto_s", "nao_em"), "belongs in retentativa (retry)"),
}
MAP_MODES = (JoinMode.TODOS, JoinMode.TODAS_OK, JoinMode.QUORUM, JoinMode.PRIMEIRO)
_CONDITION = "a condition in ${{ }}, or true or false"

ReadChild = Callable[[object, Path], RequestDocument | None]


def both(field: str) -> str:
    """A field in both vocabularies, for messages."""
    return f"{field} ({FIELDS[field]})" if field in FIELDS else field


class NodeReader:
    """Reads tasks. `read_child` reads the request inside of a `filha`."""

    def __init__(self, faults: Faults, read_child: ReadChild) -> None:
        self._faults = faults
        self._read_child = read_child

    def node(self, value: object, path: Path) -> Node | None:
        """The task, or None when it cannot be told what it is; then there is a fault."""
        if not isinstance(value, dict):
            self._faults.add(path, FaultCode.WRONG_KIND, f"a task is an object, not {shown(value)}")
            return None
        known = (*KINDS, *(word for words in KINDS.values() for word in words), *OPTIONS)
        fields = ObjectFields(value, path, known, self._faults, "a task", _ELSEWHERE)
        kind = self._kind(fields, tuple(KINDS), "a task")
        if kind is None:
            return None
        self._refuse(fields, kind)
        options = self._options(fields, of_map=kind == "para_cada", call=kind in CALLS)
        match kind:
            case "para_cada":
                return self._map(fields, options)
            case "espera":
                wait = self._wait(fields, options)
                return None if wait is None else WaitNode(wait, options)
            case "repete":
                return self._loop(fields, options)
            case _:
                return self._body(fields, kind, options)

    def _kind(self, fields: ObjectFields, kinds: tuple[str, ...], what: str) -> str | None:
        found = [kind for kind in kinds if kind in fields]
        if len(found) == 1:
            return found[0]
        choices = ", ".join(both(kind) for kind in kinds)
        if found:
            given = " and ".join(fields.given(found))
            fields.fault(found[1], FaultCode.AMBIGUOUS, f"{what} is one of {choices}; this one is {given}")
        elif not fields.misspelt.intersection(kinds):
            self._faults.add(fields.path, FaultCode.MISSING, f"{what} is one of {choices}; this one is none of them")
        return None

    def _refuse(self, fields: ObjectFields, kind: str) -> None:
        """Words that go with another kind of task."""
        for other, words in KINDS.items():
            for word in words:
                if word in fields and word not in KINDS[kind] and other != "executador":
                    owner = both(other) if word != "parametros" else "fonte (source) and executador (executor)"
                    message = f"{fields.word(word)} goes with {owner}, not with {fields.word(kind)}"
                    fields.fault(word, FaultCode.NOT_ALLOWED, message)

    # -- what tasks are ----------------------------------------------------------------------------------------------

    def _body(self, fields: ObjectFields, kind: str, options: NodeOptions) -> Body | None:
        if kind == "filha":
            request = self._read_child(fields.raw("filha"), fields.at("filha"))
            return None if request is None else ChildNode(request, options)
        return self._call(fields, kind, options)

    def call(self, fields: ObjectFields, kind: str) -> CallNode:
        """A collect or an execute whose fields are known to be those of one."""
        return self._call(fields, kind, self._options(fields, call=True))

    def _call(self, fields: ObjectFields, kind: str, options: NodeOptions) -> CallNode:
        destination = fields.text(kind, limits.DESTINATION, limits.DESTINATION_RULE)
        if kind in fields and fields.raw(kind) is None:
            fields.wrong(kind, limits.DESTINATION_RULE)
        return CallNode(CALLS[kind], destination or "", fields.params("parametros"), options)

    def _inner(self, fields: ObjectFields, options: tuple[str, ...]) -> Body | None:
        """`faz`: one collect, execute or child with options of its own."""
        fields.need("faz")
        value = fields.mapping("faz")
        if value is None:
            return None
        known = (*BODY_KINDS, "parametros", *options)
        place = both("faz")
        elsewhere = dict.fromkeys(
            ("depende", "fan_in", "opcional", "ao_mesmo_tempo", "como"), "belongs in the task around it"
        )
        inner = ObjectFields(value, fields.at("faz"), known, self._faults, place, elsewhere)
        kind = self._kind(inner, BODY_KINDS, place)
        if kind is None:
            return None
        if kind == "filha" and "parametros" in inner:
            message = f"{inner.word('parametros')} belongs inside of filha (child)"
            inner.fault("parametros", FaultCode.NOT_ALLOWED, message)
        return self._body(inner, kind, self._options(inner, call=kind in CALLS))

    def _map(self, fields: ObjectFields, options: NodeOptions) -> MapNode | None:
        do = self._inner(fields, BODY_OPTIONS)
        name = fields.text("como", limits.IDENTIFIER, limits.IDENTIFIER_RULE)
        at_once = fields.integer("ao_mesmo_tempo", 1, limits.MAX_MAP_ITEMS)
        items: str | list[Json] | None
        if isinstance(fields.raw("para_cada"), list):
            literal = fields.json("para_cada")
            items = literal if isinstance(literal, list) else None
            if items is not None and len(items) > limits.MAX_MAP_ITEMS:
                most = limits.MAX_MAP_ITEMS
                fields.fault("para_cada", FaultCode.TOO_MUCH, f"{len(items)} items; a map has at most {most}")
        else:
            items = fields.expression("para_cada", "a list, or an expression in ${{ }} that gives one")
        return None if do is None or items is None else MapNode(items, do, name or ITEM_NAME, at_once, options)

    def _loop(self, outer: ObjectFields, options: NodeOptions) -> LoopNode | None:
        value = outer.mapping("repete")
        if value is None:
            return None
        elsewhere = {"ate": "is a word of espera (wait); the condition of a loop is pare_quando (stop_when)"}
        fields = ObjectFields(value, outer.at("repete"), LOOP_FIELDS, self._faults, both("repete"), elsewhere)
        do = self._inner(fields, tuple(word for word in BODY_OPTIONS if word != "quando"))
        fields.need("pare_quando", "no_maximo")
        stop_when = fields.expression("pare_quando", "a condition in ${{ }}")
        at_most = fields.integer("no_maximo", 1, limits.MAX_LOOP_ROUNDS)
        pause_s = fields.number("pausa_s", limits.WAIT_MAX_SECONDS, above=False)
        otherwise = fields.choice("ao_esgotar", Otherwise, Otherwise.FALHA)
        return None if do is None else LoopNode(do, stop_when or "", at_most or 1, pause_s, otherwise, options)

    # -- waits -------------------------------------------------------------------------------------------------------

    def _wait(self, outer: ObjectFields, options: NodeOptions) -> Wait | None:
        value = outer.mapping("espera")
        if value is None:
            return None
        fields = ObjectFields(value, outer.at("espera"), WAIT_FIELDS, self._faults, both("espera"), _IN_APPROVAL)
        kind = self._kind(fields, WAIT_KINDS, both("espera"))
        if kind is None:
            return None
        self._refuse_in_wait(fields, kind)
        timeout_s = fields.number("timeout_s", limits.WAIT_MAX_SECONDS)
        if timeout_s is not None and options.timeout_s is not None:
            fields.fault("timeout_s", FaultCode.TWICE, "timeout_s is said of the task, too; keep one of them")
        on_expire = fields.choice("ao_expirar", Otherwise, Otherwise.FALHA)
        match kind:
            case "sinal":
                signal = fields.text("sinal", limits.DESTINATION, limits.DESTINATION_RULE)
                if signal is None and fields.raw("sinal") is None:
                    fields.wrong("sinal", limits.DESTINATION_RULE)
                return SignalWait(signal or "", timeout_s, on_expire)
            case "aprovacao":
                return self._approval(fields, timeout_s, on_expire)
            case "segundos":
                return self._timer(fields)
            case _:
                return self._instant(fields)

    def _refuse_in_wait(self, fields: ObjectFields, kind: str) -> None:
        bounded = kind in ("sinal", "aprovacao")
        for word in ("timeout_s", "ao_expirar"):
            if word in fields and not bounded:
                message = f"{fields.word(word)} goes with sinal (signal) and aprovacao (approval)"
                fields.fault(word, FaultCode.NOT_ALLOWED, f"{message}, not with {fields.word(kind)}")
        if "ao_recusar" in fields and kind != "aprovacao":
            message = f"{fields.word('ao_recusar')} goes with aprovacao (approval), not with {fields.word(kind)}"
            fields.fault("ao_recusar", FaultCode.NOT_ALLOWED, message)

    def _approval(self, outer: ObjectFields, timeout_s: float | None, on_expire: Otherwise) -> ApprovalWait:
        on_refuse = outer.choice("ao_recusar", Otherwise, Otherwise.FALHA)
        value = outer.mapping("aprovacao") or {}
        around = dict.fromkeys(
            ("timeout_s", "ao_expirar", "ao_recusar"), "belongs in espera (wait), beside aprovacao (approval)"
        )
        fields = ObjectFields(
            value, outer.at("aprovacao"), ("pergunta", "papeis"), self._faults, both("aprovacao"), around
        )
        question = fields.json("pergunta")
        if question is not None and not isinstance(question, str):
            fields.wrong("pergunta", "a text")
            question = None
        roles = fields.texts("papeis", limits.SHORT_TEXT, limits.SHORT_TEXT_RULE, limits.MAX_ROLES)
        return ApprovalWait(question, roles, timeout_s, on_expire, on_refuse)

    def _timer(self, fields: ObjectFields) -> TimerWait:
        if isinstance(fields.raw("segundos"), str):
            return TimerWait(fields.expression("segundos", "a number, or an expression in ${{ }} that gives one") or 0)
        seconds = fields.number("segundos", limits.WAIT_MAX_SECONDS, above=False)
        if fields.raw("segundos") is None:
            fields.wrong("segundos", "a number")
        return TimerWait(seconds or 0)

    def _instant(self, fields: ObjectFields) -> InstantWait:
        value = fields.raw("ate")
        if isinstance(value, str) and OPENING in value:
            return InstantWait(value if fields.json("ate") is not None else "")
        if isinstance(value, str):
            with suppress(ValueError):
                instant_of(value)
                return InstantWait(value)
        fields.wrong("ate", "an instant with its zone, as in 2026-12-24T18:00:00-03:00, or an expression in ${{ }}")
        return InstantWait("")

    # -- options -----------------------------------------------------------------------------------------------------

    def _options(self, fields: ObjectFields, *, call: bool, of_map: bool = False) -> NodeOptions:
        when: str | bool | None = None
        if isinstance(fields.raw("quando"), bool):
            when = fields.boolean("quando")
        elif fields.raw("quando") is not None:
            when = fields.expression("quando", _CONDITION)
        return NodeOptions(
            needs=fields.texts("depende", limits.IDENTIFIER, "the name of a task", limits.MAX_DEPENDENCIES),
            when=when,
            timeout_s=fields.number("timeout_s", limits.ATTEMPT_MAX_SECONDS if call else limits.WAIT_MAX_SECONDS),
            max_attempts=fields.integer("max_tentativas", 1, limits.MAX_ATTEMPTS),
            retry=self._retry(fields),
            undo=self._undo(fields),
            optional=fields.boolean("opcional"),
            priority=fields.integer("prioridade", 1, 9),
            fan_in=self.join(fields, JoinMode.TODOS if of_map else JoinMode.TODAS_OK, MAP_MODES if of_map else ()),
        )

    def _retry(self, outer: ObjectFields) -> RetryRule | None:
        value = outer.mapping("retentativa") if outer.raw("retentativa") is not None else None
        if value is None:
            return None
        known = ("base_s", "teto_s", "nao_em")
        elsewhere = {"max_tentativas": "belongs in the task"}
        fields = ObjectFields(value, outer.at("retentativa"), known, self._faults, both("retentativa"), elsewhere)
        return RetryRule(
            fields.number("base_s", limits.ATTEMPT_MAX_SECONDS, above=False),
            fields.number("teto_s", limits.ATTEMPT_MAX_SECONDS, above=False),
            fields.texts("nao_em", limits.SHORT_TEXT, limits.SHORT_TEXT_RULE, limits.MAX_CODES),
        )

    def _undo(self, outer: ObjectFields) -> UndoRule | None:
        value = outer.mapping("desfaz") if outer.raw("desfaz") is not None else None
        if value is None:
            return None
        fields = ObjectFields(value, outer.at("desfaz"), UNDO_FIELDS, self._faults, both("desfaz"))
        kind = self._kind(fields, tuple(CALLS), both("desfaz"))
        if kind is None:
            return None
        call = self.call(fields, kind)
        options = call.options
        return UndoRule(
            call.kind, call.destination, call.params, options.timeout_s, options.max_attempts, options.retry
        )

    def join(self, outer: ObjectFields, default: JoinMode, modes: tuple[JoinMode, ...]) -> JoinRule | None:
        value = outer.mapping("fan_in") if outer.raw("fan_in") is not None else None
        if value is None:
            return None
        fields = ObjectFields(value, outer.at("fan_in"), ("modo", "minimo"), self._faults, "fan_in")
        mode = fields.choice("modo", JoinMode, default, modes)
        at_least = fields.integer("minimo", 1, limits.MAX_TASKS)
        if mode is JoinMode.QUORUM:
            fields.need("minimo")
        if mode is not JoinMode.QUORUM and at_least is not None:
            message = f"{fields.word('minimo')} goes with quorum, not with {mode.value}"
            fields.fault("minimo", FaultCode.NOT_ALLOWED, message)
        return JoinRule(mode, at_least)
