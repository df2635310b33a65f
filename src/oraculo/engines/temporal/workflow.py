"""One workflow per orchestration. It keeps the state, drives `core.step` and asks activities for the rest.

Commands wait in an inbox and are taken one batch after another; what a batch made true is projected into the journal,
and what it owes is sent, before the next one is taken.

A *local* activity runs inside the workflow task: nothing of that task is in the history yet, and when it is tried again
more may have happened. So only what means the same in every try is projected like that: a start and signals, which
bring their own instants, in the order of the history. Timers and updates have neither; their steps go through an
ordinary activity, which begins when the task is in the history.

No rule about tickets is here, and nothing but the core decides: `rules` of a plan says by which version of them it
runs, so a new release replays what an old one began (docs/temporal.md). It runs in Temporal's sandbox; our own modules
are passed through, since to import them anew for every orchestration would cost more than everything else. Tests replay
histories with all of them inside it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ApplicationError

from oraculo.core.commands import Cancel, Command, ConfirmDispatch, RecordResult, Start, Wake
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import step
from oraculo.core.vocabulary import Status, Verdict
from oraculo.engines.temporal.by_hand import HandedToken, answer_of, done, token_of, without_token
from oraculo.engines.temporal.messages import (
    CommandBatch,
    ConfirmedOrders,
    StepReport,
    WorkflowCommand,
    WorkflowInput,
    unpack_batch,
    unpack_item,
    unwrap,
    wrap,
)
from oraculo.errors import OraculoError
from oraculo.wire import records, views

ACTIVITY_TIMEOUT = timedelta(seconds=60)  # for one try of an activity
ACTIVITY_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=5))
RESEND_FIRST_DELAY, RESEND_MAX_DELAY = timedelta(seconds=10), timedelta(minutes=5)  # of unconfirmed orders
STATUS = SearchAttributeKey.for_keyword("OraculoStatus")
CANCELLED = "cancelada no Temporal"
ANSWER_BY_HAND = "answer-by-hand"  # the mark of workflows that honour a failure in `ticket_completed`
TOKEN_BY_HAND = "token-by-hand"  # the mark of workflows whose answers by hand are judged by their tokens
NOT_OURS = "NotStartedByOraculo"  # the type of failure of a workflow that another program started


@dataclass(slots=True)
class QueuedBatch:
    batch: CommandBatch
    told: asyncio.Future[str] | None = None  # gets the verdict of the only command in it
    handed: HandedToken | None = None  # what came with the only command in it, an answer by hand


@workflow.defn(name="OrchestrationWorkflow")
class OrchestrationWorkflow:
    @workflow.init
    def __init__(self, begin: RawValue) -> None:
        self._begin, self._refusal = _read(begin)
        self._inbox: deque[QueuedBatch] = deque()
        self._state: Orchestration | None = None
        self._at = self._begin.at  # of the last step
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at: datetime | None = None
        self._rang: datetime | None = None  # what the alarm was set to
        self._resend_at: datetime | None = None
        self._resend_after = RESEND_FIRST_DELAY
        # As whoever began it has marked it; one that goes on does not know.
        self._shown = None if self._begin.started is None else Status.EM_EXECUCAO

    @workflow.run
    async def run(self, begin: RawValue) -> str:
        if self._refusal:
            raise ApplicationError(self._refusal, type=NOT_OURS, non_retryable=True)
        life = asyncio.create_task(self._live())
        while not life.done():
            try:
                await asyncio.shield(life)
            except asyncio.CancelledError:  # of the workflow itself; what it is doing goes on
                self._hear(CommandBatch([WorkflowCommand(Cancel(CANCELLED))]))
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not self._finished():
            workflow.continue_as_new(
                WorkflowInput(self._begin.run, self._at, version=self._known.version, marked=self._begin.marked).pack()
            )
        return self._known.status.value if self._state is not None else ""

    # -- what it is told ---------------------------------------------------------------------------------------------

    @workflow.signal
    def tickets_completed(self, batch: RawValue) -> None:
        """Answers, and whatever else the engine has to say, many at once."""
        try:
            self._hear(unpack_batch(batch))
        except (OraculoError, ValueError, TypeError, KeyError) as error:  # not from an engine
            workflow.logger.warning("a signal that cannot be read is ignored: %s", error)

    @workflow.signal
    def ticket_completed(self, *arguments: Any) -> None:
        """One answer, given by hand: a ticket_id and its result, or either form of one argument (by_hand.py). Histories
        without the mark of `ANSWER_BY_HAND` were written when every such answer was a success."""
        try:
            if workflow.patched(ANSWER_BY_HAND):
                answer = answer_of(arguments)
            else:
                answer = done(*arguments)
            handed = token_of(arguments) if workflow.patched(TOKEN_BY_HAND) else None
        except (OraculoError, ValueError, TypeError) as error:
            workflow.logger.warning("a signal that cannot be read is ignored: %s", error)
            return
        if answer is None:
            return
        if handed is not None:
            answer = without_token(answer)
        self._inbox.append(QueuedBatch(CommandBatch([WorkflowCommand(answer)]), handed=handed))

    @workflow.signal
    def cancel_workflow(self, reason: str = "") -> None:
        self._hear(CommandBatch([WorkflowCommand(Cancel(reason))]))

    @workflow.update
    async def command(self, item: RawValue) -> str:
        """One command; its verdict, once what it made true is in the journal."""
        told: asyncio.Future[str] = asyncio.Future()
        self._inbox.append(QueuedBatch(CommandBatch([unpack_item(unwrap(item))]), told))
        return await told

    @workflow.query
    def get_status(self) -> RawValue:
        state = self._state
        if state is None:
            return wrap({"status": Status.PENDENTE, "run": self._begin.run})
        return wrap(
            {
                "status": state.status,
                "run": state.run,
                "correlation_id": state.correlation_id,
                "espera": views.waiting_for(state),
                "tickets_total": len(state.tickets),
                "tickets_abertos": state.open,
                "versao": state.version,
                "regras": state.plan.rules,
            }
        )

    @workflow.query
    def get_tickets(self) -> RawValue:
        state = self._state
        return wrap([] if state is None else [views.ticket(state, position) for position in range(len(state.tickets))])

    def _hear(self, batch: CommandBatch) -> None:
        self._inbox.append(QueuedBatch(batch))

    # -- what it does ------------------------------------------------------------------------------------------------

    @property
    def _known(self) -> Orchestration:
        assert self._state is not None
        return self._state

    async def _live(self) -> None:
        """Until the orchestration is finished with the world, or the history is long enough."""
        await self._open()
        while not self._finished() and await self._go_on():
            pass

    async def _open(self) -> None:
        begin = self._begin
        if begin.started is None:
            await self._recall()
            if self._state is not None and self._state.owes:
                await self._carry_out(StepReport(begin.run, self._at, orders=True), local=False)
            return
        started = begin.started
        start = Start(
            begin.run,
            started.correlation_id,
            started.plan,
            started.fingerprint,
            started.traceparent,
            started.actor,
            started.origin,
        )
        report = StepReport(begin.run, begin.at, correlation_id=started.correlation_id, key=begin.key)
        done = step(None, start, begin.at)
        self._state = done.state
        report.add(done)
        await self._carry_out(report, local=True)

    async def _recall(self) -> None:
        """The state from the journal, page by page: it may be too large for a payload."""
        begin = self._begin
        after = 0
        while after < begin.version:
            page = unwrap(
                await workflow.execute_activity(
                    "recall",
                    wrap([begin.run, after, begin.version]),
                    result_type=RawValue,
                    start_to_close_timeout=ACTIVITY_TIMEOUT,
                    retry_policy=ACTIVITY_RETRY,
                )
            )
            if page is None:  # it never became an orchestration
                return
            for at, events in page["steps"]:
                self._at = datetime.fromisoformat(at)
                self._state = fold([(self._at, records.revive(events))], self._state)
            after = page["last"]

    def _finished(self) -> bool:
        state = self._state
        if state is None:
            return True
        return not self._inbox and state.finished

    async def _go_on(self) -> bool:
        if self._inbox:
            await self._take(self._inbox.popleft())
        elif self._rang is not None:
            rang, self._rang = self._rang, None
            await self._wake(self._instant(max(rang, workflow.now())))  # its time has come, whatever the clock says
        elif workflow.info().is_continue_as_new_suggested():
            return False
        else:
            self._set_alarm()
            await workflow.wait_condition(lambda: bool(self._inbox) or self._rang is not None)
        return True

    async def _take(self, waiting: QueuedBatch) -> None:
        batch = waiting.batch
        if waiting.handed is not None and not await self._may_count(batch.items[0].command, waiting.handed):
            return
        at = self._instant(batch.at or workflow.now())
        report = StepReport(self._begin.run, at)
        verdict = Verdict.IDLE
        for item in batch.items:
            done = step(self._known, item.command, at)
            report.add(done, item)
            verdict = done.verdict
        await self._carry_out(report, local=batch.at is not None)
        if waiting.told is not None:
            waiting.told.set_result(verdict.value)

    async def _may_count(self, answer: Command, handed: HandedToken) -> bool:
        """Whether an answer by hand counts; a token says for which attempt. What does not is kept as a dead letter."""
        assert isinstance(answer, RecordResult)
        asked = [self._known.correlation_id, answer.ticket, handed.token, handed.body.decode()]
        found = unwrap(
            await workflow.execute_activity(
                "judge_by_hand",
                wrap(asked),
                result_type=RawValue,
                start_to_close_timeout=ACTIVITY_TIMEOUT,
                retry_policy=ACTIVITY_RETRY,
            )
        )
        answer.attempt = found["attempt"]
        return bool(found["counts"])

    async def _wake(self, at: datetime) -> None:
        state = self._known
        due = state.wake_at()
        report = StepReport(state.run, at)
        if due is not None and due <= at:
            report.add(step(state, Wake(), at))
        if self._resend_at is not None and self._resend_at <= at and state.owes:
            report.orders = True
            self._resend_after = min(2 * self._resend_after, RESEND_MAX_DELAY)
            self._resend_at = None
        if report or report.orders:
            await self._carry_out(report, local=False)

    async def _carry_out(self, report: StepReport, *, local: bool) -> None:
        """What became true is in the journal, and what is owed is sent, when this returns. What no broker has confirmed
        by then is confirmed by a signal, or asked for again later."""
        if report or report.orders:
            report.version = self._known.version
            call = workflow.execute_local_activity if local else workflow.execute_activity
            answer = await call(
                "carry_out",
                report.pack(),
                result_type=RawValue,
                start_to_close_timeout=ACTIVITY_TIMEOUT,
                retry_policy=ACTIVITY_RETRY,
            )
            confirmed = ConfirmedOrders.unpack(answer)
            if confirmed is not None:
                done = step(self._known, ConfirmDispatch(confirmed.tickets), self._instant(confirmed.at))
                assert done.events, "the journal has a confirmation that the workflow does not know"
        if not self._known.owes:
            self._resend_at, self._resend_after = None, RESEND_FIRST_DELAY
        self._show_status()

    def _instant(self, at: datetime) -> datetime:
        """Clocks differ; the journal does not go back."""
        self._at = max(self._at, at)
        return self._at

    def _show_status(self) -> None:
        status = self._known.status
        if self._begin.marked and status is not self._shown:
            workflow.upsert_search_attributes([STATUS.value_set(status.value)])
            self._shown = status

    # -- time --------------------------------------------------------------------------------------------------------

    def _set_alarm(self) -> None:
        """A timer that is early does no harm and costs less than to move it."""
        now = workflow.now()
        if self._known.owes and self._resend_at is None:
            self._resend_at = now + self._resend_after
        wanted = min((at for at in (self._known.wake_at(), self._resend_at) if at is not None), default=None)
        if wanted is None or (self._alarm_at is not None and self._alarm_at <= wanted):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = wanted
        self._alarm = asyncio.create_task(self._ring(wanted))

    async def _ring(self, at: datetime) -> None:
        await asyncio.sleep(max(0.0, (at - workflow.now()).total_seconds()))
        self._alarm, self._alarm_at, self._rang = None, None, at


def _read(begin: RawValue) -> tuple[WorkflowInput, str]:
    """How the workflow begins, and why it cannot: its input is none of ours, as when the original shares the task
    queue. Such a workflow fails; an exception while it is made would be tried again for ever, and block its id."""
    try:
        return WorkflowInput.unpack(begin), ""
    except (OraculoError, ValueError, TypeError, KeyError, AttributeError) as error:
        refusal = f"the input is none that Oráculo writes ({type(error).__name__}: {error}); is its task queue shared?"
        return WorkflowInput(0, workflow.now()), refusal


WORKFLOWS: Sequence[type[Any]] = (OrchestrationWorkflow,)
