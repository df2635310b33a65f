"""The loop that starts the runs of schedules when their instants come.

Every replica runs it, and none leads. What becomes of an instant is decided by `core.schedules` and written over the
version it was decided on, so one replica decides; then the runs are started, each under the name of its instant, and
that is written down. A replica that dies in between leaves the decision, and another does it after a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from oraculo.core import schedules as rules
from oraculo.core.access import Actor
from oraculo.core.schedules import NextInstant, run_name
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.errors import DuplicateCorrelationError, OraculoError, PlanError, UnknownIdError, WireError
from oraculo.ports.catalogue import Summary
from oraculo.ports.clock import Clock
from oraculo.ports.schedules import ScheduleRegistry, StoredSchedule
from oraculo.runtime.schedules.starting import RunSink, actor_named, request_at
from oraculo.wire import schedules as wire
from oraculo.wire.schedules import Agenda, ScheduleRecord

log = structlog.get_logger("oraculo.schedules")

DUE_PAGE_SCHEDULES = 100  # read at a time
SHARED_POLL_S = 1.0  # another process may have changed a schedule
OWN_POLL_S = 30.0
RETRY_S = 1.0  # after a failure of the store

Cancel = Callable[[str, str, Actor], Awaitable[Any]]
Count = Callable[[str, int], None]  # outcome, number of instants


class ScheduleStore(ScheduleRegistry, Protocol):
    async def summary(self, correlation_id: str) -> Summary | None: ...


class ScheduleFiring:
    def __init__(
        self,
        store: ScheduleStore,
        clock: Clock,
        runs: RunSink,
        cancel: Cancel,
        calendar: Callable[[Agenda], NextInstant],
        *,
        shared: bool,
        count: Count = lambda outcome, number: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._runs = runs
        self._cancel = cancel
        self._calendar = calendar
        self._poll_s = SHARED_POLL_S if shared else OWN_POLL_S
        self._count = count
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Look at the schedules now: one of them was changed by this process."""
        self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            wait_s = await self.look()
            if wait_s > 0:
                try:
                    async with asyncio.timeout(wait_s):
                        await self._changed.wait()
                except TimeoutError:
                    pass

    async def look(self) -> float:
        """Deal with what is due; return after how many seconds to look again."""
        found = await self._store.due_schedules(self._clock.now(), DUE_PAGE_SCHEDULES)
        failures = 0
        for failed in await asyncio.gather(*(self._guarded(one, found.at) for one in found.schedules)):
            failures += failed
        if failures:
            return RETRY_S
        if found.schedules:  # they have new times now
            return 0.0
        if found.next_at is None:
            return self._poll_s
        return min(max(0.0, (found.next_at - found.at).total_seconds()), self._poll_s)

    async def _guarded(self, stored: StoredSchedule, now: datetime) -> bool:
        """Deal with one schedule; True when that failed. It stays due, and the others go on."""
        try:
            await self.advance(stored, now)
        except OraculoError as error:
            log.warning("schedule put off", schedule=stored.name, error=str(error))
            return True
        except Exception:
            log.exception("schedule put off", schedule=stored.name)
            return True
        return False

    async def advance(self, stored: StoredSchedule, now: datetime) -> None:
        """Decide what is due of one schedule and do it, or do what was decided before."""
        agenda, record = wire.read(stored.body), wire.decode(stored.state)
        rule, following = agenda.rule(stored.name), self._calendar(agenda)
        if not record.state.firing:
            if record.paused is not None:
                await self._store.save_schedule(replace(stored, due_at=None))
                return
            decided = await self._decide(stored, rule, record, following, now)
            if decided is None:
                return
            stored, record = decided
        if record.state.firing:
            record = await self._fire(stored.name, agenda, record)
            record = replace(record, state=rules.done(record.state))
            due = None if record.paused is not None else rules.next_due(rule, record.state, following, now)
            await self._store.save_schedule(replace(stored, state=wire.encode(record), due_at=due))

    async def _decide(
        self,
        stored: StoredSchedule,
        rule: rules.ScheduleRule,
        record: ScheduleRecord,
        following: NextInstant,
        now: datetime,
    ) -> tuple[StoredSchedule, ScheduleRecord] | None:
        """Write the decision down; None when another process was quicker."""
        open_before = rules.needs_previous(rule, record.state) and await self._is_open(stored.name, record.state.last)
        decision = rules.decide(rule, record.state, following, now, open_before)
        record = replace(record, state=decision.state).counted("skipped", len(decision.skipped))
        record = record.counted("missed", int(decision.missed is not None))
        due = rules.next_due(rule, decision.state, following, now)
        saved = await self._store.save_schedule(replace(stored, state=wire.encode(record), due_at=due))
        if saved is None:
            return None
        if decision.skipped:
            self._count("skipped", len(decision.skipped))
            instants = [one.isoformat() for one in decision.skipped[:10]]
            log.info("schedule skipped instants", schedule=stored.name, count=len(decision.skipped), instants=instants)
        if decision.missed is not None:
            self._count("missed", 1)
            log.warning("schedule missed instants", schedule=stored.name, since=decision.missed.isoformat())
        return saved, record

    async def _is_open(self, name: str, last: datetime | None) -> bool:
        found = None if last is None else await self._store.summary(run_name(name, last))
        return found is not None and found.closed_at is None

    async def _fire(self, name: str, agenda: Agenda, record: ScheduleRecord) -> ScheduleRecord:
        actor = actor_named(record.actor, tenant_of(name))
        if record.state.cancel is not None:
            await self._cancel_run(run_name(name, record.state.cancel), name, actor)
        for instant in record.state.firing:
            run = run_name(name, instant)
            try:
                wanted = self._runs.read(request_at(agenda, local_name(name), instant))
                accepted = await self._runs.accept(wanted, actor=actor)
                run = in_tenant(tenant_of(name), accepted.correlation_id)  # another one's, when it was merged
            except DuplicateCorrelationError:  # the schedule was changed after it had been started
                pass
            except (WireError, PlanError) as error:
                self._count("failed", 1)
                record = replace(record, error=f"{local_name(run)}: {error}").counted("failed")
                log.error("schedule could not start a run", schedule=name, correlation_id=run, error=str(error))
                continue
            self._count("fired", 1)
            record = replace(record, error=None).counted("fired")
            log.info("schedule started a run", schedule=name, correlation_id=run)
        return record

    async def _cancel_run(self, run: str, name: str, actor: Actor) -> None:
        try:
            await self._cancel(run, f"the next run of the schedule {local_name(name)} begins", actor)
        except UnknownIdError:
            log.info("schedule found nothing to cancel", schedule=name, correlation_id=run)
