"""Breakers of several processes: what one of them reads in the journal, about the probe that another has chosen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.breaking import BreakerRules, DestinationBreaker, Order
from oraculo.core.commands import ConfirmDispatch, RecordResult, Start
from oraculo.core.plan import Plan, Task
from oraculo.core.state import Orchestration
from oraculo.core.step import step
from oraculo.core.vocabulary import Kind
from oraculo.ports.journal import Recorded
from oraculo.ports.projection import Entry
from oraculo.runtime.breakers import BreakerBook, BreakerSink

AT = datetime(2026, 1, 1, tzinfo=UTC)
QUEUE = "escavador_a"
RULES = BreakerRules(failures=1, probe_after=timedelta(0), probe_after_max=timedelta(0))
PROBE: Order = (7, 0, 1)


class FixedClock:
    def now(self) -> datetime:
        return AT


async def test_a_probe_of_another_process_counts_however_quickly_it_is_answered(tmp_path: Path) -> None:
    """The process that reads the journal has not looked since the probe went out: that is up to a second ago."""
    async with SqliteStore(str(tmp_path / "o.db")) as store:
        reads, sends = (BreakerBook(store, FixedClock(), RULES) for _ in range(2))
        await store.put_breaker(DestinationBreaker(QUEUE, failures=1, opened_at=AT, probe_at=AT, version=1))
        await reads.refresh()

        async def candidate(_queue: str) -> Order:
            return PROBE

        sends.listen(lambda: None, candidate)
        await sends._look()
        assert sends.lets_through(QUEUE, PROBE) and not reads.lets_through(QUEUE, PROBE)
        await BreakerSink(reads).record(answered_probe())
        assert reads.open == []
        assert [one.is_open for one in await store.breakers()] == [False]


def answered_probe() -> list[Entry]:
    plan = Plan((Task(Kind.COLETA, "a", QUEUE, b"{}", timedelta(seconds=9), 1),), (), None)
    state: Orchestration | None = None
    found = []
    commands = (
        Start(PROBE[0], "x", plan, "f"),
        ConfirmDispatch([(0, 1)]),
        RecordResult(True, b"1", [], position=0, attempt=1, digest=1),
    )
    for number, command in enumerate(commands, 1):
        done = step(state, command, AT)
        state = done.state
        found.append(Entry(Recorded(PROBE[0], done.first, AT, done.events, position=number), state))
    return found
