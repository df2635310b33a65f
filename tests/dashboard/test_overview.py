"""The overview: figures, charts, what waits for a decision and what needs attention."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from api.conftest import app, client, oraculo  # noqa: F401
from dashboard.test_pages import HTML
from oraculo.core.vocabulary import Status
from oraculo.dashboard.charts import area, quantile, rounded_up, spark
from oraculo.dashboard.kept import Kept
from oraculo.dashboard.samples import RunSample, latency
from oraculo.ports.catalogue import Summary
from oraculo.runtime.queue_history import HISTORY_MAX_LOOKS, HISTORY_MAX_QUEUES, QueueHistory
from oraculo.runtime.queue_status import QueueStanding
from waiting import until

START = datetime(2026, 11, 15, 12, tzinfo=UTC)


async def test_decisions_and_concerns_stand_on_the_first_page(client: httpx2.AsyncClient) -> None:  # noqa: F811
    calm = (await client.get("/", headers=HTML)).text
    assert "No orchestration waits for a decision." in calm and ">nothing</span>" in calm
    tasks = {"ok": {"espera": {"aprovacao": {"pergunta": "pagar <b>5</b>?"}}}}
    await client.post("/api/v1/orchestrations", json={"tarefas": tasks, "correlation_id": "pagamento"})
    await client.post("/api/v1/orchestrations", json={"coletas": [{"fonte": "ninguem"}], "correlation_id": "so"})

    async def asked() -> str:
        text = (await client.get("/ui/overview/figures", headers=HTML)).text
        return text if "pagar" in text else ""

    shown = await until(asked)
    assert "pagar &lt;b&gt;5&lt;/b&gt;?" in shown and 'href="/runs/pagamento"' in shown
    assert "escavador_ninguem: 1 waiting, no worker takes it" in shown
    in_portuguese = await client.get("/", headers={**HTML, "Accept-Language": "pt-BR"})
    assert "Esperando aprovação" in in_portuguese.text and "Ajustar · 1 min" in in_portuguese.text


@pytest.mark.parametrize("window", ["", "15m", "24h", "7d", "3m", "1m", "<x>", "1000d"])
async def test_the_span_of_time_is_asked_for_or_fitted(client: httpx2.AsyncClient, window: str) -> None:  # noqa: F811
    shown = (await client.get(f"/?window={window}", headers=HTML)).text
    fits = window not in ("15m", "24h", "7d", "3m", "1m")
    assert ("Fit · 7 days" in shown) is fits  # nothing began in the last day
    assert ((await client.get(f"/ui/overview/points?window={window}")).json()["ids"]) == []


def ran(number: int, seconds: float | None) -> Summary:
    closed = None if seconds is None else START + timedelta(seconds=seconds)
    return Summary(number, str(number), Status.CONCLUIDA, None, START, closed, 1, 0, 0, "", 1)


def test_latency_is_of_what_has_ended() -> None:
    slices = [[], [ran(n, n) for n in range(1, 21)], [ran(30, None)]]
    found = latency(RunSample(START, START, slices, []))
    assert (found.p50, found.p95, found.top) == (10_000, 19_000, 20_000)
    assert found.bars == [(1, 5.0, 45.0, 50.0, 50.0)]
    assert latency(RunSample(START, START, [[], [ran(1, None)]], [])).p95 is None


def test_axes_end_at_round_numbers() -> None:
    assert [rounded_up(value) for value in (0, 1, 3, 7, 11, 450, 999)] == [1, 1, 5, 10, 20, 500, 1000]
    assert quantile([1.0], 0.95) == 1.0
    assert area([0, 5, 10], 10).line == "0,100 1,50 2,0"
    assert area([], 10).area == "" and spark([0, 0]) == "0,100 1,100"


def test_history_of_queues_has_a_bound() -> None:
    history = QueueHistory()
    for number in range(HISTORY_MAX_LOOKS + 10):
        history.look([QueueStanding("a", number), *([QueueStanding("gone", 1)] if number < 5 else [])])
    assert [one.waiting for one in history.of("a")] == list(range(10, HISTORY_MAX_LOOKS + 10))
    assert history.queues == ["a"]
    history.look(QueueStanding(f"q{number}") for number in range(2 * HISTORY_MAX_QUEUES))
    assert len(history.queues) == HISTORY_MAX_QUEUES and history.of("nada") == []


async def test_pages_that_ask_together_share_an_answer_and_a_failure_is_not_kept() -> None:
    at, asked = 0.0, 0
    kept = Kept(lambda: at)

    async def work() -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        if asked == 1:
            raise ValueError("the store is away")
        return asked

    with pytest.raises(ValueError, match="away"):
        await kept.get(("a",), work)
    assert await asyncio.gather(*(kept.get(("a",), work) for _ in range(5))) == [2] * 5
    at = 60.0
    assert await kept.get(("a",), work) == 3
