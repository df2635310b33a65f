"""The engine of one process: an asyncio loop over the store and the broker.

One loop takes all the work there is, makes one transaction of it, and hands what is owed to the performer. On start
and whenever the store was away, it recovers: what the journal says is owed is sent again, what is due is woken. Where
several processes share a store, each is a replica (runtime/replica.py), and recovers what dead ones left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self

import structlog

from oraculo.core.cognitive import TIPO
from oraculo.core.commands import Cancel, ConfirmDispatch, Wake
from oraculo.core.effects import owed_effects
from oraculo.core.state import Orchestration, fold
from oraculo.core.vocabulary import Status
from oraculo.errors import BusyError, FencedError, SettingsError, StoreError, UnknownIdError
from oraculo.ports.broker import Broker, expect, forgets
from oraculo.ports.cache import Cache
from oraculo.ports.clock import Clock
from oraculo.ports.notifier import Notifier
from oraculo.ports.observer import Observer
from oraculo.ports.sharing import Member, sharing
from oraculo.ports.store import Query, Store
from oraculo.runtime.ceiling import Ceiling
from oraculo.runtime.drain import Drain
from oraculo.runtime.feed import Feed
from oraculo.runtime.gateway import Gateway
from oraculo.runtime.handle import Handled, Handler
from oraculo.runtime.ids import RunNumbers
from oraculo.runtime.intake import Intake, Prepare, Submit, Translate, result_work
from oraculo.runtime.loops import for_ever
from oraculo.runtime.onlookers import Onlookers
from oraculo.runtime.perform import Owed, Performer
from oraculo.runtime.probes import Prober, prober_of
from oraculo.runtime.replica import GRACE, LEASE, Replica
from oraculo.runtime.timers import Timers
from oraculo.runtime.work import Fate, Group, Outcome, Work
from oraculo.wire import names
from oraculo.wire.orders import OrderWriter

log = structlog.get_logger("oraculo.engine")

BATCH = 1024  # pieces of work in one transaction
QUEUE_LIMIT = 20_000  # pieces of work waiting; beyond it those who hand in wait
RECOVER_CHUNK = 500
STORE_RETRY_FIRST, STORE_RETRY_MOST = 0.1, 2.0
BROKEN_AGAIN = timedelta(seconds=30)  # before an orchestration whose step failed is tried again
CEILING_AGAIN = 1.0  # seconds between two looks at the tickets that wait because too many are with workers
LOOK_AGAIN = 1.0  # seconds at most between two looks at the clock


class LocalEngine:
    """`max_open` bounds how many orchestrations may be open at once; more are refused with BusyError. `supervised`:
    brokers are probed end to end, and their dead-letter queues are emptied into the table. `passive`: what is handed in
    here is handled and sent; messages, deadlines and the dead are for other processes to look after. `ceiling` bounds
    how many tickets of Fluxo C may be with workers at once; `tickets` is the queue that most of them go to.
    `retry_rate` bounds how many attempts after the first one queue gets in a second."""

    performs: type[Performer] = Performer
    minds = True  # looks after deadlines, and after what dead processes left
    grace: timedelta | None = GRACE  # overdue for so long: it does, whoever should; None: never

    def __init__(
        self,
        store: Store,
        broker: Broker,
        clock: Clock,
        *,
        notifier: Notifier | None = None,
        observers: Sequence[Observer] = (),
        max_open: int = 100_000,
        supervised: bool = False,
        passive: bool = False,
        name: str = "oraculo",
        lease: timedelta = LEASE,
        cache: Cache | None = None,
        writer: OrderWriter | None = None,
        ceiling: int | None = None,
        retry_rate: float | None = None,
        tickets: str = "",
    ) -> None:
        self.store = store
        self.broker = broker
        self.clock = clock
        self.numbers = RunNumbers()
        self.feed = Feed()
        self.handler = self._make_handler()
        self.gateway = Gateway(broker, clock, self.handler.state)
        self.writer = writer
        self._ceiling = ceiling
        self._retry_rate = retry_rate
        self._tickets = tickets
        self.performer = self._make_performer(notifier)
        self.timers = Timers()
        self.open = 0  # orchestrations that have not ended
        self.ready = False
        self.store_failing_since: datetime | None = None
        self._onlookers = Onlookers(observers)
        self._max_open = max_open
        self._queue: deque[Work] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._rearmed = asyncio.Event()
        self._asleep_until: datetime | None = None  # what the timer loop waits for
        self.intakes: list[Intake] = []
        self.prober: Prober | None = None
        self._supervised = supervised
        self._passive = passive
        self._minds = self.minds and not passive
        self.replica = self._replica(name, lease, cache)
        self._self_dead: set[str] = set()  # queues whose dead letters are published by whoever takes them
        self.queues: set[str] = {names.RESULTS, names.REQUESTS}  # that we publish to or take from
        self.listen(names.RESULTS, result_work, heard=True)
        self._takers: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    # -- life --------------------------------------------------------------------------------------------------------

    def _replica(self, name: str, lease: timedelta, cache: Cache | None) -> Replica | None:
        shared = sharing(self.store)
        if shared is None:
            return None
        return Replica(
            shared,
            name,
            self.feed,
            rescued=self._send_again,
            wake=self._wake,
            opened=self._opened,
            joined=self._joined,
            follow=getattr(self.clock, "follow", lambda _at: None),
            lease=lease,
            passive=self._passive or self.grace is None,
            grace=self.grace or GRACE,
            cache=cache,
        )

    def listen(
        self,
        queue: str,
        translate: Translate,
        *,
        submit: Submit | None = None,
        opens: bool = False,
        heard: bool = False,
        prepare: Prepare | None = None,
    ) -> None:
        """Take messages from one more queue. Before `start`. Where they open orchestrations they wait when too many are
        open; where they are answers, who answered is heard. `submit`: who takes them, else the engine itself; then it
        is he who publishes those that are dead, too."""
        full = self._is_full if opens else lambda: False
        hear = self.gateway.heard if heard and not self.broker.volatile else None
        takes = submit or self._submit_of(queue)
        self.intakes.append(Intake(self.broker, queue, translate, takes, full, hear, prepare))
        self.queues.add(queue)
        if heard:
            expect(self.broker, queue)
        if submit is not None:
            self._self_dead.add(queue)

    def _submit_of(self, _queue: str) -> Submit:
        """Who takes what comes from this queue."""
        return partial(self.submit, piecewise=True)

    def _make_handler(self) -> Handler:
        """Who turns work into steps."""
        return Handler(self.store, self.clock)

    def _make_performer(self, notifier: Notifier | None) -> Performer:
        """Who does what is owed."""
        return self.performs(
            self.broker,
            notifier,
            self.clock,
            self.enqueue,
            self.store.result,
            self.handler.still_owed,
            self.writer,
            self._ceiling,
            retry_rate=self._retry_rate,
        )

    def _is_full(self) -> bool:
        return self.open >= self._max_open

    async def start(self) -> Self:
        """Recovered and running when it returns."""
        await self._recover()
        loops = {"handle": self._handle_loop, "perform": self.performer.run, "leases": self.gateway.run}
        if self._minds:
            loops["timers"] = self._timer_loop
        if not self._passive:
            self._takers = [asyncio.create_task(for_ever(intake.run), name="intake") for intake in self.intakes]
        if self.performer.ceiling is not None:
            loops["ceiling"] = self._ceiling_loop
        if self.replica is not None:
            loops["replica"] = self.replica.run
        self._tasks = [asyncio.create_task(for_ever(loop), name=name) for name, loop in loops.items()]
        if self._supervised:
            self._supervise()
        self.ready = True
        return self

    def _supervise(self) -> None:
        ears = () if self._passive else self.intakes
        self.prober = prober_of(self.broker, self.clock, ears, lambda: self.queues)
        self._tasks.append(asyncio.create_task(for_ever(self.prober.run), name="probes"))
        if not self._passive:
            drain = Drain(self.broker, lambda: self.queues - self._self_dead, partial(self.submit, piecewise=True))
            self._takers.append(asyncio.create_task(for_ever(drain.run), name="dead letters"))

    async def stop(self, patience: float = 20.0) -> None:
        """Take nothing more, finish what was taken, then end. What is left is in the journal."""
        self.ready = False
        for task in self._takers:
            task.cancel()
        await asyncio.gather(*self._takers, return_exceptions=True)
        try:
            async with asyncio.timeout(patience):
                await self.drained()
        except TimeoutError:
            log.warning("stopped with work left; the journal has it", waiting=len(self._queue))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.performer.close()
        if self.replica is not None:
            await self.replica.stop()
        self.observe()
        for work in self._queue:
            work.fail(BusyError("the orchestrator is stopping"))
        self._queue.clear()

    async def drained(self) -> None:
        """Returns when everything that was handed in is durable and everything owed is on its way."""
        while self._queue or not self._idle.is_set() or self.performer.waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def held_back(self) -> int:
        """Tickets of Fluxo C that wait here for room under the ceiling."""
        return self.performer.held_back

    @property
    def failing(self) -> dict[str, Any] | None:
        """What this engine cannot work without and has not got, besides the store."""
        return None

    # -- the way in --------------------------------------------------------------------------------------------------

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        """Returns once all of it is durable. On StoreUnavailableError or BusyError none of it counts as accepted. With
        `piecewise`, single pieces may come back as Fate.RETRY."""
        if not works:
            return []
        if len(self._queue) > QUEUE_LIMIT:
            self._room.clear()
            await self._room.wait()
        group = Group(len(works), asyncio.get_running_loop().create_future(), piecewise)
        for index, work in enumerate(works):
            work.group, work.index = group, index
        self.enqueue(works)
        return await group.future

    def admit(self, count: int = 1) -> None:
        """BusyError when no more orchestrations may be opened now."""
        if self.open + count > self._max_open:
            raise BusyError(f"{self.open} orchestrations are open; at most {self._max_open} are allowed")

    async def cancel(self, correlation_id: str, reason: str = "") -> Outcome:
        outcome = (await self.submit([Work(Cancel(reason), correlation_id)]))[0]
        if outcome.fate is Fate.UNKNOWN:
            raise UnknownIdError("orchestration", correlation_id)
        return outcome

    async def state_of(self, correlation_id: str) -> Orchestration | None:
        """The committed state, also of orchestrations that ended long ago."""
        run = self.handler.cache.run_of(correlation_id)
        if run is None:
            run = (await self.store.locate([correlation_id])).get(correlation_id)
        if run is None:
            return None
        confirmed = self.performer.confirmed(run)
        if confirmed:  # who looks sees what the broker has confirmed, also when nobody has recorded it yet
            await self.submit([Work(ConfirmDispatch(confirmed), run=run)])
        return await self.handler.state(run)

    def enqueue(self, works: Sequence[Work]) -> None:
        """Work that nobody waits for."""
        self._queue.extend(works)
        self._arrived.set()

    # -- the loop ----------------------------------------------------------------------------------------------------

    async def _handle_loop(self) -> None:
        queue = self._queue
        pause = STORE_RETRY_FIRST
        while True:
            if not queue:
                self._idle.set()
                self._arrived.clear()
                await self._arrived.wait()
            self._idle.clear()
            works = [queue.popleft() for _ in range(min(BATCH, len(queue)))]
            if not self._room.is_set() and len(queue) < QUEUE_LIMIT:
                self._room.set()
            try:
                if self.handler.doubtful:
                    await self._settle_doubts()
                handled = await self.handler.handle(works)
            except StoreError as error:
                for work in works:
                    work.fail(error)
                self._keep_own(works)
                await self._store_failed(error, pause)
                pause = min(pause * 2, STORE_RETRY_MOST)
                continue
            if handled.batch:
                pause = STORE_RETRY_FIRST  # it can be written, not only read
            if self.store_failing_since is not None:
                self.store_failing_since = None
                log.info("the store works again")
            self._after(handled)
            if self.replica is not None and self._minds:
                self._put_off(works)

    def _keep_own(self, works: Sequence[Work]) -> None:
        """Confirmations, outcomes of notices and timers are nobody else's to send again."""
        self._queue.extendleft(work for work in reversed(works) if work.group is None)

    async def _store_failed(self, error: StoreError, pause: float) -> None:
        """Wait a little and come again. Callers were told; our own work is back at the head of the queue."""
        if self.store_failing_since is None:
            self.store_failing_since = self.clock.now()
            log.error("the store failed", error=str(error))
        if self.replica is not None and isinstance(error, FencedError):
            self.replica.doubt()
        await asyncio.sleep(pause)
        self.enqueue([Work()])  # come here again, even if nobody asks for anything

    async def _settle_doubts(self) -> None:
        """A transaction that failed may have been written all the same: then nobody did what it owes. What was not
        written owes nothing new, so an outage sends nothing again and again."""
        doubtful = self.handler.doubtful
        for run, recorded in (await self.store.load(list(doubtful))).items():
            state = fold((r.at, r.events) for r in recorded)
            self.timers.set(run, state.wake_at())
            if state.version > doubtful[run]:
                self.performer.take(state, owed_effects(state))
                self.feed.changed(run)
                result = await self.store.result(run)
                if result is not None:
                    self.feed.ended(run, result)
        if self.replica is None:
            self.open = sum(1 for one in await self.store.live() if one.open)
        doubtful.clear()
        self._rearmed.set()

    def _after(self, handled: Handled) -> None:
        steps = handled.batch.steps
        take = self.performer.take
        for done in steps:
            state = done.state
            if done.effects:
                take(state, done.effects)
            if done.first == 1:
                self.open += 1
                self.queues.update({task.queue for task in state.plan.tasks})
            if state.plan.flow is not None:
                self.performer.freed(state)
            if self._minds:
                self.timers.set(state.run, state.wake_at())
            self.feed.changed(state.run)
        for run in handled.broken:
            self.timers.set(run, handled.batch.at + BROKEN_AGAIN)
        for closed in handled.closed:
            self.open -= 1
            self.feed.ended(closed.state.run, closed.result)
            self.performer.ended(closed.state.run)
        self._rearm()
        self._onlookers.show(handled.batch)
        self.handler.release(steps)

    def observe(self) -> None:
        """Show the observers what was committed since they looked last."""
        self._onlookers.look()

    def _rearm(self) -> None:
        """Wake the timer loop when something is due sooner than it thinks."""
        upcoming = self.timers.next()
        if upcoming is not None and (self._asleep_until is None or upcoming < self._asleep_until):
            self._rearmed.set()

    async def _timer_loop(self) -> None:
        while True:
            self._rearmed.clear()
            now = self.clock.now()
            due = self.timers.due(now)
            if due:
                self._wake(due)
            upcoming = self._asleep_until = self.timers.next()
            pause = LOOK_AGAIN if upcoming is None else min(LOOK_AGAIN, (upcoming - now).total_seconds())
            if pause > 0:
                try:
                    async with asyncio.timeout(pause):
                        await self._rearmed.wait()
                except TimeoutError:
                    pass

    async def _recover(self) -> None:
        """Send again what is owed and wake what is due. Doing it twice does no harm."""
        if self.replica is not None:
            await self.replica.start()
            members = len(await self.replica.members())
            alone = members == 1
            self._share(members)
        else:
            alone = True
            last = await self.store.last_instant()
            not_before = getattr(self.clock, "not_before", None)
            if last is not None and not_before is not None:
                not_before(last)
        self.queues.update(await self.store.queues())
        volatile = self.broker.volatile
        if volatile and not alone:
            raise SettingsError("ORACULO_BROKER", "memory://", "other processes work on this store: all need a server")
        if self.replica is None or volatile:
            await self._take_all(resend=volatile)

    async def _take_all(self, resend: bool) -> None:
        """There is nobody else, so that all that is open is ours to look after."""
        live = await self.store.live()
        self.open = sum(1 for one in live if one.open)
        for one in live:
            self.timers.set(one.run, one.wake_at)
        if self.performer.ceiling is not None and not forgets(self.broker, self._tickets):
            await self._count_with_workers(self.performer.ceiling)
        wanted = [one.run for one in live if one.owes or (resend and one.open)]
        await self._send_again(wanted, resend=resend)
        if live:
            log.info("recovered", open=self.open, sent_again=len(wanted))

    async def _send_again(self, runs: Sequence[int], *, resend: bool = False) -> None:
        for start in range(0, len(runs), RECOVER_CHUNK):
            loaded = await self.store.load(runs[start : start + RECOVER_CHUNK])
            for recorded in loaded.values():
                state = fold((r.at, r.events) for r in recorded)
                self.performer.take(state, owed_effects(state, partial(forgets, self.broker) if resend else None))

    # -- how many tickets are with workers ---------------------------------------------------------------------------

    async def _count_with_workers(self, ceiling: Ceiling[Owed]) -> None:
        """What plans of Fluxo C had with workers when this process began."""
        query = Query(status=(Status.PENDENTE, Status.EM_EXECUCAO), tipo=TIPO, limit=RECOVER_CHUNK)
        while found := await self.store.find(query):
            for recorded in (await self.store.load([one.run for one in found])).values():
                ceiling.with_workers(fold((r.at, r.events) for r in recorded), partial(forgets, self.broker))
            query.before_run = found[-1].run

    def _share(self, members: int) -> None:
        """Each process keeps to its part, and has at least one."""
        if self.performer.ceiling is not None and self._ceiling is not None:
            self.performer.ceiling.limit = max(1, self._ceiling // max(1, members))

    async def _ceiling_loop(self) -> None:
        """While tickets wait: others may have ended what we sent, and who waits becomes more urgent."""
        while True:
            await asyncio.sleep(CEILING_AGAIN)
            if self.replica is not None:
                self._share(len(await self.replica.members()))
            ceiling = self.performer.ceiling
            if ceiling is None or not len(ceiling):
                continue
            for run in ceiling.runs:
                state = await self.handler.state(run)
                if state is not None:
                    ceiling.settle(state)
            self.performer.rescore()

    # -- one of several ----------------------------------------------------------------------------------------------

    def _wake(self, runs: Sequence[int]) -> None:
        self.enqueue([Work(Wake(), run=run) for run in runs])

    def _opened(self, count: int) -> None:
        self.open = count

    def _joined(self, member: Member) -> None:
        self.numbers.node = member.slot

    def _put_off(self, works: Sequence[Work]) -> None:
        """Whoever was woken too early, because another process has moved it meanwhile, is woken again in time."""
        for work in works:
            if isinstance(work.command, Wake):
                state = self.handler.cache.get(work.run)
                self.timers.set(work.run, None if state is None else state.wake_at())
        self._rearm()
