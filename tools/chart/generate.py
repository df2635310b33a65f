"""Writes README.md and values.schema.json of the chart from its values.yaml, and its table of topics.

python -m tools.chart.generate            write them
python -m tools.chart.generate --check    exit status 1 when one is not as it would be written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from tools.chart.values import CHART, Value, read

from oraculo.settings.settings import COLLECTOR_VARIABLES, VARIABLES
from oraculo.wire import names
from oraculo.wire.flow.topic_table import MESSAGE_MAX_BYTES, needs_of
from oraculo.wire.flow.topics import Topics

TOPIC_KEYS = {
    "consensus": "consensusTopic",
    "tickets": "ticketsTopic",
    "results": "resultsTopic",
    "telemetry": "telemetryTopic",
    "incidents": "incidentsTopic",
}
SLA_TOPIC_SETTINGS = {"SLA_ALERTS_TOPIC", "SLA_VIOLATIONS_TOPIC", "SLA_BUDGETS_TOPIC", "SLA_FREEZE_EVENTS_TOPIC"}
READ_BY_LIBRARIES = {"PGSSLMODE", "OTEL_RESOURCE_ATTRIBUTES"}  # of libpq, of the SDK of OpenTelemetry
READ = {variable.name for variable in (*VARIABLES, *COLLECTOR_VARIABLES)} | READ_BY_LIBRARIES
HEAD = """\
<!-- Made by tools/chart/generate.py from values.yaml: change it there. -->
# Chart orchestrator-dynamic

Oráculo on Kubernetes 1.27 or newer: `oraculo up` behind a Service, and, when they are wanted, the engine, workers and
Celery in Deployments of their own. It brings no database and no broker.
[docs/deploy/kubernetes.md](../../docs/deploy/kubernetes.md) explains how to run it; this page lists every value.

```console
$ helm upgrade --install orchestrator-dynamic . --namespace neural-hive-orchestration --create-namespace \\
    --values values.yaml --set image.tag=0.2.0 --wait
```

| values file | what it is |
|---|---|
| `values.yaml` | the defaults: PostgreSQL, Kafka and Temporal at the addresses of a Neural Hive cluster |
| `values-demo.yaml` | SQLite on a volume, one pod, no other server |
| `values-production.yaml` | PostgreSQL and RabbitMQ, API and engine apart, workers scaled by KEDA, monitoring |
| `values-fluxo-c.yaml` | Fluxo C with Kafka, Temporal, PostgreSQL, MongoDB and Redis |

A value that is not in this table is refused, and so is one of the wrong type. Values that contradict each other are
refused with one line that names them.

## Values

| value | default | what it is for |
|---|---|---|
"""
ENVIRONMENT = """
## Values and environment variables

The variables keep the names of the original service. Those in **bold** are read by this version of Oráculo; the others
are there for programs beside it that read the same names, and change nothing in Oráculo. Where none of a value is read,
the value decides about other variables, or about objects of the chart.

| value | variables |
|---|---|
"""
SECRETS = """
## Secrets

All of them come from one Secret: `secrets.existingSecret`, or one that the chart makes. `secrets.keys` names the keys.

| value | variable |
|---|---|
"""


def schema(values: list[Value]) -> dict[str, Any]:
    """JSON schema of the values: nothing beside what is documented is allowed."""
    made: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart orchestrator-dynamic",
        "type": "object",
        "properties": {"global": {"type": "object"}},
        "additionalProperties": False,
    }
    for value in values:
        level = made
        for name in value.path[:-1]:
            level = level["properties"].setdefault(
                name, {"type": "object", "properties": {}, "additionalProperties": False}
            )
        level["properties"][value.path[-1]] = {"description": value.text, **value.schema}
    return made


def readme(values: list[Value]) -> str:
    """Markdown page of every value, every variable and every secret."""
    rows = [f"| `{value.key}` | {_default(value.default)} | {_cell(value.text)} |\n" for value in values]
    environment = yaml.safe_load((CHART / "files" / "environment.yaml").read_text(encoding="utf-8"))
    secrets = yaml.safe_load((CHART / "files" / "secrets.yaml").read_text(encoding="utf-8"))
    variables = [
        f"| `config.{row['key']}` | {', '.join(_variable(name) for name in row['set'])} |\n" for row in environment
    ]
    secret = [f"| `secrets.{name}` | {_variable(variable)} |\n" for name, variable in secrets.items()]
    return "".join([HEAD, *rows, ENVIRONMENT, *variables, SECRETS, *secret])


def _variable(name: str) -> str:
    return f"**`{name}`**" if name in READ else f"`{name}`"


def _default(default: Any) -> str:
    text = json.dumps(default, ensure_ascii=False, separators=(", ", ": "))
    return f"`{_cell(text)}`" if default not in ("", None) else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def topics() -> str:
    """The topics of Fluxo C for KafkaTopics; `key` is the value below `config.kafka` that names another. Those of
    alerts are wanted where `when` is set, and `setting` names another."""
    named = Topics()
    sla = {variable.default: variable.name for variable in VARIABLES if variable.name in SLA_TOPIC_SETTINGS}
    rows = []
    for need in needs_of(named, sla=sla):
        name, suffix = need.name, ""
        if name not in named.every and name not in sla:
            name, suffix = need.name.removesuffix(names.DLQ), names.DLQ
        row: dict[str, Any] = {"topic": name}
        key = next((key for field, key in TOPIC_KEYS.items() if getattr(named, field) == name), None)
        row |= {"key": key} if key else {}
        row |= {"setting": sla[name], "when": "ORACULO_SLA"} if name in sla else {}
        row |= {"suffix": suffix} if suffix else {}
        kept = round(need.retention.total_seconds() * 1000)
        rows.append({**row, "partitions": need.partitions, "retentionMs": kept, "maxMessageBytes": MESSAGE_MAX_BYTES})
    made = "# Made by tools/chart/generate.py from the table that `oraculo topics` uses: change it there.\n"
    return f"{made}{yaml.safe_dump(rows, sort_keys=False, default_flow_style=None, width=200)}"


def files() -> dict[Path, str]:
    values = read()
    return {
        CHART / "README.md": readme(values),
        CHART / "values.schema.json": json.dumps(schema(values), indent=2, ensure_ascii=False) + "\n",
        CHART / "files" / "topics.yaml": topics(),
    }


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    stale = [path for path, text in files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not check:
            path.write_text(files()[path], encoding="utf-8")
        sys.stdout.write(f"{'stale' if check else 'written'}: {path.relative_to(CHART.parents[1])}\n")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
