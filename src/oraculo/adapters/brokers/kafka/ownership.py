"""What this process has of one queue: its own partitions, and messages that it holds of those that it had."""

from __future__ import annotations

import time
from collections.abc import Iterable

from oraculo.adapters.brokers.kafka.assignor import MemberState, News
from oraculo.adapters.brokers.kafka.ledger import Ledger
from oraculo.ports.broker import Delivery

SETTLED_MEMORY_S = 60.0  # for which others are told of what was settled in a partition of theirs


class PartitionOwnership:
    """`untold` says that others do not know yet what became of messages that we held in partitions of theirs."""

    def __init__(self) -> None:
        self.ledgers: dict[int, Ledger] = {}
        self.away: list[Ledger] = []  # partitions that went to others while messages of them were held here
        self.untold = False
        self._said = MemberState()

    @property
    def holding(self) -> bool:
        return any(ledger.held for ledger in (*self.ledgers.values(), *self.away))

    def settle(self, ledger: Ledger, offset: int) -> None:
        """Of a partition that is not ours any more; or may not be for long, because the group forms anew and has been
        told already what we hold."""
        if not ledger.settle(offset):
            return
        ledger.done[offset] = time.monotonic()
        if not ledger.mine:
            self.untold = True
            if ledger.partition in self.ledgers:  # it went away and came back
                self.ledgers[ledger.partition].drop(offset)

    def let_go(self, delivery: Delivery) -> bool:
        """Stop holding a delivery. True if it is ours to hand out; else its owner has to be told."""
        ledger, offset = delivery.tag
        if not ledger.mine and ledger.open.pop(offset, None) is not None:
            self.untold = True
        return bool(ledger.mine)

    def member_state(self, wants: bool) -> MemberState:
        """The state that other members have to know when the group forms again."""
        self.untold = False
        self._said = self._state(wants)
        return self._said

    def lose(self, number: int) -> None:
        """Take note that a partition went to another member; what is held of it is still held."""
        ledger = self.ledgers.pop(number)
        ledger.give_up()
        if ledger.open or ledger.done:
            self.away.append(ledger)

    def gain(self, number: int, word: tuple[int, str], news: News) -> list[Delivery]:
        """Take over a partition with its committed metadata. Return messages of it that a member held and let go of.
        What was known of it is void if the metadata is not ours: another member had the partition meanwhile."""
        ledger = self.ledgers.get(number)
        if ledger is not None and word not in ledger.claims:
            self.lose(number)
            ledger = None
        if ledger is None:
            ledger = self.ledgers[number] = Ledger(number, *word)
        ledger.done.clear()
        ours = [other for other in self.away if other.partition == number]  # of an earlier ownership
        for offset in (*news.done.get(number, ()), *(offset for other in ours for offset in other.done)):
            ledger.drop(offset)
        held = (*news.held.get(number, ()), *(offset for other in ours for offset in other.open))
        return ledger.told(frozenset(held))

    def outdated(self, wants: bool) -> bool:
        """What we said when the group formed is not so any more, in a way that others should know."""
        now = self._state(wants)
        gone = {ledger.partition for ledger in self.away}
        return now.wants != self._said.wants or any(
            set(now.held.get(number, ())) != set(self._said.held.get(number, ()))
            or set(now.done.get(number, ())) != set(self._said.done.get(number, ()))
            for number in gone
        )

    def tidy(self) -> None:
        """Forget what was settled long ago in partitions of others."""
        before = time.monotonic() - SETTLED_MEMORY_S
        for ledger in self.away:
            ledger.done = {offset: when for offset, when in ledger.done.items() if when > before}
        self.away = [ledger for ledger in self.away if ledger.open or ledger.done]

    def forget(self) -> None:
        for ledger in (*self.ledgers.values(), *self.away):
            ledger.forget()
        self.ledgers.clear()
        self.away.clear()
        self.untold = False

    def _state(self, wants: bool) -> MemberState:
        held: dict[int, list[int]] = {}
        done: dict[int, list[int]] = {}
        for ledger in (*self.away, *self.ledgers.values()):
            _extend(held, ledger.partition, ledger.in_hand())
            _extend(done, ledger.partition, ledger.done)
        return MemberState(held, done, frozenset(self.ledgers), wants)


def _extend(found: dict[int, list[int]], number: int, offsets: Iterable[int]) -> None:
    if some := list(offsets):
        found.setdefault(number, []).extend(some)
