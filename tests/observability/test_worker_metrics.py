"""A worker process counts what it does and serves it on a port of its own; so does the orchestrator."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from tools.servers.server import free_port

from acceptance.conftest import Server
from observability.test_logs import start
from oraculo.adapters.sinks.prometheus.port import metrics_port
from oraculo.adapters.sinks.prometheus.worker import WorkerMetrics
from oraculo.cli.serve import serve_metrics
from oraculo.core.vocabulary import Kind
from oraculo.service import Oraculo
from oraculo.settings import settings
from waiting import eventually


def get(port: int, path: str = "/metrics") -> str:
    return httpx2.get(f"http://127.0.0.1:{port}{path}", trust_env=False).raise_for_status().text


def test_processes_serve_their_own(tmp_path: Path) -> None:
    server, ports = Server(tmp_path, []), (free_port(), free_port())
    server.up(ORACULO_METRICS_PORT=str(ports[0]), ORACULO_API_KEY="chave-da-porta")
    env = {"ORACULO_METRICS_PORT": str(ports[1]), "PLANTED": "x", "ORACULO_API_KEY": "chave-da-porta"}
    worker = start(tmp_path / "worker", "worker", "planted_worker:worker", "--url", server.url, **env)
    key = {"authorization": "Bearer chave-da-porta"}
    try:
        for source, attempts in (("um", 1), ("falha", 2)):
            body = {"coletas": [{"fonte": source, "max_tentativas": attempts}], "correlation_id": source}
            assert server.call("POST", "/api/v1/orchestrations", json=body, headers=key) is not None
        path = "/api/v1/orchestrations/falha/result?wait=20"
        eventually(lambda: (answer := server.call("GET", path, headers=key)) and answer.status_code == 200)
        found = get(ports[1])
        assert 'worker_agent_tickets_consumed_total{task_type="coleta"} 3.0' in found
        assert 'worker_agent_tickets_completed_total{task_type="coleta"} 1.0' in found
        assert 'worker_agent_tickets_failed_total{error_type="RuntimeError",task_type="coleta"} 2.0' in found
        assert 'worker_agent_task_retries_total{attempt="1",task_type="coleta"} 1.0' in found
        assert 'worker_agent_task_duration_seconds_count{task_type="coleta"} 3.0' in found
        assert "worker_agent_active_tasks 0.0" in found
        refused = server.call("GET", "/metrics")
        assert refused is not None and refused.status_code == 401
        assert 'orchestration_workflows_completed_total{risk_band="none",status="erro"} 1.0' in get(ports[0])
    finally:
        worker.terminate()
        worker.wait()
        assert server.terminate() == 0


async def test_whatever_is_asked_of_the_port(tmp_path: Path) -> None:
    async with metrics_port("127.0.0.1", 0, lambda: b"a 1\n") as port:
        assert await asyncio.to_thread(get, port) == "a 1\n"
        assert (await asyncio.to_thread(httpx2.get, f"http://127.0.0.1:{port}/other")).status_code == 404
        for nonsense in (b"\r\n\r\n", b"x" * 20_000, b"GET\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(nonsense)
            try:
                await writer.drain()
                assert await reader.read() == b""
            except ConnectionError:
                pass
            writer.close()
        assert await asyncio.to_thread(get, port) == "a 1\n"


async def test_where_there_is_kafka_a_server_has_its_metrics_on_the_usual_port_unless_that_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setattr(settings, "USUAL_METRICS_PORT", port)
    chosen = settings.load({"KAFKA_BOOTSTRAP_SERVERS": "kafka:9092"}, None)
    named = settings.load({"ORACULO_METRICS_PORT": str(port)}, None)
    assert chosen.server_metrics_port == port
    assert settings.load({}, None).server_metrics_port is None
    assert (
        settings.load({"KAFKA_BOOTSTRAP_SERVERS": "k:1", "ORACULO_METRICS_PORT": ""}, None).server_metrics_port is None
    )
    oraculo = Oraculo(settings.load({"ORACULO_STORE": "sqlite://"}, None))
    async with oraculo, AsyncExitStack() as stack:
        await serve_metrics(oraculo, chosen, stack)
        assert "orchestration_workflows_active" in await asyncio.to_thread(get, port)
        await serve_metrics(oraculo, chosen, stack)  # it is taken, and nobody asked for it by name
        with pytest.raises(OSError):
            await serve_metrics(oraculo, named, stack)


def test_kinds_of_errors_are_bounded() -> None:
    metrics = WorkerMetrics(lambda: 0)
    for number in range(200):
        metrics.began(Kind.COLETA, 1)
        metrics.ended(Kind.COLETA, 0.1, f"erro_{number}")
    lines = [
        line for line in metrics.exposition().splitlines() if line.startswith(b"worker_agent_tickets_failed_total{")
    ]
    assert len(lines) == 51
