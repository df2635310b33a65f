"""Retention: what is forgotten, what is kept, what stands in the archive, and over crashes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner

from contracts.writing import batch, begin, finished
from core.given import Story, at, plan
from oraculo.adapters.archives.json_lines import JsonLinesArchive
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.main import app
from oraculo.core.retention import read_rules
from oraculo.core.tenants import in_tenant
from oraculo.ports.ended_runs import EndedRun
from oraculo.ports.journal import Recorded
from oraculo.runtime import retention
from oraculo.runtime.retention import PRUNED, RetentionRounds
from oraculo.wire import audit

DAY = 86400


class Clock:
    """Stands where it is put."""

    def __init__(self, now: datetime) -> None:
        self.at = now

    def now(self) -> datetime:
        return self.at


async def ended(store: SqliteStore, name: str, day: int, tipo: str | None = None, tenant: str = "default") -> Story:
    return await finished(store, in_tenant(tenant, name), when=day * DAY, wanted=replace(plan(1), tipo=tipo))


def rounds(store: SqliteStore, day: float, rules: str, archive: Any = None) -> RetentionRounds:
    async def at_once(_seconds: float) -> None:
        return

    clock: Any = Clock(at(0) + timedelta(days=day))
    return RetentionRounds(store, clock, read_rules(rules), archive, sleep=at_once)


async def left(store: SqliteStore, *names: str) -> list[str]:
    return sorted(await store.locate(names))


async def test_each_type_and_tenant_is_kept_for_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PAGE_RUNS", 2)
    async with SqliteStore(":memory:") as store:
        for day in (1, 20, 25):
            await ended(store, f"x{day}", day)
            await ended(store, f"r{day}", day, "relatorio")
            await ended(store, f"a{day}", day, tenant="acme")
        running = begin("aberta", replace(plan(1), tipo="relatorio"))
        await store.append(batch(running.started))
        names = [f"{kind}{day}" for kind in ("x", "r") for day in (1, 20, 25)] + ["aberta"]
        work = rounds(store, 31, "7d, relatorio=10d, acme/*=90d")
        assert await work.round() == 4 and await work.round() == 0
        assert await left(store, *names) == ["aberta", "r25", "x25"]
        acme = [in_tenant("acme", f"a{day}") for day in (1, 20, 25)]
        assert await left(store, *acme) == sorted(acme)
        assert [one.kind for one in await store.system_events()] == [PRUNED]  # the latest instant


async def test_what_was_left_once_is_looked_at_again_and_nothing_else_is() -> None:
    async with SqliteStore(":memory:") as store:
        owing = begin("deve", plan(1, fila="f"))
        await store.append(batch(owing.started, owing.ok(0)))
        work = rounds(store, 31, "7d")
        assert await work.round() == 0
        await store.append(batch(owing.told(0, 1, delivered=True)))
        assert await work.round() == 1 and await left(store, "deve") == []


async def test_what_a_projection_has_not_read_is_neither_archived_nor_forgotten(tmp_path: Path) -> None:
    async with SqliteStore(":memory:") as store:
        await ended(store, "a", 1)
        await store.claim_cursor("audit")
        work = rounds(store, 31, "7d", JsonLinesArchive(str(tmp_path)))
        assert await work.round() == 0 and archived(tmp_path) == []
        await store.move_cursor("audit", (await store.lag(0)).end)
        assert await work.round() == 1


def archived(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jsonl"))


class DyingArchive:
    """Dies after it has written, before anything is forgotten."""

    def __init__(self, inner: JsonLinesArchive) -> None:
        self._inner = inner

    async def keep(self, runs: Sequence[tuple[EndedRun, Sequence[Recorded]]]) -> None:
        await self._inner.keep(runs)
        raise OSError("killed")


async def test_the_archive_has_the_whole_chain_also_after_a_crash_and_tells_when_it_was_altered(tmp_path: Path) -> None:
    kept = JsonLinesArchive(str(tmp_path))
    async with SqliteStore(":memory:") as store:
        stories = [await ended(store, name, day) for name, day in (("a", 1), ("b", 1), ("c", 2))]
        journals = await store.load([one.run for one in stories])
        with pytest.raises(OSError, match="killed"):
            await rounds(store, 31, "7d", DyingArchive(kept)).round()
        assert len(await store.load([one.run for one in stories])) == 3
        assert await rounds(store, 31, "7d", kept).round() == 3
    files = archived(tmp_path)
    assert len(files) == 2 and {one.parent.name for one in files} == {"default"}
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    found = {line["_id"]: line for line in lines}
    expected = [record for steps in journals.values() for record in audit.chain(steps)]
    assert found == {record["_id"]: record for record in expected} and len(lines) == 2 * len(expected)
    checked = CliRunner().invoke(app, ["audit", "archive", str(tmp_path), "--json"])
    assert (checked.exit_code, json.loads(checked.stdout)["orchestrations"]) == (0, 3), checked.output
    files[0].write_text(files[0].read_text().replace("orchestration_started", "orchestration_forged"))
    assert CliRunner().invoke(app, ["audit", "archive", str(files[0])]).exit_code == 1
    nothing = CliRunner().invoke(app, ["audit", "archive", str(tmp_path / "nada")])
    assert isinstance(nothing.exception, CommandError) and nothing.exception.code is Exit.NOT_FOUND


async def test_what_is_due_is_counted_by_tenant_and_type_and_nothing_is_forgotten() -> None:
    async with SqliteStore(":memory:") as store:
        for day in (1, 20, 25):
            await ended(store, f"x{day}", day)
            await ended(store, f"r{day}", day, "relatorio")
            await ended(store, f"a{day}", day, tenant="acme")
        work = rounds(store, 31, "7d, relatorio=10d, acme/*=20d")
        due = [(one.tenant, one.tipo, one.age.days, one.count) for one in await work.due()]
        assert due == [("acme", None, 20, 1), ("default", None, 7, 2), ("default", "relatorio", 10, 2)]
        assert await store.system_events() == [] and await left(store, "x1", "r1") == ["r1", "x1"]
        assert await work.round() == 5 and await work.due() == []


def test_the_command_counts_asks_and_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORACULO_STORE", f"sqlite:///{tmp_path}/r.db")

    async def fill() -> None:
        async with SqliteStore(str(tmp_path / "r.db")) as store:
            await ended(store, "velha", 1, "relatorio")

    asyncio.run(fill())
    structlog.reset_defaults()  # as in a process of its own: another test may have left a configuration
    runner = CliRunner()
    assert runner.invoke(app, ["retention", "status"]).exit_code == 0
    assert isinstance(runner.invoke(app, ["retention", "run", "--yes"]).exception, CommandError)
    monkeypatch.setenv("ORACULO_RETENTION", "7d")
    for command in (["retention", "status", "--json"], ["retention", "run", "--dry-run", "--json"]):
        told = json.loads(runner.invoke(app, command).stdout)
        assert told["vencidas"] == [{"tenant": "default", "tipo": "relatorio", "idade_s": 7.0 * DAY, "quantas": 1}]
    assert isinstance(runner.invoke(app, ["retention", "run"]).exception, CommandError)  # no terminal to ask
    assert json.loads(runner.invoke(app, ["retention", "run", "--yes", "--json"]).stdout) == {"esquecidas": 1}
    assert json.loads(runner.invoke(app, ["retention", "status", "--json"]).stdout)["vencidas"] == []
