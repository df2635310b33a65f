"""How one ticket of an orchestration stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from oraculo.core.allocations import AllocatedAttempt
from oraculo.core.events import ConflictingAnswerKept, LateAnswerKept
from oraculo.core.reasons import Reason
from oraculo.core.vocabulary import Cause, Phase, Status


@dataclass(slots=True)
class Ticket:
    status: Status = Status.PENDENTE
    phase: Phase = Phase.WAITING
    attempt: int = 0
    confirmed: int = 0  # bit n is set when a broker confirmed the message of attempt n
    answered: int = 0  # bit n is set when attempt n was answered
    digest: int = 0  # of the last answer
    dados: bytes = b"null"
    erros: list[dict[str, object]] | None = None  # that a worker named, of the last attempt that failed
    fault: Reason | None = None  # why that attempt failed, when no worker named an error
    late: list[LateAnswerKept] | None = None
    conflicts: list[ConflictingAnswerKept] | None = None
    earlier: dict[int, int] | None = None  # digests of the answers that did not close it, by attempt
    reason: Reason | None = None  # why it was closed without an answer
    causes: list[Cause] | None = None  # why each earlier attempt failed or was withdrawn
    dispatched_at: datetime | None = None  # first release
    started_at: datetime | None = None  # the broker confirmed the current attempt
    closed_at: datetime | None = None
    due_at: datetime | None = None  # deadline of the running attempt, or when the next one is due
    withdrawn: int = 0  # bit n is set when attempt n was taken back from its worker
    allocated: AllocatedAttempt | None = None  # the worker that was chosen for it last, where workers are chosen
    reused: bool = False  # what came of it was taken over from an earlier run

    @property
    def running(self) -> bool:
        return self.phase is Phase.RUNNING

    @property
    def used(self) -> int:
        """The attempts that count against those that it has."""
        return self.attempt - self.withdrawn.bit_count()

    @property
    def judged(self) -> bool:
        """True while a verdict of the policies is waited for."""
        return self.phase is Phase.JUDGED

    def take_last_answer(self, attempt: int, digest: int) -> None:
        """Note an answer that closes the ticket."""
        self.answered |= 1 << attempt
        self.digest = digest

    def take_answer(self, attempt: int, digest: int) -> None:
        """Note an answer that does not close the ticket; another one may, and its digest takes this one's place."""
        self.answered |= 1 << attempt
        if self.earlier is None:
            self.earlier = {}
        self.earlier[attempt] = digest

    def digests(self, attempt: int) -> Iterator[int]:
        """The digests of all answers to an attempt that was answered."""
        yield self.digest if self.earlier is None else self.earlier.get(attempt, self.digest)
        for one in self.conflicts or ():
            if one.attempt == attempt:
                yield one.digest
