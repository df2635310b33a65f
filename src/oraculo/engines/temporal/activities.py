"""The activities that a workflow calls; journal_activities.py has what they do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from temporalio import activity
from temporalio.common import RawValue

from oraculo.engines.temporal.messages import ConfirmedOrders, StepReport, unwrap, wrap


class ActivityHandlers(Protocol):
    async def carry_out(self, report: StepReport) -> ConfirmedOrders | None: ...

    async def recall(self, run: int, after: int, version: int, asked_at: datetime) -> dict[str, Any] | None: ...

    async def judge_by_hand(
        self, correlation_id: str, ticket: str, token: str | None, body: str
    ) -> dict[str, int | bool | None]: ...


def activities_of(handlers: ActivityHandlers) -> Sequence[Callable[..., Awaitable[Any]]]:
    @activity.defn(name="carry_out")
    async def carry_out(report: RawValue) -> RawValue:
        """Into the journal, and what is owed on its way; what a broker confirmed of it."""
        return ConfirmedOrders.pack(await handlers.carry_out(StepReport.unpack(report)))

    @activity.defn(name="recall")
    async def recall(asked: RawValue) -> RawValue:
        """A page of the journal."""
        run, after, version = unwrap(asked)
        return wrap(await handlers.recall(run, after, version, activity.info().scheduled_time))

    @activity.defn(name="judge_by_hand")
    async def judge_by_hand(asked: RawValue) -> RawValue:
        """Whether an answer by hand counts, and for which attempt."""
        correlation_id, ticket, token, body = unwrap(asked)
        return wrap(await handlers.judge_by_hand(correlation_id, ticket, token, body))

    return [carry_out, recall, judge_by_hand]
