"""Offers: an order in the own queue of a worker, with headers that say of which queue it is, when it was offered and
for how long. Its body and its other headers are those of the order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

QUEUE_HEADER, MADE_HEADER, LENGTH_HEADER = "oraculo-oferta-fila", "oraculo-oferta-em", "oraculo-oferta-s"
OFFERS_REMEMBERED = 4


@dataclass(frozen=True, slots=True)
class OfferNote:
    """`queue` is the one that the order is of. `made_at` is of the clock of who offers."""

    queue: str
    made_at: datetime
    length_s: float


class OfferClock:
    """Tells a worker which offers came too late, although its clock and that of who offers may differ by anything: an
    offer is late when it took so much longer to come than the fastest of the last few. After as many late ones in a row
    the next one is taken for fresh: a clock was set."""

    def __init__(self) -> None:
        self._ways: deque[float] = deque(maxlen=OFFERS_REMEMBERED)

    def is_late(self, note: OfferNote, now: float) -> bool:
        """Return whether an offer that came at `now`, in seconds of any steady clock, is over."""
        way = now - note.made_at.timestamp()
        late = bool(self._ways) and way - min(self._ways) > note.length_s
        self._ways.append(way)
        return late


def offer_headers(order: Mapping[str, str], note: OfferNote) -> dict[str, str]:
    """The headers of an order that is offered."""
    said = {QUEUE_HEADER: note.queue, MADE_HEADER: note.made_at.isoformat(), LENGTH_HEADER: f"{note.length_s:g}"}
    return {**order, **said}


def note_of(headers: Mapping[str, str]) -> OfferNote | None:
    """What the headers say of an offer; None when the message is none, or cannot be read as one."""
    if QUEUE_HEADER not in headers:
        return None
    try:
        made_at, length_s = datetime.fromisoformat(headers[MADE_HEADER]), float(headers[LENGTH_HEADER])
    except (KeyError, ValueError):
        return None
    return None if made_at.tzinfo is None else OfferNote(headers[QUEUE_HEADER], made_at, length_s)
