"""Notices: the final document of an orchestration on its way to a webhook, a queue or its parent, each tried once when
it is due.

What became of it comes back as a command; when it is tried again is for the core to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from oraculo.core.commands import RecordDelivery
from oraculo.core.state import Orchestration
from oraculo.errors import StoreError
from oraculo.ports.broker import Broker, Outgoing
from oraculo.ports.notifier import Notice, Notifier, Outcome, Receipt
from oraculo.ports.work import Work
from oraculo.runtime import crash
from oraculo.runtime.effects.children import ChildRuns
from oraculo.wire import trace_context

log = structlog.get_logger("oraculo.notices")

CONCURRENT_NOTICES = 32
RETRY_FIRST, RETRY_MOST = 0.05, 5.0  # seconds between two attempts to read a result
QUEUE_TRIES = 60
QUEUE_AGAIN = 0.5  # seconds that a queue is given to be made

Report = Callable[[list[Work]], None]
Lookup = Callable[[int], Awaitable[bytes | None]]


class Notices:
    """`report` takes the commands that outcomes become; `result_of` gives the final document of an orchestration."""

    def __init__(
        self, broker: Broker, notifier: Notifier | None, report: Report, result_of: Lookup, children: ChildRuns
    ) -> None:
        self._children = children
        self._broker = broker
        self._notifier = notifier
        self._report = report
        self._result_of = result_of
        self._gate = asyncio.Semaphore(CONCURRENT_NOTICES)
        self.flying: set[asyncio.Task[None]] = set()

    def take(self, state: Orchestration, number: int, attempt: int) -> None:
        """Try this one; it is under way when this returns."""
        target = state.notices[number].target
        where = state.plan.notify.webhook if target == "webhook" else state.plan.notify.queue
        trace = None
        if state.traceparent is not None:
            trace = trace_context.child(state.traceparent, trace_context.notice_span(state.run, number, attempt))
        tell = None
        if target == "pai" and state.plan.parent is not None:
            tell = partial(
                self._children.tell, state.plan.parent, state.correlation_id, has_output=state.plan.profile.has_output
            )
        task = asyncio.create_task(
            self._deliver(state.run, state.correlation_id, number, attempt, target, where or "", trace, tell)
        )
        self.flying.add(task)
        task.add_done_callback(self.flying.discard)

    async def close(self) -> None:
        """Cancel what is under way."""
        left = list(self.flying)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _deliver(
        self,
        run: int,
        name: str,
        number: int,
        attempt: int,
        target: str,
        where: str,
        trace: str | None,
        tell: Callable[[bytes], Awaitable[Receipt]] | None,
    ) -> None:
        async with self._gate:
            body = await self._read_result(run)
            crash.point("before_notify")
            identity = f"{name}.{number}" if target == "fila" else f"orc_{run:x}_{number}"
            if body is None:
                receipt = Receipt(Outcome.REFUSED, "the result is no longer stored")
            elif tell is not None:
                receipt = await tell(body)
            elif target == "fila":
                headers = {trace_context.HEADER: trace} if trace is not None else None
                receipt = await self._to_queue(Outgoing(where, body, identity, headers))
            elif self._notifier is None:
                receipt = Receipt(Outcome.REFUSED, "webhooks are not configured")
            else:
                receipt = await self._notifier.notify(Notice(where, identity, body, trace))
            crash.point("after_notify")
        log.info(
            "notice",
            correlation_id=name,
            target=target,
            attempt=attempt,
            outcome=receipt.outcome,
            detail=receipt.detail,
        )
        report = RecordDelivery(
            number,
            attempt,
            delivered=receipt.outcome is Outcome.DELIVERED,
            final=receipt.outcome is Outcome.REFUSED,
            detail=receipt.detail,
            retry_after=receipt.retry_after,
        )
        self._report([Work(report, run=run)])

    async def _read_result(self, run: int) -> bytes | None:
        """Read the result, waiting for a store that is away: the notice is owed, and nothing else tries it again."""
        pause = RETRY_FIRST
        while True:
            try:
                return await self._result_of(run)
            except StoreError as error:
                log.warning("cannot read a result", error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_MOST)

    async def _to_queue(self, message: Outgoing) -> Receipt:
        for _ in range(QUEUE_TRIES):
            try:
                report = await self._broker.publish([message])
            except Exception as error:  # an adapter that does not keep to the port
                return Receipt(Outcome.RETRY, str(error) or type(error).__name__)
            if report.refused:
                return Receipt(Outcome.REFUSED, report.refused[0].reason)
            if report.unconfirmed or report.no_room:
                return Receipt(Outcome.RETRY, report.reason)
            if not report.no_queue:
                return Receipt(Outcome.DELIVERED, f"published to {message.queue}")
            await asyncio.sleep(QUEUE_AGAIN)  # a worker may be about to make the queue
        return Receipt(Outcome.RETRY, f"the queue {message.queue} does not exist")
