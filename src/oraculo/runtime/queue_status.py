"""How each queue stands: what waits, since when, who consumes, and how much goes through it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from oraculo.ports.broker import Broker
from oraculo.ports.broker_group import process_local
from oraculo.ports.clock import Clock
from oraculo.ports.engine import EngineStatus
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.probes import Prober
from oraculo.runtime.queue_traffic import QueueTraffic

SEEN_LATELY = timedelta(minutes=1)


@dataclass(slots=True)
class QueueStanding:
    """`waiting`, `taken` and `oldest_s` are None where no broker can say. `consumers` is what the broker says; where it
    cannot, those that this process has seen within a minute."""

    queue: str
    waiting: int | None = None
    taken: int | None = None
    oldest_s: float | None = None
    consumers: int = 0
    sent_per_s: float = 0.0
    answered_per_s: float = 0.0


class Serving(Protocol):
    """A worker inside this process."""

    @property
    def queues(self) -> Collection[str]: ...


def queue_standings(
    broker: Broker,
    prober: Prober | None,
    leases: HttpLeases,
    inside: Iterable[Serving],
    traffic: QueueTraffic,
    status: Callable[[], EngineStatus],
    clock: Clock,
) -> list[QueueStanding]:
    """All queues that are known, by name: as they are now inside the process; as the last look found them on servers,
    all brokers together. Orders that this process holds for a queue wait there, too: no worker has made it yet, or it
    is full."""
    found: dict[str, QueueStanding] = {}
    told: dict[str, int] = {}
    local = process_local(broker)
    if local is not None:
        ages = local.ages()
        for queue, (waiting, taken) in local.depths().items():
            found[queue] = QueueStanding(queue, waiting, taken, ages.get(queue))
    for probe in prober.found.values() if prober is not None else ():
        for queue, backlog in probe.backlogs.items():
            one = found.setdefault(queue, QueueStanding(queue))
            if backlog.waiting is not None:
                one.waiting = (one.waiting or 0) + backlog.waiting
            if backlog.oldest_s is not None:
                one.oldest_s = max(one.oldest_s or 0.0, backlog.oldest_s)
            if backlog.consumers is not None:
                told[queue] = told.get(queue, 0) + backlog.consumers
    for queue, count in status().effects.without_queue.items():
        one = found.setdefault(queue, QueueStanding(queue))
        one.waiting = (one.waiting or 0) + count
    seen = _seen(leases, inside, clock.now())
    for queue, one in found.items():
        one.consumers = told.get(queue, seen.get(queue, 0))
        one.sent_per_s, one.answered_per_s = traffic.sent.per_second(queue), traffic.answered.per_second(queue)
    return [found[queue] for queue in sorted(found)]


def _seen(leases: HttpLeases, inside: Iterable[Serving], now: datetime) -> Mapping[str, int]:
    """Queue → workers that were seen at it lately."""
    counts: dict[str, int] = {}
    lately = [one.queues for one in leases.workers.values() if now - one.last_seen <= SEEN_LATELY]
    for queues in (*lately, *(worker.queues for worker in inside)):
        for queue in queues:
            counts[queue] = counts.get(queue, 0) + 1
    return counts
