"""A document as a list of tasks to draw: in an order in which they can run, each with what it is in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from oraculo.plans.faults import shown
from oraculo.plans.graph import dependencies
from oraculo.plans.model import (
    ITEM_NAME,
    ApprovalWait,
    CallNode,
    ChildNode,
    InstantWait,
    JoinRule,
    Json,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    PlanDocument,
    RequestDocument,
    SignalWait,
    StagesDocument,
    TypeDocument,
    Wait,
    WaitNode,
)
from oraculo.plans.reader import load
from oraculo.plans.words import Words, field_in, value_in
from oraculo.plans.writer import KIND_WORDS, write


@dataclass(frozen=True, slots=True)
class OutlineTask:
    """`kind`: the Portuguese word that says what it is. `level`: how many tasks are before it, at most."""

    id: str
    name: str
    kind: str
    detail: str
    notes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    level: int = 0
    child: PlanOutline | None = None


@dataclass(frozen=True, slots=True)
class PlanOutline:
    tasks: tuple[OutlineTask, ...]
    input: tuple[str, ...] = ()
    output: str | None = None


def outline(request: RequestDocument, words: Words) -> PlanOutline:
    """What there is to draw of a request of any shape, told in one vocabulary."""
    return _Outliner(words).request(load(write(request, words)))


class _Outliner:
    def __init__(self, words: Words) -> None:
        self._words = words

    def _word(self, field: str) -> str:
        return field_in(self._words, field)

    def request(self, request: RequestDocument) -> PlanOutline:
        match request:
            case PlanDocument():
                tasks = {name: self._task(name, name, node) for name, node in request.tasks.items()}
                output = None if request.output is None else _told(request.output)
                return PlanOutline(_in_order(tasks, dependencies(request)), tuple(request.input), output)
            case StagesDocument():
                return self._stages(request)
            case TypeDocument():
                only = OutlineTask("0", request.type, "tipo", self._word("tipo"))
                return PlanOutline((only,), tuple(request.params or ()))

    def _stages(self, request: StagesDocument) -> PlanOutline:
        collects = {f"c{number}": call for number, call in enumerate(request.collects)}
        executes = {f"e{number}": call for number, call in enumerate(request.executes)}
        join = tuple(self._join(request.fan_in))
        tasks = {id: self._task(id, call.destination, call) for id, call in collects.items()}
        tasks |= {id: self._task(id, call.destination, call, join if collects else ()) for id, call in executes.items()}
        needs = {id: tuple(collects) if id in executes else () for id in tasks}
        return PlanOutline(_in_order(tasks, needs))

    def _task(self, id: str, name: str, node: Node, more: tuple[str, ...] = ()) -> OutlineTask:
        child = self._child(node)
        notes = (*more, *self._notes(node.options))
        return OutlineTask(id, name, _kind(node), self._detail(node), notes, child=child)

    def _child(self, node: Node) -> PlanOutline | None:
        inner = node.do if isinstance(node, MapNode | LoopNode) else node
        if isinstance(inner, ChildNode) and not isinstance(inner.request, TypeDocument):
            return self.request(inner.request)
        return None

    # -- texts -------------------------------------------------------------------------------------------------------

    def _detail(self, node: Node) -> str:
        match node:
            case CallNode():
                return f"{self._word(KIND_WORDS[node.kind])} {node.destination}"
            case ChildNode(request=TypeDocument() as request):
                return f"{self._word('filha')} {request.type}"
            case ChildNode():
                return self._word("filha")
            case MapNode():
                parts = [f"{self._word('para_cada')} {_told(node.items)}"]
                parts += [f"{self._word('como')} {node.as_}"] if node.as_ != ITEM_NAME else []
                parts += [f"{self._word('ao_mesmo_tempo')} {node.at_once}"] if node.at_once else []
                return f"{', '.join(parts)}: {self._detail(node.do)}"
            case LoopNode():
                until = f"{self._word('pare_quando')} {node.stop_when}, {self._word('no_maximo')} {node.at_most}"
                return f"{self._word('repete')} {self._detail(node.do)}, {until}"
            case WaitNode():
                return f"{self._word('espera')} {self._wait(node.wait)}"

    def _wait(self, wait: Wait) -> str:
        match wait:
            case SignalWait():
                return f"{self._word('sinal')} {wait.signal}" + _seconds(wait.timeout_s)
            case ApprovalWait():
                question = f" {shown(wait.question)}" if wait.question else ""
                return f"{self._word('aprovacao')}{question}" + _seconds(wait.timeout_s)
            case InstantWait():
                return f"{self._word('ate')} {wait.until}"
            case _:
                return f"{wait.seconds} {self._word('segundos')}"

    def _notes(self, options: NodeOptions) -> Iterator[str]:
        if options.when is not None:
            yield f"{self._word('quando')} {_told(options.when)}"
        yield from self._join(options.fan_in)
        if options.optional:
            yield self._word("opcional")
        for field, value in (
            ("timeout_s", options.timeout_s),
            ("max_tentativas", options.max_attempts),
            ("prioridade", options.priority),
        ):
            if value is not None:
                yield f"{self._word(field)} {value:g}"
        if options.undo is not None:
            yield f"{self._word('desfaz')} {options.undo.destination}"

    def _join(self, rule: JoinRule | None) -> Iterator[str]:
        if rule is not None:
            enough = "" if rule.at_least is None else f" {rule.at_least}"
            yield f"fan_in {value_in(self._words, 'modo', rule.mode.value)}{enough}"


def _kind(node: Node) -> str:
    match node:
        case CallNode():
            return KIND_WORDS[node.kind]
        case ChildNode():
            return "filha"
        case MapNode():
            return "para_cada"
        case LoopNode():
            return "repete"
        case WaitNode():
            return "espera"


def _told(value: Json) -> str:
    match value:
        case str():
            return value
        case list():
            return f"[{len(value)}]"
        case dict():
            return "{" + ", ".join(value) + "}"
        case _:
            return shown(value)


def _seconds(value: float | None) -> str:
    return "" if value is None else f" ({value:g} s)"


def _in_order(tasks: Mapping[str, OutlineTask], needs: Mapping[str, tuple[str, ...]]) -> tuple[OutlineTask, ...]:
    """The tasks so that each comes after what it needs, otherwise as they were written."""
    numbers = {id: number for number, id in enumerate(tasks)}
    ids = list(tasks)
    feeds: dict[str, list[str]] = {id: [] for id in tasks}
    left = {id: len(needs[id]) for id in tasks}
    for id in tasks:
        for need in needs[id]:
            feeds[need].append(id)
    ready = [numbers[id] for id in tasks if not left[id]]
    heapify(ready)
    found: dict[str, OutlineTask] = {}
    while ready:
        task = tasks[ids[heappop(ready)]]
        level = max((found[need].level + 1 for need in needs[task.id]), default=0)
        found[task.id] = OutlineTask(
            task.id, task.name, task.kind, task.detail, task.notes, needs[task.id], level, task.child
        )
        for fed in feeds[task.id]:
            left[fed] -= 1
            if not left[fed]:
                heappush(ready, numbers[fed])
    return tuple(found.values())
