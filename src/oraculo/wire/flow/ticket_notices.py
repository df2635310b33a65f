"""What the address in the metadata of a ticket is told: that it began, that it goes on, how it ended.

Read from the journal, so a step says the same whenever it is read, and each notice has an id of its own by which a
repeated one is known.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from oraculo.core import events as ev
from oraculo.core.flow.outcome import flow_of
from oraculo.core.flow.profile import Spec
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.wire import strict_json
from oraculo.wire.flow.instants import milliseconds
from oraculo.wire.flow.ticket_requests import WEBHOOK_FIELD
from oraculo.wire.flow.tickets import execution_ticket

CREATED, UPDATED, COMPLETED, FAILED = "ticket.created", "ticket.updated", "ticket.completed", "ticket.failed"
_MARK = f'"{WEBHOOK_FIELD}"'.encode()


@dataclass(frozen=True, slots=True)
class TicketNotice:
    url: str
    event_id: str
    event_type: str
    ticket_id: str
    body: bytes


def url_of(spec: Spec) -> str | None:
    """The address in the metadata of a ticket; None when it names none."""
    if _MARK not in spec.metadata:
        return None
    said = strict_json.loads_trusted(spec.metadata).get(WEBHOOK_FIELD)
    return said if isinstance(said, str) and said else None


def notices(state: Orchestration, first: int, at: datetime, events: Sequence[ev.Event]) -> Iterator[TicketNotice]:
    """What one step of the journal has to tell. `state` is as it is after the step."""
    specs = flow_of(state).specs
    for number, event in enumerate(events, first):
        for position, kind in _of(event):
            url = url_of(specs[position])
            if url is not None:
                yield _notice(state, position, url, f"{state.run:x}.{number}.{position}", kind, at)


def _of(event: ev.Event) -> Iterator[tuple[int, str]]:
    match event:
        case ev.OrchestrationStarted():
            yield from ((position, CREATED) for position in range(len(event.plan.tasks)))
        case ev.DispatchConfirmed(tickets):
            yield from ((position, UPDATED) for position, _ in tickets)
        case ev.AttemptFailed(position):
            yield position, UPDATED
        case ev.TicketConcluded(position):
            yield position, COMPLETED
        case ev.TicketFailed(position):
            yield position, FAILED
        case ev.TicketsClosed(positions):
            yield from ((position, FAILED) for position in positions)
        case _:
            pass


def _notice(state: Orchestration, position: int, url: str, event_id: str, kind: str, at: datetime) -> TicketNotice:
    identity = ticket_id(state.run, position)
    document: dict[str, Any] = {
        "event_id": event_id,
        "event_type": kind,
        "ticket_id": identity,
        "ticket": execution_ticket(state, position, at),
        "timestamp": milliseconds(at),
    }
    return TicketNotice(url, event_id, kind, identity, strict_json.compact(document))


def original_headers(notice: TicketNotice, key: bytes | None) -> dict[str, str]:
    """The headers that receivers of the original know. The signature is over the bytes that are sent."""
    headers = {"X-Neural-Hive-Event": notice.event_type, "X-Neural-Hive-Ticket-Id": notice.ticket_id}
    if key is not None:
        headers["X-Neural-Hive-Signature"] = f"sha256={hmac.new(key, notice.body, sha256).hexdigest()}"
    return headers
