"""Many pieces of work, one transaction: outcomes, conflicts, failures of the store, and one bad apple."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest

from core.given import RUN, at, coleta, plan
from oraculo.core.commands import Cancel, ConfirmDispatch, RecordDelivery, RecordResult, Start, Wake
from oraculo.core.plan import Plan
from oraculo.core.state import fold
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind, Status
from oraculo.errors import StoreUnavailableError
from oraculo.ports.catalogue import Query
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Key, LockRequest
from oraculo.ports.work import Fate, Work
from oraculo.runtime.kernel.cache import StateCache
from runtime.doubles import DirectEngine, FailingStore, ManualClock

QUEUE = "orquestrador_resultados"


def start(name: str = "a", run: int = RUN, wanted: Plan | None = None, fingerprint: str = "f", **more: object) -> Work:
    return Work(Start(run, name, wanted or plan(1), fingerprint), name, **more)


def answer(name: str = "a", *, run: int | None = RUN, position: int = 0, ok: bool = True, digest: int = 1) -> Work:
    ticket = None if run is None else ticket_id(run, position)
    command = RecordResult(ok, b"1", [], ticket=ticket, kind=Kind.COLETA, digest=digest)
    return Work(command, name, queue=QUEUE, body=b"%d" % digest)


async def fates(engine: DirectEngine, *works: Work) -> list[str]:
    return [outcome.fate.value for outcome in await engine.submit(list(works))]


class TestOutcomes:
    async def test_a_whole_orchestration_in_one_transaction(self, engine: DirectEngine, store: FailingStore) -> None:
        assert await fates(engine, start(), answer()) == ["applied", "applied"]
        assert len(store.batches) == 1
        assert json.loads(await store.result(RUN) or b"")["status"] == "concluida"
        assert [closed.state.run for closed in engine.handled[0].closed] == [RUN]

    async def test_nothing_to_do_writes_nothing(self, engine: DirectEngine, store: FailingStore) -> None:
        await fates(engine, start())
        assert (
            await fates(engine, Work(), Work(Wake(), run=RUN), Work(ConfirmDispatch([(0, 2)]), run=RUN)) == ["idle"] * 3
        )
        assert len(store.batches) == 1

    async def test_duplicates_and_late_answers_are_counted_with_their_queue(
        self, engine: DirectEngine, store: FailingStore
    ) -> None:
        await fates(engine, start(), answer(digest=5))
        assert await fates(engine, answer(digest=5), answer(digest=6)) == ["duplicate", "duplicate"]
        await fates(engine, start("b", RUN + 1), Work(Cancel(), "b"))
        assert await fates(engine, answer("b", run=RUN + 1)) == ["late"]
        assert await store.counts() == {(QUEUE, "applied"): 1, (QUEUE, "duplicate"): 2, (QUEUE, "late"): 1}

    async def test_an_unknown_correlation_id_is_quarantined_with_its_bytes(
        self, engine: DirectEngine, store: FailingStore
    ) -> None:
        (outcome,) = await engine.submit([answer("ninguém")])
        assert (outcome.fate, outcome.reason) == (Fate.QUARANTINED, "unknown_correlation")
        (dead,) = await store.dead_letters()
        assert (dead.queue, dead.reason, dead.body, dead.correlation_id) == (
            QUEUE,
            "unknown_correlation",
            b"1",
            "ninguém",
        )

    @pytest.mark.parametrize(
        ("work", "reason"),
        [
            (answer(run=None), "ambiguous"),
            (answer(run=RUN + 9), "unknown_ticket"),
            (
                Work(RecordResult(True, b"1", [], ticket=ticket_id(RUN, 0), attempt=7), "a", queue=QUEUE, body=b"x"),
                "wrong_attempt",
            ),
        ],
    )
    async def test_refused_answers_are_quarantined_with_the_reason(
        self, engine: DirectEngine, store: FailingStore, work: Work, reason: str
    ) -> None:
        await fates(engine, start(wanted=plan(2)))
        assert [o.reason for o in await engine.submit([work])] == [reason]
        (dead,) = await store.dead_letters()
        assert dead.reason == reason and dead.detail
        assert await store.counts() == {(QUEUE, "quarantined"): 1}

    async def test_commands_to_nobody(self, engine: DirectEngine) -> None:
        assert await fates(engine, Work(Cancel(), "x"), Work(Wake(), run=5)) == ["unknown", "unknown"]

    async def test_everything_received_is_counted_exactly_once(self, engine: DirectEngine, store: FailingStore) -> None:
        await fates(engine, start(wanted=plan(3)))
        works = [
            answer(position=0), answer(position=0), answer(position=1, digest=2), answer("x"), answer(run=RUN + 1),
            Work(dead=DeadLetter(QUEUE, "not_json", "", b""), queue=QUEUE),
        ]  # fmt: skip
        await fates(engine, *works)
        assert sum((await store.counts()).values()) == len(works)
        assert len(await store.dead_letters()) == (await store.counts())[QUEUE, "quarantined"] == 3

    async def test_an_empty_message_is_kept_as_it_was(self, engine: DirectEngine, store: FailingStore) -> None:
        await fates(engine, Work(dead=DeadLetter(QUEUE, "not_json", "", b""), queue=QUEUE))
        assert [dead.body for dead in await store.dead_letters()] == [b""]


class TestStart:
    async def test_the_same_request_again_is_the_same_run(self, engine: DirectEngine, store: FailingStore) -> None:
        await fates(engine, start())
        for cached in (True, False):
            if not cached:
                engine.states.cache.drop(RUN)
            (outcome,) = await engine.submit([start(run=RUN + 5)])
            assert (outcome.fate, outcome.run, outcome.correlation_id) == (Fate.DUPLICATE, RUN, "a")
        assert len(await store.find(Query())) == 1

    async def test_another_request_with_the_same_id_is_a_conflict(self, engine: DirectEngine) -> None:
        await fates(engine, start())
        (outcome,) = await engine.submit([start(run=RUN + 5, fingerprint="g")])
        assert (outcome.fate, outcome.reason, outcome.run) == (Fate.CONFLICT, "correlation_id", RUN)

    async def test_a_conflict_that_came_as_a_message_is_quarantined(
        self, engine: DirectEngine, store: FailingStore
    ) -> None:
        await fates(engine, start())
        work = start(run=RUN + 5, fingerprint="g", queue="orquestrador_requisicoes", body=b"raw")
        assert await fates(engine, work) == ["quarantined"]
        assert [(dead.reason, dead.body) for dead in await store.dead_letters()] == [("conflict", b"raw")]

    async def test_both_in_one_transaction(self, engine: DirectEngine) -> None:
        works = [start(), start(run=RUN + 1), start(run=RUN + 2, fingerprint="g")]
        assert await fates(engine, *works) == ["applied", "duplicate", "conflict"]

    async def test_an_idempotency_key(self, engine: DirectEngine, store: FailingStore) -> None:
        def keyed(run: int, fingerprint: str = "f") -> Work:
            return start(f"c{run}", run, fingerprint=fingerprint, key=Key("k", fingerprint, run))

        assert await fates(engine, keyed(RUN), keyed(RUN + 1)) == ["applied", "duplicate"]
        engine.states.cache.drop(RUN)
        repeated, other = await engine.submit([keyed(RUN + 2), keyed(RUN + 3, "g")])
        assert (repeated.fate, repeated.run, repeated.correlation_id) == (Fate.DUPLICATE, RUN, f"c{RUN}")
        assert (other.fate, other.reason) == (Fate.CONFLICT, "Idempotency-Key")
        assert len(await store.find(Query())) == 1


class TestStoreFails:
    async def test_nobody_is_told_anything_but_the_failure_and_nothing_changed(
        self, engine: DirectEngine, store: FailingStore
    ) -> None:
        await fates(engine, start(wanted=plan(2)))
        before = (await engine.states.state(RUN)).version
        store.failures = 1
        with pytest.raises(StoreUnavailableError):
            await engine.submit([answer(position=0), answer("x")])
        assert (await engine.states.state(RUN)).version == before
        assert (await store.counts(), await store.dead_letters()) == ({}, [])
        assert await fates(engine, answer(position=0)) == ["applied"]

    async def test_a_start_that_failed_can_be_tried_again(self, engine: DirectEngine, store: FailingStore) -> None:
        store.failures = 1
        with pytest.raises(StoreUnavailableError):
            await engine.submit([start()])
        assert await engine.states.state(RUN) is None
        assert await fates(engine, start(run=RUN + 1)) == ["applied"]

    async def test_a_store_that_cannot_be_read(self, engine: DirectEngine, store: FailingStore) -> None:
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await engine.submit([answer("x")])

    async def test_the_state_is_not_shown_before_it_is_durable(self, store: FailingStore, clock: ManualClock) -> None:
        arrived, go = asyncio.Event(), asyncio.Event()

        class Slow(FailingStore):
            async def append(self, batch) -> None:
                arrived.set()
                await go.wait()
                await super().append(batch)

        async with Slow() as slow:
            engine = DirectEngine(slow, clock)
            submitting = asyncio.create_task(engine.submit([start()]))
            await arrived.wait()
            reading = asyncio.create_task(engine.states.state(RUN))
            await asyncio.sleep(0)
            assert not reading.done()
            go.set()
            await submitting
            assert (await reading).run == RUN


class TestOneBadApple:
    """A step that raises is a bug of ours: its orchestration sits this one out, everybody else goes on."""

    BROKEN = ConfirmDispatch([([], 1)])  # type: ignore[list-item]  # no rule can handle it

    async def test_neighbours_are_not_disturbed(self, engine: DirectEngine, store: FailingStore) -> None:
        await fates(engine, start("a"), start("b", RUN + 1))
        works = [Work(self.BROKEN, run=RUN), answer("b", run=RUN + 1)]
        assert await fates(engine, *works) == ["quarantined", "applied"]
        assert (await store.summary("b")).status is Status.CONCLUIDA
        assert (await store.summary("a")).status is Status.PENDENTE

    async def test_messages_of_the_same_orchestration_are_given_back_and_not_counted(
        self, engine: DirectEngine, store: FailingStore
    ) -> None:
        await fates(engine, start(wanted=plan(3)))
        with pytest.raises(StoreUnavailableError, match="try again"):
            await engine.submit([answer(position=0), Work(self.BROKEN, run=RUN), answer(position=1, digest=2)])
        assert {key: n for key, n in (await store.counts()).items() if n} == {}
        assert (await store.summary("a")).open == 3
        assert await fates(engine, answer(position=0), answer(position=1, digest=2)) == ["applied", "applied"]

    async def test_a_start_in_the_same_breath_leaves_no_key_behind(
        self, engine: DirectEngine, store: FailingStore
    ) -> None:
        with pytest.raises(StoreUnavailableError):
            await engine.submit([start(key=Key("k", "f", RUN)), Work(self.BROKEN, run=RUN)])
        assert (await store.begin(LockRequest(keys=["k"]))).keys == {} and await store.find(Query()) == []
        assert await fates(engine, start(run=RUN + 1, key=Key("k", "f", RUN + 1))) == ["applied"]


class TestCacheAndJournal:
    async def test_what_was_dropped_is_folded_again(self, engine: DirectEngine) -> None:
        await fates(engine, start(wanted=plan(2, 1)))
        for position in (0, 1):
            engine.states.cache.drop(RUN)
            await fates(engine, answer(position=position, digest=position + 1))
        engine.states.cache.drop(RUN)
        assert [t.status.value for t in (await engine.states.state(RUN)).tickets] == [
            "concluida",
            "concluida",
            "pendente",
        ]

    async def test_the_journal_is_the_state_after_every_transaction(
        self, engine: DirectEngine, store: FailingStore, clock: ManualClock
    ) -> None:
        wanted = plan([coleta("a", attempts=2), coleta("b", attempts=2)], 1, fila="avisos")
        for work in (
            start(wanted=wanted), Work(ConfirmDispatch([(0, 1), (1, 1)]), run=RUN), answer(ok=False),
            Work(Wake(), run=RUN), answer(position=1, digest=4), answer(digest=5), answer(position=2, digest=6),
            Work(RecordDelivery(0, 1, True, False), run=RUN),
        ):  # fmt: skip
            clock.forward(3)
            await fates(engine, work)
            recorded = (await store.load([RUN]))[RUN]
            assert fold((r.at, r.events) for r in recorded) == engine.states.cache.get(RUN)
        assert (await store.summary("a")).status is Status.CONCLUIDA

    async def test_what_is_in_memory_says_what_is_owed_no_longer_but_nothing_of_what_came_after_it(
        self, engine: DirectEngine
    ) -> None:
        still = engine.states.still_owed
        assert still(RUN, [(0, 1)]) == [(0, 1)], "nothing is known of it"
        await fates(engine, start(wanted=plan([coleta("a", attempts=3), coleta("b")])))
        assert still(RUN, [(0, 1), (1, 1)]) == [(0, 1), (1, 1)]
        await fates(engine, Work(ConfirmDispatch([(0, 1)]), run=RUN), answer(position=1))
        assert still(RUN, [(0, 1), (1, 1)]) == []
        assert still(RUN, [(0, 2), (7, 1)]) == [(0, 2), (7, 1)], "others may have tried again, and added tickets"

    async def test_the_store_says_what_is_owed_of_a_run_that_is_not_in_memory(self, engine: DirectEngine) -> None:
        owed = engine.states.filter_owed
        assert await owed(RUN, [(0, 1)], running_too=True) == [], "it is not in the store"
        await fates(engine, start(wanted=plan([coleta("a"), coleta("b")])))
        await fates(engine, Work(ConfirmDispatch([(0, 1)]), run=RUN))
        engine.states.cache.drop(RUN)
        assert await owed(RUN, [(0, 1), (1, 1)], running_too=False) == [(1, 1)]
        assert await owed(RUN, [(0, 1), (1, 1)], running_too=True) == [(0, 1), (1, 1)]
        await fates(engine, Work(Cancel("enough"), run=RUN))
        engine.states.cache.drop(RUN)
        assert await owed(RUN, [(0, 1), (1, 1)], running_too=True) == []

    async def test_release_forgets_what_is_finished_with_the_world(self, engine: DirectEngine) -> None:
        await fates(engine, start(), start("b", RUN + 1, wanted=plan(1, fila="f")), answer(), answer("b", run=RUN + 1))
        engine.handler.release(engine.handled[0])
        cache: StateCache = engine.states.cache
        assert (cache.get(RUN), cache.run_of("a")) == (None, None)
        assert cache.get(RUN + 1) is not None


async def test_counts_are_plain_texts_in_the_store(engine: DirectEngine, store: FailingStore) -> None:
    await fates(engine, start(), answer())
    assert Counter(await store.counts()) == {(QUEUE, "applied"): 1}
    assert all(type(verdict) is str for _, verdict in await store.counts())


async def test_times_of_a_step_are_those_of_the_clock(engine: DirectEngine, clock: ManualClock) -> None:
    clock.forward(12)
    await fates(engine, start())
    state = await engine.states.state(RUN)
    assert (state.started_at, state.deadline) == (at(12), at(612))
