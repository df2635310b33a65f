"""An orchestrator on a fresh SQLite file, served in-process (ASGI) and, where it matters, over a real socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI

from oraculo.api.app import create_app
from oraculo.api.connections import ConnectionGuard
from oraculo.service import Oraculo
from oraculo.settings.settings import Settings, load

API = "/api/v1"
ONE = {"coletas": [{"fonte": "youtube", "parametros": {"canal": "x"}}]}
BOTH = {"coletas": [{"fonte": "youtube"}, {"fonte": "blog"}], "execucoes": [{"executador": "relatorio"}]}


def settings_for(folder: Path, **variables: str) -> Settings:
    fast = {"ORACULO_RETRY_BASE_S": "0.01", "ORACULO_RETRY_CAP_S": "0.02"}
    return load({"ORACULO_STORE": f"sqlite:///{folder}/api.db", **fast, **variables}, None)


@asynccontextmanager
async def client_of(app: FastAPI, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://oraculo.test", **options) as client:
        yield client


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    """A real server. The socket listens before the server does, so nobody has to wait for the start."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, http=ConnectionGuard(1000).protocol, ws="none", log_level="critical", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        app.state.waits.stop()
        server.should_exit = True
        await task
        listener.close()


class CurlWorker:
    """A worker that knows nothing but HTTP and JSON."""

    def __init__(self, client: httpx2.AsyncClient, name: str = "curl") -> None:
        self.client = client
        self.name = name

    async def lease(self, queue: str, **options: Any) -> list[dict[str, Any]]:
        body = {"max": 10, "wait": 10, "worker": self.name, **options}
        response = await self.client.post(f"{API}/queues/{quote(queue, safe='')}/lease", json=body)
        assert response.status_code == 200, response.text
        leased: list[dict[str, Any]] = response.json()["mensagens"]
        return leased

    async def take(self, queue: str, count: int) -> list[dict[str, Any]]:
        """Exactly so many; they need not be there at once."""
        taken: list[dict[str, Any]] = []
        while len(taken) < count:
            taken += await self.lease(queue, max=count - len(taken))
        return taken

    async def answer(self, *envelopes: dict[str, Any]) -> dict[str, Any]:
        body: Any = envelopes[0] if len(envelopes) == 1 else list(envelopes)
        response = await self.client.post(f"{API}/results", json=body)
        assert response.status_code == 202, response.text
        document: dict[str, Any] = response.json()
        return document

    async def do(self, queue: str, **payload: Any) -> dict[str, Any]:
        """Lease one, answer it."""
        [one] = await self.lease(queue, max=1)
        return await self.answer(result_of(one["mensagem"], **payload))


def result_of(order: dict[str, Any], *, echo: bool = True, **payload: Any) -> dict[str, Any]:
    """The answer to an order: with ticket_id and tentativa, or with the four required fields only."""
    collecting = order["tipo_evento"] == "iniciar_coleta"
    if collecting:
        content = {"fonte": order["payload"]["fonte"], "status": "ok", "dados": [1], "erros": [], **payload}
    else:
        content = {"resultado": "ok", "arquivo": "relatorio.pdf", **payload}
    envelope = {
        "correlation_id": order["correlation_id"],
        "tipo_evento": "resultado_coleta" if collecting else "resultado_execucao",
        "payload": content,
        "timestamp": datetime.fromtimestamp(0, UTC).isoformat(),
    }
    if echo:
        envelope |= {"ticket_id": order["ticket_id"], "tentativa": order["tentativa"]}
    return envelope


@pytest.fixture
async def oraculo(tmp_path: Path) -> AsyncIterator[Oraculo]:
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        yield oraculo


@pytest.fixture
def app(oraculo: Oraculo) -> FastAPI:
    return create_app(oraculo)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture
async def served(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """The same over a real socket."""
    async with serving(app) as url, httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        yield client


@pytest.fixture
def worker(client: httpx2.AsyncClient) -> CurlWorker:
    return CurlWorker(client)


@pytest.fixture
def submit(client: httpx2.AsyncClient) -> Callable[..., Any]:
    async def submit(request: dict[str, Any] | None = None, **more: Any) -> str:
        response = await client.post(f"{API}/orchestrations", json={**(request or ONE), **more})
        assert response.status_code == 202, response.text
        correlation_id: str = response.json()["correlation_id"]
        return correlation_id

    return submit


Start = Callable[..., AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def started(tmp_path: Path) -> Start:
    """`async with started(ORACULO_API_KEY="k") as client:` an orchestrator with other settings."""

    @asynccontextmanager
    async def start(**variables: str) -> AsyncIterator[httpx2.AsyncClient]:
        oraculo = Oraculo(settings_for(tmp_path, **variables))
        async with oraculo, client_of(create_app(oraculo)) as client:
            yield client

    return start


def assert_problem(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["type"] == f"/problems/{code.replace('_', '-')}"
    assert problem["title"] and problem["detail"] and problem["instance"].startswith("/")
    return problem
