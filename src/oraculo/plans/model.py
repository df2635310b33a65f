"""A plan as a document: what users wrote, typed. Attributes have the English words of the table in words.py.

JSON values and texts with `${{ }}` are kept as they were written; nothing is evaluated here. A document that came from
`reader.read` without faults keeps every promise of plan_check.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Union

from oraculo.core.uniqueness import UniqueMode
from oraculo.core.vocabulary import Kind

Json = Union[None, bool, int, float, str, "list[Json]", "dict[str, Json]"]
Params = dict[str, Json]

ITEM_NAME = "item"


class JoinMode(StrEnum):
    """When enough has closed: of the tasks that a task depends on, or of the items of a map."""

    TODOS = "todos"
    TODAS_OK = "todas_ok"
    QUORUM = "quorum"
    PRIMEIRO = "primeiro"
    FECHADAS = "fechadas"


class Otherwise(StrEnum):
    """What becomes of a wait that expires or is refused, and of a loop that runs out."""

    FALHA = "falha"
    SEGUE = "segue"


@dataclass(frozen=True, slots=True)
class JoinRule:
    mode: JoinMode = JoinMode.TODOS
    at_least: int | None = None


@dataclass(frozen=True, slots=True)
class RetryRule:
    """Waits between attempts, and codes of errors that are not tried again."""

    base_s: float | None = None
    cap_s: float | None = None
    not_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UndoRule:
    """The order that undoes a task when the run fails."""

    kind: Kind
    destination: str
    params: Params = field(default_factory=dict)
    timeout_s: float | None = None
    max_attempts: int | None = None
    retry: RetryRule | None = None


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What any task may say beside what it is."""

    needs: tuple[str, ...] = ()
    when: str | bool | None = None
    timeout_s: float | None = None
    max_attempts: int | None = None
    retry: RetryRule | None = None
    undo: UndoRule | None = None
    optional: bool = False
    priority: int | None = None
    fan_in: JoinRule | None = None


NO_OPTIONS = NodeOptions()


@dataclass(frozen=True, slots=True)
class CallNode:
    """A collect (`fonte`) or an execute (`executador`)."""

    kind: Kind
    destination: str
    params: Params = field(default_factory=dict)
    options: NodeOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class ChildNode:
    """A run of its own: a task type, or a whole request."""

    request: RequestDocument
    options: NodeOptions = NO_OPTIONS


Body = CallNode | ChildNode  # what `faz` may be


@dataclass(frozen=True, slots=True)
class MapNode:
    """One `do` for each item of a list; `options.fan_in` counts the items."""

    items: str | list[Json]
    do: Body
    as_: str = ITEM_NAME
    at_once: int | None = None
    options: NodeOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class LoopNode:
    """`do`, again and again, until `stop_when` is true."""

    do: Body
    stop_when: str
    at_most: int
    pause_s: float | None = None
    on_exhaust: Otherwise = Otherwise.FALHA
    options: NodeOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class SignalWait:
    signal: str
    timeout_s: float | None = None
    on_expire: Otherwise = Otherwise.FALHA


@dataclass(frozen=True, slots=True)
class ApprovalWait:
    question: str | None = None
    roles: tuple[str, ...] = ()
    timeout_s: float | None = None
    on_expire: Otherwise = Otherwise.FALHA
    on_refuse: Otherwise = Otherwise.FALHA


@dataclass(frozen=True, slots=True)
class TimerWait:
    seconds: float | str


@dataclass(frozen=True, slots=True)
class InstantWait:
    until: str


Wait = SignalWait | ApprovalWait | TimerWait | InstantWait


@dataclass(frozen=True, slots=True)
class WaitNode:
    """Nothing goes on behind it before a signal, an approval or an instant."""

    wait: Wait
    options: NodeOptions = NO_OPTIONS

    @property
    def limit_s(self) -> float | None:
        """How long it may wait: said in `espera`, or on the task."""
        own = self.wait.timeout_s if isinstance(self.wait, SignalWait | ApprovalWait) else None
        return self.options.timeout_s if own is None else own


Node = CallNode | MapNode | WaitNode | ChildNode | LoopNode


@dataclass(frozen=True, slots=True)
class NotifyTargets:
    webhook: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class UniqueRule:
    """That a request exists once. `key` None: by all that it says."""

    mode: UniqueMode
    window_s: float | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What every request may say, whatever its shape."""

    timeout_s: float | None = None
    correlation_id: str | None = None
    notify: NotifyTargets | None = None
    labels: tuple[str, ...] = ()
    unique: UniqueRule | None = None


NO_REQUEST_OPTIONS = RequestOptions()


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan of any shape. `output` None: not said."""

    tasks: dict[str, Node]
    input: Params = field(default_factory=dict)
    output: Json = None
    options: RequestOptions = NO_REQUEST_OPTIONS


@dataclass(frozen=True, slots=True)
class StagesDocument:
    """Collect → execute."""

    collects: tuple[CallNode, ...] = ()
    executes: tuple[CallNode, ...] = ()
    fan_in: JoinRule | None = None
    options: RequestOptions = NO_REQUEST_OPTIONS


@dataclass(frozen=True, slots=True)
class TypeDocument:
    """A request that names a task type."""

    type: str
    params: Params | None = None
    options: RequestOptions = NO_REQUEST_OPTIONS


RequestDocument = PlanDocument | StagesDocument | TypeDocument
