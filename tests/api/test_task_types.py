"""Task types over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, BOTH, ONE, Start, assert_problem

URL = f"{API}/task-types"


async def test_put_get_list_delete(client: httpx2.AsyncClient) -> None:
    assert (await client.get(URL)).json() == {"task_types": {}}
    added = await client.put(f"{URL}/semanal", json=BOTH)
    assert added.status_code == 201
    assert (await client.put(f"{URL}/semanal", json=ONE)).status_code == 200
    shown = (await client.get(f"{URL}/semanal")).json()
    assert shown["coletas"][0]["fonte"] == "youtube"
    assert (await client.get(URL)).json()["task_types"] == {"semanal": shown}
    assert (await client.put(f"{URL}/outro", json=shown)).json() == shown, "what is shown can be sent back"
    assert (await client.delete(f"{URL}/semanal")).status_code == 204
    assert_problem(await client.get(f"{URL}/semanal"), 404, "unknown_id")
    assert_problem(await client.delete(f"{URL}/semanal"), 404, "unknown_id")


async def test_kept_across_restarts(started: Start) -> None:
    async with started() as client:
        await client.put(f"{URL}/semanal", json=ONE)
    async with started() as client:
        assert (await client.get(f"{URL}/semanal")).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_plan"),
        ({"tipo": "outro"}, "invalid_plan"),
        ({**ONE, "correlation_id": "x"}, "invalid_plan"),
        ({**ONE, "x": 1}, "invalid_request"),
        ([], "invalid_request"),
    ],
)
async def test_not_a_task_type(client: httpx2.AsyncClient, body: Any, code: str) -> None:
    assert_problem(await client.put(f"{URL}/semanal", json=body), 422, code)
    assert (await client.get(URL)).json() == {"task_types": {}}


@pytest.mark.parametrize("tipo", ["a%20b", "a%2Fb", "%2E%2E", "x" * 101, "%C3%A7", "a%0A"])
async def test_wrong_name(client: httpx2.AsyncClient, tipo: str) -> None:
    assert_problem(await client.put(f"{URL}/{tipo}", json=ONE), 422, "invalid_parameter")
    assert_problem(await client.get(f"{URL}/{tipo}"), 404, "unknown_id")


async def test_those_of_the_file_are_changed_there(tmp_path: Path, started: Start) -> None:
    file = tmp_path / "types.json"
    file.write_text(json.dumps({"fixo": ONE}))
    async with started(ORACULO_TASK_TYPES=str(file)) as client:
        assert (await client.get(f"{URL}/fixo")).status_code == 200
        assert (
            "ORACULO_TASK_TYPES"
            in assert_problem(await client.put(f"{URL}/fixo", json=BOTH), 422, "invalid_plan")["detail"]
        )
        assert_problem(await client.delete(f"{URL}/fixo"), 422, "invalid_plan")
