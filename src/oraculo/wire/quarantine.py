"""A message in a dead-letter queue: the original bytes, with the reason and the origin in its headers.

The orchestrator writes what it refuses straight into its table. Everybody else who cannot handle a message (workers,
the broker itself) puts it into `<queue>.dlq`, and the orchestrator moves it from there to the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from oraculo.ports.broker import Delivery, Outgoing
from oraculo.ports.store import DeadLetter
from oraculo.wire import names

REASON = "oraculo-motivo"
DETAIL = "oraculo-detalhe"
ORIGIN = "oraculo-origem"
UNSAID = "dead_lettered"
_REASON = re.compile(r"[a-z][a-z0-9_-]{0,49}")
LONGEST = 1000  # characters of a reason or a detail


def outgoing(delivery: Delivery, reason: str, detail: str) -> Outgoing:
    """The message that says that this one could not be handled."""
    headers = {**delivery.headers, REASON: reason, DETAIL: one_line(detail), ORIGIN: delivery.queue}
    return Outgoing(names.dead_letter_queue(delivery.queue), delivery.body, "", headers)


def letter(delivery: Delivery) -> DeadLetter:
    """What a dead-letter queue holds, as the table keeps it."""
    headers = delivery.headers
    origin = headers.get(ORIGIN) or headers.get("x-first-death-queue") or ""
    if not names.is_queue_name(origin):
        origin = delivery.queue.removesuffix(names.DLQ)
    reason = headers.get(REASON) or headers.get("x-first-death-reason") or UNSAID
    detail = headers.get(DETAIL) or _told_by_the_broker(headers)
    if not _REASON.fullmatch(reason):  # anybody can write there; what does not look like a reason is only quoted
        reason, detail = UNSAID, f"{one_line(reason)}: {detail}"
    return DeadLetter(origin, reason, one_line(detail), delivery.body, None, dict(headers))


def one_line(text: str) -> str:
    """Headers of several protocols hold one line of printable text."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:LONGEST]


def _told_by_the_broker(headers: Mapping[str, str]) -> str:
    if "x-first-death-reason" in headers:
        return f"the broker moved it here: {headers['x-first-death-reason']}"
    return "somebody put it into the dead-letter queue without saying why"
