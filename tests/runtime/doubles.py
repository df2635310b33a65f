"""Stand-ins that tests of the runtime steer: a clock, a store and a broker that fail on request, a direct engine."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from core.given import T0
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.events import OrchestrationStarted
from oraculo.core.state import Orchestration
from oraculo.errors import BrokerUnavailableError, BusyError, SinkUnavailableError, StoreUnavailableError
from oraculo.ports.broker import Outgoing, PublishReport, Settlement
from oraculo.ports.journal import Batch
from oraculo.ports.notifier import Notice, Outcome, Receipt
from oraculo.ports.projection import Entry, Sink
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.work import Outcome as WorkOutcome
from oraculo.ports.work import Work
from oraculo.runtime.ids import RunNumbers
from oraculo.runtime.kernel.commands import Group
from oraculo.runtime.kernel.handler import Handler
from oraculo.runtime.kernel.states import States
from oraculo.runtime.kernel.transaction import Transaction


class ManualClock:
    """Stands still until it is told otherwise."""

    def __init__(self) -> None:
        self._now = T0

    def now(self) -> datetime:
        return self._now

    def not_before(self, at: datetime) -> None:
        self._now = max(self._now, at)

    def follow(self, at: datetime) -> None:
        self._now = at

    def forward(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


class FailingStore(SqliteStore):
    """A real store in memory whose next `failures` appends are refused."""

    def __init__(self) -> None:
        super().__init__(":memory:", threads=False)
        self.failures = 0
        self.batches: list[Batch] = []

    async def append(self, batch: Batch) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("the disk is full")
        self.batches.append(batch)
        await super().append(batch)


class FailingBroker(MemoryBroker):
    def __init__(self) -> None:
        super().__init__()
        self.failures = 0
        self.settle_failures = 0
        self.refused = asyncio.Event()  # a message was refused

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        if self.failures:
            self.failures -= 1
            self.refused.set()
            return PublishReport(messages, reason="the broker is away")
        return await super().publish(messages)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        if self.settle_failures:
            self.settle_failures -= 1
            raise BrokerUnavailableError("the broker is away")
        await super().settle(settlements)


class RecordingNotifier:
    """Answers with the receipts it was given, in order, then with success."""

    def __init__(self, *receipts: Receipt) -> None:
        self.receipts = list(receipts)
        self.notices: list[Notice] = []

    async def notify(self, notice: Notice) -> Receipt:
        self.notices.append(notice)
        return self.receipts.pop(0) if self.receipts else Receipt(Outcome.DELIVERED, "200")


class Copies(Sink):
    """Keeps a copy of all that it is given; its next `failures` calls are refused."""

    def __init__(self, name: str = "cópias") -> None:
        self.name = name
        self.failures = 0
        self.seen: list[tuple[int, int]] = []  # run, first event of the step
        self.states: list[Orchestration] = []
        self.events: list[SystemEvent] = []
        self.wanted: Callable[[OrchestrationStarted], bool] = lambda _started: True
        self.closed = False

    def wants(self, started: OrchestrationStarted) -> bool:
        return self.wanted(started)

    async def record(self, entries: Iterable[Entry]) -> None:
        taken = [(entry.step.run, entry.step.first, copy.deepcopy(entry.state)) for entry in entries]
        self._refuse()
        self.seen += [(run, first) for run, first, _ in taken]
        self.states += [state for _, _, state in taken]

    async def note(self, events: Sequence[SystemEvent]) -> None:
        self._refuse()
        self.events += events

    async def close(self) -> None:
        self.closed = True

    def _refuse(self) -> None:
        if self.failures:
            self.failures -= 1
            raise SinkUnavailableError("away")


class DirectEngine:
    """The part of an engine that takes work: handled at once, by one transaction per call."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.numbers = RunNumbers()
        self.states = States(store)
        self.handler = Handler(store, clock, self.states)
        self.busy = False
        self.handled: list[Transaction] = []

    def admit(self, count: int = 1) -> None:
        if self.busy:
            raise BusyError("full")

    def next_run(self) -> int:
        return self.numbers.next(self.clock.now())

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[WorkOutcome]:
        group = Group(len(works), asyncio.get_running_loop().create_future(), piecewise)
        for index, work in enumerate(works):
            work.group, work.index = group, index
        with contextlib.suppress(StoreUnavailableError):  # the group has it
            self.handled.append(await self.handler.handle(works))
        return await group.future
