"""The sink: a batch of the journal → documents of each collection → MongoDB."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from oraculo.adapters.sinks.mongo import collections, documents
from oraculo.adapters.sinks.mongo.writer import BATCH_DOCUMENTS, Writer
from oraculo.core.events import ApprovalAsked, ApprovalGiven, ApprovalRefused, OrchestrationClosed, OrchestrationStarted
from oraculo.core.state import Orchestration
from oraculo.ports.journal import Recorded
from oraculo.ports.projection import Entry, Sink
from oraculo.ports.system_events import SystemEvent
from oraculo.wire import audit

NAME = "mongodb"
MAX_CHAIN_HEADS = 50_000  # chains whose last hash is in memory
_LEDGER_EVENTS = (ApprovalAsked, ApprovalGiven, ApprovalRefused, OrchestrationStarted)

History = Callable[[Sequence[int]], Awaitable[Mapping[int, list[Recorded]]]]


class Touched:
    """What a batch changed of one orchestration; `state` is as it is after the batch."""

    __slots__ = ("closed", "judged", "names", "new", "state", "tickets")

    def __init__(self, state: Orchestration) -> None:
        self.state = state
        self.names = audit.Names(documents.plan_of(state), documents.workflow_of(state), state.correlation_id)
        self.tickets: set[int] = set()
        self.new = self.closed = self.judged = False

    def saw(self, step: Recorded) -> None:
        self.new = self.new or step.first == 1
        self.closed = self.closed or any(isinstance(event, OrchestrationClosed) for event in step.events)
        self.judged = self.judged or any(isinstance(event, _LEDGER_EVENTS) for event in step.events)
        self.tickets |= documents.touched(self.state, step.events)


class MongoAudit(Sink):
    """`history` gives all steps of orchestrations, to find the hash that a chain goes on from."""

    name = NAME

    def __init__(self, writer: Writer, history: History) -> None:
        self.writer = writer
        self._history = history
        self._heads: OrderedDict[int, tuple[int, str]] = OrderedDict()  # run → the next event, the last hash

    async def record(self, entries: Iterable[Entry]) -> None:
        changed: dict[int, Touched] = {}
        steps: list[Recorded] = []
        for entry in entries:
            one = changed.get(entry.step.run)
            if one is None:
                one = changed[entry.step.run] = Touched(entry.state)
            one.saw(entry.step)
            steps.append(entry.step)
        if not steps:
            return
        await self.writer.prepare()
        await self._plans([one.state for one in changed.values() if one.judged])
        for one in changed.values():
            await self._tickets(one)
        await self._workflows(changed.values())
        await self._endings([one.state for one in changed.values() if one.closed])
        await self.writer.insert(collections.CHAIN, await self._records(steps, changed))

    async def note(self, events: Sequence[SystemEvent]) -> None:
        found = [document for document in map(documents.noted, events) if document is not None]
        if found:
            await self.writer.prepare()
            await self.writer.insert(collections.VALIDATIONS, found)

    async def close(self) -> None:
        await self.writer.close()

    async def _plans(self, states: Sequence[Orchestration]) -> None:
        ledger = [one for one in map(documents.ledger, states) if one is not None]
        await self.writer.put(collections.LEDGER, ledger, fresh=True)
        accepted = [one for one in map(documents.accepted, states) if one is not None]
        await self.writer.insert(collections.VALIDATIONS, accepted)

    async def _tickets(self, one: Touched) -> None:
        """Write a wide plan in pieces, so that the event loop is not held up until all of it is a document."""
        positions = sorted(one.tickets)
        for start in range(0, len(positions), BATCH_DOCUMENTS):
            some = list(documents.tickets(one.state, positions[start : start + BATCH_DOCUMENTS]))
            await self.writer.put(collections.TICKETS, some, fresh=one.new)

    async def _workflows(self, changed: Iterable[Touched]) -> None:
        for new in (True, False):
            some = [documents.workflow(one.state) for one in changed if one.new is new]
            await self.writer.put(collections.WORKFLOWS, some, fresh=new)

    async def _endings(self, states: Sequence[Orchestration]) -> None:
        await self.writer.put(collections.RESULTS, [documents.result(state) for state in states], fresh=True)
        found = [incident for state in states for incident in documents.incidents(state)]
        await self.writer.put(collections.INCIDENTS, found, fresh=True)

    # -- the chain ---------------------------------------------------------------------------------------------------

    async def _records(self, steps: Sequence[Recorded], changed: Mapping[int, Touched]) -> list[audit.Record]:
        await self._find_heads(steps)
        made = []
        for step in steps:
            record = audit.record_of(step, changed[step.run].names, self._heads[step.run][1])
            self._heads[step.run] = (record["last_seq"] + 1, record["hash"])
            self._heads.move_to_end(step.run)
            made.append(record)
        while len(self._heads) > MAX_CHAIN_HEADS:
            self._heads.popitem(last=False)
        return made

    async def _find_heads(self, steps: Sequence[Recorded]) -> None:
        """Of the chains that go on with these steps. What is not in memory, or is from a batch that failed, is made
        from the journal again; never taken from MongoDB, where it may have been changed."""
        unknown: dict[int, int] = {}
        seen: set[int] = set()
        for step in steps:
            if step.run in seen:
                continue
            seen.add(step.run)
            if step.first == 1:
                self._heads[step.run] = (1, audit.GENESIS)
            elif self._heads.get(step.run, (0, ""))[0] != step.first:
                unknown[step.run] = step.first
        if not unknown:
            return
        for run, recorded in (await self._history(list(unknown))).items():
            last = audit.GENESIS
            for record in audit.chain([step for step in recorded if step.first < unknown[run]]):
                last = record["hash"]
            self._heads[run] = (unknown[run], last)
