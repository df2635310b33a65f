"""One workflow per orchestration. It keeps the state, drives `core.step` and asks activities for the rest.

Commands wait in an inbox and are taken one unit after another; what a unit made true is projected into the journal, and
what it owes is sent, before the next one is taken. So whatever waits meanwhile becomes one batch.

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

from oraculo.core.commands import Cancel, ConfirmDispatch, RecordResult, Start, Wake
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import step
from oraculo.core.vocabulary import Status, Verdict
from oraculo.engines.temporal.parcels import (
    Begin,
    Confirmed,
    Made,
    Said,
    Unit,
    unpack_item,
    unpack_unit,
    unwrap,
    wrap,
)
from oraculo.errors import OraculoError
from oraculo.wire import records, strict_json, views

PATIENCE = timedelta(seconds=60)  # for one try of an activity
AGAIN = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=5))
ASK_FIRST, ASK_MOST = timedelta(seconds=10), timedelta(minutes=5)  # until what is owed is asked for again
STATUS = SearchAttributeKey.for_keyword("OraculoStatus")
CANCELLED = "cancelada no Temporal"


@dataclass(slots=True)
class Waiting:
    unit: Unit
    told: asyncio.Future[str] | None = None  # gets the verdict of the only command in it


@workflow.defn(name="OrchestrationWorkflow")
class OrchestrationWorkflow:
    @workflow.init
    def __init__(self, begin: RawValue) -> None:
        self._begin = Begin.unpack(begin)
        self._inbox: deque[Waiting] = deque()
        self._state: Orchestration | None = None
        self._at = self._begin.at  # of the last step
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at: datetime | None = None
        self._rang: datetime | None = None  # what the alarm was set to
        self._ask_at: datetime | None = None
        self._ask_after = ASK_FIRST
        # As whoever began it has marked it; one that goes on does not know.
        self._shown = None if self._begin.started is None else Status.EM_EXECUCAO

    @workflow.run
    async def run(self, begin: RawValue) -> str:
        life = asyncio.create_task(self._live())
        while not life.done():
            try:
                await asyncio.shield(life)
            except asyncio.CancelledError:  # of the workflow itself; what it is doing goes on
                self._hear(Unit([Said(Cancel(CANCELLED))]))
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not self._finished():
            workflow.continue_as_new(
                Begin(self._begin.run, self._at, version=self._known.version, marked=self._begin.marked).pack()
            )
        return self._known.status.value if self._state is not None else ""

    # -- what it is told ---------------------------------------------------------------------------------------------

    @workflow.signal
    def tickets_completed(self, unit: RawValue) -> None:
        """Answers, and whatever else the engine has to say, many at once."""
        try:
            self._hear(unpack_unit(unit))
        except (OraculoError, ValueError, TypeError, KeyError) as error:  # not from an engine
            workflow.logger.warning("a signal that cannot be read is ignored: %s", error)

    @workflow.signal
    def ticket_completed(self, ticket_id: str, result: RawValue) -> None:
        """One answer, from whoever likes to give it by hand."""
        answer = RecordResult(True, strict_json.compact(unwrap(result)), [], ticket=ticket_id)
        self._hear(Unit([Said(answer)]))

    @workflow.signal
    def cancel_workflow(self, reason: str = "") -> None:
        self._hear(Unit([Said(Cancel(reason))]))

    @workflow.update
    async def command(self, item: RawValue) -> str:
        """One command; its verdict, once what it made true is in the journal."""
        told: asyncio.Future[str] = asyncio.Future()
        self._inbox.append(Waiting(Unit([unpack_item(unwrap(item))]), told))
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

    def _hear(self, unit: Unit) -> None:
        self._inbox.append(Waiting(unit))

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
                await self._carry_out(Made(begin.run, self._at, orders=True), local=False)
            return
        started = begin.started
        start = Start(begin.run, started.correlation_id, started.plan, started.fingerprint, started.traceparent)
        made = Made(begin.run, begin.at, correlation_id=started.correlation_id, key=begin.key)
        done = step(None, start, begin.at)
        self._state = done.state
        made.add(done)
        await self._carry_out(made, local=True)

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
                    start_to_close_timeout=PATIENCE,
                    retry_policy=AGAIN,
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
        if self._inbox or state.closed_at is None:
            return False
        return not state.owes and state.wake_at() is None

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

    async def _take(self, waiting: Waiting) -> None:
        unit = waiting.unit
        at = self._instant(unit.at or workflow.now())
        made = Made(self._begin.run, at)
        verdict = Verdict.IDLE
        for said in unit.items:
            done = step(self._known, said.command, at)
            made.add(done, said)
            verdict = done.verdict
        await self._carry_out(made, local=unit.at is not None)
        if waiting.told is not None:
            waiting.told.set_result(verdict.value)

    async def _wake(self, at: datetime) -> None:
        state = self._known
        due = state.wake_at()
        made = Made(state.run, at)
        if due is not None and due <= at:
            made.add(step(state, Wake(), at))
        if self._ask_at is not None and self._ask_at <= at and state.owes:
            made.orders = True
            self._ask_after = min(2 * self._ask_after, ASK_MOST)
            self._ask_at = None
        if made or made.orders:
            await self._carry_out(made, local=False)

    async def _carry_out(self, made: Made, *, local: bool) -> None:
        """What became true is in the journal, and what is owed is sent, when this returns. What no broker has confirmed
        by then is confirmed by a signal, or asked for again later."""
        if made or made.orders:
            made.version = self._known.version
            call = workflow.execute_local_activity if local else workflow.execute_activity
            answer = await call(
                "carry_out",
                made.pack(),
                result_type=RawValue,
                start_to_close_timeout=PATIENCE,
                retry_policy=AGAIN,
            )
            confirmed = Confirmed.unpack(answer)
            if confirmed is not None:
                done = step(self._known, ConfirmDispatch(confirmed.tickets), self._instant(confirmed.at))
                assert done.events, "the journal has a confirmation that the workflow does not know"
        if not self._known.owes:
            self._ask_at, self._ask_after = None, ASK_FIRST
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
        if self._known.owes and self._ask_at is None:
            self._ask_at = now + self._ask_after
        wanted = min((at for at in (self._known.wake_at(), self._ask_at) if at is not None), default=None)
        if wanted is None or (self._alarm_at is not None and self._alarm_at <= wanted):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = wanted
        self._alarm = asyncio.create_task(self._ring(wanted))

    async def _ring(self, at: datetime) -> None:
        await asyncio.sleep(max(0.0, (at - workflow.now()).total_seconds()))
        self._alarm, self._alarm_at, self._rang = None, None, at


WORKFLOWS: Sequence[type[Any]] = (OrchestrationWorkflow,)
