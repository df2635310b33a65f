"""When a destination that fails gets no more orders, and how it gets them again.

A breaker counts the failures of one queue in a row. When they reach a number it opens: orders wait. After a while one
of them goes out as a probe. What becomes of it decides: an answer closes the breaker and all go; a failure leaves it
open, and the next probe has to wait twice as long. Answers to orders that went out before it opened decide nothing.

What counts is read from the journal, in the order of commits; `position` is how far. So the same step read twice
counts once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

PROBE_SEND_TIMEOUT = timedelta(seconds=10)  # for a broker to take a probe, and beyond the time of its attempt
ERROR_MAX_CHARS = 300

Order = tuple[int, int, int]  # run, position, attempt


class Sign(StrEnum):
    """What an event says about the destination of an order."""

    SENT = "sent"  # a broker has it
    WORKED = "worked"
    FAILED = "failed"
    VOID = "void"  # it is over, and says nothing about its destination


@dataclass(frozen=True, slots=True)
class BreakerRules:
    failures: int  # in a row, after which it opens
    probe_after: timedelta  # after it opened; doubled with each probe that fails
    probe_after_max: timedelta

    def wait(self, probes: int) -> timedelta:
        """How long the next probe waits, when so many have failed."""
        return min(self.probe_after_max, self.probe_after * (1 << min(probes, 20)))


@dataclass(frozen=True, slots=True)
class OrderSign:
    order: Order
    sign: Sign
    timeout: timedelta = timedelta()  # of the attempt
    error: str = ""


@dataclass(frozen=True, slots=True)
class DestinationBreaker:
    """`version` grows with each time that it is written, so that two processes do not overwrite each other."""

    queue: str
    failures: int = 0  # in a row
    position: int = 0  # of the last step of the journal that counts in it
    opened_at: datetime | None = None  # None: closed
    probe_at: datetime | None = None  # open: when a probe may go; while one is out, when it is given up
    probe: Order | None = None  # the order that may go although it is open
    probes: int = 0  # that failed since it opened
    error: str = ""  # the last one
    version: int = 0

    @property
    def is_open(self) -> bool:
        return self.opened_at is not None

    def lets_through(self, order: Order) -> bool:
        """Return whether this order may go now."""
        return self.opened_at is None or order == self.probe

    def wants_probe(self, now: datetime) -> bool:
        """Return whether an order may be chosen as a probe now."""
        return self.opened_at is not None and (self.probe_at is None or self.probe_at <= now)


def heard(
    one: DestinationBreaker, signs: Iterable[OrderSign], position: int, at: datetime, rules: BreakerRules
) -> DestinationBreaker:
    """The breaker after one step of the journal; the same object when nothing has changed."""
    if position <= one.position:
        return one
    after = one
    for said in signs:
        after = _probed(after, said, at, rules) if after.is_open else _counted(after, said, at, rules)
    return after if after is one else replace(after, position=position)


def _counted(one: DestinationBreaker, said: OrderSign, at: datetime, rules: BreakerRules) -> DestinationBreaker:
    if said.sign is Sign.WORKED and one.failures:
        return replace(one, failures=0, error="")
    if said.sign is not Sign.FAILED:
        return one
    after = replace(one, failures=one.failures + 1, error=said.error[:ERROR_MAX_CHARS])
    if after.failures < rules.failures:
        return after
    return replace(after, opened_at=at, probe=None, probes=0, probe_at=at + rules.wait(0))


def _probed(one: DestinationBreaker, said: OrderSign, at: datetime, rules: BreakerRules) -> DestinationBreaker:
    if said.order != one.probe:
        return one
    match said.sign:
        case Sign.SENT:
            return replace(one, probe_at=at + said.timeout + PROBE_SEND_TIMEOUT)
        case Sign.WORKED:
            return replace(one, failures=0, error="", opened_at=None, probe=None, probe_at=None, probes=0)
        case Sign.VOID:
            return replace(one, probe=None, probe_at=at)
        case Sign.FAILED:
            probes, error = one.probes + 1, said.error[:ERROR_MAX_CHARS]
            return replace(
                one, failures=one.failures + 1, error=error, probe=None, probes=probes, probe_at=at + rules.wait(probes)
            )


def probing(one: DestinationBreaker, order: Order, now: datetime) -> DestinationBreaker | None:
    """The breaker when this order goes out as its probe; None when no probe may go."""
    if not one.wants_probe(now):
        return None
    return replace(one, probe=order, probe_at=now + PROBE_SEND_TIMEOUT, version=one.version + 1)


def due_now(one: DestinationBreaker, now: datetime) -> DestinationBreaker | None:
    """The breaker when an operator does not want to wait for the next probe; None when it is closed, or one is out."""
    if not one.is_open or one.probe is not None or one.wants_probe(now):
        return None
    return replace(one, probe_at=now, version=one.version + 1)
