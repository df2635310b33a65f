"""What starts runs at instants of a calendar, and what keeps the schedules."""

from __future__ import annotations

from oraculo.adapters.calendars import calendar_fault, calendar_of
from oraculo.core.access import Actor
from oraculo.ports.clock import Clock
from oraculo.ports.engine import Engine
from oraculo.ports.store import Store
from oraculo.runtime.request_batch import BatchIntake
from oraculo.runtime.requests import RequestIntake
from oraculo.runtime.schedules.book import ScheduleBook
from oraculo.runtime.schedules.firing import Count, ScheduleFiring


def schedules_of(
    engine: Engine, store: Store, clock: Clock, requests: RequestIntake, count: Count
) -> tuple[ScheduleFiring, ScheduleBook]:
    """What fires, and the book that tells it what has changed."""

    async def cancel(run: str, reason: str, actor: Actor) -> None:
        await engine.cancel(run, reason, actor=actor)

    shared = store.sharing is not None
    firing = ScheduleFiring(store, clock, requests, cancel, calendar_of, shared=shared, count=count)
    batches = BatchIntake(requests, engine)
    return firing, ScheduleBook(store, clock, requests, batches, calendar_of, calendar_fault, firing.changed)
