"""Settings → adapters → engine and what belongs around it, opened in order and closed in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from oraculo import redaction
from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.calendars import calendar_fault, calendar_of
from oraculo.adapters.sinks.address_guard import check_url
from oraculo.adapters.sinks.otel import Tracer
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.readings import Sources
from oraculo.adapters.sinks.webhook import WebhookNotifier
from oraculo.bootstrap.adapters import (
    audit_of,
    cache_of,
    defaults_of,
    references_of,
    store_of,
    task_types_of,
    tokens_of,
)
from oraculo.bootstrap.engines import engine_of, options_of
from oraculo.bootstrap.flow import broker_for, codec_of, flow_rules, registry_of, topics_of, topics_sink
from oraculo.bootstrap.roles import Role
from oraculo.bootstrap.switches import SwitchRecorder
from oraculo.core.access import Actor, Scope
from oraculo.core.tenants import in_tenant
from oraculo.errors import SettingsError
from oraculo.logs.deadlines import DeadlineLog
from oraculo.logs.events import EventLog
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.engine import Engine
from oraculo.ports.observer import Observer
from oraculo.ports.projection import Sink
from oraculo.ports.store import Store
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.api_keys import KeyRing
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.destination_pauses import DestinationBook
from oraculo.runtime.flow.plans import PlanIntake
from oraculo.runtime.kernel.observers import ObserverFanOut
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.loops import Loops
from oraculo.runtime.probes import Prober, prober_of
from oraculo.runtime.project import Projections
from oraculo.runtime.request_batch import BatchIntake
from oraculo.runtime.requests import RequestIntake, Trace, pass_on
from oraculo.runtime.reserved import ReservedQueues
from oraculo.runtime.schedules.book import ScheduleBook
from oraculo.runtime.schedules.firing import ScheduleFiring
from oraculo.runtime.tenants import TenantBook
from oraculo.settings.settings import Settings
from oraculo.wire import names
from oraculo.wire.flow.codec import AVRO, Codec
from oraculo.wire.orders import OrderWriter


@dataclass(slots=True)
class Parts:
    """All that a running orchestrator is made of."""

    ports: KernelPorts
    options: KernelOptions
    engine: Engine
    requests: RequestIntake
    plans: PlanIntake | None  # None: Fluxo C is off
    reserved: ReservedQueues
    leases: HttpLeases
    consumers: QueueConsumers
    prober: Prober | None  # None: the broker is inside the process
    projections: Projections
    keys: KeyRing
    answers: AnswerReader
    schedules: ScheduleBook
    destinations: DestinationBook
    firing: ScheduleFiring
    tenants: TenantBook


@dataclass(slots=True)
class Wiring:
    """What there is before anything is opened. `store` and `broker` are made of the settings where none is given."""

    settings: Settings
    role: Role
    clock: Clock
    metrics: Metrics
    tracer: Tracer | None = None
    sinks: Sequence[Sink] = ()
    store: Store | None = None
    broker: Broker | None = None

    async def open(self, stack: AsyncExitStack) -> Parts:
        """Open everything, in order; what was opened is closed by `stack`. The engine runs when this returns."""
        store, broker = await self._open_store(stack), self._open_broker(stack)
        codec = await self._open_codec(stack) if self.settings.takes_plans else None
        deadlines = DeadlineLog(self.clock)
        projections = Projections(store, self._all_sinks(store, broker, codec), self.clock)
        observers: list[Observer] = [self.metrics, EventLog(), deadlines]
        if self.tracer is not None:
            observers.append(self.tracer)
            await self.tracer.recover(store)
            stack.push_async_callback(self.tracer.close, store)
        observers.append(projections)
        gate = DestinationBook(store, self.clock)
        await gate.refresh()
        ports, options = await self._ports(stack, store, broker, codec, observers, gate), options_of(self.settings)
        engine = engine_of(self.settings, self.role, ports, options, self.tracer)
        parts = await self._around(engine, ports, options, codec, projections, gate)
        self._record_switches(stack, store, broker)
        await self._start(stack, parts)
        _beside(stack, self.metrics.run(store))
        _beside(stack, deadlines.run(store))
        if self.tracer is not None:
            _beside(stack, self.tracer.run(store))
        if ports.references is not None and self.role is not Role.TASKS:
            _beside(stack, ports.references.run(self.clock.now))
        if ports.tokens is not None:
            _beside(stack, ports.tokens.run())
        return parts

    # -- adapters ----------------------------------------------------------------------------------------------------

    async def _open_store(self, stack: AsyncExitStack) -> Store:
        store = self.store
        if store is None:
            ours = store_of(self.settings.store, exclusive=True, may_migrate=self.settings.migrate_at_start)
            stack.push_async_callback(ours.close)
            store = await ours.open()
        if self.role is not Role.ALL and store.sharing is None:
            where = redaction.urls(self.settings.store)
            raise SettingsError("ORACULO_STORE", where, "postgresql://…, to share it with others")
        return store

    def _open_broker(self, stack: AsyncExitStack) -> Broker:
        broker = self.broker or broker_for(self.settings)
        stack.push_async_callback(broker.close)
        return broker

    async def _open_codec(self, stack: AsyncExitStack) -> Codec:
        """Return how records of Fluxo C are read and written, ready to be used."""
        registry = registry_of(self.settings)
        stack.push_async_callback(registry.close)
        codec = codec_of(self.settings, registry)
        await codec.learn()
        return codec

    def _all_sinks(self, store: Store, broker: Broker, codec: Codec | None) -> list[Sink]:
        """Return what is told of the journal: topics of Fluxo C, MongoDB. A process of a Celery worker leaves both to
        others."""
        sinks = list(self.sinks)
        if self.role is Role.TASKS:
            return sinks
        if codec is not None:
            topics = topics_sink(self.settings, broker, codec)
            self.metrics.readings.topics = topics
            sinks.append(topics)
        audit = audit_of(self.settings, store, self.metrics.wrote)
        if audit is not None:
            self.metrics.readings.mongodb = audit.writer
            sinks.append(audit)
        return sinks

    async def _ports(
        self,
        stack: AsyncExitStack,
        store: Store,
        broker: Broker,
        codec: Codec | None,
        observers: Sequence[Observer],
        gate: DestinationBook,
    ) -> KernelPorts:
        settings = self.settings
        notifier = await stack.enter_async_context(
            WebhookNotifier(settings.webhooks.secrets, settings.webhooks.allow, clock=self.clock.now)
        )
        cache = cache_of(settings)
        if cache is not None:
            stack.push_async_callback(cache.close)
        references = references_of(settings)
        refer = None if references is None else references.refer
        tokens = await tokens_of(settings, store, self.clock, stack)
        issue = None if tokens is None else tokens.issue
        writer = OrderWriter(refer=refer, issue=issue)
        if codec is not None and codec.format == AVRO:
            writer = OrderWriter(codec.encode, topics_of(settings).every, refer, issue)
        observed = ObserverFanOut(observers)
        return KernelPorts(
            store,
            broker,
            self.clock,
            notifier,
            observed,
            cache=cache,
            writer=writer,
            references=references,
            tokens=tokens,
            gate=gate,
        )

    # -- what belongs around the engine ------------------------------------------------------------------------------

    async def _around(
        self,
        engine: Engine,
        ports: KernelPorts,
        options: KernelOptions,
        codec: Codec | None,
        projections: Projections,
        gate: DestinationBook,
    ) -> Parts:
        store, broker = ports.store, ports.broker
        leases = HttpLeases(broker, self.clock, engine.state, self.settings.queue_names, gate)
        consumers = QueueConsumers(broker, engine, leases.heard)
        answers = AnswerReader(ports.tokens)
        consumers.answers(names.RESULTS, answers, scope=Scope.RESULT_WRITE, plain=True)
        topics = topics_of(self.settings).every if codec is not None else frozenset[str]()
        reserved = ReservedQueues(lambda: consumers.queues, topics)

        def serve(tenant: str) -> None:
            consumers.answers(in_tenant(tenant, names.RESULTS), answers, scope=Scope.RESULT_WRITE, plain=True)
            consumers.requests(in_tenant(tenant, names.REQUESTS), requests.from_message, scope=Scope.RUN_SUBMIT)

        tenants = TenantBook(store, self.clock, serve)
        requests = await self._requests(engine, store, reserved, tenants)
        ports.children.bind(engine, requests)
        consumers.requests(names.REQUESTS, requests.from_message, scope=Scope.RUN_SUBMIT)
        plans = None if codec is None else self._plans(engine, ports, requests, codec, consumers)
        prober = None
        if not broker.traits.volatile and self.role is not Role.TASKS:
            read = consumers if self.role.consumes else ()
            prober = prober_of(broker, self.clock, tuple(read), lambda: engine.status().queues | consumers.queues)
        keys = KeyRing(store, self.clock)
        firing = self._firing(engine, store, requests)
        book = self._schedules(engine, store, requests, firing)
        await tenants.look()
        return Parts(
            ports,
            options,
            engine,
            requests,
            plans,
            reserved,
            leases,
            consumers,
            prober,
            projections,
            keys,
            answers,
            book,
            gate,
            firing,
            tenants,
        )

    def _firing(self, engine: Engine, store: Store, requests: RequestIntake) -> ScheduleFiring:
        async def cancel(run: str, reason: str, actor: Actor) -> None:
            await engine.cancel(run, reason, actor=actor)

        shared, count = store.sharing is not None, self.metrics.schedule_instants
        return ScheduleFiring(store, self.clock, requests, cancel, calendar_of, shared=shared, count=count)

    def _schedules(self, engine: Engine, store: Store, requests: RequestIntake, firing: ScheduleFiring) -> ScheduleBook:
        batches = BatchIntake(requests, engine)
        return ScheduleBook(store, self.clock, requests, batches, calendar_of, calendar_fault, firing.changed)

    async def _requests(
        self, engine: Engine, store: Store, reserved: ReservedQueues, tenants: TenantBook
    ) -> RequestIntake:
        settings = self.settings
        requests = RequestIntake(
            engine,
            store,
            self.clock,
            defaults_of(settings),
            check_webhook=partial(check_url, allow=settings.webhooks.allow),
            check_queue=reserved.refuse_writing,
            task_types=task_types_of(settings.task_types),
            trace=self._trace,
            tenants=tenants,
        )
        await requests.load_task_types()
        return requests

    def _plans(
        self, engine: Engine, ports: KernelPorts, requests: RequestIntake, codec: Codec, consumers: QueueConsumers
    ) -> PlanIntake:
        """Fluxo C: decisions come from one topic, results of tickets from another, approvals from a third."""
        settings, rules = self.settings, flow_rules(self.settings)
        plans = PlanIntake(
            engine,
            ports.store,
            ports.broker,
            self.clock,
            requests,
            rules,
            codec.decode,
            self._trace,
            ports.tokens,
            settings.queue_names,
        )
        consumers.requests(
            settings.kafka.topics.consensus, plans.from_message, plans.submit, codec.learn, scope=Scope.RUN_SUBMIT
        )
        consumers.answers(
            settings.kafka.topics.results, plans.result_from_message, codec.learn, scope=Scope.RESULT_WRITE
        )
        consumers.commands(
            topics_of(settings).approval_responses,
            plans.approval_from_message,
            plans.submit_approvals,
            codec.learn,
            scope=Scope.PLAN_APPROVE,
        )
        return plans

    @property
    def _trace(self) -> Trace:
        return pass_on if self.tracer is None else self.tracer.begin

    def _record_switches(self, stack: AsyncExitStack, store: Store, broker: Broker) -> None:
        publishing = broker.main if isinstance(broker, RoutingBroker) else broker
        if isinstance(publishing, FailoverBroker):
            recorder = SwitchRecorder(store, self.clock, self.metrics)
            publishing.on_switch = recorder.switched
            stack.push_async_callback(recorder.close)

    # -- life --------------------------------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack, parts: Parts) -> None:
        """Start the engine, then what brings it work; stopped in reverse. Projections read its last commits, too."""
        stack.push_async_callback(parts.projections.stop)
        await parts.engine.start()
        stack.push_async_callback(parts.engine.stop)
        parts.projections.start()
        self._show(parts)
        await self.metrics.count_dead_letters(parts.ports.store)
        beside = Loops()
        beside.add("leases", parts.leases.run)
        beside.add("tenants", parts.tenants.run)
        beside.add("pauses", parts.destinations.run)
        if parts.prober is not None:
            beside.add("probes", parts.prober.run)
        if self.role.consumes:
            beside.add("schedules", parts.firing.run)
        beside.start()
        stack.push_async_callback(beside.stop)
        if self.role.consumes:
            parts.consumers.start(dead_letters=parts.prober is not None)
            stack.push_async_callback(parts.consumers.stop)

    def _show(self, parts: Parts) -> None:
        """Give the metrics what they read when they are scraped."""
        sources = Sources(
            parts.engine.status,
            self.clock,
            parts.ports.broker,
            parts.leases,
            tuple(parts.consumers),
            parts.prober,
            parts.requests,
            parts.projections.all,
        )
        self.metrics.watch(sources, parts.ports.observers.flush)
        if self.tracer is not None:
            exporter = self.tracer.exporter
            self.metrics.readings.spans = lambda: exporter.counts


def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run it until the orchestrator stops."""
    stack.callback(asyncio.create_task(work).cancel)
