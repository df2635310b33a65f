"""The profile of a plan whose tasks have names: what `tarefas` of a request says beyond tasks and gates.

`NamedTasks.named[n]` belongs to `Plan.tasks[n]`. `document` is the request in Portuguese words, without the parameters
that the tasks hold themselves; the core never looks inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, ClassVar

from oraculo.core.plan import ALL_OK, Backoff, Join, Plan, Task
from oraculo.core.profile import Profile, TaskSpec
from oraculo.core.waits import Wait


@dataclass(frozen=True, slots=True)
class NamedTask(TaskSpec):
    """Of one task. `needs` are positions of the tasks in its `depende`, in that order."""

    name: str
    needs: tuple[int, ...] = ()
    is_optional: bool = False
    backoff: Backoff | None = None
    final_codes: tuple[str, ...] = ()  # errors with one of these codes are not tried again
    when: bytes = b"null"  # JSON text: its condition, true, false or a text with an expression; null: none
    asks: bool = False  # it has a condition, or expressions in its parameters; maps and loops always ask
    map: MapSpec | None = None  # what it does for each item, when it is a map
    wait: Wait | None = None  # what it waits for, when that is its task
    priority: int | None = None  # from 1, the lowest, to 9
    loop: LoopSpec | None = None  # what it does in each round, when it is a loop
    undo: UndoSpec | None = None  # what undoes it when the run fails
    undoes: bool = False  # it undoes the task of this name, or an item of it
    child: ChildSpec | None = None  # what it asks for, when it is an orchestration of its own


@dataclass(frozen=True, slots=True)
class UndoSpec:
    """The order that undoes a task, or an item of a map, and what is said of it. `keeps_item`: it names the item, which
    the row of that item keeps behind the values of its holes."""

    task: Task
    spec: NamedTask
    keeps_item: bool = False


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A map: `task`, for each item of a list. `items` is JSON text: a list, or a text with an expression that gives
    one; `item` is what is said of the task of each; `limit` is how long the whole of it may take."""

    items: bytes
    item_name: str
    task: Task
    item: NamedTask
    join: Join = ALL_OK
    at_once: int | None = None
    limit: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A child: `request` is JSON text, the request in Portuguese words without what its parent gives it. That is the
    parameters of the task, the only part in which the parent's expressions stand."""

    request: bytes


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """A loop: `task`, again and again, until `stop_when` is true. That is JSON text: an expression; `item` is what is
    said of the task of each round; `limit` is how long the whole of it may take."""

    task: Task
    item: NamedTask
    stop_when: bytes
    at_most: int  # rounds
    pause: timedelta = timedelta()  # between two rounds
    continues: bool = False  # no round is left: it concludes all the same
    limit: timedelta | None = None

    def has_room(self, rounds: int) -> bool:
        """True when another round may follow so many."""
        return rounds < self.at_most


@dataclass(frozen=True, slots=True)
class NamedTasks(Profile):
    """Of a whole plan."""

    has_expressions: ClassVar[bool] = True
    has_specs: ClassVar[bool] = True

    named: tuple[NamedTask, ...]
    document: bytes
    input: bytes = b"{}"  # JSON object: `entrada`
    output: bytes = b"null"  # JSON text: `saida`, with its expressions; null: none
    _positions: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)  # never written
    _undoable: list[int] = field(init=False, repr=False, compare=False, default_factory=list)  # never written
    _has_priorities: bool = field(init=False, repr=False, compare=False, default=False)  # never written

    def __post_init__(self) -> None:
        bodies = [(one, one.map or one.loop) for one in self.named]
        said = any(one.priority or (body is not None and body.item.priority) for one, body in bodies)
        object.__setattr__(self, "_has_priorities", said)
        self._undoable.extend(
            position
            for position, (one, body) in enumerate(bodies)
            if one.undo is not None or (body is not None and body.item.undo is not None)
        )
        self._positions.update((one.name, position) for position, one in enumerate(self.named))

    @property
    def has_ceiling(self) -> bool:
        """True when a task says its priority: all of them go by it then."""
        return self._has_priorities

    def priority_of(self, position: int) -> int | None:
        return self.spec(position).priority

    @property
    def has_output(self) -> bool:
        return self.output != b"null"

    def spec(self, position: int) -> NamedTask:
        """What is said of one task."""
        return self.named[position]

    def asks(self, position: int) -> bool:
        return self.spec(position).asks

    @property
    def positions(self) -> dict[str, int]:
        """Where the task of each name stands."""
        return self._positions

    @property
    def undoable(self) -> Sequence[int]:
        """The tasks that say how they, or their items, are undone."""
        return self._undoable

    def wait(self, position: int) -> Wait | None:
        return self.spec(position).wait

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.named)

    def name_of(self, position: int) -> str:
        return self.spec(position).name

    def gives(self, position: int) -> tuple[int, ...]:
        return self.spec(position).needs

    def optional(self, position: int) -> bool:
        return self.spec(position).is_optional

    def backoff(self, position: int) -> Backoff | None:
        return self.spec(position).backoff

    def is_final(self, position: int, codes: Sequence[object]) -> bool:
        final = self.spec(position).final_codes
        return bool(final) and any(code in final for code in codes)

    def task_fields(self, position: int) -> dict[str, Any]:
        return {"tarefa": self.spec(position).name}


@dataclass(frozen=True, slots=True)
class GrownTasks(NamedTasks):
    """Of a plan that has got more tasks while it ran: `items[n]` belongs to the task behind those of `named`."""

    items: list[NamedTask] = field(default_factory=list)

    @staticmethod
    def of(named: NamedTasks) -> GrownTasks:
        return GrownTasks(**{one.name: getattr(named, one.name) for one in fields(named) if one.init})

    def spec(self, position: int) -> NamedTask:
        own = len(self.named)
        return self.named[position] if position < own else self.items[position - own]


def named_in(plan: Plan) -> NamedTasks | None:
    """What a plan with named tasks is beyond its tasks and gates; None of any other plan."""
    return plan.profile if isinstance(plan.profile, NamedTasks) else None
