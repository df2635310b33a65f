"""Settings → adapters → engine: the only module that knows them all.

    async with Oraculo(load(), workers=[worker]) as oraculo:
        accepted = await oraculo.submit({"coletas": [{"fonte": "youtube"}]})
        result = await oraculo.result(accepted.correlation_id, wait=30)

This is the whole product inside a Python process; `oraculo up` adds HTTP to it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Self

import orjson
import structlog

from oraculo import logs, redaction
from oraculo.adapters.brokers.failover import FailoverBroker, Switch
from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.sinks.address_guard import check_url
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.port import metrics_port
from oraculo.adapters.sinks.webhook import WebhookNotifier
from oraculo.core.events import CompensationStarted, OrchestrationClosed
from oraculo.core.state import Orchestration
from oraculo.engines.local import LocalEngine
from oraculo.errors import SettingsError, StoreError, UnknownIdError
from oraculo.flow_parts import broker_for, codec_of, flow_rules, on_kafka, registry_of, topics_of, topics_sink
from oraculo.logs.deadlines import DeadlineLog
from oraculo.logs.events import EventLog
from oraculo.parts import audit_of, cache_of, defaults_of, engine_of, store_of, task_types_of, tracer_of
from oraculo.ports.broker import Broker
from oraculo.ports.cache import Cache
from oraculo.ports.notifier import Notifier
from oraculo.ports.observer import Observer
from oraculo.ports.projection import Sink
from oraculo.ports.sharing import Progress, sharing
from oraculo.ports.store import Recorded, Store, SystemEvent
from oraculo.runtime import crash
from oraculo.runtime.plans import PlanDesk
from oraculo.runtime.project import Projections
from oraculo.runtime.reception import Accepted, Reception, pass_on
from oraculo.settings import Settings
from oraculo.wire import names, strict_json, trace_context, views
from oraculo.wire.flow.codec import Codec
from oraculo.wire.orders import OrderWriter
from oraculo.wire.requests import Requisicao
from oraculo.worker import BrokerTransport, Worker

log = structlog.get_logger("oraculo")

EVENTS_AT_ONCE = 500
CACHED = 600.0  # seconds


class Role(StrEnum):
    """What a process does of the whole. Apart, they need a store that they can share."""

    ALL = "all"
    API = "api"  # takes requests; messages, deadlines and the dead are looked after by others
    ENGINE = "engine"  # takes messages and looks after deadlines; answers probes and scrapers only
    TASKS = "tasks"  # a process of a Celery worker: does what tasks ask for


class Oraculo:
    """Store, broker, engine, reception and workers of one process. Use it as an async context manager."""

    def __init__(
        self,
        settings: Settings,
        *,
        workers: Sequence[Worker] = (),
        store: Store | None = None,
        broker: Broker | None = None,
        role: Role = Role.ALL,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self.settings = settings
        self.role = role
        self.workers = list(workers)
        self.metrics = Metrics()
        self.metrics.readings.log_lines = lambda: logs.lines
        self.tracer = tracer_of(settings)
        self.clock = MonotonicClock()
        self.engine: LocalEngine
        self.notifier: Notifier
        self.cache: Cache | None = None
        self.projections: Projections
        self._sinks = list(sinks)
        self.reception: Reception
        self.plans: PlanDesk | None = None  # None: Fluxo C is off
        self.broker = broker
        self.store = store
        self._stack = AsyncExitStack()
        self._worker_tasks: list[asyncio.Task[None]] = []
        self._records: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        settings, stack = self.settings, self._stack
        crash.arm(settings.crash_at)
        try:
            store = self.store
            if store is None:
                ours = store_of(settings.store, exclusive=True)
                stack.push_async_callback(ours.close)
                store = await ours.open()
            broker = self.broker or broker_for(settings)
            stack.push_async_callback(broker.close)
            notifier = await stack.enter_async_context(
                WebhookNotifier(settings.webhook_secrets, settings.webhook_allow, clock=self.clock.now)
            )
            self.store, self.broker = store, broker
            if self.role is not Role.ALL and not store.shared:
                raise SettingsError(
                    "ORACULO_STORE", redaction.urls(settings.store), "postgresql://…, to share it with others"
                )
            self.notifier = notifier
            self.cache = cache_of(settings)
            if self.cache is not None:
                stack.push_async_callback(self.cache.close)
            deadlines = DeadlineLog(self.clock)
            observers: list[Observer] = [self.metrics, EventLog(), deadlines]
            if self.tracer is not None:
                observers.append(self.tracer)
                await self.tracer.recover(store)
                stack.push_async_callback(self.tracer.close, store)
                self.metrics.readings.spans = lambda: self.tracer.exporter.counts if self.tracer else {}
            codec = await self._codec(stack) if settings.takes_plans else None
            if codec is not None and self.role is not Role.TASKS:
                topics = topics_sink(settings, broker, codec)
                self._sinks.append(topics)
                self.metrics.readings.topics = topics
            self._audit(store)
            self.projections = Projections(store, self._sinks, self.clock)
            observers.append(self.projections)
            self.engine = engine_of(
                settings,
                store,
                broker,
                self.clock,
                tracer=self.tracer,
                notifier=notifier,
                observers=observers,
                max_open=settings.max_open,
                supervised=not broker.volatile and self.role is not Role.TASKS,
                passive=self.role in (Role.API, Role.TASKS),
                name=settings.replica_name or f"{socket.gethostname()}:{os.getpid()}",
                lease=timedelta(seconds=settings.replica_lease_s),
                cache=self.cache,
                writer=self._writer(codec),
                ceiling=settings.max_parallel_tickets,
                retry_rate=settings.retry_rate,
                tickets=settings.kafka_tickets,
            )
            publishing = broker.main if isinstance(broker, RoutingBroker) else broker
            if isinstance(publishing, FailoverBroker):
                publishing.on_switch = self._switched
            self.reception = Reception(
                self.engine,
                defaults_of(settings),
                check_webhook=partial(check_url, allow=settings.webhook_allow),
                task_types=task_types_of(settings.task_types),
                trace=pass_on if self.tracer is None else self.tracer.begin,
            )
            await self.reception.load_task_types()
            self.engine.listen(names.REQUESTS, self.reception.from_message, opens=True)
            if codec is not None:
                self.plans = self._take_plans(codec)
            stack.push_async_callback(self.projections.stop)  # after the engine: its last commits are read too
            await self.engine.start()
            stack.push_async_callback(self.engine.stop)
            self.projections.start()
            self.metrics.watch(self.engine, self.reception, self.projections.all)
            await self.metrics.count_dead_letters(store)
            self._beside(stack, self.metrics.run(store))
            self._beside(stack, deadlines.run(store))
            if self.tracer is not None:
                self._beside(stack, self.tracer.run(store))
            for worker in self.workers:
                self._worker_tasks.append(asyncio.create_task(worker.run(BrokerTransport(broker))))
        except BaseException:
            await stack.aclose()
            raise
        return self

    async def _codec(self, stack: AsyncExitStack) -> Codec:
        """How records of Fluxo C are read and written, ready to be used."""
        registry = registry_of(self.settings)
        stack.push_async_callback(registry.close)
        codec = codec_of(self.settings, registry)
        await codec.learn()
        return codec

    def _writer(self, codec: Codec | None) -> OrderWriter:
        if codec is None or not on_kafka(self.settings):
            return OrderWriter()
        return OrderWriter(codec.encode, topics_of(self.settings).every)

    def _take_plans(self, codec: Codec) -> PlanDesk:
        """Fluxo C: decisions come from one topic, results of tickets from another."""
        desk = PlanDesk(
            self.reception,
            flow_rules(self.settings),
            codec.decode,
            pass_on if self.tracer is None else self.tracer.begin,
        )
        self.engine.listen(
            self.settings.kafka_consensus, desk.from_message, submit=desk.submit, opens=True, prepare=codec.learn
        )
        self.engine.listen(self.settings.kafka_results, desk.result_from_message, heard=True, prepare=codec.learn)
        responses = topics_of(self.settings).approval_responses
        self.engine.listen(responses, desk.approval_from_message, submit=desk.submit_approvals)
        return desk

    def _audit(self, store: Store) -> None:
        """To MongoDB, where there is one. A process that does what tasks ask for leaves it to others."""
        audit = None if self.role is Role.TASKS else audit_of(self.settings, store, self.metrics.wrote)
        if audit is not None:
            self._sinks.append(audit)
            self.metrics.readings.mongodb = audit.writer

    @staticmethod
    def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
        """Goes on until the orchestrator stops."""
        stack.callback(asyncio.create_task(work).cancel)

    async def __aexit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()
        await asyncio.gather(*self._worker_tasks, *self._records, return_exceptions=True)
        await self._stack.aclose()

    def _switched(self, switch: Switch) -> None:
        """Publishing goes elsewhere from now on: an event, a metric and (where it happens) a log line."""
        self.metrics.switched(switch.source, switch.target)
        body = {"de": switch.source, "para": switch.target, "motivo": switch.reason, "route_epoch": switch.epoch}
        task = asyncio.create_task(self._record(SystemEvent("broker_switched", self.now(), body)))
        self._records.add(task)
        task.add_done_callback(self._records.discard)

    async def _record(self, event: SystemEvent) -> None:
        try:
            await self._store.record_system_event(event)
        except StoreError as error:
            log.error("a system event could not be stored", kind=event.kind, body=event.body, error=str(error))

    # -- what a user does --------------------------------------------------------------------------------------------

    async def submit(
        self,
        request: Mapping[str, Any] | Requisicao,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
    ) -> Accepted:
        """Durable when it returns. `traceparent` (W3C) makes it part of the caller's trace."""
        wanted = request if isinstance(request, Requisicao) else self.reception.read(request)
        return await self.reception.accept(wanted, idempotency_key, trace_context.parse(traceparent))

    async def submit_many(self, wanted: Sequence[Mapping[str, Any] | Requisicao]) -> list[Accepted]:
        """All of them in as few transactions as possible. One that is not acceptable refuses the whole call."""
        parsed = [one if isinstance(one, Requisicao) else self.reception.read(one) for one in wanted]
        return await self.reception.accept_many(parsed)

    async def result(self, correlation_id: str, *, wait: float = 0.0) -> dict[str, Any] | None:
        """The aggregate when it is final; None when it is still running after `wait` seconds."""
        body = await self.result_bytes(correlation_id, wait)
        return None if body is None else orjson.loads(body)

    async def result_bytes(self, correlation_id: str, wait: float) -> bytes | None:
        run = await self.run_of(correlation_id)
        ending = self.engine.feed.ending(run)
        try:
            body = await self._stored(run)
            if body is None and wait > 0:
                async with asyncio.timeout(wait):
                    body = await ending
        except TimeoutError:
            return None
        finally:
            self.engine.feed.forget(run, ending)
        return body

    async def ended(self, run: int) -> bytes:
        """The final document, as soon as there is one."""
        ending = self.engine.feed.ending(run)
        body = await self._stored(run)
        if body is not None:
            self.engine.feed.forget(run, ending)
            return body
        return await ending

    async def _stored(self, run: int) -> bytes | None:
        """The result, if there is one; the store is not asked about what is known to be running, here and only here."""
        state = None if self._store.shared else self.engine.handler.cache.get(run)
        return None if state is not None and state.closed_at is None else await self._store.result(run)

    async def show(self, correlation_id: str) -> dict[str, Any]:
        return views.orchestration(await self.state(correlation_id))

    async def shown(self, correlation_id: str) -> bytes:
        """The same as JSON. What it looks like at one version of it is the same everywhere, so that one process makes
        it and others find it in the cache."""
        if self.cache is None or (progress := await self._progress(correlation_id)) is None:
            return strict_json.dumps(await self.show(correlation_id))
        key = f"orchestration:{progress[0]}:{progress[1].version}"
        found = await self.cache.get(key)
        if found is None:
            state = await self.state(correlation_id)
            found = strict_json.dumps(views.orchestration(state))
            if state.version == progress[1].version:
                await self.cache.put(key, found, CACHED)
        return found

    async def _progress(self, correlation_id: str) -> tuple[int, Progress] | None:
        """Of an orchestration in a shared store."""
        shared = sharing(self._store)
        if shared is None:
            return None
        run = await self.run_of(correlation_id)
        progress = (await shared.progress([run])).get(run)
        return None if progress is None else (run, progress)

    async def state(self, correlation_id: str) -> Orchestration:
        state = await self.engine.state_of(correlation_id)
        if state is None:
            raise UnknownIdError("orchestration", correlation_id)
        return state

    async def state_of_run(self, run: int) -> Orchestration:
        state = await self.engine.handler.state(run)
        if state is None:
            raise UnknownIdError("orchestration", str(run))
        return state

    async def cancel(self, correlation_id: str, reason: str = "") -> bool:
        """True when it was still running."""
        return (await self.engine.cancel(correlation_id, reason)).reason == "applied"

    async def events(self, correlation_id: str, after: int = 0, limit: int = 10_000) -> list[dict[str, Any]]:
        """The journal as the outside sees it, from event number `after` on."""
        state = await self.state(correlation_id)
        recorded = await self._store.events(state.run, after, limit)
        return [event for one in recorded for event in views.events(state.run, state.plan, one, after)][:limit]

    async def recorded(self, correlation_id: str, after: int, limit: int) -> list[Recorded]:
        """The steps that hold events numbered above `after`; some of the first may be older."""
        return await self._store.events(await self.run_of(correlation_id), after, limit)

    async def stream(
        self, correlation_id: str, after: int = 0, heartbeat: float = 15.0
    ) -> AsyncIterator[dict[str, Any] | None]:
        """Every event as it is committed, until the orchestration has ended; None now and then when nothing happens."""
        state = await self.state(correlation_id)
        run, plan = state.run, state.plan
        async with aclosing(self.follow(run, after, heartbeat)) as steps:
            async for step in steps:
                if step is None:
                    yield None
                    continue
                if any(isinstance(event, CompensationStarted) for event in step.events):
                    plan = (await self.state(correlation_id)).plan  # it has grown
                for event in views.events(run, plan, step, after):
                    after = event["seq"]
                    yield event

    async def follow(self, run: int, after: int = 0, heartbeat: float = 15.0) -> AsyncGenerator[Recorded | None]:
        """Every step as it is committed, from the one that holds event `after` + 1 on, until the orchestration has
        ended; None now and then when nothing happens."""
        with self.engine.feed.watch(run) as news:
            while True:
                news.clear()
                recorded = await self._store.events(run, after, EVENTS_AT_ONCE)
                ended = False
                for one in recorded:
                    yield one
                    after = one.first + len(one.events) - 1
                    ended = ended or any(isinstance(event, OrchestrationClosed) for event in one.events)
                if len(recorded) == EVENTS_AT_ONCE:
                    continue
                if ended or await self._finished(run, after):
                    return
                try:
                    async with asyncio.timeout(heartbeat):
                        await news.wait()
                except TimeoutError:
                    yield None

    async def _finished(self, run: int, after: int) -> bool:
        state = await self.engine.handler.state(run)
        return state is None or (state.closed_at is not None and state.version <= after)

    async def run_of(self, correlation_id: str) -> int:
        run = self.engine.handler.cache.run_of(correlation_id)
        if run is None:
            run = (await self._store.locate([correlation_id])).get(correlation_id)
        if run is None:
            raise UnknownIdError("orchestration", correlation_id)
        return run

    @property
    def _store(self) -> Store:
        assert self.store is not None
        return self.store

    def metrics_on(self, port: int) -> AbstractAsyncContextManager[int]:
        """`/metrics` without a key, on a port of its own, while this is entered; 0 takes a free one."""
        return metrics_port(self.settings.host, port, self.metrics.exposition)

    def now(self) -> datetime:
        return self.clock.now()
