"""Server-Sent Events over a real socket: complete, resumable, and gone when nobody listens."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from api.conftest import API, BOTH, ONE, CurlWorker, assert_problem, client_of, serving
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from waiting import DEADLINE_S, until

URL = f"{API}/orchestrations"


async def listen(client: httpx2.AsyncClient, name: str, most: int = 10_000, **options: Any) -> list[dict[str, str]]:
    """Up to `most` events, then the connection is closed."""
    events: list[dict[str, str]] = []
    current: dict[str, str] = {}
    async with client.stream("GET", f"{URL}/{name}/stream", timeout=20, **options) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        async for line in response.aiter_lines():
            if line:
                field, _, value = line.partition(": ")
                current[field] = value
            elif current:
                if "event" in current:
                    events.append(current)
                    if len(events) == most:
                        break
                current = {}
    return events


async def journal(client: httpx2.AsyncClient, name: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = (await client.get(f"{URL}/{name}/events")).json()["events"]
    return events


async def test_all_of_it_as_it_happens(served: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    worker = CurlWorker(served)
    await served.post(URL, json={**BOTH, "correlation_id": "abc"})
    listening = asyncio.create_task(listen(served, "abc"))
    await until(lambda: bool(oraculo.kernel_ports.watchers._watchers))
    await worker.do("escavador_youtube", dados="a\nb")
    await worker.do("escavador_blog")
    await worker.do("executador_relatorio")
    events = await listening
    assert events[-1]["event"] == "fim"
    assert json.loads(events[-1]["data"]) == (await served.get(f"{URL}/abc/result")).json()
    told = [json.loads(event["data"]) for event in events[:-1]]
    assert told == await journal(served, "abc")
    assert [event["id"] for event in events[:-1]] == [str(one["seq"]) for one in told]
    assert [event["event"] for event in events[:-1]] == [one["evento"] for one in told]


async def test_resumed_without_a_gap_at_every_place(served: httpx2.AsyncClient) -> None:
    await served.post(URL, json={**ONE, "correlation_id": "abc"})
    await CurlWorker(served).do("escavador_youtube")
    whole = await listen(served, "abc")
    for place in range(1, len(whole) - 1):
        before = await listen(served, "abc", most=place)
        after = await listen(served, "abc", headers={"Last-Event-ID": before[-1]["id"]})
        assert before + after == whole
        assert await listen(served, "abc", params={"after": before[-1]["id"]}) == after
    over = await listen(served, "abc", headers={"Last-Event-ID": str(len(whole))})
    assert [event["event"] for event in over] == ["fim"]


async def test_resumed_while_it_runs(served: httpx2.AsyncClient) -> None:
    worker = CurlWorker(served)
    await served.post(URL, json={**BOTH, "correlation_id": "abc"})
    first = await listen(served, "abc", most=1)
    await worker.do("escavador_youtube")
    resumed = asyncio.create_task(listen(served, "abc", headers={"Last-Event-ID": first[-1]["id"]}))
    await worker.do("escavador_blog")
    await worker.do("executador_relatorio")
    told = [json.loads(event["data"]) for event in [*first, *await resumed]]
    assert told[:-1] == await journal(served, "abc")


async def test_the_header_wins_over_after(served: httpx2.AsyncClient) -> None:
    await served.post(URL, json={**ONE, "correlation_id": "abc"})
    await served.post(f"{URL}/abc/cancel")
    events = await listen(served, "abc", headers={"Last-Event-ID": "1"}, params={"after": 0})
    assert events[0]["id"] == "2"


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "1 2", "9" * 17, "²"])
async def test_garbage_last_event_id(client: httpx2.AsyncClient, last: str) -> None:
    await client.post(URL, json={**ONE, "correlation_id": "abc"})
    headers = [(b"Last-Event-ID", last.encode("utf-8"))]
    assert_problem(await client.get(f"{URL}/abc/stream", headers=headers), 400, "invalid_last_event_id")


async def test_unknown_is_told_before_the_stream_begins(served: httpx2.AsyncClient) -> None:
    assert_problem(await served.get(f"{URL}/nope/stream"), 404, "unknown_id")


async def test_heartbeats(oraculo: Oraculo) -> None:
    app = create_app(oraculo, heartbeat_seconds=0.01)
    async with serving(app) as url, httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        await client.post(URL, json={**ONE, "correlation_id": "abc"})
        async with client.stream("GET", f"{URL}/abc/stream", timeout=20) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "retry: 1000"
            beats = 0
            while beats < 3:
                beats += (await anext(lines)).startswith(":")


async def test_listeners_who_leave_are_forgotten(served: httpx2.AsyncClient, oraculo: Oraculo, app: Any) -> None:
    await served.post(URL, json={**ONE, "correlation_id": "abc"})
    listening = [asyncio.create_task(listen(served, "abc")) for _ in range(5)]
    await until(lambda: len(app.state.waits) == 5)
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    await until(lambda: not oraculo.kernel_ports.watchers._watchers and not len(app.state.waits))


async def test_the_server_stops_although_somebody_listens(oraculo: Oraculo) -> None:
    app = create_app(oraculo)
    async with client_of(app) as client:
        await client.post(URL, json={**ONE, "correlation_id": "abc"})
    async with (
        asyncio.timeout(DEADLINE_S),
        serving(app) as url,
        httpx2.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        listening = asyncio.create_task(listen(client, "abc"))
        await until(lambda: len(app.state.waits) == 1)
        app.state.waits.stop()
        assert "fim" not in [event["event"] for event in await listening]
