"""What must hold where workers are chosen: none has a ticket that the journal does not say it was given."""

from __future__ import annotations

from functools import partial
from random import Random

from oraculo.core.events import TicketAllocated
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.ports.workers import WorkerLeases
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.lease import Lease
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.policies.asking import Policies
from oraculo.runtime.scheduler.people import KnownWorkers
from oraculo.runtime.scheduler.scheduler import LeaseScheduler, SchedulerOptions
from oraculo.runtime.workers import WorkerBook
from oraculo.simulation.offer_watch import OfferWatch
from oraculo.simulation.scene import Scene
from oraculo.simulation.under_ceiling import Alive

TURN_S = 3.0  # short, so that worlds see it
WORKERS_PER_QUEUE = 2


def choose(
    scene: Scene,
    leases: HttpLeases,
    broker: Broker,
    store: Store,
    workers: WorkerLeases,
    clock: Clock,
    engine: Kernel,
) -> WorkerBook:
    """Let tickets be given to the workers that are best for them; return the registry."""
    submit = partial(engine.submit, piecewise=True)
    registry = WorkerBook(workers, clock, store, engine.state, submit, timeout_s=60.0)
    known = KnownWorkers(leases.workers, clock, registry)
    rng = Random(scene.rng.random())
    options = SchedulerOptions(TURN_S)
    leases.scheduler = LeaseScheduler(broker, clock, known, engine.state, submit, Policies(), options, rng)
    return registry


class ChoiceWatch:
    """Knows from the journal who was given what. A message may come twice, so an attempt may be given to two."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._given: set[tuple[int, int, int, str]] = set()
        self.offers = OfferWatch(scene)

    def committed(self, recorded: Recorded) -> None:
        self.offers.committed(recorded)
        for event in recorded.events:
            if isinstance(event, TicketAllocated):
                self._given.add((recorded.run, event.ticket, event.attempt, event.allocation.agent_id))

    def leased(self, leases: list[Lease], life: Alive) -> None:
        """Workers over HTTP have these tickets now."""
        for lease in leases if self._scene.chooses else ():
            parsed = None if lease.ticket is None else parse_ticket_id(lease.ticket[0])
            if lease.ticket is None or parsed is None:
                continue
            self._scene.count("tickets given by choice")
            self.offers.leased(*parsed, lease.ticket[1], life.number)
            if (*parsed, lease.ticket[1], lease.worker) not in self._given:
                self._scene.violate("every choice is recorded", f"{lease.ticket} is with {lease.worker}, not given")
