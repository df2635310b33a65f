"""What a workflow asks of the world: the same deeds as with every other engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from temporalio import activity
from temporalio.common import RawValue

from oraculo.engines.temporal.parcels import Confirmed, Made, unwrap, wrap


class Deeds(Protocol):
    async def carry_out(self, made: Made) -> Confirmed | None: ...

    async def recall(self, run: int, after: int, version: int, asked_at: datetime) -> dict[str, Any] | None: ...


def activities_of(deeds: Deeds) -> Sequence[Callable[..., Awaitable[Any]]]:
    @activity.defn(name="carry_out")
    async def carry_out(made: RawValue) -> RawValue:
        """Into the journal, and what is owed on its way; what a broker confirmed of it."""
        return Confirmed.pack(await deeds.carry_out(Made.unpack(made)))

    @activity.defn(name="recall")
    async def recall(asked: RawValue) -> RawValue:
        """A page of the journal."""
        run, after, version = unwrap(asked)
        return wrap(await deeds.recall(run, after, version, activity.info().scheduled_time))

    return [carry_out, recall]
