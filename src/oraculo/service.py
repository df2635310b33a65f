"""The verbs of a user: the whole product inside a Python process. `oraculo up` adds HTTP to it.

    async with Oraculo(load(), workers=[worker]) as oraculo:
        accepted = await oraculo.submit({"coletas": [{"fonte": "youtube"}]})
        result = await oraculo.result(accepted.correlation_id, wait=30)

Routes, pages and metrics see these verbs and `status()`, never what is behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from copy import copy
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Self

import orjson
import structlog

from oraculo import logs
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.port import metrics_port
from oraculo.bootstrap.adapters import tracer_of
from oraculo.bootstrap.parts import Parts
from oraculo.bootstrap.roles import Role
from oraculo.bootstrap.wiring import Wiring
from oraculo.core.access import LOCAL, Actor, Scope
from oraculo.core.events import CompensationStarted, MapRestored, PlanGrown
from oraculo.core.reuse import RetryFrom
from oraculo.core.sentences import DEFAULT_LANGUAGE, Language
from oraculo.core.state import Orchestration
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, tenant_of
from oraculo.errors import UnknownIdError
from oraculo.ports.broker import Broker
from oraculo.ports.cache import Cache
from oraculo.ports.engine import Engine, EngineStatus
from oraculo.ports.journal import Recorded
from oraculo.ports.membership import Member
from oraculo.ports.projection import Sink
from oraculo.ports.store import Store
from oraculo.ports.work import Outcome, Work, by_actor
from oraculo.runtime import crash, following
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.api_keys import KeyRing
from oraculo.runtime.breakers import BreakerBook
from oraculo.runtime.bulk import BulkDeeds
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.durations.learning import Durations
from oraculo.runtime.effects.references import OrderReferences
from oraculo.runtime.flow.plans import PlanIntake
from oraculo.runtime.human_input import HumanInput, SignalTaken
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.local_users import UserDirectory
from oraculo.runtime.pauses import RunPauses
from oraculo.runtime.policies.asking import Policies
from oraculo.runtime.probes import Prober
from oraculo.runtime.project import Projections
from oraculo.runtime.queue_status import queue_standings
from oraculo.runtime.request_batch import BatchIntake
from oraculo.runtime.requests import Accepted, RequestIntake
from oraculo.runtime.reserved import ReservedQueues
from oraculo.runtime.retries import Retried, Retries
from oraculo.runtime.schedules.book import ScheduleBook
from oraculo.runtime.signatures import MessageGuard
from oraculo.runtime.sla.book import ObjectiveBook
from oraculo.runtime.sla.monitor import SlaMonitor
from oraculo.runtime.tenant_store import TenantStore
from oraculo.runtime.trails import Trails
from oraculo.runtime.workers import WorkerBook
from oraculo.settings.settings import Settings
from oraculo.wire import event_views, trace_context, views
from oraculo.wire.names import QueueNames
from oraculo.wire.requests import Requisicao
from oraculo.worker.references import read_stored
from oraculo.worker.signing import answer_signer
from oraculo.worker.worker import BrokerTransport, Worker

__all__ = ["Oraculo", "Role"]

log = structlog.get_logger("oraculo")
HEARTBEAT_S = 15.0


class Oraculo:
    """An orchestrator in this process, with `workers` beside it. Use it as an async context manager. Its verbs are
    about one tenant: `default`, or the one that `within` was given."""

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
        self.tenant = DEFAULT_TENANT
        self.workers = list(workers)
        self.metrics = Metrics()
        self.metrics.readings.log_lines = lambda: logs.lines
        self.tracer = tracer_of(settings)
        self.clock = MonotonicClock()
        self._wiring = Wiring(settings, role, self.clock, self.metrics, self.tracer, sinks, store, broker)
        self._parts: Parts | None = None
        self._stack = AsyncExitStack()
        self._worker_tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        logs.leave_to_program()
        for warning in self.settings.warnings():
            log.warning(warning)
        crash.arm(self.settings.crash_at)
        try:
            self._parts = await self._wiring.open(self._stack)
        except BaseException:
            await self._stack.aclose()
            raise
        known = (self.broker, self.prober, self.leases, self.workers, self.metrics.readings.traffic)
        self.metrics.readings.queues = partial(queue_standings, *known, self.status, self.clock)
        for worker in self.workers:
            for queue, handler in worker.handlers.items():
                if handler.schema is not None:
                    await self.requests.schemas.put(self.settings.queue_names.instead_of(queue), handler.schema)
            sign = answer_signer(self.settings.signatures.key)
            transport = BrokerTransport(self.broker, resolve=self._resolve, sign=sign)
            work = worker.run(transport, queue_names=self.settings.queue_names)
            self._worker_tasks.append(asyncio.create_task(work))
        return self

    def within(self, tenant: str) -> Oraculo:
        """The same orchestrator as a tenant sees it: names are that tenant's, and what is of another is unknown."""
        if tenant == self.tenant:
            return self
        seen = copy(self)
        seen.tenant = tenant
        return seen

    def _named(self, correlation_id: str) -> str:
        return in_tenant(self.tenant, correlation_id)

    def _as(self, actor: Actor | None) -> Actor:
        """The actor at work in this tenant; this process itself, unless another is given."""
        found = actor or LOCAL
        return found if found.tenant == self.tenant else replace(found, tenant=self.tenant)

    async def _resolve(self, reference: Mapping[str, Any]) -> Any:
        """The data that an order refers to, for workers of this process."""
        if self.references is None:
            raise UnknownIdError("order data", str(reference.get("sha256")))
        return await read_stored(self.references.data, reference)

    async def __aexit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()
        await asyncio.gather(*self._worker_tasks, return_exceptions=True)
        await self._stack.aclose()

    # -- what it is made of ------------------------------------------------------------------------------------------

    @property
    def _opened(self) -> Parts:
        if self._parts is None:
            raise RuntimeError("use `async with Oraculo(…)`: it is not open")
        return self._parts

    @property
    def engine(self) -> Engine:
        return self._opened.engine

    @property
    def store(self) -> Store:
        return self._opened.ports.store

    @property
    def broker(self) -> Broker:
        return self._opened.ports.broker

    @property
    def cache(self) -> Cache | None:
        return self._opened.ports.cache

    @property
    def requests(self) -> RequestIntake:
        """Requests and task types."""
        return self._opened.requests

    @property
    def plans(self) -> PlanIntake | None:
        """Plans of Fluxo C; None when it is off, and for tenants other than `default`."""
        return self._opened.plans if self.tenant == DEFAULT_TENANT else None

    @property
    def reserved(self) -> ReservedQueues:
        """Queues that are neither for workers nor for requests."""
        return self._opened.reserved

    @property
    def references(self) -> OrderReferences | None:
        """Data that orders refer to; None where every order carries its own."""
        return self._opened.ports.references

    @property
    def policies(self) -> Policies:
        return self._opened.ports.policies

    @property
    def leases(self) -> HttpLeases:
        """Workers over HTTP."""
        return self._opened.leases

    @property
    def keys(self) -> KeyRing:
        """Keys of the API."""
        return self._opened.keys

    @property
    def users(self) -> UserDirectory | None:
        """People who log in with a password; None where there are none."""
        return self._opened.users

    @property
    def answers(self) -> AnswerReader:
        """Reads answers of workers."""
        return self._opened.answers

    @property
    def answer_guard(self) -> MessageGuard | None:
        """Judges signatures of answers; None where they are not looked at."""
        return self._opened.guards.of(Scope.RESULT_WRITE)

    @property
    def signed_requests(self) -> bool:
        """True if requests that come from a broker have to be signed."""
        return self.settings.signatures.requests == "require"

    @property
    def batches(self) -> BatchIntake:
        """Lists of requests, each accepted or refused on its own."""
        return BatchIntake(self.requests, self.engine)

    @property
    def retries(self) -> Retries:
        """Runs that try others again."""
        return Retries(self.engine, self.store, self.requests, self.now, self.tenant)

    @property
    def bulk(self) -> BulkDeeds:
        """The same done to many orchestrations."""
        return BulkDeeds(self.engine, TenantStore(self.store, self.tenant), self.retries)

    @property
    def schedules(self) -> ScheduleBook:
        """Requests that are started at instants of a calendar."""
        return self._opened.schedules.within(self.tenant)

    @property
    def durations(self) -> Durations | None:
        """Predicted durations; None where nothing is predicted."""
        return self._opened.foresight.durations

    @property
    def trails(self) -> Trails | None:
        """Trails of workers; None where nothing follows them."""
        return self._opened.foresight.trails

    @property
    def sla(self) -> SlaMonitor | None:
        """What watches deadlines and objectives; None where nothing does."""
        return self._opened.foresight.sla

    @property
    def objectives(self) -> ObjectiveBook:
        """Objectives of service levels, and the alerts that were told."""
        return ObjectiveBook(self.store, self.now, self.sla, self.tenant)

    @property
    def registry(self) -> WorkerBook:
        """Workers that registered."""
        return self._opened.workers

    @property
    def pauses(self) -> RunPauses:
        """Pauses of orchestrations and of destinations."""
        return RunPauses(self.engine, self._opened.destinations, self.store, self.now, self.tenant)

    @property
    def breakers(self) -> BreakerBook | None:
        """Breakers of destinations; None where they are off."""
        return self._opened.destinations.breakers

    @property
    def consumers(self) -> QueueConsumers:
        return self._opened.consumers

    @property
    def prober(self) -> Prober | None:
        return self._opened.prober

    @property
    def projections(self) -> Projections:
        return self._opened.projections

    @property
    def kernel_ports(self) -> KernelPorts:
        return self._opened.ports

    @property
    def kernel_options(self) -> KernelOptions:
        return self._opened.options

    # -- how it is ---------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """True once it has started, until it is closed."""
        return self._parts is not None

    def is_ready(self) -> bool:
        """Return whether requests can be taken: it has started and does not stop."""
        return self._parts is not None and self._parts.engine.is_ready()

    def status(self) -> EngineStatus:
        """Return a snapshot of the engine."""
        return self._opened.engine.status()

    def queues(self) -> frozenset[str]:
        """Return the queues of this tenant that are published to or taken from."""
        every = self.status().queues | self.consumers.queues
        return frozenset(queue for queue in every if tenant_of(queue) == self.tenant)

    @property
    def queue_names(self) -> QueueNames:
        """The queues that sources and executors of this tenant have."""
        return self.settings.queue_names.within(self.tenant)

    async def members(self) -> list[Member]:
        """Return the processes that share the store; none where it is not shared."""
        shared = self.store.sharing
        return [] if shared is None else await shared.members()

    def metrics_on(self, port: int) -> AbstractAsyncContextManager[int]:
        """Serve `/metrics` without a key, on a port of its own, while this is entered; 0 takes a free one."""
        return metrics_port(self.settings.host, port, self.metrics.exposition)

    def now(self) -> datetime:
        return self.clock.now()

    # -- what a user does --------------------------------------------------------------------------------------------

    async def submit(
        self,
        request: Mapping[str, Any] | Requisicao,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        actor: Actor | None = None,
    ) -> Accepted:
        """Start an orchestration; it is durable when this returns. `traceparent` (W3C) makes it part of the caller's
        trace. `actor` is who asks for it: this process itself, unless something else is said."""
        wanted = request if isinstance(request, Requisicao) else self.requests.read(request)
        trace = trace_context.parse(traceparent)
        return await self.requests.accept(wanted, idempotency_key, trace, actor=self._as(actor))

    async def submit_many(
        self, wanted: Sequence[Mapping[str, Any] | Requisicao], *, actor: Actor | None = None
    ) -> list[Accepted]:
        """Start many in as few transactions as possible. One that is not acceptable refuses the whole call."""
        parsed = [one if isinstance(one, Requisicao) else self.requests.read(one) for one in wanted]
        return await self.requests.accept_many(parsed, actor=self._as(actor))

    async def submit_work(self, works: list[Work], *, actor: Actor) -> list[Outcome]:
        """Hand in messages that were read already (answers of workers, dead letters); durable when this returns."""
        return await self.engine.submit([by_actor(work, actor) for work in works])

    async def cancel(
        self, correlation_id: str, reason: str = "", *, actor: Actor | None = None, undo: bool = False
    ) -> bool:
        """Cancel an orchestration, and `undo` what it did; return True when it was still running."""
        outcome = await self.engine.cancel(self._named(correlation_id), reason, actor=actor or LOCAL, undo=undo)
        return outcome.reason == "applied"

    async def retry(
        self,
        correlation_id: str,
        mode: RetryFrom = RetryFrom.FAILURES,
        *,
        task: str | None = None,
        key: str | None = None,
        traceparent: str | None = None,
        actor: Actor = LOCAL,
    ) -> Retried:
        """Try an ended run again as a new one that takes over what had concluded; durable when this returns. `task`
        goes with RetryFrom.TASK. RetryError: it cannot be tried again like this."""
        trace = trace_context.parse(traceparent)
        return await self.retries.retry(correlation_id, mode, task, key=key, traceparent=trace, actor=actor)

    async def signal(
        self, correlation_id: str, name: str, dados: bytes = b"null", *, key: str | None = None, actor: Actor = LOCAL
    ) -> SignalTaken:
        """Send a signal with its data as JSON text; durable when this returns. The same `key` again is the same signal.
        SignalError: it is not taken."""
        return await HumanInput(self.engine).signal(self._named(correlation_id), name, dados, key=key, actor=actor)

    async def decide(
        self,
        correlation_id: str,
        approved: bool,
        *,
        by: str = "",
        reason: str = "",
        task: str | None = None,
        actor: Actor | None = None,
    ) -> bool:
        """Approve or refuse what waits for a human: a plan of Fluxo C, or a task, which has to be named where several
        wait. Return True when it waited for that. DecisionError: it does not count."""
        said = HumanInput(self.engine)
        return await said.decide(self._named(correlation_id), approved, by, reason, task=task, actor=actor or LOCAL)

    async def result(self, correlation_id: str, *, wait: float = 0.0) -> dict[str, Any] | None:
        """Return the aggregate when it is final; None when it is still running after `wait` seconds."""
        body = await self.result_json(await self.run_of(correlation_id), wait=wait)
        return None if body is None else orjson.loads(body)

    async def result_json(self, run: int, *, wait: float | None = 0.0) -> bytes | None:
        """Return the same by number and as JSON text. `wait=None` waits for as long as it takes."""
        return await following.result(self.engine, self._opened.ports.watchers, run, wait)

    async def show(self, correlation_id: str, language: Language = DEFAULT_LANGUAGE) -> dict[str, Any]:
        """Return an orchestration with its tickets, as the API shows it; sentences are in `language`."""
        return views.orchestration(await self.state(correlation_id), language, self.hold_of)

    def hold_of(self, queue: str) -> tuple[str, datetime, str] | None:
        """What keeps orders for a queue from going out: ("paused" or "breaker", since when, why); None: nothing."""
        return self._opened.destinations.hold_of(queue)

    @property
    def holds_any(self) -> bool:
        """True while orders for some destination are kept back."""
        return self._opened.destinations.holds_any

    async def state(self, which: str | int) -> Orchestration:
        """Return the committed state, by correlation_id or by number. Read it at once: it may be the live object."""
        if isinstance(which, str):
            state = await self.engine.state_of(self._named(which))
        else:
            state = await self.engine.state(which)
        if state is None or tenant_of(state.correlation_id) != self.tenant:
            raise UnknownIdError("orchestration", str(which))
        return state

    async def run_of(self, correlation_id: str) -> int:
        """Return the number of an orchestration."""
        run = await self.engine.run_of(self._named(correlation_id))
        if run is None:
            raise UnknownIdError("orchestration", correlation_id)
        return run

    async def events(
        self, correlation_id: str, after: int = 0, limit: int = 10_000, language: Language = DEFAULT_LANGUAGE
    ) -> list[dict[str, Any]]:
        """Return the journal as the outside sees it, from event number `after` on."""
        state = await self.state(correlation_id)
        recorded = await self.store.seen_by(self.tenant).events(state.run, after, limit)
        shown = (event for one in recorded for event in event_views.events(state.run, state.plan, one, after, language))
        return list(islice(shown, limit))

    async def stream(
        self,
        correlation_id: str,
        after: int = 0,
        heartbeat: float = HEARTBEAT_S,
        language: Language = DEFAULT_LANGUAGE,
    ) -> AsyncGenerator[dict[str, Any] | None]:
        """Yield every event as it is committed, until the orchestration has ended; None every `heartbeat` seconds when
        nothing happens."""
        state = await self.state(correlation_id)
        run, plan = state.run, state.plan
        async with aclosing(self.follow(run, after, heartbeat)) as steps:
            async for step in steps:
                if step is None:
                    yield None
                    continue
                if any(isinstance(event, CompensationStarted | PlanGrown | MapRestored) for event in step.events):
                    plan = (await self.state(correlation_id)).plan  # it has grown
                for event in event_views.events(run, plan, step, after, language):
                    after = event["seq"]
                    yield event

    def follow(self, run: int, after: int = 0, heartbeat: float = HEARTBEAT_S) -> AsyncGenerator[Recorded | None]:
        """Yield every step as it is committed, from the one that holds event `after` + 1 on, until the orchestration
        has ended; None every `heartbeat` seconds when nothing happens."""
        return following.follow(
            self.engine, self.store.seen_by(self.tenant), self._opened.ports.watchers, run, after, heartbeat
        )
