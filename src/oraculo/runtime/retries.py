"""Trying an ended run again: a new run of the same plan, which takes over what had concluded (docs/adr/0043)."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b

import structlog

from oraculo.core import retrying
from oraculo.core.access import Actor
from oraculo.core.commands import Reuse
from oraculo.core.events import OrchestrationStarted
from oraculo.core.plan import RULES, Plan
from oraculo.core.reuse import Origin, RetryFrom
from oraculo.core.state import Orchestration
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, local_name
from oraculo.core.vocabulary import Status
from oraculo.errors import RetryError, StoreError, UnknownIdError
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.engine import Engine
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime import crash
from oraculo.runtime.ids import new_correlation_id
from oraculo.runtime.requests import RequestIntake, accepted_of

log = structlog.get_logger("oraculo.retries")

RETRY_SUFFIX = re.compile(r"~(\d{1,6})$")
ID_MAX_CHARACTERS = 128
RETRIES_LOOKED_AT = 500
TRIES_FOR_AN_ID = 10  # others may take the same one meanwhile
NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Retried:
    """The run that tries another one again. `reused` is how many results it takes over; `new` is False when the same
    was asked before and this is what was made then."""

    correlation_id: str
    run: int
    origin: str
    new: bool
    reused: int = 0


class Retries:
    """Starts retries. Two calls for the same while the first retry is open, or with the same key, make one run."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        requests: RequestIntake,
        now: Callable[[], datetime],
        tenant: str = DEFAULT_TENANT,
    ) -> None:
        self._engine = engine
        self._store = store.seen_by(tenant)
        self._requests = requests
        self._now = now
        self._tenant = tenant

    async def retry(
        self,
        correlation_id: str,
        mode: RetryFrom,
        task: str | None = None,
        *,
        key: str | None,
        traceparent: str | None,
        actor: Actor,
    ) -> Retried:
        """Start a retry; it is durable when this returns. RetryError: the run cannot be tried again like this."""
        state = await self._engine.state_of(in_tenant(self._tenant, correlation_id))
        if state is None:
            raise UnknownIdError("orchestration", correlation_id)
        again = _checked(state, mode, task)
        fingerprint = _fingerprint(state.run, mode, task)
        name = await self._next_id(state.correlation_id)  # first: what takes it from here on is found below, or refused
        known = await self._store.retries(state.run, RETRIES_LOOKED_AT)
        under_way = next((one for one in known if one.closed_at is None and one.fingerprint == fingerprint), None)
        if under_way is not None and key is None:
            return Retried(local_name(under_way.correlation_id), under_way.run, correlation_id, new=False)
        self._engine.admit()
        await self._requests.quotas.check(actor)
        chunks = retrying.commands(state, again) if again.tasks or again.maps else []
        count = sum(len(chunk.results) for chunk in chunks)
        origin = Origin(state.run, state.correlation_id, mode, task, reuses=bool(chunks))
        plan = _plan_again(await self._plan(state.run), state, mode)
        for number in range(TRIES_FOR_AN_ID):
            name = name if number == 0 else await self._next_id(state.correlation_id)
            work = self._requests.retry_work(
                plan, name, origin, fingerprint=fingerprint, key=key, traceparent=traceparent, actor=actor
            )
            outcome = await self._submit(work, chunks, actor)
            if outcome.fate is not Fate.CONFLICT or outcome.reason != "correlation_id":
                break
        accepted = accepted_of(work, outcome)
        if accepted.new:
            await self._tell(correlation_id, accepted.correlation_id, mode, count, actor)
        return Retried(accepted.correlation_id, accepted.run, correlation_id, accepted.new, count)

    async def of(self, run: int) -> list[Summary]:
        """The runs that try this one again, the oldest first."""
        found = (await self._store.retries(run, RETRIES_LOOKED_AT))[::-1]
        return [replace(one, correlation_id=local_name(one.correlation_id)) for one in found]

    async def _submit(self, work: Work, chunks: list[Reuse], actor: Actor) -> Outcome:
        work.reuse = chunks
        with self._requests.quotas.under_way(actor):
            outcome = (await self._engine.submit([work]))[0]
        crash.point("before_answer")
        return outcome

    async def _plan(self, run: int) -> Plan:
        """The plan that a run began with."""
        started = (await self._store.events(run, 0, 1))[0].events[0]
        assert isinstance(started, OrchestrationStarted)
        return started.plan

    async def _next_id(self, name: str) -> str:
        """The id of the next retry: `abc~1`, `abc~2`, … of `abc` and of any of its retries."""
        root = RETRY_SUFFIX.sub("", name)
        tries = await self._store.find(Query(text=f"{root}~", limit=RETRIES_LOOKED_AT, tenant=None))
        numbers = [int(found[1]) for one in tries if (found := RETRY_SUFFIX.search(one.correlation_id))]
        following = f"{root}~{max(numbers, default=0) + 1}"
        fits = len(local_name(following)) <= ID_MAX_CHARACTERS
        return following if fits else in_tenant(self._tenant, new_correlation_id())

    async def _tell(self, old: str, new: str, mode: RetryFrom, reused: int, actor: Actor) -> None:
        log.info("orchestration retried", correlation_id=new, origin=old, mode=mode.value, reused=reused)
        body = {"de": old, "para": new, "ator": actor.id}
        with suppress(StoreError):  # it is accepted; the journal says the same
            await self._store.record_system_event(
                SystemEvent("orchestration_retried", self._now(), body, tenant=self._tenant)
            )


def _checked(state: Orchestration, mode: RetryFrom, task: str | None) -> retrying.Reused:
    """What is taken over; RetryError when that cannot be done."""
    if state.closed_at is None:
        detail = (
            f"{local_name(state.correlation_id)!r} is {state.status.value}; only a run that has ended is tried again"
        )
        raise RetryError("open", detail)
    tasks = set() if task is None else retrying.positions_of(state, task)
    if task is not None and not tasks:
        known = retrying.task_names(state)
        there_are = ", ".join(known[:NAMES_SHOWN]) + (
            f" and {len(known) - NAMES_SHOWN} more" if known[NAMES_SHOWN:] else ""
        )
        raise RetryError("unknown_task", f"no task {task!r}; there are {there_are}", known[:NAMES_SHOWN])
    if mode is RetryFrom.FAILURES and not retrying.unfinished(state):
        name = local_name(state.correlation_id)
        detail = f"every task of {name!r} concluded or was skipped; give `de: inicio` or a `tarefa`"
        raise RetryError("nothing_failed", detail)
    return retrying.reused(state, mode, tasks)


def _plan_again(plan: Plan, state: Orchestration, mode: RetryFrom) -> Plan:
    """The plan of a retry. What a human approved needs no second approval, unless all of it is done again."""
    approved = state.approved_by is not None and state.status is not Status.CANCELADA
    return replace(plan, rules=RULES, approval=plan.approval and (mode is RetryFrom.START or not approved))


def _fingerprint(run: int, mode: RetryFrom, task: str | None) -> str:
    """Of what is asked for, to tell the same retry from another one with the same id or key."""
    said = f"retry:{run}:{mode.value}:{task or ''}"
    return blake2b(said.encode(), digest_size=16).hexdigest()
