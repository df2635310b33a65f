"""Probes, metrics, schema, pages, headers, and failures that tell nothing of the inside."""

from __future__ import annotations

import asyncio
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
from fastapi import FastAPI
from structlog.testing import capture_logs

from api.conftest import API, ONE, assert_problem, client_of, settings_for
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.api.app import ROUTERS, create_app
from oraculo.api.problems import PROBLEM_KINDS
from oraculo.service import Oraculo
from runtime.doubles import Copies
from waiting import DEADLINE_S, until

URL = f"{API}/orchestrations"
XSS = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


async def test_health(client: httpx2.AsyncClient) -> None:
    response = await client.get("/health")
    assert (response.status_code, response.json()["status"]) == (200, "ok")


async def test_ready(client: httpx2.AsyncClient) -> None:
    response = await client.get("/ready")
    assert response.status_code == 200
    checks = response.json()["checks"]
    assert checks["store"]["durability"] == "power-safe"
    assert (checks["broker"]["scheme"], checks["broker"]["durability"]) == ("memory", "best-effort")
    assert response.json()["status"] == "ok"


async def test_before_and_after_it_runs(tmp_path: Path) -> None:
    oraculo = Oraculo(settings_for(tmp_path))
    app = create_app(oraculo)
    async with client_of(app) as client:
        for path, status in (("/health", 200), ("/ready", 503), ("/metrics", 200), ("/docs", 200)):
            assert (await client.get(path)).status_code == status
        response = await client.post(URL, json=ONE)
        assert_problem(response, 503, "not_ready")
        assert "retry-after" in response.headers
        async with app.router.lifespan_context(app):
            assert (await client.get("/ready")).status_code == 200
            assert (await client.post(URL, json=ONE)).status_code == 202
        assert (await client.get("/ready")).status_code == 503
        assert_problem(await client.post(URL, json=ONE), 503, "not_ready")


async def test_one_that_is_entered_already_is_left_running(oraculo: Oraculo) -> None:
    app = create_app(oraculo)
    async with app.router.lifespan_context(app):
        pass
    async with client_of(app) as client:
        assert (await client.post(URL, json=ONE)).status_code == 202


async def test_the_store_goes_away_and_comes_back(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    store = oraculo.store
    assert isinstance(store, SqliteStore)
    await store.close()
    with capture_logs() as logs:
        response = await client.post(URL, json={**ONE, "correlation_id": "abc"})
    problem = assert_problem(response, 503, "store_unavailable")
    assert int(response.headers["retry-after"]) > 0
    assert "closed" not in json.dumps(problem)
    [line] = [line for line in logs if line["event"] == "request answered with an error"]
    assert (line["status"], line["correlation_id"], line["path"]) == (503, "abc", URL)
    ready = await client.get("/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    assert ready.json()["checks"]["store"]["ok"] is False
    assert_problem(await client.get(f"{URL}/abc"), 503, "store_unavailable")
    assert (await client.get("/health")).status_code == 200
    await store.open()
    async with asyncio.timeout(DEADLINE_S):
        assert (await client.post(URL, json={**ONE, "correlation_id": "abc"})).status_code == 202
    assert (await client.get("/ready")).status_code == 200


async def test_failures_tell_nothing_and_are_logged(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    oraculo.metrics = None
    with capture_logs() as logs:
        response = await client.get("/metrics")
    problem = assert_problem(response, 500, "internal_error")
    assert "NoneType" not in json.dumps(problem)
    assert "exposition" not in json.dumps(problem)
    assert [line["log_level"] for line in logs] == ["error"]
    assert logs[0]["path"] == "/metrics"
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_metrics(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json=ONE)
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'orchestration_workflows_started_total{risk_band="none",status="started"} 1.0' in response.text


async def test_a_projection_that_waits_is_shown_and_stops_nothing(tmp_path: Path) -> None:
    sink = Copies("auditoria")
    sink.failures = 10_000
    oraculo = Oraculo(settings_for(tmp_path, ORACULO_FLOW_C="off"), sinks=[sink])
    async with oraculo, client_of(create_app(oraculo)) as client:
        (projection,) = oraculo.projections.all
        assert (await client.post(URL, json=ONE)).status_code == 202
        await until(lambda: projection.failing_since is not None and projection.lag.steps > 0)
        ready = (await client.get("/ready")).json()
        assert ready["status"] == "ok" and ready["checks"]["projections"]["ok"] is False
        (shown,) = ready["checks"]["projections"]["projections"]
        assert (shown["nome"], shown["ativa"], shown["erro"]) == ("auditoria", True, "away") and shown["atraso"] > 0
        assert re.search(r'oraculo_projection_lag{projection="auditoria"} [1-9]', oraculo.metrics.exposition().decode())
        sink.failures = 0
        await until(lambda: bool(sink.seen) and projection.failing_since is None)
        assert (await client.get("/ready")).json()["checks"]["projections"]["ok"] is True
        assert 'oraculo_projection_lag{projection="auditoria"} 0.0' in oraculo.metrics.exposition().decode()


async def test_schema(client: httpx2.AsyncClient) -> None:
    response = await client.get("/schemas/mensagem_schema.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/schema+json"
    jsonschema.Draft202012Validator.check_schema(response.json())


async def test_the_schema_of_plans_is_served_for_editors(client: httpx2.AsyncClient) -> None:
    response = await client.get("/schemas/plano_schema.json")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/schema+json")
    assert {"tarefas", "tasks", "coletas", "collects"} <= set(response.json()["properties"])


async def test_avro_schemas(client: httpx2.AsyncClient) -> None:
    response = await client.get("/schemas/avro/execution-ticket.avsc")
    assert response.status_code == 200 and response.json()["name"] == "ExecutionTicket"
    assert (await client.get("/schemas/avro/nada.avsc")).status_code == 404


async def test_head(served: httpx2.AsyncClient) -> None:
    for path in ("/health", "/metrics", URL, "/"):
        response = await served.head(path)
        assert (response.status_code, response.content) == (200, b"")
        assert int(response.headers["content-length"]) > 0
    assert (await served.head(f"{URL}/nope")).status_code == 404
    assert (await served.head(f"{API}/results")).status_code == 405


# -- headers -----------------------------------------------------------------------------------------------------------


async def test_security_headers_everywhere(client: httpx2.AsyncClient) -> None:
    paths = [route.path for router in ROUTERS for route in router.routes]  # type: ignore[attr-defined]
    for path in [*paths, "/nope", "/openapi.json", f"{URL}/%FF"]:
        response = await client.get(path)
        headers = response.headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers
        assert headers["cache-control"]


# -- pages -------------------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def assert_self_contained(response: httpx2.Response) -> None:
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "unsafe" not in response.headers["content-security-policy"]
    for tag, attributes in Elements(response.text).seen:
        assert tag not in ("style", "iframe", "object", "img")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag == "script":
            assert attributes.get("src") or attributes["type"] == "application/json"
        for name in ("href", "src", "action"):
            address = attributes.get(name)
            assert address is None or address.startswith("#") or (address[0] == "/" and address[:2] != "//")


async def test_docs(client: httpx2.AsyncClient) -> None:
    response = await client.get("/docs")
    assert_self_contained(response)
    document = (await client.get("/openapi.json")).json()
    for path, operations in document["paths"].items():
        assert f"<code>{path}</code>" in response.text
        for operation in operations.values():
            assert operation["summary"] and operation["description"]
    assert "curl -X POST" in response.text


async def test_problem_pages(client: httpx2.AsyncClient) -> None:
    assert_self_contained(await client.get("/problems"))
    for code in PROBLEM_KINDS:
        assert_self_contained(await client.get(f"/problems/{code.replace('_', '-')}"))
    assert_problem(await client.get("/problems/nope"), 404, "unknown_id")


# -- the OpenAPI document ----------------------------------------------------------------------------------------------


async def test_openapi_is_complete(client: httpx2.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    text = json.dumps(document)
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in document["components"]["schemas"], name
    described = {(path, method) for path, operations in document["paths"].items() for method in operations}
    served = {
        (re.sub(r":segment", "", route.path), method.lower())  # type: ignore[attr-defined]
        for router in ROUTERS
        for route in router.routes
        if route.include_in_schema  # type: ignore[attr-defined]
        for method in route.methods  # type: ignore[attr-defined]
    }
    assert described == served
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert "application/problem+json" in operation["responses"]["500"]["content"], (path, method)
            if method in ("post", "put") and "requeue" not in path and not path.endswith("/probe"):
                assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]


CONTRACT = """
POST /api/v1/orchestrations
GET /api/v1/orchestrations
GET /api/v1/orchestrations/{correlation_id}
GET /api/v1/orchestrations/{correlation_id}/result
GET /api/v1/orchestrations/{correlation_id}/events
GET /api/v1/orchestrations/{correlation_id}/stream
POST /api/v1/orchestrations/{correlation_id}/cancel
GET /api/v1/tickets/{ticket_id}
GET /api/v1/dead-letters
POST /api/v1/dead-letters/{id}/requeue
DELETE /api/v1/dead-letters/{id}
GET /api/v1/workers
POST /api/v1/queues/{queue}/lease
POST /api/v1/results
POST /api/v1/leases/{lease_id}/extend
POST /api/v1/leases/{lease_id}/release
PUT /api/v1/task-types/{tipo}
GET /api/v1/task-types/{tipo}
DELETE /api/v1/task-types/{tipo}
GET /health
GET /ready
GET /metrics
GET /schemas/mensagem_schema.json
GET /schemas/plano_schema.json
"""


def test_the_routes_of_the_contract(app: FastAPI) -> None:
    paths: dict[str, Any] = app.openapi()["paths"]
    for line in CONTRACT.split("\n"):
        if line:
            method, path = line.split()
            assert method.lower() in paths[path], line
