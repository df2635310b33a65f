"""Writes the dashboard (deploy/grafana), the rules and their tests (deploy/prometheus), and the chart's copies of them.

python -m tools.observability.generate            write them
python -m tools.observability.generate --check    exit status 1 when one is not as it would be written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from tools.observability.alerts import ALERTS, RECORDINGS, Alert
from tools.observability.feature_alerts import FEATURE_ALERTS
from tools.observability.feature_panels import FEATURE_ROWS
from tools.observability.panels import ROWS, Panel

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY.parent / "helm-charts" / "orchestrator-dynamic" / "files"  # a chart reads nothing outside itself
WIDTH, HEIGHT, COLUMNS = 8, 7, 3
EVERY_ALERT = (*ALERTS, *FEATURE_ALERTS)
MADE = "# Made by tools/observability/generate.py from alerts.py: change it there.\n"


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top, number = 0, 0
    for row in (*ROWS, *FEATURE_ROWS):
        number += 1
        place = {"x": 0, "y": top, "w": WIDTH * COLUMNS, "h": 1}
        panels.append(
            {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        )
        top += 1
        for index, panel in enumerate(row.panels):
            number += 1
            x, y = index % COLUMNS * WIDTH, top + index // COLUMNS * HEIGHT
            panels.append(_panel(panel, number, {"x": x, "y": y, "w": WIDTH, "h": HEIGHT}))
        top += -(-len(row.panels) // COLUMNS) * HEIGHT
    return {
        "uid": "oraculo-flow-c",
        "title": "Oráculo: orchestration flow C",
        "tags": ["oraculo", "orchestration"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _variable("job", ""), _variable("instance", 'job=~"$job"')]},
        "annotations": {"list": []},
        "panels": panels,
    }


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    made: dict[str, Any] = {"id": number, "type": panel.kind, "title": panel.title, "gridPos": place}
    if panel.kind == "text":
        return {**made, "options": {"mode": "markdown", "content": panel.text}}
    return {
        **made,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": chr(65 + index), "expr": query.expression, "legendFormat": query.legend or "__auto"}
            for index, query in enumerate(panel.queries)
        ],
    }


def _source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _variable(name: str, condition: str) -> dict[str, Any]:
    query = f"label_values(orchestration_workflows_active{{{condition}}}, {name})"
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def rules() -> dict[str, Any]:
    records = [{"record": one.name, "expr": one.expression} for one in RECORDINGS]
    alerts = [
        {
            "alert": one.name,
            "expr": one.expression,
            "for": one.lasts,
            "labels": {"severity": one.severity},
            "annotations": _annotations(one),
        }
        for one in EVERY_ALERT
    ]
    return {"groups": [{"name": "oraculo-records", "rules": records}, {"name": "oraculo", "rules": alerts}]}


def _annotations(alert: Alert) -> dict[str, str]:
    return {"summary": alert.summary, "runbook_url": f"docs/runbooks/{alert.page}"}


def tests() -> dict[str, Any]:
    """For promtool: in its story an alert fires, in the quiet one it does not."""
    made = []
    for alert in EVERY_ALERT:
        fired = {
            "exp_labels": {"severity": alert.severity, **alert.expects},
            "exp_annotations": _annotations(alert),
        }
        for name, story, expected in (("fires", alert.story, [fired]), ("is quiet", alert.quiet, [])):
            made.append(
                {
                    "name": f"{alert.name} {name}",
                    "interval": "1m",
                    "input_series": [{"series": series, "values": values} for series, values in story.items()],
                    "alert_rule_test": [{"eval_time": alert.at, "alertname": alert.name, "exp_alerts": expected}],
                }
            )
    return {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": made}


def files() -> dict[Path, str]:
    def written(document: dict[str, Any]) -> str:
        return MADE + str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120))

    board = json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"
    return {
        DEPLOY / "grafana" / "orchestration-flow-c.json": board,
        DEPLOY / "prometheus" / "rules.yml": written(rules()),
        DEPLOY / "prometheus" / "rules_test.yml": written(tests()),
        CHART / "orchestration-flow-c.json": board,
        CHART / "rules.yml": written(rules()),
    }


def main(arguments: list[str]) -> int:
    stale = [path for path, text in files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" not in arguments:
        for path in stale:
            path.write_text(files()[path], encoding="utf-8")
    for path in stale:
        sys.stdout.write(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(DEPLOY.parent)}\n")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
