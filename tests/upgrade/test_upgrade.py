"""Databases of older versions: brought up to date, shown as they were, replayed to the same events, and carried on."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.processes import Cli
from databases import database
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.worker.worker import Worker

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.glob("v*"))
worker = Worker()


@worker.escavador("ausente")
async def ausente() -> str:
    return "de volta"


@worker.executador("soma")
async def soma(dados: list[Any]) -> dict[str, int]:
    return {"total": len(dados)}


CLOSED = ("feita", "parcial", "falhou")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Path:
    return HERE / str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, version: Path, tmp_path: Path) -> str:
    """A copy of the old database, as a URL."""
    if request.param == "sqlite":
        shutil.copy(version / "store.sqlite", tmp_path / "oraculo.db")
        return f"sqlite:///{tmp_path / 'oraculo.db'}"
    url = await database(empty=True)
    command = ["psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--file", str(version / "store.sql"), url]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    return url


@pytest.fixture
def before(store: str, version: Path) -> dict[str, Any]:
    name = "sqlite" if store.startswith("sqlite") else "postgres"
    found: dict[str, Any] = json.loads((version / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def run(cli: Cli, *arguments: str, store: str) -> Any:
    return await asyncio.to_thread(cli.json, *arguments, ORACULO_STORE=store)


async def test_it_is_migrated_once_and_every_journal_replays(cli: Cli, store: str, before: dict[str, Any]) -> None:
    done = await run(cli, "migrate", store=store)
    assert done["up_to_date"] is True
    assert (await run(cli, "migrate", "--check", store=store))["applied"] == []
    for name in before:
        shown = await asyncio.to_thread(cli, "replay", name, ORACULO_STORE=store)
        assert shown.returncode == 0, shown.stderr


async def test_what_had_ended_is_shown_as_before_and_what_was_open_comes_to_its_end(
    store: str, before: dict[str, Any]
) -> None:
    async with Oraculo(load({"ORACULO_STORE": store}, None), workers=[worker]) as oraculo:
        for name in CLOSED:
            assert await oraculo.result(name) == before[name]
        assert (await oraculo.result("cancelada") or {})["status"] == "cancelada"
        ended = await oraculo.result("aberta", wait=60)
        assert ended is not None, "by the worker that it waited for, or by its deadline"
        assert ended["correlation_id"] == "aberta"


async def test_keys_that_were_used_are_still_known(store: str) -> None:
    body = {"correlation_id": "falhou", "coletas": [{"fonte": "quebrado"}]}
    async with Oraculo(load({"ORACULO_STORE": store}, None)) as oraculo:
        again = await oraculo.submit(body, idempotency_key="chave-falhou")
        assert again.correlation_id == "falhou"
        fresh = await oraculo.submit({"coletas": [{"fonte": "ausente"}]})
        assert fresh.correlation_id != "falhou"
