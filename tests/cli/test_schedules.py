"""`oraculo schedules`, against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.processes import Cli

pytestmark = pytest.mark.xdist_group("cli-schedules")

AGENDA = """
cron: "0 6 * * 1-5"
fuso: America/Sao_Paulo
requisicao: {coletas: [{fonte: eco}]}
"""


def test_an_operators_day(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "agenda.yaml"
    file.write_text(AGENDA)
    shown = cli("schedules", "put", "diario", str(file))
    assert shown.returncode == 0 and "0 6 * * 1-5 (America/Sao_Paulo)" in shown.stdout
    assert "diario" in cli("schedules", "ls").stdout
    assert len(cli("schedules", "upcoming", "diario", "-n", "3").stdout.splitlines()) == 3
    paused = cli("schedules", "pause", "diario", "--motivo", "fonte fora")
    assert "fonte fora" in paused.stdout and "fonte fora" in cli("schedules", "ls").stdout
    started = cli("schedules", "trigger", "diario").stdout.strip()
    assert started.startswith("diario@")
    assert json.loads(cli("show", started, "--json").stdout)["rotulos"] == ["agenda:diario"]
    assert json.loads(cli("schedules", "resume", "diario", "--json").stdout)["pausada"] is None
    span = ("--de", "2026-02-02T00:00:00Z", "--ate", "2026-02-06T23:00:00Z")
    assert cli("schedules", "backfill", "diario", *span).stdout.strip() == "5 started, 0 existed"
    told = json.loads(cli("schedules", "backfill", "diario", *span, "--json").stdout)
    assert told["iniciadas"] == 0 and len(told["itens"]) == 5
    assert cli("schedules", "rm", "diario").returncode == 0
    assert cli("schedules", "show", "diario").returncode == 3


def test_faults(cli: Cli) -> None:
    bad = cli("schedules", "put", "x", "-", input='{"cron": "x", "requisicao": {"coletas": [{"fonte": "a"}]}}')
    assert bad.returncode == 1 and "cron" in bad.stderr
    assert cli("schedules", "put", "x", "-", input="[1]").returncode == 2
