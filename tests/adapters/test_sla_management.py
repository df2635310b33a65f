"""Error budgets of another service, asked over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from tools.servers.server import free_port

from oraculo.adapters.sla_management import BudgetService
from oraculo.bootstrap.foresight import budgets_of
from oraculo.core.sla.budget import OutsideBudget
from oraculo.settings.settings import load
from waiting import DEADLINE_S, until


class BudgetServer:
    """The part of the service's HTTP API that is used; `answer` is what it says."""

    def __init__(self, answer: Any) -> None:
        self.asked: list[str] = []
        self.answer, self.status = answer, 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                raw = json.dumps(outer.answer).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


ONE = {"slo_id": "availability", "service_name": "orchestrator-dynamic", "error_budget_remaining": 12.5, "status": "X"}


@pytest.fixture
def server() -> Iterator[BudgetServer]:
    found = BudgetServer({"budgets": [ONE], "total": 1})
    yield found
    found.close()


async def test_it_is_asked_for_the_budgets_of_this_service_as_often_as_is_set(server: BudgetServer) -> None:
    chosen = load(
        {
            "ORACULO_SLA": "true",
            "OTEL_SERVICE_NAME": "orchestrator-dynamic",
            "SLA_MANAGEMENT_ENABLED": "true",
            "SLA_MANAGEMENT_HOST": "127.0.0.1",
            "SLA_MANAGEMENT_PORT": str(server.port),
            "SLA_MANAGEMENT_CACHE_TTL_SECONDS": "1",
        },
        None,
    )
    service = budgets_of(chosen)
    assert service is not None
    asking = asyncio.create_task(service.run())
    await until(lambda: len(server.asked) >= 2)
    assert set(server.asked) == {"/api/v1/budgets?service_name=orchestrator-dynamic"}
    assert service.budgets == (OutsideBudget("availability", "orchestrator-dynamic", 0.125),)
    server.status = 503
    await until(lambda: service.budgets == ())
    server.status = 200
    await until(lambda: len(service.budgets) == 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"budgets": [1]},
        {"budgets": [{**ONE, "error_budget_remaining": 101}]},
        {"budgets": [{**ONE, "error_budget_remaining": True}]},
        {"budgets": [{**ONE, "slo_id": 7}]},
    ],
)
async def test_an_answer_that_is_none_leaves_nothing_known(answer: Any, server: BudgetServer) -> None:
    service = BudgetService(f"http://127.0.0.1:{server.port}", "x", timeout_s=5, interval_s=1)
    async with httpx2.AsyncClient(timeout=5) as client:
        await service.ask(client)
        assert len(service.budgets) == 1
        server.answer = answer
        await service.ask(client)
    assert service.budgets == ()


async def test_nobody_there_is_no_fault() -> None:
    service = BudgetService(f"http://127.0.0.1:{free_port()}", "x", timeout_s=1, interval_s=1)
    async with httpx2.AsyncClient(timeout=1) as client:
        await service.ask(client)
    assert service.budgets == ()


def test_nothing_is_asked_unless_service_levels_are_watched() -> None:
    assert budgets_of(load({"SLA_MANAGEMENT_ENABLED": "true"}, None)) is None
    assert budgets_of(load({"ORACULO_SLA": "true"}, None)) is None


async def test_an_answer_that_never_ends_is_not_waited_for() -> None:
    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        left.set()

    left = asyncio.Event()
    listening = await asyncio.start_server(drip, "127.0.0.1", 0)
    service = BudgetService(
        f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", "x", timeout_s=0.3, interval_s=1
    )
    async with httpx2.AsyncClient(timeout=5) as client, asyncio.timeout(DEADLINE_S):
        await service.ask(client)
        await left.wait()
    assert service.budgets == ()
    listening.close()
