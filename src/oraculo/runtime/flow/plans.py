"""Where plans of Fluxo C arrive, from Kafka or over HTTP: decision → C0 and C1 → plan → Start → durable.

A plan runs once, however often it or a decision about it comes, and whichever way: its `plan_id` is its key. What is
not going to run is recorded with the reason, and what came as a message and cannot be used goes to the dead letters, on
the topic that its users look at too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from typing import Any

import structlog

from oraculo.core.access import BROKER, Actor, PrincipalKind
from oraculo.core.commands import Approve, Start
from oraculo.core.flow.cognitive import CognitivePlan, FlowRules, plan_of
from oraculo.core.flow.decision import Course, Decision
from oraculo.core.plan import NoticeTargets
from oraculo.core.replay import rebuild
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Kind, Priority
from oraculo.errors import BrokerError, DuplicateCorrelationError, PlanError, UnknownIdError, WireError
from oraculo.ports.broker import Broker, Delivery, publish_confirmed
from oraculo.ports.clock import Clock
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.engine import CommandSink
from oraculo.ports.journal import Key
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.consumer import quarantined
from oraculo.runtime.ids import new_correlation_id
from oraculo.runtime.requests import RequestIntake, Trace, pass_on
from oraculo.runtime.token_ring import TokenRing
from oraculo.wire import names, quarantine, strict_json, trace_context
from oraculo.wire.flow import approvals, schemas
from oraculo.wire.flow.decisions import decision_of
from oraculo.wire.flow.results import answer, token_of
from oraculo.wire.payloads import NO_HEADERS

log = structlog.get_logger("oraculo.plans")

READ = (schemas.CONSOLIDATED_DECISION, schemas.COGNITIVE_PLAN)
Decode = Callable[[str | tuple[str, ...], bytes], dict[str, Any]]
REFUSED = "plan_refused"  # the kind of system event that says why a plan does not run


class Answer(StrEnum):
    """The answer to the sender of a plan."""

    ACCEPTED = "accepted"
    AWAITING_APPROVAL = "awaiting_approval"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Taken:
    """`correlation_id` and `run` are those of the orchestration; empty when there is none."""

    answer: Answer
    plan_id: str
    correlation_id: str = ""
    run: int = 0
    new: bool = False
    reason: str = ""


def key_of(plan_id: str) -> str:
    return f"plan:{plan_id}"


class PlanIntake:
    """Turns decisions and plans into orchestrations. `decode` reads a record in whatever form it came; `tokens` judges
    results of tickets by their tokens, which are not looked at without it. `believes_messages`: a plan from a broker
    that says that it was approved needs no other approval."""

    def __init__(
        self,
        engine: CommandSink,
        store: Store,
        broker: Broker,
        clock: Clock,
        requests: RequestIntake,
        rules: FlowRules,
        decode: Decode,
        trace: Trace = pass_on,
        tokens: TokenRing | None = None,
        queues: names.QueueNames = names.USUAL,
        *,
        believes_messages: bool = True,
    ) -> None:
        self._engine = engine
        self._store = store
        self._broker = broker
        self._clock = clock
        self._requests = requests
        self._rules = rules
        self._decode = decode
        self._trace = trace
        self._tokens = tokens
        self._queues = queues
        self._believes_messages = believes_messages

    # -- over HTTP and from Python -----------------------------------------------------------------------------------

    async def accept(
        self,
        value: Any,
        *,
        actor: Actor,
        within: timedelta | None = None,
        priority: Priority | None = None,
        name: str | None = None,
        notify: NoticeTargets = NoticeTargets(),
        traceparent: str | None = None,
    ) -> Taken:
        """A decision or a plan, decoded from JSON. Durable when it returns. WireError or PlanError: it cannot run, and
        that is recorded; DuplicateCorrelationError: another plan goes by that id."""
        self._engine.admit()
        await self._requests.quotas.check(actor)
        try:
            decision = decision_of(value)
            if name is not None:
                decision = replace(decision, correlation_id=name)
            if priority is not None and decision.plan is not None:
                decision = replace(decision, plan=replace(decision.plan, priority=priority))
            decision = self._as_believed(decision, actor)
            work = self._work(decision, within, notify, traceparent, actor)
        except (WireError, PlanError) as error:
            self._requests.validations["invalid"] += 1
            await self._refused(value if isinstance(value, dict) else {}, _reason(error), error.detail)
            raise
        if work is None:
            await self._refused(value, "rejected", decision.reasoning)
            return Taken(Answer.REJECTED, decision.plan_id, reason=decision.reasoning or "the decision is reject")
        self._requests.validations["valid"] += 1
        await self._name([work])
        with self._requests.quotas.under_way(actor):
            outcome = (await self._engine.submit([work]))[0]
        if outcome.fate is Fate.CONFLICT:
            raise DuplicateCorrelationError("plan_id", decision.plan_id)
        answer = Answer.AWAITING_APPROVAL if decision.course() is Course.ASK else Answer.ACCEPTED
        return Taken(
            answer,
            decision.plan_id,
            outcome.correlation_id or work.correlation_id,
            outcome.run,
            outcome.fate is Fate.APPLIED,
        )

    async def run_of(self, plan_id: str) -> int:
        """The orchestration of a plan."""
        found = (await self._store.keyed([key_of(plan_id)])).get(key_of(plan_id))
        if found is None:
            raise UnknownIdError("plan", plan_id)
        return found.run

    # -- as messages -------------------------------------------------------------------------------------------------

    def from_message(self, raw: bytes, queue: str, headers: Mapping[str, str] = NO_HEADERS, /) -> Work:
        """A message with a decision or a plan as work. A rejected one starts nothing, but is recorded."""
        plan_id = ""
        try:
            value = self._decode(READ, raw)
            plan_id = str(value.get("plan_id") or "")
            decision = self._as_believed(decision_of(value), BROKER)
            work = self._work(decision, None, NoticeTargets(), trace_context.of_message(None, headers), BROKER)
        except (WireError, PlanError) as error:
            self._requests.validations["invalid"] += 1
            return quarantined(raw, queue, error, plan_id)
        if work is None:
            return Work(correlation_id=decision.plan_id, queue=queue, body=raw)
        self._requests.validations["valid"] += 1
        work.queue, work.body = queue, raw
        return work

    async def submit(self, works: list[Work]) -> list[Outcome]:
        """Takes what `from_message` made. Everything that is not going to run is put on the topic of dead letters, and
        recorded, before the message is acknowledged."""
        for work in works:
            if work.dead is None and work.command is None:
                value = self._decode(READ, work.body)
                await self._refused(value, "rejected", str(value.get("reasoning_summary") or ""))
        await self._name([work for work in works if isinstance(work.command, Start)])
        return await self._submit(works, plans=True)

    async def _submit(self, works: list[Work], *, plans: bool = False) -> list[Outcome]:
        """What is dead goes to its topic first: when that cannot be, nothing is recorded of it, and it comes again."""
        waits = {id(work) for work in works if work.dead is not None and not await self._bury(work, work.dead, plans)}
        taken = [work for work in works if id(work) not in waits]
        found = iter(await self._engine.submit(taken, piecewise=True))
        outcomes = [Outcome(Fate.RETRY) if id(work) in waits else next(found) for work in works]
        for work, outcome in zip(works, outcomes, strict=True):
            if outcome.fate is Fate.QUARANTINED and work.dead is None:  # another plan has its id
                await self._to_dead_letters(work, outcome.reason, "")
        return outcomes

    async def _bury(self, work: Work, dead: DeadLetter, is_plan: bool) -> bool:
        if not await self._to_dead_letters(work, dead.reason, dead.detail):
            return False
        if is_plan:
            await self._refused({"plan_id": work.correlation_id}, dead.reason, dead.detail)
        return True

    def result_from_message(self, raw: bytes, queue: str, headers: Mapping[str, str] = NO_HEADERS, /) -> Work:
        """A message with the result of a ticket as work."""
        ticket = ""
        try:
            value = self._decode(schemas.EXECUTION_RESULT, raw)
            ticket = str(value.get("ticket_id") or "")
            found = parse_ticket_id(ticket)
            if found is None:
                raise WireError("unknown_ticket", f"ticket_id {ticket[:80]!r} is none of ours")
            result, worker = answer(value, raw, headers)
            if self._tokens is not None and result is not None:
                self._tokens.judge(result, None, token_of(value, headers))
        except WireError as error:
            return quarantined(raw, queue, error)
        return Work(result, run=found[0], queue=queue, body=raw, worker=worker)

    def approval_from_message(self, raw: bytes, queue: str, _headers: Mapping[str, str] = NO_HEADERS, /) -> Work:
        """The answer of a human as work; its plan is looked up when it is taken."""
        try:
            plan_id, said = approvals.answer(self._decode(schemas.APPROVAL_RESPONSE, raw))
        except WireError as error:
            return quarantined(raw, queue, error)
        return Work(replace(said, actor=BROKER.id), plan_id, queue=queue, body=raw)

    async def submit_approvals(self, works: list[Work]) -> list[Outcome]:
        """Takes what `approval_from_message` made."""
        keys = await self._store.keyed([key_of(work.correlation_id) for work in works if work.command])
        for work in works:
            found = keys.get(key_of(work.correlation_id))
            if work.command is not None and found is not None:
                work.run = found.run
                await self._refuse_own(work)
            elif work.command is not None:
                detail = f"there is no plan {work.correlation_id[:128]!r}"
                work.command = None
                work.dead = DeadLetter(work.queue, "unknown_plan", detail, work.body, work.correlation_id[:128])
        return await self._submit(works)

    async def _refuse_own(self, work: Work) -> None:
        """Make a dead letter of a signed approval by the key that submitted the plan."""
        said = work.command
        if not isinstance(said, Approve) or not said.approved or said.actor == BROKER.id:
            return
        recorded = (await self._store.load([work.run])).get(work.run)
        if recorded is not None and rebuild(recorded).actor == said.actor:
            detail = f"the key {said.actor} submitted this plan; another one has to approve it"
            work.command = None
            work.dead = DeadLetter(work.queue, "own_plan", detail, work.body, work.correlation_id[:128])

    # -- inside ------------------------------------------------------------------------------------------------------

    def _work(
        self,
        decision: Decision,
        timeout: timedelta | None,
        notify: NoticeTargets,
        traceparent: str | None,
        actor: Actor,
    ) -> Work | None:
        """None when the decision is to do nothing."""
        course = decision.course()
        if course is Course.REJECT:
            return None
        now = self._clock.now()
        if decision.valid_until is not None and decision.valid_until <= now:
            raise PlanError(f"the decision expired at {decision.valid_until.isoformat()}", "valid_until")
        plan = decision.plan
        if plan is None:
            raise PlanError("the decision carries no cognitive_plan", "cognitive_plan")
        asked = replace(plan, requires_approval=course is Course.ASK)
        name = decision.correlation_id or plan.correlation_id
        if name is None:
            self._requests.unnamed += 1
            name = new_correlation_id()
        made = plan_of(
            asked, self._rules, now, partial(self._queues.of, Kind.EXECUCAO), name=name, timeout=timeout, notify=notify
        )
        self._requests.check_notify(made)
        run = self._engine.next_run()
        fingerprint = _fingerprint(plan)
        trace = self._trace(traceparent or _trace_of(plan), run)
        start = Start(run, name, self._requests.govern(made), fingerprint, trace, actor.id)
        return Work(start, name, key=Key(key_of(plan.plan_id), fingerprint, run))

    def _as_believed(self, decision: Decision, actor: Actor) -> Decision:
        """Pass over that a plan says that it was approved, unless this actor may say so: no key approves what it
        submits."""
        believed = self._believes_messages if actor.kind is PrincipalKind.BROKER else actor.sees_all
        if decision.plan is None or not decision.plan.says_approved or believed:
            return decision
        return replace(decision, plan=replace(decision.plan, says_approved=False))

    async def _name(self, works: list[Work]) -> None:
        """An intent may have more than one plan, and all of them carry its correlation_id. The first plan goes by that
        id; the others add their own."""
        taken = await self._store.locate([work.correlation_id for work in works])
        keys = await self._store.keyed([work.key.key for work in works if work.key]) if taken else {}
        owners: dict[str, str] = {}  # of those that came together: name → key of the plan that has it
        for work in works:
            assert work.key is not None
            name, key = work.correlation_id, work.key.key
            if key in keys or (name not in taken and owners.setdefault(name, key) == key):
                continue
            start = work.command
            assert isinstance(start, Start)
            work.correlation_id = f"{name[:60]}.{key.removeprefix('plan:')}"[:128]
            work.command = replace(start, correlation_id=work.correlation_id)

    async def _refused(self, value: Mapping[str, Any], reason: str, detail: str) -> None:
        about = {name: value.get(name) for name in ("plan_id", "decision_id", "intent_id", "correlation_id")}
        body = {**{name: str(text)[:128] for name, text in about.items() if text}, "motivo": reason, "detalhe": detail}
        log.warning("plan refused", **body)
        await self._store.record_system_event(SystemEvent(REFUSED, self._clock.now(), body))

    async def _to_dead_letters(self, work: Work, reason: str, detail: str) -> bool:
        message = quarantine.outgoing(Delivery(work.queue, work.body, None), reason, detail)
        try:
            await publish_confirmed(self._broker, [message])
        except BrokerError as error:
            log.warning("cannot publish a dead letter", queue=message.queue, error=str(error))
            return False
        return True


def _fingerprint(plan: CognitivePlan) -> str:
    return blake2b(strict_json.canonical(strict_json.loads_trusted(plan.document)), digest_size=16).hexdigest()


def _trace_of(plan: CognitivePlan) -> str | None:
    if plan.trace_id is None or plan.span_id is None:
        return None
    return trace_context.parse(trace_context.make(plan.trace_id, plan.span_id))


def _reason(error: WireError | PlanError) -> str:
    return error.code if isinstance(error, WireError) else "invalid_plan"
