"""Requests, whichever way they came (HTTP, a message, Python): request → plan → Start → durable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from oraculo.core import retrying
from oraculo.core.access import BROKER, Actor
from oraculo.core.commands import Start
from oraculo.core.events import OrchestrationStarted
from oraculo.core.plan import NOTICE_WAITS, Plan
from oraculo.core.reuse import Origin, RetryFrom
from oraculo.core.state import Orchestration
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, local_name, tenant_of
from oraculo.core.vocabulary import Kind, Status
from oraculo.errors import DuplicateCorrelationError, PlanError, UnknownIdError, UnknownTaskTypeError, WireError
from oraculo.plans import limits
from oraculo.ports.clock import Clock
from oraculo.ports.engine import CommandSink
from oraculo.ports.journal import Key
from oraculo.ports.store import Store
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime import crash
from oraculo.runtime.consumer import quarantined
from oraculo.runtime.effects.children import ChildRequest
from oraculo.runtime.ids import new_correlation_id
from oraculo.runtime.parameter_schemas import ParameterSchemaBook
from oraculo.runtime.quotas import Quotas
from oraculo.runtime.tenants import KnowsTenants
from oraculo.wire import mensagem, requests, strict_json, trace_context
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.requests import Defaults, Requisicao
from oraculo.wire.unique_rules import uniqueness

Trace = Callable[[str | None, int], str | None]  # the context that a request came with, its run → the one it gets
Check = Callable[[str], str | None]  # a URL or the name of a queue → what is wrong with it
Govern = Callable[[Plan], Plan]  # a plan → the same with what policies are asked about it


def ungoverned(plan: Plan) -> Plan:
    """Ask no policies."""
    return plan


def pass_on(given: str | None, _run: int) -> str | None:
    """Make no trace; the context of the caller goes on to the workers."""
    return given


@dataclass(frozen=True, slots=True)
class Accepted:
    correlation_id: str
    run: int
    new: bool  # False: the same request came before, this is its run
    merged: bool = False  # the run of an equal request, which exists once


class RequestIntake:
    """Turns requests into orchestrations, and keeps the task types that requests may name."""

    def __init__(
        self,
        engine: CommandSink,
        store: Store,
        clock: Clock,
        defaults: Defaults,
        *,
        check_webhook: Check | None = None,
        check_queue: Check | None = None,
        task_types: Mapping[str, Requisicao] | None = None,
        trace: Trace = pass_on,
        tenants: KnowsTenants | None = None,
        govern: Govern = ungoverned,
    ) -> None:
        self._engine = engine
        self._store = store
        self._clock = clock
        self._check_webhook = check_webhook
        self._check_queue = check_queue
        self._trace = trace
        self.govern = govern
        self._by_tenant: dict[str, Defaults] = {DEFAULT_TENANT: defaults}
        self._fixed = dict(task_types or {})  # of `default`
        self._types: dict[str, Requisicao] = dict(self._fixed)  # by their names inside
        self.quotas = Quotas(store, clock.now, tenants)
        self.schemas = ParameterSchemaBook(store, clock)
        self.validations = {"valid": 0, "invalid": 0}  # requests that were looked at
        self.merged = 0  # requests that exist once and were there already
        self.repeated = 0  # requests that had been accepted before
        self.unnamed = 0  # requests without a correlation_id

    # -- requests ----------------------------------------------------------------------------------------------------

    def read(self, value: Any) -> Requisicao:
        """Turn a decoded JSON value into a request, or raise WireError."""
        try:
            return requests.parse(value)
        except WireError:
            self.validations["invalid"] += 1
            raise

    async def accept(
        self,
        request: Requisicao,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        *,
        actor: Actor,
    ) -> Accepted:
        """Accept a request of `actor`, in its tenant; it is durable when this returns. WireError or PlanError: it is
        refused; DuplicateCorrelationError: the id is taken."""
        return (await self.accept_many([request], [idempotency_key], traceparent, actor=actor))[0]

    async def accept_many(
        self,
        wanted: Sequence[Requisicao],
        keys: Sequence[str | None] | None = None,
        traceparent: str | None = None,
        *,
        actor: Actor,
    ) -> list[Accepted]:
        self._engine.admit(len(wanted))
        limited = self.quotas.apply_to(actor)
        if limited:
            await self.quotas.check(actor, len(wanted))
        if self._store.sharing is not None:
            await self.refresh_task_types(wanted)
        given = keys or [None] * len(wanted)
        pairs = zip(wanted, given, strict=True)
        works = [self.work(request, key, traceparent, actor=actor) for request, key in pairs]
        if limited:
            with self.quotas.under_way(actor, len(works)):
                outcomes = await self._engine.submit(works)
        else:
            outcomes = await self._engine.submit(works)
        crash.point("before_answer")
        accepted = [accepted_of(work, outcome) for work, outcome in zip(works, outcomes, strict=True)]
        self.count(accepted)
        return accepted

    def count(self, accepted: Iterable[Accepted]) -> None:
        """Count those that came before, and those that were merged."""
        for one in accepted:
            self.merged += one.merged
            self.repeated += not (one.new or one.merged)

    def work(
        self,
        request: Requisicao,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        *,
        actor: Actor,
    ) -> Work:
        try:
            work = self._work(request, idempotency_key, traceparent, actor)
        except PlanError:
            self.validations["invalid"] += 1
            raise
        self.validations["valid"] += 1
        return work

    def _work(self, request: Requisicao, idempotency_key: str | None, traceparent: str | None, actor: Actor) -> Work:
        requests.check_shape(request)
        tenant, name = actor.tenant, request.correlation_id
        fresh = name is None and idempotency_key is None
        fingerprint = "" if fresh else requests.fingerprint(request)
        sent, above = request, () if request.tipo is None else (request.tipo,)
        if request.tipo is not None:
            request = requests.expand(request, self.task_type(request.tipo, tenant))
        if request.tarefas is not None:
            self._check_types(request, tenant, above)
        plan = requests.plan_of(request, self._defaults(tenant))
        if request.unica is not None:
            plan = replace(plan, unique=uniqueness(request.unica, sent))
        self._check_destinations(plan, tenant)
        if name is None:
            name = new_correlation_id()
            self.unnamed += 1
        name = in_tenant(tenant, name)
        run = self._engine.next_run()
        key = None if idempotency_key is None else Key(in_tenant(tenant, idempotency_key), fingerprint, run)
        start = Start(run, name, self.govern(plan), fingerprint, self._trace(traceparent, run), actor.id)
        return Work(start, name, fresh=fresh, key=key)

    def retry_work(
        self,
        plan: Plan,
        name: str,
        origin: Origin,
        *,
        fingerprint: str,
        key: str | None,
        traceparent: str | None,
        actor: Actor,
    ) -> Work:
        """The start of a run that tries another one again. PlanError: what its plan sends to is not allowed now."""
        if plan.profile.requestable:
            self._check_destinations(plan, actor.tenant)
        else:
            self.check_notify(plan)
        run = self._engine.next_run()
        start = Start(run, name, self.govern(plan), fingerprint, self._trace(traceparent, run), actor.id, origin)
        used = None if key is None else Key(in_tenant(actor.tenant, key), fingerprint, run)
        return Work(start, name, key=used)

    def _defaults(self, tenant: str) -> Defaults:
        """What requests of a tenant get that do not say."""
        found = self._by_tenant.get(tenant)
        if found is None:
            found = self._by_tenant[tenant] = self._by_tenant[DEFAULT_TENANT].within(tenant)
        return found

    def child(self, wanted: ChildRequest, request: dict[str, Any]) -> Work:
        """The work of a child that its parent asks for: it is of the same tenant, has the parent's labels besides its
        own, and is told from any other run of that id by whose child it is."""
        asked, tenant = requests.parse(request), tenant_of(wanted.name)
        labels = dict.fromkeys((*wanted.labels, *(asked.rotulos or ())))
        if asked.tipo is not None:
            asked = requests.expand(asked, self.task_type(asked.tipo, tenant))
        plan = requests.plan_of(asked, self._defaults(tenant))
        self._check_destinations(plan, tenant)
        notify = plan.notify if plan.notify.waits else replace(plan.notify, waits=NOTICE_WAITS)
        found = tuple(dict.fromkeys((*labels, *plan.labels)))[: limits.MAX_LABELS]
        plan = replace(plan, parent=wanted.parent, notify=notify, labels=found)
        fingerprint = requests.child_fingerprint(request, wanted.parent)
        run = self._engine.next_run()
        trace = self._trace(wanted.traceparent, run)
        start = Start(run, wanted.name, self.govern(plan), fingerprint, trace, wanted.actor)
        return Work(start, wanted.name)

    async def child_again(self, work: Work, earlier: Orchestration) -> Work:
        """The work of a child as a retry of one that failed, from its failures; as it is where that one asked for
        something else, went through, or left nothing to take over."""
        start = work.command
        assert isinstance(start, Start)
        failed = earlier.closed_at is not None and earlier.status not in (Status.CONCLUIDA, Status.PARCIAL)
        if not failed or not retrying.unfinished(earlier):
            return work
        before = (await self._store.events(earlier.run, 0, 1))[0].events[0]
        assert isinstance(before, OrchestrationStarted)
        if replace(before.plan, parent=None, rules=0) != replace(start.plan, parent=None, rules=0):
            return work
        reused = retrying.reused(earlier, RetryFrom.FAILURES)
        chunks = retrying.commands(earlier, reused) if reused.tasks or reused.maps else []
        origin = Origin(earlier.run, earlier.correlation_id, RetryFrom.FAILURES, reuses=bool(chunks))
        work.command, work.reuse = replace(start, origin=origin), chunks
        return work

    async def refresh_all_task_types(self) -> None:
        """Read the task types anew where other processes may have changed them."""
        if self._store.sharing is not None:
            await self.load_task_types()

    def _check_types(self, request: Requisicao, tenant: str, above: tuple[str, ...] = ()) -> None:
        """Refuse children of types that are not there, and types that are their own children."""
        for tipo, where in requests.child_types(request).items():
            if tipo in above:
                circle = " → ".join((*above[above.index(tipo) :], tipo))
                raise PlanError(f"{where}: the task types are children of each other: {circle}", where)
            self._check_types(self.task_type(tipo, tenant, where), tenant, (*above, tipo))

    def check(self, request: Requisicao, tenant: str) -> None:
        """Raise PlanError unless the request would be accepted as it is now."""
        requests.check_shape(request)
        if request.tipo is not None:
            request = requests.expand(request, self.task_type(request.tipo, tenant))
        self._check_destinations(requests.plan_of(request, self._defaults(tenant)), tenant)

    def check_notify(self, plan: Plan) -> None:
        """Refuse addresses and queues that the end of an orchestration may not be told to."""
        wrong = self._check_webhook(plan.notify.webhook) if plan.notify.webhook and self._check_webhook else None
        if wrong:
            raise PlanError(wrong, "notificar.webhook")
        wrong = self._check_queue(plan.notify.queue) if plan.notify.queue and self._check_queue else None
        if wrong:
            raise PlanError(wrong, "notificar.fila")

    def _check_destinations(self, plan: Plan, tenant: str) -> None:
        """Refuse what orders and notices of a request may not be sent to."""
        self.check_notify(plan)
        if plan.notify.queue and tenant_of(plan.notify.queue) != tenant:
            raise PlanError(f"the queue {plan.notify.queue!r} belongs to another tenant", "notificar.fila")
        self.schemas.check(plan)
        check = self._check_queue
        if check is None:
            return
        for queue in {task.queue: None for task in plan.tasks}:
            if wrong := check(queue):
                kind = next(task.kind for task in plan.tasks if task.queue == queue)
                raise PlanError(wrong, "fonte" if kind is Kind.COLETA else "executador")

    def from_message(self, raw: bytes, queue: str, headers: Mapping[str, str] = NO_HEADERS, /) -> Work:
        """Turn a message of `orquestrador_requisicoes` into work; what is not acceptable becomes a dead letter. A
        request is of the tenant of its queue."""
        name, tenant = "", tenant_of(queue)
        actor = BROKER if tenant == DEFAULT_TENANT else replace(BROKER, tenant=tenant)
        try:
            message = mensagem.parse(raw)
            name = message.correlation_id
            if message.tipo_evento != "iniciar_coleta" or message.ticket_id is not None:
                raise WireError("unexpected_event", "a request is an iniciar_coleta without ticket_id")
            inner = message.payload.get("correlation_id", name)
            if inner != name:
                raise WireError("invalid_request", "payload.correlation_id differs from the envelope's correlation_id")
            request = self.read({**message.payload, "correlation_id": name})
            trace = trace_context.of_message(message.traceparent, headers)
            work = self.work(request, traceparent=trace, actor=actor)
        except (WireError, PlanError) as error:
            return quarantined(raw, queue, error, in_tenant(tenant, name))
        work.queue, work.body = queue, raw
        return work

    # -- task types --------------------------------------------------------------------------------------------------

    async def refresh_task_types(self, wanted: Iterable[Requisicao]) -> None:
        """Read the task types anew before requests that name one: another process may have changed them."""
        named = any(request.tipo is not None or request.tarefas is not None for request in wanted)
        if self._store.sharing is not None and named:
            await self.load_task_types()

    async def load_task_types(self) -> None:
        stored = {
            tipo: requests.parse(strict_json.loads(body)) for tipo, body in (await self._store.task_types()).items()
        }
        self._types = {**stored, **self._fixed}

    def task_types(self, tenant: str = DEFAULT_TENANT) -> dict[str, Requisicao]:
        """The task types of a tenant. Those of the file are of `default`."""
        return {local_name(name): template for name, template in self._types.items() if tenant_of(name) == tenant}

    def task_type(self, tipo: str, tenant: str = DEFAULT_TENANT, where: str = "tipo") -> Requisicao:
        """A task type of a tenant; `where` is the place of a request that names it."""
        found = self._types.get(in_tenant(tenant, tipo))
        if found is None:
            raise UnknownTaskTypeError(tipo, sorted(self.task_types(tenant)), where)
        return found

    async def put_task_type(self, tipo: str, body: Any, tenant: str = DEFAULT_TENANT) -> Requisicao:
        """Store a task type. It is validated like a request and must make a plan by itself."""
        template = requests.parse(body)
        if template.tipo is not None or template.parametros is not None:
            raise PlanError("a task type cannot stand for another task type", "tipo")
        if template.correlation_id is not None:
            raise PlanError("a task type has no correlation_id of its own", "correlation_id")
        self._check_destinations(requests.plan_of(template, self._defaults(tenant)), tenant)
        with suppress(UnknownTaskTypeError):  # it may be put later
            self._check_types(template, tenant, (tipo,))
        name = in_tenant(tenant, tipo)
        if name in self._fixed:
            raise PlanError(f"the task type {tipo!r} comes from the file ORACULO_TASK_TYPES; change it there", "tipo")
        document = strict_json.dumps(requests.written(template))
        await self._store.put_task_type(name, document, self._clock.now())
        self._types[name] = template
        return template

    async def remove_task_type(self, tipo: str, tenant: str = DEFAULT_TENANT) -> None:
        name = in_tenant(tenant, tipo)
        if name in self._fixed:
            raise PlanError(f"the task type {tipo!r} comes from the file ORACULO_TASK_TYPES; change it there", "tipo")
        if not await self._store.remove_task_type(name):
            raise UnknownIdError("task type", tipo)
        self._types.pop(name, None)


def accepted_of(work: Work, outcome: Outcome) -> Accepted:
    """What became of a request; DuplicateCorrelationError when its id or its key is taken."""
    if outcome.fate is Fate.CONFLICT:
        value = work.key.key if work.key and outcome.reason == "Idempotency-Key" else work.correlation_id
        raise DuplicateCorrelationError(outcome.reason, local_name(value))
    name = local_name(outcome.correlation_id or work.correlation_id)
    return Accepted(name, outcome.run, outcome.fate is Fate.APPLIED, outcome.fate is Fate.MERGED)
