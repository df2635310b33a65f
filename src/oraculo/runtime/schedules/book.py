"""What users do with schedules: put, look, remove, pause, resume, start one now, make up for a time that has passed."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from oraculo.core import schedules as rules
from oraculo.core.access import Actor
from oraculo.core.schedules import NextInstant, ScheduleState
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, local_name
from oraculo.errors import OraculoError, StoreUnavailableError, UnknownIdError
from oraculo.plans import limits
from oraculo.ports.clock import Clock
from oraculo.ports.schedules import StoredSchedule
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime.request_batch import BatchIntake
from oraculo.runtime.requests import Accepted, RequestIntake
from oraculo.runtime.schedules.starting import LABEL, request_at
from oraculo.wire import requests, strict_json
from oraculo.wire import schedules as wire
from oraculo.wire.schedules import Agenda, SchedulePause, ScheduleRecord

log = structlog.get_logger("oraculo.schedules")

NAME_MAX_CHARS = 80  # its label and the names of its runs have to fit, too
BACKFILL_MAX_INSTANTS = 1000
SAVE_TRIES = 10
EVENT_KIND = "schedule_changed"

Change = Callable[[ScheduleRecord, datetime], ScheduleRecord]
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands."""

    name: str
    agenda: Agenda
    record: ScheduleRecord
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class BackfillItem:
    instant: datetime
    answer: Accepted | OraculoError


class ScheduleBook:
    """The schedules of one tenant. `calendar` makes the calendar of a document, `fault` says which field of one makes
    none; `changed` is called after every change."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        intake: RequestIntake,
        batches: BatchIntake,
        calendar: Callable[[Agenda], NextInstant],
        fault: Callable[[Agenda], tuple[str, str] | None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store.seen_by(DEFAULT_TENANT)
        self._clock = clock
        self._intake = intake
        self._batches = batches
        self._calendar = calendar
        self._fault = fault
        self._changed = changed
        self.tenant = DEFAULT_TENANT

    def within(self, tenant: str) -> ScheduleBook:
        """The schedules of another tenant."""
        if tenant == self.tenant:
            return self
        book = copy(self)
        book.tenant, book._store = tenant, self._store.seen_by(tenant)
        return book

    # -- looking -----------------------------------------------------------------------------------------------------

    async def get(self, name: str) -> Schedule:
        return _schedule(await self._stored(name))

    async def page(self, after: str, limit: int) -> list[Schedule]:
        """List schedules whose names come after `after`, by name."""
        found = await self._store.schedules(self.tenant, in_tenant(self.tenant, after), limit)
        return [_schedule(one) for one in found]

    def upcoming(self, schedule: Schedule, count: int) -> list[datetime]:
        """The next nominal instants, from now on."""
        following, rule = self._calendar(schedule.agenda), schedule.agenda.rule(schedule.name)
        found: list[datetime] = []
        at = max(self._clock.now(), schedule.record.state.after)
        while len(found) < count:
            instant = following(at)
            if instant is None or (rule.end is not None and instant > rule.end):
                break
            found.append(instant)
            at = instant
        return found

    # -- changing ----------------------------------------------------------------------------------------------------

    async def put(self, name: str, value: Any, actor: Actor) -> tuple[Schedule, bool]:
        """Keep a schedule; (as it stands, whether it is new). WireError or PlanError: it is refused. Instants that have
        passed do not fire; a change that leaves the calendar as it was keeps what is due."""
        agenda = await self._checked(value)
        for _ in range(SAVE_TRIES):
            inside = in_tenant(self.tenant, name)
            found, now = await self._store.schedule(inside), self._clock.now()
            if found is None:
                record = ScheduleRecord(ScheduleState(now), actor.id, now)
                stored = StoredSchedule(inside, b"", b"", None)
            else:
                stored, record = found, replace(wire.decode(found.state), actor=actor.id, changed_at=now)
                if not _same_calendar(wire.read(found.body), agenda):
                    record = replace(record, state=replace(record.state, after=now))
            body = strict_json.dumps(wire.written(agenda))
            saved = await self._save(replace(stored, body=body), agenda, record, now)
            if saved is not None:
                await self._tell("put", name, actor)
                return _schedule(saved), found is None
        raise StoreUnavailableError(f"the schedule {name} keeps changing; try again")

    async def remove(self, name: str, actor: Actor) -> None:
        if not await self._store.remove_schedule(in_tenant(self.tenant, name)):
            raise UnknownIdError("schedule", name)
        await self._tell("removed", name, actor)

    async def pause(self, name: str, reason: str, actor: Actor) -> Schedule:
        """Let no instant fire until `resume`. Pausing again changes who and why."""
        paused = await self._change(
            name, lambda record, now: replace(record, paused=SchedulePause(now, actor.id, reason))
        )
        await self._tell("paused", name, actor, motivo=reason)
        return paused

    async def resume(self, name: str, reason: str, actor: Actor) -> Schedule:
        """Go on with the next instant; those that passed meanwhile are left to `backfill`."""

        def resumed(record: ScheduleRecord, now: datetime) -> ScheduleRecord:
            if record.paused is None:
                return record
            return replace(record, paused=None, state=replace(record.state, after=max(now, record.state.after)))

        found = await self._change(name, resumed)
        await self._tell("resumed", name, actor, motivo=reason)
        return found

    # -- starting ----------------------------------------------------------------------------------------------------

    async def trigger(self, name: str, reason: str, actor: Actor) -> Accepted:
        """Start a run now, whatever calendar, pause and other runs say. It counts as the run before the next one."""
        agenda, now = (await self.get(name)).agenda, self._clock.now()
        accepted = await self._intake.accept(self._intake.read(request_at(agenda, name, now)), actor=actor)
        await self._change(name, lambda record, _: replace(record, state=replace(record.state, last=now)))
        await self._tell("triggered", name, actor, correlation_id=accepted.correlation_id, motivo=reason)
        return accepted

    async def backfill(self, name: str, since: datetime, until: datetime, actor: Actor) -> list[BackfillItem]:
        """Start the runs of all instants from `since` to `until`, both included; those that exist are left as they
        are. Overlap does not count."""
        schedule = await self.get(name)
        if until > self._clock.now():
            raise wire.fault("ate", f"{until.isoformat()} has not come yet")
        if since > until:
            raise wire.fault("de", "it is after ate")
        instants = self._between(schedule, since, until)
        wanted = [self._intake.read(request_at(schedule.agenda, name, one)) for one in instants]
        answers = await self._batches.accept_each(wanted, actor=actor)
        await self._tell("backfilled", name, actor, de=since, ate=until, instantes=len(instants))
        return [BackfillItem(instant, answer) for instant, answer in zip(instants, answers, strict=True)]

    def _between(self, schedule: Schedule, since: datetime, until: datetime) -> list[datetime]:
        following, end = self._calendar(schedule.agenda), schedule.agenda.rule(schedule.name).end
        until = until if end is None else min(until, end)
        found: list[datetime] = []
        instant = following(since - _INSTANT)
        while instant is not None and instant <= until:
            if len(found) == BACKFILL_MAX_INSTANTS:
                message = f"more than {BACKFILL_MAX_INSTANTS} instants; the first {BACKFILL_MAX_INSTANTS} end at"
                raise wire.fault("ate", f"{message} {found[-1].isoformat()}")
            found.append(instant)
            instant = following(instant)
        return found

    # -- the parts of it ---------------------------------------------------------------------------------------------

    async def _checked(self, value: Any) -> Agenda:
        agenda = wire.parse(value)
        wrong = self._fault(agenda)
        if wrong is not None:
            raise wire.fault(*wrong)
        request = self._intake.read(agenda.requisicao)
        if request.correlation_id is not None:
            raise wire.fault("requisicao.correlation_id", "the runs of a schedule have names of their own")
        if len(request.rotulos or ()) >= limits.MAX_LABELS:
            raise wire.fault("requisicao.rotulos", f"{LABEL}<nome> is a label of every run; 15 more are allowed")
        await self._intake.refresh_task_types([request])
        self._intake.check(request, self.tenant)
        return agenda.model_copy(update={"requisicao": requests.written(request)})

    async def _stored(self, name: str) -> StoredSchedule:
        found = await self._store.schedule(in_tenant(self.tenant, name))
        if found is None:
            raise UnknownIdError("schedule", name)
        return found

    async def _change(self, name: str, change: Change) -> Schedule:
        for _ in range(SAVE_TRIES):
            stored, now = await self._stored(name), self._clock.now()
            record = change(wire.decode(stored.state), now)
            saved = await self._save(stored, wire.read(stored.body), record, now)
            if saved is not None:
                return _schedule(saved)
        raise StoreUnavailableError(f"the schedule {name} keeps changing; try again")

    async def _save(
        self, stored: StoredSchedule, agenda: Agenda, record: ScheduleRecord, now: datetime
    ) -> StoredSchedule | None:
        due = stored.due_at  # what is being done is finished first
        if not record.state.firing:
            rule, following = agenda.rule(stored.name), self._calendar(agenda)
            due = None if record.paused is not None else rules.next_due(rule, record.state, following, now)
        return await self._store.save_schedule(replace(stored, state=wire.encode(record), due_at=due))

    async def _tell(self, action: str, name: str, actor: Actor, **more: Any) -> None:
        """Record who changed what, and wake the loop."""
        self._changed()
        said = {key: _text(value) for key, value in more.items() if value}
        body = {"acao": action, "agenda": name, "ator": actor.id, **said}
        log.info("schedule changed", schedule=name, action=action, actor=actor.id, **said)
        await self._store.record_system_event(SystemEvent(EVENT_KIND, self._clock.now(), body, tenant=self.tenant))


def _text(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def _schedule(stored: StoredSchedule) -> Schedule:
    return Schedule(local_name(stored.name), wire.read(stored.body), wire.decode(stored.state), stored.due_at)


def _same_calendar(one: Agenda, other: Agenda) -> bool:
    return (one.cron, one.intervalo_s, one.fuso) == (other.cron, other.intervalo_s, other.fuso)
