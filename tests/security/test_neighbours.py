"""What strangers hold open costs its owner: 1,100 connections with half a header and 200 bodies that do not come,
beside a neighbour who submits. Wall time says nothing here; what is compared is the processor time that a submission
takes, alone and beside them, in turns. `make bench-neighbours` measures its p99."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from api.conftest import API, ONE, oraculo, serving  # noqa: F401
from oraculo.api.app import create_app
from oraculo.api.connections import connection_limit
from oraculo.service import Oraculo
from waiting import until

HALF_OPEN_CONNECTIONS = 1100
SLOW_BODIES = 200
TURNS = 6
SUBMISSIONS = 20
RATIO_MAX = 2.0
HALF = b"POST /api/v1/orchestrations HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SLOW = HALF + b"Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"
PATIENCE_S = 60.0


@asynccontextmanager
async def held(url: str, count: int, said: bytes) -> AsyncIterator[None]:
    """Connections that said this and nothing more; the server has read it."""
    host, _, port = url.removeprefix("http://").partition(":")
    writers = [(await asyncio.open_connection(host, int(port)))[1] for _ in range(count)]
    for writer in writers:
        writer.write(said)
        await writer.drain()
    try:
        yield
    finally:
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def cost_s(client: httpx2.AsyncClient) -> float:
    """Processor time of a submission: the quickest of some."""
    best = float("inf")
    for _ in range(SUBMISSIONS):
        began = time.thread_time()
        answer = await client.post(f"{API}/orchestrations", json=ONE)
        best = min(best, time.thread_time() - began)
        assert answer.status_code == 202, answer.text
    return best


@pytest.mark.parametrize(
    ("count", "said"), [(HALF_OPEN_CONNECTIONS, HALF), (SLOW_BODIES, SLOW)], ids=["half-open", "slow bodies"]
)
async def test_what_is_held_open_costs_a_neighbour_nothing(
    oraculo: Oraculo,  # noqa: F811
    count: int,
    said: bytes,
) -> None:
    connection_limit()  # more descriptors for this process, which is server and strangers in one
    app = create_app(oraculo)
    async with (
        serving(app) as url,
        httpx2.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_S) as client,
    ):
        await cost_s(client)
        alone, beside = [], []
        for _ in range(TURNS):
            alone.append(await cost_s(client))
            async with held(url, count, said):
                if said is SLOW:
                    await until(lambda: app.state.body_budget.used == count)
                beside.append(await cost_s(client))
                assert (await client.get("/health")).status_code == 200
            if min(beside) <= RATIO_MAX * min(alone):
                break
            if said is SLOW:
                await until(lambda: app.state.body_budget.used == 0)
    assert min(beside) <= RATIO_MAX * min(alone), (alone, beside)
