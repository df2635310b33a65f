"""Dashboard, rules and runbooks as they are written: as the code says, and as promtool takes them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from deploy.observability import generate
from deploy.observability.alerts import ALERTS

import servers

ROOT = Path(__file__).parents[2]


def test_what_is_written_is_what_the_code_says() -> None:
    assert generate.main(["--check"]) == 0


def test_the_nine_rows() -> None:
    document = json.loads((ROOT / "deploy" / "grafana" / "orchestration-flow-c.json").read_text())
    assert [panel["title"] for panel in document["panels"] if panel["type"] == "row"] == [
        "Overview", "Workflow duration", "Tickets", "SLA tracking", "Retry and compensation", "Kafka integration",
        "Validations and optimizations", "Resources", "Logs and traces",
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


@pytest.mark.parametrize(("verb", "file"), [("check", "rules.yml"), ("test", "rules_test.yml")])
def test_promtool(verb: str, file: str) -> None:
    servers.use("prometheus")
    done = subprocess.run(
        ["promtool", verb, "rules", file],
        cwd=ROOT / "deploy" / "prometheus",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
