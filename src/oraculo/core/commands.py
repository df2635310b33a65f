"""What can be asked of an orchestration. Imperatives; each becomes at most one step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Kind


@dataclass(frozen=True, slots=True)
class Start:
    """Begin. `run` is the orchestration's own number: unique and growing with time."""

    run: int
    correlation_id: str
    plan: Plan
    fingerprint: str = ""  # of the request, to tell a repeated request from another one with the same id
    traceparent: str | None = None  # W3C trace context; kept, never looked at


@dataclass(slots=True)
class ConfirmDispatch:
    """A broker confirmed these (position, attempt) messages."""

    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class RecordResult:
    """A worker answered. What it did not echo is None; the rules find the ticket, or refuse."""

    ok: bool
    dados: bytes  # JSON text
    erros: list[dict[str, object]]
    definitivo: bool = False
    ticket: str | None = None  # ticket_id
    attempt: int | None = None
    kind: Kind | None = None
    name: str | None = None
    digest: int = 0  # of the bytes that arrived
    traceparent: str | None = None  # of the worker, when it passed one on; not part of the journal


@dataclass(frozen=True, slots=True)
class Wake:
    """The time has come for something."""


@dataclass(frozen=True, slots=True)
class Cancel:
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Approve:
    """A human decided on a plan that waits for it."""

    approved: bool
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordDelivery:
    """How one try at a notice went."""

    notice: int
    attempt: int
    delivered: bool
    final: bool  # do not try again
    detail: str = ""
    retry_after: timedelta | None = None


Command = Start | ConfirmDispatch | RecordResult | Wake | Cancel | Approve | RecordDelivery
