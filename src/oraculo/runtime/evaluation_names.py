"""What expressions see of a state: `entrada`, and every task by its name.

A name costs nothing until it is asked for, so an evaluation costs what its expressions read, however wide the plan is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oraculo.core.blocks import Block
from oraculo.core.consolidation import failures, results
from oraculo.core.named_tasks import NamedTasks
from oraculo.core.sentences import errors_of
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind, Phase, Status
from oraculo.errors import ExpressionError
from oraculo.plans.words import name_to_portuguese, offered_to_portuguese
from oraculo.wire import strict_json

INPUT_MAX_BYTES = 16 * 1024 * 1024  # of JSON that one evaluation reads
GOOD = (Status.CONCLUIDA, Status.PARCIAL)


class TaskNames(Mapping[str, Any]):
    """`entrada` and every task, each made when it is first asked for; at most `INPUT_MAX_BYTES` are read. Reads the
    live state until it is frozen."""

    def __init__(self, state: Orchestration, named: NamedTasks) -> None:
        self._state: Orchestration | None = state
        self._named = named
        self._positions = named.positions
        self._made: dict[str, Any] = {}
        self._left = INPUT_MAX_BYTES

    def freeze(self, used: Iterable[str]) -> None:
        """Keep what these names need, and let go of the state: others may change it from now on."""
        for name in used:
            if name in self._positions:
                self[name].freeze()
        self._state = None

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        position = self._positions.get(name)
        if position is not None and self._state is not None:
            return TaskView(self, self._state, position)
        if name_to_portuguese(name) == "entrada":
            return self.read(self._named.input)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("entrada", *self._positions))

    def __len__(self) -> int:
        return 1 + len(self._positions)

    def read(self, text: bytes) -> Any:
        self._left -= len(text)
        if self._left < 0:
            raise ExpressionError(f"an evaluation reads at most {INPUT_MAX_BYTES} bytes", 0)
        return strict_json.loads_trusted(text)


class TaskView(Mapping[str, Any]):
    """What a task offers to expressions; its data are read when they are asked for."""

    def __init__(self, names: TaskNames, state: Orchestration, position: int) -> None:
        self._names = names
        self._state: Orchestration | None = state
        self._position = position
        ticket, kind = state.tickets[position], state.plan.tasks[position].kind
        self._data_word = kind.offers
        self._dados: bytes | None = None
        self._fields: tuple[str, ...] = ("status", "ok", self._data_word, "erros", "tentativas")
        self._values: dict[str, Any] = {
            "status": ticket.status.value,
            "ok": ticket.status in GOOD,
            "erros": errors_of(ticket),
            "tentativas": ticket.attempt,
        }
        if kind is Kind.MAPA:
            self._fields += ("total", "falhas")

    def freeze(self) -> None:
        """Keep what was not asked for yet, too."""
        for field in self._fields:
            if field == self._data_word:
                self._dados = self._text()
            elif field not in self._values:
                self._values[field] = self._made(field)
        self._state = None

    def __getitem__(self, field: str) -> Any:
        word = offered_to_portuguese(field)
        if word not in self._values and word in self._fields:
            self._values[word] = self._made(word)
        return self._values[word]

    def _made(self, word: str) -> Any:
        if word == self._data_word:
            return self._names.read(self._text() if self._dados is None else self._dados)
        state = self._state
        assert state is not None
        if word == "falhas":
            return failures(state, self._position)
        return len(state.items(self._position))

    def _text(self) -> bytes:
        state, position = self._state, self._position
        assert state is not None
        if self._data_word == "resultados":
            return results(state, position)
        ticket = state.tickets[position]
        if ticket.phase is Phase.GROWN:  # a loop, asked by itself: its last round has closed
            return state.tickets[state.items(position)[-1]].dados
        return ticket.dados if ticket.status in GOOD else b"null"

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


class ItemNames(Mapping[str, Any]):
    """The names that one item of a map sees: itself, its number, and all that the map sees. To a round of a loop, the
    loop is what the item is to a map."""

    def __init__(self, names: Mapping[str, Any], item_name: str) -> None:
        self._names = names
        self._item_name = item_name
        self.item: Any = None
        self.index = 0

    def own(self, name: str) -> bool:
        """Whether a name is another thing for each item."""
        return name == self._item_name or name_to_portuguese(name) == "indice"

    def __getitem__(self, name: str) -> Any:
        if name == self._item_name:
            return self.item
        return self.index if name_to_portuguese(name) == "indice" else self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter((self._item_name, "indice", *self._names))

    def __len__(self) -> int:
        return 2 + len(self._names)


class UndoneNames(Mapping[str, Any]):
    """The names that what undoes a task sees: `feito`, of an item the item and its number, and all that tasks see."""

    def __init__(self, names: Mapping[str, Any], own: Mapping[str, bytes]) -> None:
        self._names = names
        self._own = own

    def __getitem__(self, name: str) -> Any:
        text = self._own.get(name_to_portuguese(name))
        return self._names[name] if text is None else strict_json.loads_trusted(text)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._names))

    def __len__(self) -> int:
        return len(self._own) + len(self._names)


def undone_names(state: Orchestration, named: NamedTasks, position: int) -> dict[str, bytes]:
    """What a ticket that undoes another sees beside all tasks, as JSON text. `feito` is what came of the other one;
    null when that is not known."""
    undone = state.undoing[position - state.undoes]
    if state.plan.tasks[undone].kind is Kind.MAPA:
        return {"feito": results(state, undone)}
    ticket = state.tickets[undone]
    own = {"feito": ticket.dados if ticket.status in GOOD else b"null"}
    block = None if state.blocks is None else state.blocks.of(undone)
    spec = named.spec(undone)
    if block is not None:
        own["indice"] = str(block.number(undone)).encode()
    if isinstance(block, Block):
        over = named.named[block.owner].map
        if over is not None and spec.undo is not None and spec.undo.keeps_item:
            own[over.item_name] = block.item(undone)
    return own
