"""Dead-letter queues become rows, with the reason, the origin and the bytes; nothing is lost on the way."""

from __future__ import annotations

import orjson
import pytest

from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.ports.broker import Delivery, Outgoing
from oraculo.ports.observer import group_by_type
from oraculo.runtime import dead_letters as module
from oraculo.runtime.dead_letters import DeadLetterCollector
from oraculo.wire import names, quarantine, views
from runtime.doubles import DirectEngine, FailingBroker, FailingStore

QUEUE = "escavador_youtube"
DLQ = "escavador_youtube.dlq"
ORDER = {
    "correlation_id": "abc123",
    "tipo_evento": "iniciar_coleta",
    "payload": {"fonte": "youtube"},
    "timestamp": "2025-10-14T12:00:00Z",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUEUE_INTERVAL_S", 0.0)
    monkeypatch.setattr(module, "ROUND_INTERVAL_S", 0.0)


@pytest.fixture
def drain(broker: FailingBroker, engine: DirectEngine) -> DeadLetterCollector:
    return DeadLetterCollector(broker, lambda: {QUEUE, names.RESULTS}, engine.submit)


async def test_what_a_worker_could_not_read(
    drain: DeadLetterCollector, broker: FailingBroker, store: FailingStore
) -> None:
    delivery = Delivery(QUEUE, b"\xff not json", 1, headers={"h": "1"})
    await broker.publish([quarantine.outgoing(delivery, "unreadable_order", "line one\nline two")])
    assert await drain.round() == 1
    (letter,) = await store.dead_letters()
    assert (letter.queue, letter.reason, letter.body) == (QUEUE, "unreadable_order", b"\xff not json")
    assert letter.detail == "line one line two" and letter.headers["h"] == "1"
    assert broker.depths()[DLQ] == (0, 0)
    assert await store.counts() == {(DLQ, "quarantined"): 1}


async def test_what_the_broker_put_there_by_itself(
    drain: DeadLetterCollector, broker: FailingBroker, store: FailingStore
) -> None:
    headers = {"x-first-death-queue": QUEUE, "x-first-death-reason": "delivery_limit"}
    await broker.publish([Outgoing(DLQ, b"a", "", headers)])
    assert await drain.round() == 1
    (letter,) = await store.dead_letters()
    assert (letter.queue, letter.reason) == (QUEUE, "delivery_limit")


async def test_what_somebody_put_there_without_a_word(
    drain: DeadLetterCollector, broker: FailingBroker, store: FailingStore
) -> None:
    await broker.publish([Outgoing(DLQ, b"a", "")])
    assert await drain.round() == 1
    (letter,) = await store.dead_letters()
    assert (letter.queue, letter.reason) == (QUEUE, "dead_lettered") and "without saying why" in letter.detail


@pytest.mark.parametrize(
    ("body", "headers", "attempts"),
    [
        (b"not json", {}, 1),
        (b"not json", {"oraculo-tentativas": "77"}, 1),
        (orjson.dumps({**ORDER, "tentativa": 3}), {}, 3),
        (orjson.dumps(ORDER), {}, 1),
    ],
)
async def test_it_says_how_many_attempts_it_had(
    drain: DeadLetterCollector,
    broker: FailingBroker,
    store: FailingStore,
    body: bytes,
    headers: dict[str, str],
    attempts: int,
) -> None:
    await broker.publish([Outgoing(DLQ, body, "", headers)])
    await drain.round()
    (letter,) = await store.dead_letters()
    assert views.dead_letter(letter)["tentativas"] == attempts


async def test_many(drain: DeadLetterCollector, broker: FailingBroker, store: FailingStore) -> None:
    await broker.publish([Outgoing(f"{names.RESULTS}.dlq", b"%d" % n, "") for n in range(250)])
    assert await drain.round() == 250
    assert len({letter.body for letter in await store.dead_letters(limit=1000)}) == 250
    assert await drain.round() == 0


async def test_a_store_that_is_away_loses_none(
    drain: DeadLetterCollector, broker: FailingBroker, store: FailingStore
) -> None:
    await broker.publish([Outgoing(DLQ, b"a", "")])
    store.failures = 1
    assert await drain.round() == 0
    assert await store.dead_letters() == []
    assert await drain.round() == 1
    assert [letter.body for letter in await store.dead_letters()] == [b"a"]


async def test_a_dead_letter_of_a_dead_letter_queue_that_nobody_knows_stays(
    drain: DeadLetterCollector, broker: FailingBroker, store: FailingStore
) -> None:
    await broker.publish([Outgoing("alheia.dlq", b"a", "")])
    assert await drain.round() == 0 and broker.depths()["alheia.dlq"] == (1, 0)


@pytest.mark.parametrize(
    ("headers", "queue", "reason"),
    [
        ({"oraculo-motivo": "Drop Tables;", "oraculo-origem": "../etc"}, QUEUE, "dead_lettered"),
        ({"oraculo-motivo": "x" * 5000, "oraculo-origem": "q" * 5000}, QUEUE, "dead_lettered"),
        ({"oraculo-motivo": "", "oraculo-origem": "orquestrador_requisicoes"}, QUEUE, "dead_lettered"),
        ({"oraculo-motivo": "bad_input", "oraculo-detalhe": "a\nb\x00c" * 9000}, QUEUE, "bad_input"),
    ],
)
async def test_headers_that_lie_make_neither_queues_nor_reasons(
    drain: DeadLetterCollector,
    broker: FailingBroker,
    store: FailingStore,
    headers: dict[str, str],
    queue: str,
    reason: str,
) -> None:
    await broker.publish([Outgoing(DLQ, b"a", "", headers)])
    assert await drain.round() == 1
    (letter,) = await store.dead_letters()
    assert (letter.queue, letter.reason) == (queue, reason)
    assert len(letter.detail) <= 1000 and letter.detail.isprintable()


async def test_the_series_of_dead_letters_are_bounded(
    drain: DeadLetterCollector, broker: FailingBroker, engine: DirectEngine
) -> None:
    metrics = Metrics()
    await broker.publish([Outgoing(DLQ, b"a", "", {"oraculo-motivo": f"motivo_{n}"}) for n in range(600)])
    assert await drain.round() == 600
    for handled in engine.handled:
        metrics.saw(handled.batch, group_by_type(handled.batch.steps))
    lines = [
        line for line in metrics.exposition().splitlines() if line.startswith(b"orchestration_dead_letters_total{")
    ]
    assert len(lines) == 502  # and the one that is there from the start
    assert sum(float(line.rpartition(b" ")[2]) for line in lines) == 600
