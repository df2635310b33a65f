"""`oraculo top`: what it shows is what the server counts."""

from __future__ import annotations

import json
import subprocess
import sys

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from cli.processes import Cli, environment
from cli.test_terminal import _CONTROL, at_terminal
from oraculo.cli.readings import Scrape, document
from oraculo.core.vocabulary import RUN_STATUSES


def test_one_look(cli: Cli) -> None:
    for name in ("top-1", "top-2"):
        cli.submit({"correlation_id": name, "coletas": [{"fonte": "eco"}]}, "--wait", "10")
    found = cli.json("top", "--once")
    assert found["terminadas"].keys() == {status.value for status in RUN_STATUSES if status.final}
    assert found["terminadas"]["concluida"] >= 2
    assert found["abertas"] >= 0 and found["banco_ok"] is True and found["memoria_mib"] > 10
    assert "escavador_eco" in {one["fila"] for one in found["filas"]}
    shown = cli("top", "--once").stdout
    assert "escavador_eco" in shown and "concluida" in shown and "p95" in shown


def test_as_json_it_goes_on(cli: Cli) -> None:
    command = [sys.executable, "-m", "oraculo", "top", "--every", "0.2", "--json"]
    with subprocess.Popen(
        command, cwd=cli.folder, env=environment(cli.folder, ORACULO_URL=cli.url), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        looks = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.terminate()
    assert all(0.1 < look["segundos"] < 10 for look in looks)


def test_at_a_terminal(cli: Cli) -> None:
    code, shown = at_terminal(cli, "top", "--once")
    assert code == 0 and "escavador_eco" in _CONTROL.sub("", shown)


def test_no_server_is_exit_5(alone: Cli) -> None:
    assert alone("top", "--once").returncode == 5


def scrape(at: float, started: int, *durations: float) -> Scrape:
    registry = CollectorRegistry()
    histogram = Histogram(
        "orchestration_workflow_duration_seconds", "", ["status"], buckets=(0.1, 1, 10), registry=registry
    )
    for one in durations:
        histogram.labels("concluida").observe(one)
    text = generate_latest(registry).decode()
    return Scrape(f"{text}# TYPE orchestration_workflows_started counter\n"
                  f"orchestration_workflows_started_total {started}\n", at)  # fmt: skip


def test_rates_and_quantiles_are_of_what_happened_between() -> None:
    before = scrape(10, 100, *[20.0] * 50)
    found = document(before, scrape(12, 130, *[20.0] * 50, *[0.05] * 9, 5.0))
    assert found["por_segundo"]["iniciadas"] == 15
    assert found["duracao_s"] == {"p50": 0.1, "p95": 10, "p99": 10}
    assert document(before, before)["duracao_s"] == {"p50": None, "p95": None, "p99": None}
    assert document(before, scrape(12, 3))["por_segundo"]["iniciadas"] == 0  # the server began anew
