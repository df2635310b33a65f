"""A message in a dead-letter queue: the original bytes, with the reason and the origin in its headers.

The orchestrator writes what it refuses straight into its table. Everybody else who cannot handle a message (workers,
the broker itself) puts it into `<queue>.dlq`, and the orchestrator moves it from there to the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import WireError
from oraculo.ports.broker import Delivery, Outgoing
from oraculo.ports.dead_letters import DeadLetter
from oraculo.wire import mensagem, names

REASON = "oraculo-motivo"
DETAIL = "oraculo-detalhe"
ORIGIN = "oraculo-origem"
ATTEMPTS = "oraculo-tentativas"
TICKET = "oraculo-ticket"  # ticket_id of an order whose attempts are used up
DEFAULT_REASON = "dead_lettered"
ATTEMPTS_USED_UP = "attempts_used_up"
_REASON = re.compile(r"[a-z][a-z0-9_-]{0,49}")
MAX_HEADER_CHARS = 1000  # characters of a reason or a detail


def outgoing(delivery: Delivery, reason: str, detail: str) -> Outgoing:
    """The message that says that this one could not be handled."""
    headers = {**delivery.headers, REASON: reason, DETAIL: one_line(detail), ORIGIN: delivery.queue}
    return Outgoing(names.dead_letter_queue(delivery.queue), delivery.body, "", headers)


def letter(delivery: Delivery) -> DeadLetter:
    """What a dead-letter queue holds, as the table keeps it. Its origin is the queue beside the one that it was found
    in. What its headers claim is kept and not believed: requeued, it is handed to its origin."""
    headers = {**delivery.headers, ATTEMPTS: str(_attempts(delivery.body))}
    headers.pop(TICKET, None)  # what only the orchestrator says
    origin = delivery.queue.removesuffix(names.DLQ)
    reason = headers.get(REASON) or headers.get("x-first-death-reason") or DEFAULT_REASON
    detail = headers.get(DETAIL) or _told_by_the_broker(headers)
    if not _REASON.fullmatch(reason):  # any client can write there; what does not look like a reason is only quoted
        reason, detail = DEFAULT_REASON, f"{one_line(reason)}: {detail}"
    return DeadLetter(origin, reason, one_line(detail), delivery.body, None, headers)


def attempts_of(dead: DeadLetter) -> int:
    """How many attempts a dead letter had: what was found when it was kept, or the one that failed."""
    told = dead.headers.get(ATTEMPTS, "")
    return int(told) if told.isascii() and told.isdigit() and len(told) < 10 else 1


def exhausted_ticket(dead: DeadLetter) -> tuple[int, int] | None:
    """(run, position) of the ticket whose attempts are used up; None for any other dead letter. The store writes these
    headers, and clients cannot: a letter that was found in a queue has an origin with another reason."""
    return parse_ticket_id(dead.headers.get(TICKET, "")) if dead.reason == ATTEMPTS_USED_UP else None


def _attempts(body: bytes) -> int:
    """The number of the attempt that an order belongs to; 1 for anything else."""
    try:
        return mensagem.parse_order(body).tentativa or 1
    except WireError:
        return 1


def one_line(text: str) -> str:
    """Headers of several protocols hold one line of printable text."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MAX_HEADER_CHARS])


def _told_by_the_broker(headers: Mapping[str, str]) -> str:
    if "x-first-death-reason" in headers:
        return f"the broker moved it here: {headers['x-first-death-reason']}"
    return "somebody put it into the dead-letter queue without saying why"
