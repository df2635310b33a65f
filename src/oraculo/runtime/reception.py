"""Where requests arrive, whichever way they came: HTTP, a message, Python. Request → plan → Start → durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from oraculo.core.commands import Start
from oraculo.core.plan import Plan
from oraculo.errors import DuplicateCorrelationError, PlanError, UnknownIdError, WireError
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.store import Key, Store
from oraculo.runtime import crash
from oraculo.runtime.ids import RunNumbers, new_correlation_id
from oraculo.runtime.intake import quarantined
from oraculo.runtime.work import Fate, Outcome, Work
from oraculo.wire import mensagem, requests, strict_json, trace_context
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.requests import Defaults, Requisicao

Trace = Callable[[str | None, int], str | None]  # the context that a request came with, its run → the one it gets
CheckWebhook = Callable[[str], str | None]  # URL → what is wrong with it


def pass_on(given: str | None, _run: int) -> str | None:
    """Nobody here makes traces; a caller's goes on to the workers."""
    return given


class Entrance(Protocol):
    """The part of an engine that takes new work."""

    clock: Clock
    store: Store
    numbers: RunNumbers
    broker: Broker

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]: ...

    def admit(self, count: int = 1) -> None: ...


@dataclass(frozen=True, slots=True)
class Accepted:
    correlation_id: str
    run: int
    new: bool  # False: the same request came before, this is its run


class Reception:
    def __init__(
        self,
        engine: Entrance,
        defaults: Defaults,
        *,
        check_webhook: CheckWebhook | None = None,
        task_types: Mapping[str, Requisicao] | None = None,
        trace: Trace = pass_on,
    ) -> None:
        self.engine = engine
        self._defaults = defaults
        self._check_webhook = check_webhook
        self._trace = trace
        self._fixed = dict(task_types or {})
        self._types: dict[str, Requisicao] = dict(self._fixed)
        self.validations = {"valid": 0, "invalid": 0}  # requests that were looked at
        self.repeated = 0  # requests that had been accepted before
        self.unnamed = 0  # requests without a correlation_id

    # -- requests ----------------------------------------------------------------------------------------------------

    def read(self, value: Any) -> Requisicao:
        """A decoded JSON value → request, or WireError."""
        try:
            return requests.parse(value)
        except WireError:
            self.validations["invalid"] += 1
            raise

    async def accept(
        self, request: Requisicao, idempotency_key: str | None = None, traceparent: str | None = None
    ) -> Accepted:
        """Durable when it returns. WireError or PlanError: refused; DuplicateCorrelationError: the id is taken."""
        return (await self.accept_many([request], [idempotency_key], traceparent))[0]

    async def accept_many(
        self,
        wanted: Sequence[Requisicao],
        keys: Sequence[str | None] | None = None,
        traceparent: str | None = None,
    ) -> list[Accepted]:
        self.engine.admit(len(wanted))
        if self.engine.store.shared and any(request.tipo is not None for request in wanted):
            await self.load_task_types()  # another process may have changed them
        given = keys or [None] * len(wanted)
        works = [self.work(request, key, traceparent) for request, key in zip(wanted, given, strict=True)]
        outcomes = await self.engine.submit(works)
        crash.point("before_answer")
        accepted = [_accepted(work, outcome) for work, outcome in zip(works, outcomes, strict=True)]
        self.repeated += sum(1 for one in accepted if not one.new)
        return accepted

    def work(self, request: Requisicao, idempotency_key: str | None = None, traceparent: str | None = None) -> Work:
        try:
            work = self._work(request, idempotency_key, traceparent)
        except PlanError:
            self.validations["invalid"] += 1
            raise
        self.validations["valid"] += 1
        return work

    def _work(self, request: Requisicao, idempotency_key: str | None, traceparent: str | None) -> Work:
        requests.check_shape(request)
        name = request.correlation_id
        fresh = name is None and idempotency_key is None
        fingerprint = "" if fresh else requests.fingerprint(request)
        if request.tipo is not None:
            request = requests.expand(request, self.task_type(request.tipo))
        plan = requests.plan_of(request, self._defaults)
        self.check_notify(plan)
        if name is None:
            name = new_correlation_id()
            self.unnamed += 1
        run = self.engine.numbers.next(self.engine.clock.now())
        key = None if idempotency_key is None else Key(idempotency_key, fingerprint, run)
        start = Start(run, name, plan, fingerprint, self._trace(traceparent, run))
        return Work(start, name, fresh=fresh, key=key)

    def check_notify(self, plan: Plan) -> None:
        wrong = self._check_webhook(plan.notify.webhook) if plan.notify.webhook and self._check_webhook else None
        if wrong:
            raise PlanError(wrong, "notificar.webhook")

    def from_message(self, raw: bytes, queue: str, headers: Mapping[str, str] = NO_HEADERS, /) -> Work:
        """A message of `orquestrador_requisicoes` as work; what is not acceptable is work for the quarantine."""
        name = ""
        try:
            message = mensagem.parse(raw)
            name = message.correlation_id
            if message.tipo_evento != "iniciar_coleta" or message.ticket_id is not None:
                raise WireError("unexpected_event", "a request is an iniciar_coleta without ticket_id")
            inner = message.payload.get("correlation_id", name)
            if inner != name:
                raise WireError("invalid_request", "payload.correlation_id differs from the envelope's correlation_id")
            request = self.read({**message.payload, "correlation_id": name})
            work = self.work(request, traceparent=trace_context.of_message(message.traceparent, headers))
        except (WireError, PlanError) as error:
            return quarantined(raw, queue, error, name)
        work.queue, work.body = queue, raw
        return work

    # -- task types --------------------------------------------------------------------------------------------------

    async def load_task_types(self) -> None:
        stored = {
            tipo: requests.parse(strict_json.loads(body))
            for tipo, body in (await self.engine.store.task_types()).items()
        }
        self._types = {**stored, **self._fixed}

    def task_types(self) -> dict[str, Requisicao]:
        return dict(self._types)

    def task_type(self, tipo: str) -> Requisicao:
        found = self._types.get(tipo)
        if found is None:
            known = ", ".join(sorted(self._types)) or "none yet; PUT /api/v1/task-types/{tipo} adds one"
            raise PlanError(f"unknown task type {tipo!r}; known: {known}", "tipo")
        return found

    async def put_task_type(self, tipo: str, body: Any) -> Requisicao:
        """Validated like a request; it must make a plan by itself."""
        template = requests.parse(body)
        if template.tipo is not None or template.parametros is not None:
            raise PlanError("a task type cannot stand for another task type", "tipo")
        if template.correlation_id is not None:
            raise PlanError("a task type has no correlation_id of its own", "correlation_id")
        self.check_notify(requests.plan_of(template, self._defaults))
        if tipo in self._fixed:
            raise PlanError(f"the task type {tipo!r} comes from the file ORACULO_TASK_TYPES; change it there", "tipo")
        document = template.model_dump(mode="json", exclude_none=True)
        await self.engine.store.put_task_type(tipo, strict_json.dumps(document), self.engine.clock.now())
        self._types[tipo] = template
        return template

    async def remove_task_type(self, tipo: str) -> None:
        if tipo in self._fixed:
            raise PlanError(f"the task type {tipo!r} comes from the file ORACULO_TASK_TYPES; change it there", "tipo")
        if not await self.engine.store.remove_task_type(tipo):
            raise UnknownIdError("task type", tipo)
        self._types.pop(tipo, None)


def _accepted(work: Work, outcome: Outcome) -> Accepted:
    if outcome.fate is Fate.CONFLICT:
        value = work.key.key if work.key and outcome.reason == "Idempotency-Key" else work.correlation_id
        raise DuplicateCorrelationError(outcome.reason, value)
    return Accepted(outcome.correlation_id or work.correlation_id, outcome.run, outcome.fate is Fate.APPLIED)
