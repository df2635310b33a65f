"""What a task of a plan waits for that no worker does: a signal, an approval, or an instant.

Such a task has no queue and makes no attempts. When it starts, `WaitStarted` records until when; it ends by itself at
that instant, or earlier by the signal or the approval that it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING

from oraculo.core.vocabulary import Phase, Status

if TYPE_CHECKING:
    from oraculo.core.events import WaitEnded
    from oraculo.core.state import Orchestration

WAIT_MAX = timedelta(days=366)  # from when a wait begins to its instant
SIGNALS_KEPT_MAX = 100  # that no wait has taken yet; never fewer, or older journals do not replay


class WaitKind(StrEnum):
    """What it waits for; the words are those of a request."""

    SIGNAL = "sinal"
    APPROVAL = "aprovacao"
    SECONDS = "segundos"
    UNTIL = "ate"


class WaitEnd(StrEnum):
    """How a wait ended: by a signal, by an approval or its refusal, at its instant, or because nothing came in time."""

    SIGNALLED = "signalled"
    APPROVED = "approved"
    REFUSED = "refused"
    ELAPSED = "elapsed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Wait:
    """What one task waits for. `limit` is how long at most, for a signal or an approval; None: as long as it takes.
    What may be an expression (seconds, instant, question) is in the parameters of the task, as one JSON value."""

    kind: WaitKind
    signal: str = ""  # the name of the signal
    roles: tuple[str, ...] = ()  # who may decide; empty: everybody who may approve
    limit: timedelta | None = None
    continues_expired: bool = False  # nothing came in time: it concludes all the same
    continues_refused: bool = False  # it was refused: it concludes all the same

    @property
    def expires(self) -> bool:
        """True of a wait for a signal or an approval, which may not come; the others end at their instant."""
        return self.kind in (WaitKind.SIGNAL, WaitKind.APPROVAL)

    @property
    def name(self) -> str:
        """The name of its task. Tasks that wait for the same thing have the same."""
        return signal_task(self.signal) if self.kind is WaitKind.SIGNAL else self.kind.value

    def due_at(self, value: bytes, now: datetime) -> datetime | None:
        """When it ends by itself if it starts now; `value` are its evaluated parameters."""
        match self.kind:
            case WaitKind.SECONDS:
                return now + timedelta(seconds=float(value))
            case WaitKind.UNTIL:
                return instant_of(value.decode().strip('"'))
            case _:
                return None if self.limit is None else now + self.limit


def instant_of(text: str) -> datetime:
    """The instant of an ISO 8601 text with its zone; ValueError when it is none."""
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return at.astimezone(UTC)
    except OverflowError:
        pass
    raise ValueError(f"{text[:60]!r} is no instant with its zone")


def signal_task(signal: str) -> str:
    """The name of tasks that wait for this signal. The names of signals have no colon."""
    return f"{WaitKind.SIGNAL.value}:{signal}"


@dataclass(slots=True)
class SignalState:
    """A signal that was received. Its data go to the wait that takes it."""

    name: str
    dados: bytes
    content: int  # a digest of name and data
    taken_by: int | None  # the position of the wait that took it when it came; None: it was kept


def content_of(name: str, dados: bytes) -> int:
    """A digest that tells whether a signal is the same again."""
    return int.from_bytes(blake2b(name.encode() + b"\0" + dados, digest_size=6).digest())


def hold(state: Orchestration, position: int, due_at: datetime | None, at: datetime) -> None:
    """Make it true that a wait has begun."""
    ticket = state.tickets[position]
    ticket.status, ticket.phase, ticket.due_at = Status.EM_EXECUCAO, Phase.HELD, due_at
    ticket.dispatched_at = ticket.started_at = at
    state.held.setdefault(state.plan.tasks[position].name, {})[position] = None
    state.status = Status.EM_EXECUCAO
    if due_at is not None:
        state.arm(position, due_at)


def let_go(state: Orchestration, ended: WaitEnded) -> None:
    """Give the ticket of a wait that ends what it ended with; a signal that it takes is kept no longer."""
    ticket = state.tickets[ended.ticket]
    ticket.dados, ticket.reason = ended.dados, ended.reason
    ticket.fault = ended.reason if ended.status is Status.TIMEOUT else None
    if ended.signal is not None:
        del state.kept[ended.signal]
        known = state.signals[ended.signal]
        ticket.dados, known.dados = known.dados, b"null"
    state.data_bytes += len(ticket.dados)
