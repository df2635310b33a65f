"""Every operation of the OpenAPI document against a real server, with data that fits the document and data that does
not: no 5xx, no status, header, media type or shape that is not documented."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest
import requests
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core import NOT_SET
from schemathesis.generation import GenerationMode

from api.conftest import API, ONE, settings_for
from oraculo.api.app import create_app
from oraculo.api.connections import ConnectionGuard
from oraculo.service import Oraculo

EXAMPLES = int(os.environ.get("ORACULO_TEST_EXAMPLES", "8"))

load_all_checks()
_CHECKS = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    ]
)
_SCHEMA = schemathesis.openapi.from_dict(create_app(Oraculo(settings_for(Path("/nowhere")))).openapi())
_OPERATIONS = {found.ok().label: found.ok() for found in _SCHEMA.get_all_operations()}


@dataclass
class Server:
    url: str
    known: dict[str, str]  # path parameter → something that exists
    session: requests.Session


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """uvicorn in a thread of its own; the app enters the orchestrator. There is one of everything to find."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with TemporaryDirectory() as folder, requests.Session() as session:
        session.trust_env = False
        app = create_app(Oraculo(settings_for(Path(folder))))
        config = uvicorn.Config(
            app, http=ConnectionGuard(1000).protocol, ws="none", log_level="critical", timeout_graceful_shutdown=2
        )
        running = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])))
        thread.start()
        try:
            yield Server(url, _known(url), session)
        finally:
            running.should_exit = True
            thread.join()
            listener.close()


def _known(url: str) -> dict[str, str]:
    with httpx2.Client(base_url=url, trust_env=False) as client:
        client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "known"})
        client.post(f"{API}/orchestrations/known/cancel")
        client.put(f"{API}/task-types/known", json=ONE)
        client.put(f"{API}/schedules/known", json={"intervalo_s": 86_400, "requisicao": ONE}).raise_for_status()
        client.post(f"{API}/results", json=[{"correlation_id": "known"}])
        client.post(f"{API}/orchestrations", json={"coletas": [{"fonte": "leased"}]})
        lease = client.post(f"{API}/queues/escavador_leased/lease", json={"lease_s": 3600}).json()
        return {
            "correlation_id": "known",
            "ticket_id": client.get(f"{API}/orchestrations/known").json()["tickets"][0]["ticket_id"],
            "tipo": "known",
            "nome": "known",
            "id": str(client.get(f"{API}/dead-letters").json()["dead_letters"][0]["id"]),
            "lease_id": lease["mensagens"][0]["lease_id"],
            "queue": "escavador_nothing",
        }


def _patient(case: Any) -> None:
    """Nothing here is worth waiting for."""
    if isinstance(case.query, dict) and "wait" in case.query:
        case.query["wait"] = 0
    for sent, name in ((case.query, "words"), (case.headers, "Oraculo-Words")):
        if isinstance(sent, MutableMapping) and sent.get(name) == "en":
            sent[name] = "pt"  # the schemas are those of Portuguese words
    if case.operation.path.endswith("/lease"):
        if case.body is NOT_SET:
            case.body, case.media_type = {"wait": 0}, "application/json"
        elif isinstance(case.body, dict):
            case.body["wait"] = 0


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("target", ["any", "known"])
@pytest.mark.parametrize("label", _OPERATIONS)
def test_operation(server: Server, label: str, target: str, mode: GenerationMode) -> None:
    operation = _OPERATIONS[label]
    fixed = {name: value for name, value in server.known.items() if f"{{{name}}}" in operation.path}
    if target == "known" and not fixed:
        pytest.skip("there is nothing to name in its path")
    if mode is GenerationMode.NEGATIVE and not (operation.query or operation.body or operation.path_parameters):
        pytest.skip("nothing about it can be wrong")

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        if target == "known":
            case.path_parameters = dict(fixed)
        _patient(case)
        case.call_and_validate(base_url=server.url, session=server.session, checks=_CHECKS, timeout=30)

    check()
