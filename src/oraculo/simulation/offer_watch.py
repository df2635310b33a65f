"""What must hold where tickets are offered to workers of a broker, and how a process of a world makes offers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

import orjson

from oraculo.core.access import Scope
from oraculo.core.events import TicketAllocated, TicketWithdrawn
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Cause
from oraculo.core.withdrawing import LAPSES_MAX
from oraculo.ports.broker import Broker, Outgoing
from oraculo.ports.clock import Clock
from oraculo.ports.journal import Recorded
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.scheduler.offers import BrokerOffers
from oraculo.runtime.worker_control import WorkerControl
from oraculo.simulation.scene import Scene
from oraculo.wire import names
from oraculo.wire.offers import note_of

OFFER_S = 2.0
WORLDS_SHARE = 0.6  # of worlds where workers are chosen, on a broker that outlives the process

Attempt = tuple[int, int, int]  # run, position, attempt


def draws_offers(seed: int, *, masked: bool) -> bool:
    """Whether tickets are offered in this world."""
    return Random(f"offers {seed} {masked}").random() < WORLDS_SHARE


def make_offers(
    leases: HttpLeases, broker: Broker, clock: Clock, engine: Kernel, consumers: QueueConsumers, watch: OfferWatch
) -> BrokerOffers:
    """Let workers of the broker register, and be offered tickets."""
    scheduler, submit = leases.scheduler, partial(engine.submit, piecewise=True)
    assert scheduler is not None
    registry = scheduler.workers.registry
    registry.tenants.add(DEFAULT_TENANT)
    watch.begins()
    scheduler.workers.offers = True
    desk = WorkerControl(registry, broker, submit, offers=True)

    async def take(works: list[Work]) -> list[Outcome]:
        outcomes = await desk.take(works)
        for work, outcome in zip(works, outcomes, strict=True):
            if outcome.fate is Fate.APPLIED:
                watch.heard(work.body)
        return outcomes

    consumers.commands(names.WORKERS, desk.from_message, take, scope=Scope.RESULT_WRITE)
    offers = BrokerOffers(leases, scheduler, broker, clock, engine.state, submit, offer_s=OFFER_S)
    scheduler.offers = offers
    return offers


class OfferWatch:
    """Knows what was offered to whom, by which process, and what workers said in time."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._given: dict[Attempt, tuple[str, float]] = {}  # to whom it was given last, and when
        self._offered: dict[Attempt, set[int]] = {}  # by which lives
        self._begun: set[Attempt] = set()  # in time, as the process that lives heard
        self._lapsed: dict[tuple[int, int], int] = {}

    def committed(self, recorded: Recorded) -> None:
        now = self._scene.loop.time()
        for event in recorded.events:
            if isinstance(event, TicketAllocated):
                attempt = (recorded.run, event.ticket, event.attempt)
                self._given[attempt] = (event.allocation.agent_id, now)
                self._begun.discard(attempt)
            elif isinstance(event, TicketWithdrawn) and event.cause is Cause.OFERTA_VENCIDA:
                self._withdrawn((recorded.run, event.ticket, event.attempt), event.worker, now)

    def _withdrawn(self, attempt: Attempt, worker: str, now: float) -> None:
        self._scene.count("offers withdrawn")
        self._lapsed[attempt[:2]] = self._lapsed.get(attempt[:2], 0) + 1
        to, at = self._given.get(attempt, ("", now))
        if to != worker or now < at + OFFER_S:
            self._scene.violate("an offer lasts as long as it says", f"{attempt} of {worker}, given to {to} at {at}")
        if attempt in self._begun:
            self._scene.violate("what was begun in time stays with its worker", f"{attempt} of {worker}")

    def begins(self) -> None:
        """A process starts: what the one before it heard is lost with it, as long as it is not in the registry."""
        self._begun.clear()

    def heard(self, raw: bytes) -> None:
        """The process knows what a worker has."""
        now = self._scene.loop.time()
        for one in orjson.loads(raw).get("executando", ()):
            parsed = parse_ticket_id(one["ticket_id"])
            if parsed is not None:
                attempt = (*parsed, one["tentativa"])
                if now < self._given.get(attempt, ("", now))[1] + OFFER_S:
                    self._begun.add(attempt)

    def publishing(self, message: Outgoing, life: int) -> None:
        """Something goes to the own queue of a worker."""
        if note_of(message.headers or {}) is None:
            return
        order = orjson.loads(message.body)
        attempt = (*(parse_ticket_id(order["ticket_id"]) or (0, 0)), order["tentativa"])
        self._scene.count("offers")
        if names.worker_queue(self._given.get(attempt, ("", 0))[0]) != message.queue:
            self._scene.violate("every choice is recorded", f"{attempt} is offered in {message.queue}, not given")
        self._fenced(attempt, life)
        self._offered.setdefault(attempt, set()).add(life)

    def leased(self, run: int, position: int, attempt: int, life: int) -> None:
        """A worker over HTTP has this."""
        self._fenced((run, position, attempt), life)

    def _fenced(self, attempt: Attempt, life: int) -> None:
        """An attempt goes out once: what was offered before is over in the journal, unless it was so too often, or its
        worker answered, and copies of its message may come."""
        again = life in self._offered.get(attempt, ()) and self._lapsed.get(attempt[:2], 0) < LAPSES_MAX
        ticket = (self._scene.answers.values()) if again else ()
        if again and not any(parse_ticket_id(one.ticket) == attempt[:2] for one in ticket):
            self._scene.violate("an offer that lapsed is fenced", f"{attempt} goes out again")


def to_own_queues(messages: Sequence[Outgoing]) -> tuple[list[Outgoing], list[Outgoing]]:
    """Those that go to own queues of workers, and the others."""
    own = [one for one in messages if one.queue.startswith(names.worker_queue(""))]
    return own, [one for one in messages if one not in own]
