"""Dashboard, rules and runbooks as they are written: as the code says, and as promtool takes them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.observability import generate
from tools.observability.generate import EVERY_ALERT as ALERTS

import servers

ROOT = Path(__file__).parents[2]


def test_what_is_written_is_what_the_code_says() -> None:
    assert generate.main(["--check"]) == 0


def test_the_nine_rows_and_those_of_features() -> None:
    document = json.loads((ROOT / "deploy" / "grafana" / "orchestration-flow-c.json").read_text())
    assert [panel["title"] for panel in document["panels"] if panel["type"] == "row"] == [
        "Overview", "Workflow duration", "Tickets", "SLA tracking", "Retry and compensation", "Kafka integration",
        "Validations and optimizations", "Resources", "Logs and traces",
        "Choice of workers", "Policies", "Service levels", "Predicted durations",
    ]  # fmt: skip
    numbers = [panel["id"] for panel in document["panels"]]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_a_runbook(alert: Any) -> None:
    page = (ROOT / "docs" / "runbooks" / alert.page).read_text()
    assert page.startswith(f"# {alert.name}\n")
    assert f"`{alert.expression}`" in page
    assert "## Look" in page and "## Do" in page


def test_every_runbook_has_an_alert() -> None:
    assert {path.name for path in (ROOT / "docs" / "runbooks").glob("*.md")} == {alert.page for alert in ALERTS}


@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", "rules.yml"), ("test", "rules", "rules_test.yml"), ("check", "config", "prometheus.yml")],
    ids=" ".join,
)
def test_promtool(arguments: tuple[str, ...]) -> None:
    servers.use("prometheus")
    folder = ROOT / "deploy" / "prometheus"
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alertmanager_names_alerts_that_exist() -> None:
    document = yaml.safe_load((ROOT / "deploy" / "alertmanager" / "alertmanager.yml").read_text())
    names = {alert.name for alert in ALERTS}
    matchers = [
        one for rule in document["inhibit_rules"] for key in ("source_matchers", "target_matchers") for one in rule[key]
    ]
    for matcher in matchers:
        pattern = re.fullmatch(r'alertname=~?"(.*)"', matcher)
        assert pattern is not None
        assert [name for name in names if re.fullmatch(pattern[1], name)], matcher
        for part in re.findall(r"\((.*)\)", pattern[1]):
            assert {f"Oraculo{one}" for one in part.split("|")} <= names
    receivers = {one["name"] for one in document["receivers"]}
    assert {document["route"]["receiver"], *(one["receiver"] for one in document["route"]["routes"])} <= receivers
