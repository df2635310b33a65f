"""Workers that registered: their leases, what they do, and what becomes of their tickets when they are lost.

Heartbeats are gathered and written together, so that thousands of workers are a few transactions. A worker whose lease
has ended is lost: the tickets that it said it had, and those that it leased here, are withdrawn from it and go
elsewhere at once. Only then is it marked, so that no crash in between leaves a ticket behind. Every process looks, and
doing it twice changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
import structlog

from oraculo.core.access import Actor
from oraculo.core.commands import RecordResult, WithdrawTicket
from oraculo.core.state import Orchestration
from oraculo.core.tenants import in_tenant, local_name, queue_in, tenant_of
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Cause
from oraculo.errors import BusyError, StoreError, UnknownIdError
from oraculo.ports.clock import Clock
from oraculo.ports.system_events import SystemEvent, SystemEventLog
from oraculo.ports.work import Outcome, Work
from oraculo.ports.workers import StopOrder, StoredWorker, WorkerBeat, WorkerLeases
from oraculo.wire.worker_messages import Heartbeat, Registration, beat_json, registration_json

log = structlog.get_logger("oraculo.workers")

FLUSH_INTERVAL_S = 1.0
IDLE_LOOK_INTERVAL_S = 10.0  # while no worker is registered
HEARTBEATS_PER_LEASE = 4
FORGOTTEN_AFTER_LEASES = 5
LOST_BATCH_WORKERS = 100
PAGE_WORKERS = 500
ERROR_TEXT_MAX_CHARS = 500

Ticket = tuple[str, int]  # ticket_id, attempt


@dataclass(slots=True)
class _Pending:
    """What is to be written of one worker."""

    beat: bytes | None = None
    answered: int = 0
    failed: int = 0
    last_error: bytes | None = None


@dataclass(slots=True)
class BeatAnswer:
    """What a worker is told: whether it is to take nothing more, and when to come again."""

    draining: bool
    next_s: float
    stop: tuple[StopOrder, ...] = ()  # what it has to stop, for a more urgent ticket


@dataclass(slots=True)
class RegistryCounts:
    """What happened in this process, for metrics."""

    registered: int = 0
    deregistered: int = 0
    heartbeats: int = 0
    lost: int = 0
    withdrawn: int = 0
    active: dict[str, int] = field(default_factory=dict)


class WorkerBook:
    """Knows who is registered. `held` lists what a worker leased in this process, and lets it go; `submit` hands work
    to the engine."""

    def __init__(
        self,
        leases: WorkerLeases,
        clock: Clock,
        events: SystemEventLog,
        state_of: Callable[[int], Awaitable[Orchestration | None]],
        submit: Callable[[list[Work]], Awaitable[list[Outcome]]],
        *,
        timeout_s: float,
        held: Callable[[], Iterable[str]] = lambda: (),
        take_back: Callable[[str], Awaitable[list[Ticket]]] | None = None,
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._events = events
        self._state_of = state_of
        self._submit = submit
        self._timeout_s = timeout_s
        self._held = held
        self._take_back = take_back
        self._alive: dict[str, str] = {}  # key → the actor that registered it
        self._lease_s: dict[str, float] = {}
        self._pending: dict[str, _Pending] = {}
        self._drained: frozenset[str] = frozenset()
        self._empty = True
        self._stops: dict[str, list[StopOrder]] = {}
        self.beat_most_s: float | None = None  # heartbeats come at least so often; None: by their leases
        self.counts = RegistryCounts()
        self.tenants: set[str] = set()  # those whose control queues are read here
        self.began: Callable[[str, list[Ticket]], None] | None = None  # told what a worker says it has
        self.told: Callable[[str, str | None, bool], Awaitable[None]] | None = None  # own queue of a worker: draining

    # -- for workers -------------------------------------------------------------------------------------------------

    async def register(
        self, tenant: str, said: Registration, actor: Actor, over: str
    ) -> tuple[StoredWorker, BeatAnswer]:
        """Keep a worker; durable when this returns."""
        key, lease_s = in_tenant(tenant, said.worker), said.timeout_s or self._timeout_s
        body, beat = registration_json(said, actor.id, over), beat_json(said)
        self._empty = False
        stored = await self._leases.register(key, body, beat, timedelta(seconds=lease_s))
        self._alive[key], self._lease_s[key] = actor.id, lease_s
        if stored.drain is not None:
            self._drained |= {key}
        self.counts.registered += 1
        self._heard_of(key, said)
        log.info("worker registered", worker=said.worker, queues=said.filas, over=over)
        if stored.drain is not None and self.told is not None:
            await self.told(key, said.fila_propria, True)
        return stored, self._answer(key)

    async def beat(self, key: str, said: Heartbeat, actor: Actor) -> BeatAnswer:
        """Note a sign of life; it is written with others within a second. UnknownIdError: it has to register again, or
        another key did, and this one has no business with it."""
        owner = self._alive.get(key)
        if owner is None:
            stored = await self._leases.worker(key)
            if stored is None or not stored.alive:
                raise UnknownIdError("worker", local_name(key))
            owner = self._alive[key] = str(orjson.loads(stored.body).get("ator", ""))
        if owner != actor.id and actor.queues is not None:
            raise UnknownIdError("worker", local_name(key))
        self._pending.setdefault(key, _Pending()).beat = beat_json(said)
        self.counts.heartbeats += 1
        self._heard_of(key, said)
        return self._answer(key)

    def _heard_of(self, key: str, said: Heartbeat) -> None:
        if self.began is not None:
            self.began(key, [(one.ticket_id, one.tentativa) for one in said.executando])

    def seen(self, key: str) -> None:
        """Note that a worker asked for work or kept some; nothing when it is not registered."""
        if key in self._alive:
            self._pending.setdefault(key, _Pending())

    def answered(self, key: str, answer: RecordResult) -> None:
        """Count an answer of a worker that is registered."""
        if key not in self._alive:
            return
        pending = self._pending.setdefault(key, _Pending())
        pending.answered += 1
        if not answer.ok:
            pending.failed += 1
            said = error_said(answer, self._clock.now())
            pending.last_error = orjson.dumps(said, option=orjson.OPT_UTC_Z, default=str)

    def heard(self, work: Work) -> None:
        """Count an answer that came over a broker, by the name that its worker gave itself."""
        if self._alive and work.worker and isinstance(work.command, RecordResult):
            self.answered(in_tenant(tenant_of(work.queue), work.worker), work.command)

    async def leave(self, key: str) -> bool:
        """Forget a worker that says goodbye. What it still has goes elsewhere."""
        stored = await self._leases.worker(key)
        if stored is None:
            return False
        await self._move_on([stored], list(await self._own_leases([key])))
        self._alive.pop(key, None)
        self._pending.pop(key, None)
        removed = await self._leases.remove(key)
        if removed:
            self.counts.deregistered += 1
            log.info("worker deregistered", worker=local_name(key))
        return removed

    async def may_end(self, key: str, actor: Actor) -> bool:
        """Return whether an actor may say goodbye for a worker: one that is bound to queues only for its own."""
        stored = await self._leases.worker(key)
        return stored is not None and (actor.queues is None or orjson.loads(stored.body).get("ator") == actor.id)

    def admits(self, key: str) -> bool:
        """Return whether a worker may get work: it is not drained."""
        return key not in self._drained

    def _answer(self, key: str) -> BeatAnswer:
        lease_s = self._lease_s.get(key, self._timeout_s)
        next_s = min(lease_s / HEARTBEATS_PER_LEASE, self.beat_most_s or lease_s)
        return BeatAnswer(key in self._drained, round(next_s, 3), tuple(self._stops.get(key, ())))

    def tell_stop(self, key: str, order: StopOrder | None) -> None:
        """Tell a worker to stop something, with the answers to its heartbeats; None: it has stopped."""
        if order is None:
            self._stops.pop(key, None)
        else:
            self._stops.setdefault(key, []).append(order)

    # -- for operators -----------------------------------------------------------------------------------------------

    async def drain(self, key: str, reason: str, actor: Actor) -> bool:
        """Let a worker finish what it has and get nothing more, until `resume`. False: there is none of that name."""
        about = {"ator": actor.id, "motivo": reason, "desde": self._clock.now()}
        return await self._set_drain(key, orjson.dumps(about, option=orjson.OPT_UTC_Z), reason, actor)

    async def resume(self, key: str, reason: str, actor: Actor) -> bool:
        """Let a worker get work again."""
        return await self._set_drain(key, None, reason, actor)

    async def _set_drain(self, key: str, drain: bytes | None, reason: str, actor: Actor) -> bool:
        if not await self._leases.drain(key, drain):
            return False
        kind, body = ("worker_resumed" if drain is None else "worker_drained"), {"worker": local_name(key)}
        body |= {"ator": actor.id, "motivo": reason}
        await self._events.record_system_event(SystemEvent(kind, self._clock.now(), body, tenant=tenant_of(key)))
        log.warning(kind.replace("_", " "), worker=local_name(key), actor=actor.id, reason=reason)
        self._drained = frozenset(await self._leases.drained())
        stored = await self._leases.worker(key)
        if stored is not None and self.told is not None:
            await self.told(key, orjson.loads(stored.body).get("fila_propria"), drain is not None)
        return True

    async def all_of(self, tenant: str) -> list[StoredWorker]:
        """List the workers of a tenant; others have their turn between pages."""
        found: list[StoredWorker] = []
        while True:
            page = await self._leases.workers(tenant, found[-1].key if found else "", PAGE_WORKERS)
            found += page
            if len(page) < PAGE_WORKERS:
                return found
            await asyncio.sleep(0)

    async def one(self, key: str) -> StoredWorker | None:
        return await self._leases.worker(key)

    @property
    def is_empty(self) -> bool:
        """True while no worker is known to be registered."""
        return self._empty

    # -- life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write heartbeats and look for lost workers, for ever. While the store is away no worker is lost."""
        while True:
            try:
                if self._empty and not await self._leases.is_empty():
                    self._empty = False
                await self.flush()
                if not self._empty:
                    await self.sweep()
            except (StoreError, BusyError) as error:
                log.warning("workers not looked at: store unavailable", error=str(error))
            await asyncio.sleep(IDLE_LOOK_INTERVAL_S if self._empty and not self._pending else FLUSH_INTERVAL_S)

    async def flush(self) -> None:
        """Write what was heard since the last time, in one transaction."""
        pending, self._pending = self._pending, {}
        if not pending:
            return
        beats = [WorkerBeat(key, p.beat, p.answered, p.failed, p.last_error) for key, p in sorted(pending.items())]
        try:
            known = await self._leases.beat(beats)
        except StoreError:
            for key, one in pending.items():
                self._pending.setdefault(key, one)
            raise
        for key in pending.keys() - known:
            self._alive.pop(key, None)

    async def sweep(self) -> int:
        """Move on the tickets of workers whose lease has ended; return how many workers were lost."""
        self._drained = frozenset(await self._leases.drained())
        expired = await self._leases.expired(LOST_BATCH_WORKERS)
        gone = await self._leases.gone(list(self._held()))
        await self._move_on(expired, list(await self._own_leases(gone)))
        lost = await self._leases.mark_lost([one.key for one in expired]) if expired else []
        for key in lost:
            self._alive.pop(key, None)
            self.counts.lost += 1
            log.warning("worker lost: its tickets go elsewhere", worker=local_name(key), tenant=tenant_of(key))
            event = SystemEvent("worker_lost", self._clock.now(), {"worker": local_name(key)}, tenant=tenant_of(key))
            await self._events.record_system_event(event)
        if await self._leases.forget(FORGOTTEN_AFTER_LEASES) and await self._leases.is_empty():
            self._empty = not self._alive  # one may be registering just now
        return len(lost)

    async def _own_leases(self, keys: Sequence[str]) -> list[tuple[str, Ticket]]:
        """What these workers leased here; it is not theirs any more."""
        if self._take_back is None:
            return []
        return [(key, ticket) for key in keys for ticket in await self._take_back(key)]

    async def _move_on(self, workers: Sequence[StoredWorker], leased: list[tuple[str, Ticket]]) -> None:
        """Withdraw what these workers said they have, and what was leased to them, unless another one has it."""
        said = [(one.key, ticket) for one in workers for ticket in running_of(one)]
        works: list[Work] = []
        for key, (ticket_id, attempt) in dict.fromkeys([*leased, *said]):
            parsed = parse_ticket_id(ticket_id)
            if parsed is None or not await self._may_withdraw(key, *parsed):
                continue
            if await self._has_another(key, ticket_id, attempt):
                continue  # its broker gave the same order to another worker
            command = WithdrawTicket(parsed[1], attempt, Cause.REALOCADO, local_name(key))
            works.append(Work(command, run=parsed[0]))
        if works:
            outcomes = await self._submit(works)
            self.counts.withdrawn += sum(1 for one in outcomes if one.fate == "applied")

    async def _may_withdraw(self, key: str, run: int, position: int) -> bool:
        """What a worker says it has must be of its own tenant."""
        state = await self._state_of(run)
        if state is None or position >= len(state.tickets):
            return False
        return tenant_of(state.correlation_id) == tenant_of(key)

    async def _has_another(self, key: str, ticket_id: str, attempt: int) -> bool:
        mark = ticket_id.encode()
        for one in await self.all_of(tenant_of(key)):
            if one.key != key and one.alive and mark in one.beat and (ticket_id, attempt) in running_of(one):
                return True
        return False


def error_said(answer: RecordResult, now: datetime) -> dict[str, Any]:
    """How a worker said that an order failed."""
    first = answer.erros[0] if answer.erros else {}
    text = str(first.get("mensagem", ""))[:ERROR_TEXT_MAX_CHARS]
    return {"codigo": first.get("codigo"), "mensagem": text, "em": now}


def running_of(worker: StoredWorker) -> list[Ticket]:
    """The tickets that a worker said it has."""
    return [(one["ticket_id"], one["tentativa"]) for one in orjson.loads(worker.beat).get("executando", ())]


def forbidden_queue(said: Registration, actor: Actor) -> str | None:
    """Return the first queue of a registration that the actor may not work on; None when it may work on all."""
    own: list[str] = [] if said.fila_propria is None else [said.fila_propria]
    for queue in (*said.filas, *own):
        meant = queue_in(actor.tenant, queue)
        if meant is None or not actor.may_use(meant):
            return queue
    return None
