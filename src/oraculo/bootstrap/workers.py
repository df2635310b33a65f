"""Settings → the registry of workers, and the queue in which workers of a broker register."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from oraculo.bootstrap.foresight import Foresight
from oraculo.core.access import Scope
from oraculo.core.affinity import AffinityWeights
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant
from oraculo.core.vocabulary import Priority, RiskBand
from oraculo.ports.clock import Clock
from oraculo.ports.destination_pauses import DestinationGate
from oraculo.ports.durations import DurationEstimates
from oraculo.ports.engine import Engine
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.kernel.options import KernelPorts
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.scheduler.affinities import AffinityOptions
from oraculo.runtime.scheduler.offers import BrokerOffers
from oraculo.runtime.scheduler.people import KnownWorkers
from oraculo.runtime.scheduler.preempting import PreemptionOptions
from oraculo.runtime.scheduler.scheduler import LeaseScheduler, SchedulerOptions
from oraculo.runtime.worker_control import WorkerControl
from oraculo.runtime.workers import WorkerBook
from oraculo.settings.settings import Settings
from oraculo.settings.worker_groups import AffinitySettings, SchedulerSettings
from oraculo.wire import names


def leases_and_registry(
    settings: Settings,
    clock: Clock,
    engine: Engine,
    ports: KernelPorts,
    gate: DestinationGate,
    foresight: Foresight,
) -> tuple[HttpLeases, WorkerBook]:
    """The leases of this process, and the registry, joined to them."""
    store, is_ours = ports.store, None if ports.order_keys is None else ports.order_keys.has_signed
    leases = HttpLeases(ports.broker, clock, engine.state, settings.queue_names, gate, is_ours)
    registry = WorkerBook(
        store.worker_leases,
        clock,
        store,
        engine.state,
        partial(engine.submit, piecewise=True),
        timeout_s=settings.worker_registry.timeout_s,
        held=leases.holders,
        take_back=leases.take_back,
    )
    leases.registry = registry
    if settings.scheduler.enabled:
        predicted = foresight.durations if settings.scheduler.predicted else None
        registry.beat_most_s = settings.scheduler.grace_s / 2 if settings.scheduler.preemption else None
        leases.scheduler = scheduler_of(settings, clock, engine, ports, leases, registry, predicted)
        if settings.scheduler.offers:
            leases.scheduler.offers = offers_of(settings, clock, engine, ports, gate, leases, leases.scheduler)
        if foresight.trails is not None:
            leases.scheduler.workers.factor = foresight.trails.factor
            leases.scheduler.workers.marks = foresight.trails.marks
    return leases, registry


def scheduler_of(
    settings: Settings,
    clock: Clock,
    engine: Engine,
    ports: KernelPorts,
    leases: HttpLeases,
    registry: WorkerBook,
    durations: DurationEstimates | None,
) -> LeaseScheduler:
    """What chooses who gets which ticket."""
    return LeaseScheduler(
        ports.broker,
        clock,
        KnownWorkers(leases.workers, clock, registry, offers=settings.scheduler.offers),
        engine.state,
        partial(engine.submit, piecewise=True),
        ports.policies,
        SchedulerOptions(
            settings.scheduler.turn_s,
            shared=ports.store.sharing is not None,
            preemption=preemption_of(settings.scheduler),
            affinity=affinity_of(settings.affinity),
        ),
        durations=durations,
        tell=registry.tell_stop,
    )


def offers_of(
    settings: Settings,
    clock: Clock,
    engine: Engine,
    ports: KernelPorts,
    gate: DestinationGate,
    leases: HttpLeases,
    scheduler: LeaseScheduler,
) -> BrokerOffers:
    """What offers tickets to workers of a broker."""
    return BrokerOffers(
        leases,
        scheduler,
        ports.broker,
        clock,
        engine.state,
        partial(engine.submit, piecewise=True),
        offer_s=settings.scheduler.offer_s,
        roles=ports.store.sharing,
        gate=gate,
    )


def preemption_of(chosen: SchedulerSettings) -> PreemptionOptions:
    """How tickets make room for more urgent ones."""
    return PreemptionOptions(
        chosen.preemption,
        Priority(chosen.preemptor),
        Priority(chosen.victim),
        chosen.grace_s,
        chosen.preemptions,
        chosen.cooldown_s,
        chosen.retry_delay_s if chosen.retry_preempted else None,
    )


def affinity_of(chosen: AffinitySettings) -> AffinityOptions:
    """Who is close to which ticket."""
    return AffinityOptions(
        chosen.enabled,
        AffinityWeights(chosen.plan, chosen.anti, chosen.intent, chosen.full_at),
        frozenset(map(RiskBand, chosen.bands)),
        frozenset(map(Priority, chosen.priorities)),
        timedelta(seconds=chosen.kept_s) if chosen.kept_s else None,
    )


def read_control_queue(
    settings: Settings,
    engine: Engine,
    ports: KernelPorts,
    registry: WorkerBook,
    consumers: QueueConsumers,
    tenant: str = DEFAULT_TENANT,
) -> None:
    """Take what workers of a broker say about themselves, where that is set."""
    if settings.worker_registry.enabled:
        offers, submit = settings.scheduler.offers, partial(engine.submit, piecewise=True)
        control = WorkerControl(registry, ports.broker, submit, offers=offers)
        registry.tenants.add(tenant)
        queue = in_tenant(tenant, names.WORKERS)
        consumers.commands(queue, control.from_message, control.take, scope=Scope.RESULT_WRITE)
