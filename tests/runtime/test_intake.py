"""From a queue to durable: acknowledged after and only after, and poison never blocks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.given import RUN, plan
from oraculo.core.commands import RecordResult, Start
from oraculo.core.plan import Plan
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind
from oraculo.errors import BrokerUnavailableError, BusyError
from oraculo.ports.broker import Outgoing
from oraculo.ports.work import Work
from oraculo.runtime import consumer as module
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.consumer import QueueConsumer
from oraculo.wire import names, strict_json
from runtime.doubles import DirectEngine, FailingBroker, FailingStore
from waiting import DEADLINE_S, until
from wire.strategies import ANYTHING_LIKE_AN_ENVELOPE, bounded
from wire.test_strict_json import REFUSED

QUEUE = names.RESULTS


def result(position: int = 0, *, name: str = "a", run: int = RUN, **payload: Any) -> bytes:
    return json.dumps(
        {
            "correlation_id": name,
            "tipo_evento": "resultado_coleta",
            "payload": {"status": "ok", "dados": {"n": position}, **payload},
            "timestamp": "2025-10-14T12:00:00Z",
            "ticket_id": ticket_id(run, position),
            "tentativa": 1,
        }
    ).encode()


class Desk:
    def __init__(self, broker: FailingBroker, engine: DirectEngine) -> None:
        self.broker, self.engine = broker, engine
        self.intake = QueueConsumer(broker, QUEUE, AnswerReader(), engine.submit)

    async def begin(self, wanted: Plan) -> None:
        await self.engine.submit([Work(Start(RUN, "a", wanted, "f"), "a")])

    async def arrive(self, *bodies: bytes) -> None:
        await self.broker.publish([Outgoing(QUEUE, body, "") for body in bodies])
        await self.intake.take(await self.broker.fetch(QUEUE, limit=1000, wait=0))


@pytest.fixture
def desk(broker: FailingBroker, engine: DirectEngine) -> Desk:
    return Desk(broker, engine)


async def test_a_full_house_leaves_messages_in_their_queue(
    desk: Desk, broker: FailingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FULL_POLL_S", 0.001)
    full = True
    intake = QueueConsumer(broker, QUEUE, AnswerReader(), desk.engine.submit, lambda: full)
    await broker.publish([Outgoing(QUEUE, b"x", "")])
    running = asyncio.create_task(intake.run())
    await asyncio.sleep(0.02)
    assert broker.depths()[QUEUE] == (1, 0) and intake.taken() == 0
    full = False
    await until(lambda: broker.depths()[QUEUE] == (0, 0))
    assert intake.taken() == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class TestResultWork:
    def test_a_result(self) -> None:
        work = AnswerReader()(result(), QUEUE)
        assert isinstance(work.command, RecordResult) and work.command.kind is Kind.COLETA
        assert (work.correlation_id, work.queue, work.body) == ("a", QUEUE, result())

    @pytest.mark.parametrize("what", REFUSED)
    def test_bytes_that_are_no_message(self, what: str) -> None:
        raw, code = REFUSED[what]
        work = AnswerReader()(raw, QUEUE)
        assert work.command is None and work.dead is not None
        assert (work.dead.reason, work.dead.body, work.dead.queue) == (code, raw, QUEUE)

    def test_an_order_in_the_queue_of_results(self) -> None:
        raw = result().replace(b"resultado_coleta", b"iniciar_coleta")
        dead = AnswerReader()(raw, QUEUE).dead
        assert dead is not None and (dead.reason, dead.correlation_id) == ("unexpected_event", "a")

    @given(st.one_of(st.binary(max_size=200), ANYTHING_LIKE_AN_ENVELOPE.map(strict_json.dumps)))
    @bounded
    def test_it_never_raises(self, raw: bytes) -> None:
        work = AnswerReader()(raw, QUEUE)
        assert (work.command is None) != (work.dead is None)


class TestTake:
    async def test_durable_then_acknowledged(self, desk: Desk, store: FailingStore) -> None:
        await desk.begin(plan(2))
        await desk.arrive(result(0), result(1))
        assert desk.broker.depths()[QUEUE] == (0, 0)
        assert (await store.summary("a")).open == 0

    async def test_poison_is_quarantined_beside_its_neighbours_in_one_transaction(
        self, desk: Desk, store: FailingStore
    ) -> None:
        await desk.begin(plan(3))
        before = len(store.batches)
        poison = [b"", b"{", b"\xff\xfe", b"[]", result(name="x"), result(run=RUN + 1), result(erros=5)]
        await desk.arrive(result(0), *poison, result(1), result(0), result(2))
        assert desk.broker.depths()[QUEUE] == (0, 0)
        assert len(store.batches) == before + 1
        assert (await store.summary("a")).open == 0
        dead = await store.dead_letters(limit=100)
        assert sorted(one.body for one in dead) == sorted(poison)
        assert sorted(one.reason for one in dead) == sorted(
            [
                "not_json",
                "not_json",
                "not_json",
                "not_an_object",
                "unknown_correlation",
                "unknown_ticket",
                "invalid_field",
            ]
        )
        assert sum((await store.counts()).values()) == 11

    async def test_not_durable_is_given_back_and_nothing_is_lost(
        self, desk: Desk, store: FailingStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "RETRY_DELAY_S", 0.01)
        await desk.begin(plan(2))
        store.failures = 1
        await desk.arrive(result(0), result(1), b"poison")
        assert (await store.summary("a")).open == 2 and await store.dead_letters() == []
        again = []
        async with asyncio.timeout(DEADLINE_S):
            while len(again) < 3:
                again += await desk.broker.fetch(QUEUE, limit=10, wait=5)
        await desk.intake.take(again)
        assert (await store.summary("a")).open == 0 and len(await store.dead_letters()) == 1

    async def test_a_lost_acknowledgement_makes_a_duplicate_and_no_harm(self, desk: Desk, store: FailingStore) -> None:
        await desk.begin(plan(2))
        desk.broker.settle_failures = 1
        await desk.arrive(result(0))
        await desk.broker.redeliver(QUEUE)
        await desk.intake.take(await desk.broker.fetch(QUEUE, limit=10, wait=0))
        assert await store.counts() == {(QUEUE, "applied"): 1, (QUEUE, "duplicate"): 1}
        assert (await store.summary("a")).open == 1

    async def test_a_busy_engine_gives_back_too(self, broker: FailingBroker) -> None:
        async def busy(works: list[Work]) -> list[Any]:
            raise BusyError("stopping")

        intake = QueueConsumer(broker, QUEUE, AnswerReader(), busy)
        await broker.publish([Outgoing(QUEUE, b"x", "")])
        await intake.take(await broker.fetch(QUEUE, limit=1, wait=0))
        assert len(broker._timers) == 1


async def test_it_runs_for_ever_and_survives_a_broker_that_is_away(
    broker: FailingBroker, engine: DirectEngine, store: FailingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_DELAY_S", 0.01)
    fetch, failures, seen = broker.fetch, [1, 2], asyncio.Event()

    async def flaky(queue: str, *, limit: int, wait: float) -> Any:
        if failures:
            failures.pop()
            raise BrokerUnavailableError("away")
        return await fetch(queue, limit=limit, wait=wait)

    async def submit(works: list[Work]) -> Any:
        outcomes = await engine.submit(works)
        seen.set()
        return outcomes

    monkeypatch.setattr(broker, "fetch", flaky)
    running = asyncio.create_task(QueueConsumer(broker, QUEUE, AnswerReader(), submit).run())
    await broker.publish([Outgoing(QUEUE, b"poison", "")])
    async with asyncio.timeout(DEADLINE_S):
        await seen.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(await store.dead_letters()) == 1


class TestGathering:
    """Answers after which nothing follows wait a moment for others, to be committed together."""

    @pytest.fixture
    def gathering(self, desk: Desk, broker: FailingBroker, monkeypatch: pytest.MonkeyPatch) -> Desk:
        monkeypatch.setattr(module, "GATHER_S", DEADLINE_S)  # what comes decides, not the time
        desk.intake = QueueConsumer(
            broker, QUEUE, AnswerReader(), desk.engine.submit, may_wait=desk.engine.states.only_counts
        )
        return desk

    async def test_three_answers_one_after_the_other_are_one_transaction(
        self, gathering: Desk, store: FailingStore
    ) -> None:
        await gathering.begin(plan(3, 1))
        before = len(store.batches)
        taking = asyncio.create_task(gathering.arrive(result(0)))
        for position in (1, 2):
            await asyncio.sleep(0)
            assert len(store.batches) == before
            await gathering.broker.publish([Outgoing(QUEUE, result(position), "")])
        await taking
        assert len(store.batches) == before + 1
        assert gathering.broker.depths()[QUEUE] == (0, 0)
        assert (await store.summary("a")).open == 1

    async def test_what_decides_waits_for_nobody(self, gathering: Desk, store: FailingStore) -> None:
        await gathering.begin(plan(1, 1))
        await gathering.arrive(result(0))
        await gathering.arrive(result(0, status="erro", dados=None, erros=[{"codigo": "x", "mensagem": "y"}]))
        await gathering.arrive(b"poison")
        assert gathering.broker.depths()[QUEUE] == (0, 0)

    async def test_alone_it_is_recorded_when_the_moment_is_over(
        self, gathering: Desk, store: FailingStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "GATHER_S", 0.001)
        await gathering.begin(plan(2, 1))
        await gathering.arrive(result(0))
        assert gathering.broker.depths()[QUEUE] == (0, 0)
        assert (await store.summary("a")).open == 2

    async def test_a_broker_that_goes_away_meanwhile(
        self, gathering: Desk, store: FailingStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await gathering.begin(plan(2, 1))
        await gathering.broker.publish([Outgoing(QUEUE, result(0), "")])
        taken = await gathering.broker.fetch(QUEUE, limit=10, wait=0)

        async def away(queue: str, *, limit: int, wait: float) -> Any:
            raise BrokerUnavailableError("away")

        monkeypatch.setattr(gathering.broker, "fetch", away)
        await gathering.intake.take(taken)
        assert (await store.summary("a")).open == 2
