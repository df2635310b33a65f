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
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.sinks.address_guard import check_url
from oraculo.adapters.sinks.otel import Tracer
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.readings import Sources
from oraculo.bootstrap.adapters import (
    audit_of,
    breakers_of,
    cache_of,
    defaults_of,
    references_of,
    retention_of,
    signature_ring,
    task_types_of,
    tokens_of,
    users_of,
    webhooks_of,
)
from oraculo.bootstrap.engines import engine_of, options_of
from oraculo.bootstrap.flow import (
    broker_for,
    codec_of,
    flow_rules,
    registry_of,
    ticket_webhooks_of,
    topics_of,
    topics_sink,
)
from oraculo.bootstrap.foresight import Foresight
from oraculo.bootstrap.parts import Parts
from oraculo.bootstrap.policies import policies_of
from oraculo.bootstrap.roles import Role
from oraculo.bootstrap.schedules import schedules_of
from oraculo.bootstrap.sealing import message_seal, sealed_store, sealing_of
from oraculo.bootstrap.switches import SwitchRecorder
from oraculo.bootstrap.workers import leases_and_registry, read_control_queue
from oraculo.core.access import Scope
from oraculo.core.tenants import in_tenant
from oraculo.errors import SettingsError
from oraculo.logs.deadlines import DeadlineLog
from oraculo.logs.events import EventLog
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.engine import Engine
from oraculo.ports.notifier import Notifier
from oraculo.ports.observer import Observer
from oraculo.ports.projection import Sink
from oraculo.ports.store import Store
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.api_keys import KeyRing
from oraculo.runtime.breakers import BreakerSink
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.destination_pauses import DestinationBook
from oraculo.runtime.flow.plans import PlanIntake
from oraculo.runtime.kernel.observers import ObserverFanOut
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.loops import Loops
from oraculo.runtime.probes import prober_of
from oraculo.runtime.project import Projections
from oraculo.runtime.requests import RequestIntake, Trace, pass_on
from oraculo.runtime.reserved import ReservedQueues
from oraculo.runtime.signatures import MessageGuards
from oraculo.runtime.tenants import TenantBook
from oraculo.settings.settings import Settings
from oraculo.wire import names
from oraculo.wire.flow.codec import AVRO, Codec
from oraculo.wire.orders import OrderWriter


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
        sealing = sealing_of(self.settings) if self.store is None else Sealing()
        store, broker = await self._open_store(stack, sealing), self._open_broker(stack)
        codec = await self._open_codec(stack) if self.settings.takes_plans else None
        deadlines = DeadlineLog(self.clock)
        foresight = Foresight.of(self.settings, store, self.clock)
        gate = DestinationBook(store, self.clock, breakers_of(self.settings, store, self.clock))
        notifier = await stack.enter_async_context(webhooks_of(self.settings, self.clock))
        sinks = self._all_sinks(store, broker, codec, foresight, gate, notifier)
        projections = Projections(store, sinks, self.clock)
        observers: list[Observer] = [self.metrics, EventLog(), deadlines]
        if self.tracer is not None:
            observers.append(self.tracer)
            await self.tracer.recover(store)
            stack.push_async_callback(self.tracer.close, store)
        observers.append(projections)
        await gate.begin()
        self.metrics.readings.breakers = gate.breakers
        ports = await self._ports(stack, store, broker, codec, observers, gate, sealing, notifier)
        options = options_of(self.settings)
        foresight.deliver(self.settings, store, broker, ports.notifier)
        engine = engine_of(self.settings, self.role, ports, options, self.tracer)
        parts = await self._around(engine, ports, options, codec, projections, gate, foresight)
        self._record_switches(stack, store, broker)
        await self._start(stack, parts)
        _beside(stack, self.metrics.run(store))
        _beside(stack, self.metrics.readings.history.run(lambda: self.metrics.readings.queues()))
        _beside(stack, deadlines.run(store))
        if self.tracer is not None:
            _beside(stack, self.tracer.run(store))
        if ports.references is not None and self.role is not Role.TASKS:
            _beside(stack, ports.references.run(self.clock.now))
        for ring in {id(ring): ring for ring in (ports.tokens, ports.order_keys, ports.signatures) if ring}.values():
            _beside(stack, ring.run())
        return parts

    # -- adapters ----------------------------------------------------------------------------------------------------

    async def _open_store(self, stack: AsyncExitStack, sealing: Sealing) -> Store:
        store = self.store or await sealed_store(self.settings, sealing, stack)
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

    def _all_sinks(
        self,
        store: Store,
        broker: Broker,
        codec: Codec | None,
        foresight: Foresight,
        gate: DestinationBook,
        notifier: Notifier,
    ) -> list[Sink]:
        """Return what is told of the journal. A process of a Celery worker leaves all of it to others."""
        sinks = list(self.sinks)
        if self.role is Role.TASKS:
            return sinks
        if codec is not None:
            topics = topics_sink(self.settings, broker, codec)
            self.metrics.readings.topics = topics
            sinks += [topics, *ticket_webhooks_of(self.settings, notifier, self.metrics.readings)]
        audit = audit_of(self.settings, store, self.metrics.wrote)
        if audit is not None:
            self.metrics.readings.mongodb = audit.writer
            sinks.append(audit)
        if gate.breakers is not None:
            sinks.append(BreakerSink(gate.breakers))
        self.metrics.readings.look_ahead(foresight.durations, foresight.sla, foresight.trails)
        return [*sinks, *foresight.sinks()]

    async def _ports(
        self,
        stack: AsyncExitStack,
        store: Store,
        broker: Broker,
        codec: Codec | None,
        observers: Sequence[Observer],
        gate: DestinationBook,
        sealing: Sealing,
        notifier: Notifier,
    ) -> KernelPorts:
        settings = self.settings
        cache = cache_of(settings)
        if cache is not None:
            stack.push_async_callback(cache.close)
        references = references_of(settings, store, sealing)
        refer = None if references is None else references.refer
        keys = await tokens_of(settings, store, self.clock, stack)
        tokens = None if settings.result_tokens == "off" else keys
        order_keys = None if settings.signatures.orders == "off" else keys
        issue = None if tokens is None else tokens.issue_for
        sign = None if order_keys is None else order_keys.sign_order
        writer = OrderWriter(refer=refer, issue=issue, sign=sign)
        if codec is not None and codec.format == AVRO:
            writer = OrderWriter(codec.encode, topics_of(settings).every, refer, issue, sign)
        return KernelPorts(
            *(store, broker, self.clock, notifier, ObserverFanOut(observers)),
            cache=cache,
            writer=writer,
            references=references,
            tokens=tokens,
            order_keys=order_keys,
            seal=message_seal(sealing, store),
            signatures=await signature_ring(settings, store, self.clock, stack),
            gate=gate,
            breakers=gate.breakers,
            policies=await policies_of(settings, self.clock, stack),
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
        foresight: Foresight,
    ) -> Parts:
        store, broker, offers = ports.store, ports.broker, self.settings.scheduler.offers
        leases, registry = leases_and_registry(self.settings, self.clock, engine, ports, gate, foresight)
        guards = MessageGuards(ports.signatures, engine, self.settings.signatures)
        consumers = QueueConsumers(broker, engine, leases.heard, guards.of_queues(broker), offers)
        answers = AnswerReader(ports.tokens, ports.order_keys)
        consumers.answers(names.RESULTS, answers, scope=Scope.RESULT_WRITE, plain=True)
        topics = topics_of(self.settings).every if codec is not None else frozenset[str]()
        reserved = ReservedQueues(lambda: consumers.queues, topics)

        def serve(tenant: str) -> None:
            consumers.answers(in_tenant(tenant, names.RESULTS), answers, scope=Scope.RESULT_WRITE, plain=True)
            consumers.requests(in_tenant(tenant, names.REQUESTS), requests.from_message, scope=Scope.RUN_SUBMIT)
            read_control_queue(self.settings, engine, ports, registry, consumers, tenant)

        tenants = TenantBook(store, self.clock, serve)
        requests = await self._requests(engine, ports, reserved, tenants)
        ports.children.bind(engine, requests)
        consumers.requests(names.REQUESTS, requests.from_message, scope=Scope.RUN_SUBMIT)
        read_control_queue(self.settings, engine, ports, registry, consumers)
        plans = None if codec is None else self._plans(engine, ports, requests, codec, consumers)
        prober = None
        if not broker.traits.volatile and self.role is not Role.TASKS:
            read = consumers if self.role.consumes else ()
            prober = prober_of(broker, self.clock, tuple(read), lambda: engine.status().queues | consumers.queues)
        users = users_of(self.settings, store, self.clock)
        keys = KeyRing(store, self.clock, users)
        firing, book = schedules_of(engine, store, self.clock, requests, self.metrics.schedule_instants)
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
            users,
            answers,
            guards,
            book,
            gate,
            firing,
            tenants,
            foresight,
            registry,
        )

    async def _requests(
        self, engine: Engine, ports: KernelPorts, reserved: ReservedQueues, tenants: TenantBook
    ) -> RequestIntake:
        settings = self.settings
        requests = RequestIntake(
            engine,
            ports.store,
            self.clock,
            defaults_of(settings),
            check_webhook=partial(check_url, allow=settings.webhooks.allow),
            check_queue=reserved.refuse_writing,
            task_types=task_types_of(settings.task_types),
            trace=self._trace,
            tenants=tenants,
            govern=ports.policies.govern,
        )
        await requests.load_task_types()
        await requests.schemas.refresh()
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
            believes_messages=settings.signatures.requests == "off",
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
        beside.add("schemas", parts.requests.schemas.run)
        for name, loop in (*parts.destinations.loops(), *parts.foresight.loops()):
            beside.add(name, loop)
        if self.role is not Role.TASKS:
            beside.add("workers", parts.workers.run)
        if parts.prober is not None:
            beside.add("probes", parts.prober.run)
        if self.role.consumes:
            beside.add("schedules", parts.firing.run)
            retention = self.metrics.readings.retention = retention_of(self.settings, parts.ports.store, self.clock)
            if retention is not None:
                beside.add("retention", retention.run)
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
        self.metrics.readings.policies = parts.ports.policies
        if self.tracer is not None:
            exporter = self.tracer.exporter
            self.metrics.readings.spans = lambda: exporter.counts


def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run it until the orchestrator stops."""
    stack.callback(asyncio.create_task(work).cancel)
