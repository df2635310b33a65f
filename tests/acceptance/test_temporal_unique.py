"""A request that exists once, on Temporal: its process dies between the begin of the workflow and the commit that says
that the request is the one. Whoever asks again begins the only run."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

from temporalio.client import Client
from tools.servers.temporal import settings_of

import servers
from acceptance.conftest import Server
from waiting import DEADLINE_S, until

API = "/api/v1"
REQUEST = {"coletas": [{"fonte": "uma"}], "unica": {"modo": "aberta"}}


def _asked(server: Server, name: str) -> dict[str, Any] | None:
    """What it was answered; None when the server died of it. A Temporal that is slow to answer is asked again."""
    until_s = time.monotonic() + DEADLINE_S
    while True:
        answer = server.call("POST", f"{API}/orchestrations", json={**REQUEST, "correlation_id": name})
        if answer is None or answer.status_code != 503 or time.monotonic() > until_s:
            break
    if answer is None:
        return None
    assert answer.status_code == 202, answer.text
    document: dict[str, Any] = answer.json()
    return document


def _lease(server: Server, wait: int) -> list[dict[str, Any]]:
    body = {"max": 10, "wait": wait}
    answer = server.call("POST", f"{API}/queues/escavador_uma/lease", json=body)
    assert answer is not None and answer.status_code == 200
    return [one["mensagem"] for one in answer.json()["mensagens"]]


async def test_a_process_that_dies_before_the_commit_leaves_no_second_run(tmp_path: Path) -> None:
    url, queue = servers.shared("temporal"), f"unica-{secrets.token_hex(4)}"
    server = Server(tmp_path, [])
    server.env |= {**settings_of(url), "TEMPORAL_TASK_QUEUE": queue}
    first, second, third = (f"{queue}-{n}" for n in range(3))
    try:
        server.up(ORACULO_CRASH_AT="before_commit:1")
        assert _asked(server, first) is None
        server.wait()  # its workflow has begun, its row is not written
        client = await Client.connect(url)
        handle = client.get_workflow_handle(await _workflow_of(client, queue, first))
        server.up()
        assert (_asked(server, second) or {})["correlation_id"] == second  # there is nothing to be one with
        merged = _asked(server, third)
        assert merged is not None and (merged["correlation_id"], merged["juntada"]) == (second, True)

        async def looked_in_vain() -> bool:
            found = (await handle.describe()).raw_description
            return any(one.attempt > 1 for one in found.pending_activities) or found.workflow_execution_info.status != 1

        await until(looked_in_vain, "the workflow of the first asks for its journal, and there is none", within=120)
        [order] = _lease(server, 20)
        assert order["correlation_id"] == second and _lease(server, 2) == []
        told = {
            "correlation_id": second,
            "tipo_evento": "resultado_coleta",
            "payload": {"fonte": "uma", "status": "ok", "dados": 1, "erros": []},
            "timestamp": "2025-10-14T12:00:00Z",
        }
        assert server.call("POST", f"{API}/results", json=told) is not None
        assert server.result(second)["status"] == "concluida"
        listed = server.call("GET", f"{API}/orchestrations")
        assert listed is not None
        assert [one["correlation_id"] for one in listed.json()["orchestrations"]] == [second]
        await handle.terminate("the test is over")
    finally:
        if server.running:
            server.kill()


async def _workflow_of(client: Client, queue: str, name: str) -> str:
    """The id of the workflow that belongs to a request."""

    async def found() -> str | None:
        listed = [one.id async for one in client.list_workflows(f"TaskQueue = '{queue}'")]
        return next((one for one in listed if name in one), None)

    return str(await until(found, f"the workflow of {name}"))
