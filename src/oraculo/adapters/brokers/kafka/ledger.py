"""What this process knows of one partition: what it took, what it handed out, what was settled.

For each group Kafka keeps one offset a partition: everything below it is done. Beside that offset it keeps a short
text, and there the ledger writes the rest: how far messages were handed out (those may come a second time), which of
the later ones are settled already (those need not), and which wait for a time (those must not come early). So a message
that is held for long costs no repetition of its neighbours, also after the partition moved.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from oraculo.ports.broker import Delivery

MARK = "oraculo1"
FREE, HELD, POSTPONED, PARKED = 0, 1, 2, 3
ROOM = 3000  # characters of a note; Kafka's default for offset.metadata.max.bytes is 4096


class Ledger:
    """Offsets are taken in ascending order. `next` is the one after the last that was taken; -1: none is known yet.

    `mine` ends when the partition goes to another member. What is held then is still held and can be settled; `done`
    has what its new owner has to be told of.
    """

    __slots__ = (
        "_due", "_elsewhere", "_skip", "claims", "dirty", "done", "held", "mine", "next", "open", "parked", "partition",
        "seen",
    )  # fmt: skip

    def __init__(self, partition: int, offset: int = -1, note: str = "") -> None:
        self.partition = partition
        self.next = offset
        self.open: dict[int, int] = {}  # offset → FREE, HELD, POSTPONED or PARKED
        self.held = 0  # those that are HELD or POSTPONED
        self.parked: dict[int, Delivery] = {}  # those that another process holds
        self.mine = True
        self.done: dict[int, float] = {}
        self.dirty = False
        self.claims = {(offset, note)}  # what the server may have as our last word
        self.seen, self._skip, self._due = _read(offset, note)
        self._elsewhere: frozenset[int] = frozenset()

    def take(self, offset: int) -> bool:
        """Take a message from the server; False if it was settled before, by any owner of the partition."""
        if offset < self.next:
            return False
        self.next = offset + 1
        skip = self._skip
        while skip and skip[0][1] <= offset:
            skip.popleft()
        if skip and skip[0][0] <= offset:
            self.dirty = True
            return False
        self.open[offset] = FREE
        return True

    def pass_over(self, position: int) -> None:
        """Take note that there is no record before `position` that was not taken: Kafka numbers its own marks, and what
        an aborted transaction wrote, as it numbers records."""
        if position > self.next:
            self.dirty = self.dirty or self.next >= 0
            self.next = position

    def hand_out(self, offset: int) -> bool:
        """False when there is nothing to hand out any more."""
        if self.open.get(offset) != FREE:
            return False
        self.open[offset] = HELD
        self.held += 1
        if offset >= self.seen:
            self.seen = offset + 1
            self.dirty = True
        return True

    def settle(self, offset: int) -> bool:
        """Settle a message; False if it is not held here: it is settled already, or given back."""
        if self.open.get(offset) != HELD:
            return False
        del self.open[offset]
        self.held -= 1
        self.dirty = True
        return True

    def give_back(self, offset: int) -> bool:
        if self.open.get(offset) != HELD:
            return False
        self.open[offset] = FREE
        self.held -= 1
        return True

    def postpone(self, offset: int, due: float) -> bool:
        """Postpone a message: no owner of the partition hands it out before `due`, in seconds since 1970."""
        if self.open.get(offset) != HELD:
            return False
        self.open[offset] = POSTPONED
        self._due[offset] = due
        self.dirty = True
        return True

    def due(self, offset: int) -> float:
        return self._due.get(offset, 0.0)

    def arrive(self, offset: int) -> None:
        """Its time has come."""
        self._due.pop(offset, None)
        if self.open.get(offset) == POSTPONED:
            self.open[offset] = FREE
            self.held -= 1

    def drop(self, offset: int) -> bool:
        """Take note that a message is settled elsewhere; False if that is known."""
        state = self.open.pop(offset, None)
        if state in (HELD, POSTPONED):
            self.held -= 1
        self.parked.pop(offset, None)
        if state is None and (offset < self.next or any(start <= offset < stop for start, stop in self._skip)):
            return False
        if state is None:
            self._skip = deque(sorted([*self._skip, (offset, offset + 1)]))
        self.dirty = True
        return True

    def park(self, offset: int, delivery: Delivery) -> bool:
        """True when another process holds it."""
        if offset not in self._elsewhere:
            return False
        self.open[offset] = PARKED
        self.parked[offset] = delivery
        return True

    def told(self, elsewhere: frozenset[int]) -> list[Delivery]:
        """Take note that other members hold these. Return those that they held and let go of without settling."""
        self._elsewhere = elsewhere
        free = [offset for offset in self.parked if offset not in elsewhere]
        for offset in free:
            self.open[offset] = FREE
        freed = [self.parked.pop(offset) for offset in free]
        for delivery in freed:
            delivery.redelivered = True
        return freed

    def in_hand(self) -> Iterator[int]:
        return (offset for offset, state in self.open.items() if state in (HELD, POSTPONED))

    @property
    def plain(self) -> bool:
        """No message of it is in other hands or has to wait."""
        return not self._elsewhere and not self._due

    def give_up(self) -> None:
        """Give the partition up to another member. What is held here stays, and nothing else."""
        self.mine = False
        self.parked.clear()
        self.open = {offset: state for offset, state in self.open.items() if state in (HELD, POSTPONED)}

    def forget(self) -> None:
        """Stop holding anything; later settlements do nothing."""
        self.mine = False
        self.open.clear()
        self.parked.clear()
        self.done.clear()
        self.held = 0

    def waiting(self, begin: int, end: int) -> int:
        """Count the messages that no member holds, of a partition that goes from `begin` up to `end`."""
        start = max(self.next, begin)
        settled = sum(max(min(stop, end) - max(first, start), 0) for first, stop in self._skip)
        return max(end - start - settled, 0) + len(self.open) - self.held - len(self.parked)

    def word(self, room: int = ROOM) -> tuple[int, str]:
        """The offset below which all is settled, and the note that goes with it."""
        base = next(iter(self.open)) if self.open else self.next
        parts = [f"{MARK};{max(self.seen - base, 0)}"]
        size = len(parts[0])
        for part in self._parts(base):
            size += len(part) + 1
            if size > room:
                break
            parts.append(part)
        return base, ";".join(parts)

    def _parts(self, base: int) -> Iterator[str]:
        for offset, due in self._due.items():
            if offset >= base:
                yield f"@{offset - base},{due:.3f}"
        at = base
        for offset in self.open:
            if offset > at:
                yield f"{at - base},{offset - at}"
            at = offset + 1
        if self.next > at:
            yield f"{at - base},{self.next - at}"
        for start, stop in self._skip:
            if stop > self.next:
                start = max(start, self.next)
                yield f"{start - base},{stop - start}"


def _read(base: int, note: str) -> tuple[int, deque[tuple[int, int]], dict[int, float]]:
    """How far messages were handed out, which runs are settled, which must wait. Another's note says nothing."""
    mark, *parts = note.split(";")
    if mark != MARK or not parts or not parts[0].isdigit():
        return base, deque(), {}
    skip: list[tuple[int, int]] = []
    due: dict[int, float] = {}
    for part in parts[1:]:
        if found := re.fullmatch(r"(\d+),(\d+)", part):
            start = base + int(found[1])
            skip.append((start, start + int(found[2])))
        elif found := re.fullmatch(r"@(\d+),(\d+\.\d+)", part):
            due[base + int(found[1])] = float(found[2])
    return base + int(parts[0]), deque(sorted(skip)), due
