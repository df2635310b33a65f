"""A real Prometheus scrapes a server with every feature on: panels of features have data, and it is what was done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tools.observability.feature_alerts import FEATURE_ALERTS
from tools.observability.feature_panels import FEATURE_ROWS
from tools.servers.prometheus import Prometheus

import servers
from acceptance.conftest import Server
from waiting import eventually

API = "/api/v1/orchestrations"
RUNS = 6
pytestmark = pytest.mark.xdist_group("observability-features")
PANELS = [panel for row in FEATURE_ROWS for panel in row.panels]
QUIET = {
    "Tickets that made room",
    "Making room",
    "Why others were not",
    "Warnings",
    "Not evaluated",
}  # nothing of the kind happened
POLICY = """package my.rules

import rego.v1

default allow := false

allow if input.resource.name != "proibida"

violations contains {"rule": "forbidden", "severity": "high", "msg": "no"} if input.resource.name == "proibida"
"""


@dataclass
class Scene:
    server: Server
    prometheus: Prometheus


def _done(server: Server, method: str, path: str, wanted: int, **options: Any) -> Any:
    answer = server.call(method, path, **options)
    assert answer is not None and answer.status_code == wanted, answer and answer.text
    return answer.json() if answer.content else None


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("features")
    (folder / "rego").mkdir()
    (folder / "rego" / "rules.rego").write_text(POLICY)
    server = Server(folder, [])
    prometheus = servers.own("prometheus", folder)
    assert isinstance(prometheus, Prometheus)
    prometheus.targets = [f"127.0.0.1:{server.port}"]
    prometheus.rules = [Path(__file__).parents[2] / "deploy" / "prometheus" / "rules.yml"]
    server.up(
        ENABLE_INTELLIGENT_SCHEDULER="true",
        SCHEDULER_ENABLE_AFFINITY="true",
        ORACULO_SLA="true",
        ORACULO_PREDICTIONS="true",
        ORACULO_TRAILS="true",
        ORACULO_POLICIES=f"embedded:{folder / 'rego'}",
        ORACULO_POLICIES_TICKET="my.rules",
        ORACULO_POLICIES_PLAN="",
        ORACULO_POLICIES_ALLOCATION="",
    )
    try:
        with prometheus:
            eventually(lambda: prometheus.query("orchestration_workflows_active"))
            _played(server)
            eventually(lambda: prometheus.query("orchestration_sla_alerts_published_total"))
            eventually(lambda: prometheus.query("orchestration_ml_prediction_coverage"))
            eventually(lambda: prometheus.query('neural_hive_pheromone_strength{pheromone_type="SUCCESS"} > 1'))
            eventually(lambda: prometheus.query("orchestration_sla_freezes_active == 1"))
            yield Scene(server, prometheus)
    finally:
        server.kill()


def _played(server: Server) -> None:
    """Six collections by one of two workers, a refused one, one that misses its deadline, a merged one."""
    objective = {"indicador": "execucoes_concluidas", "objetivo": 0.5, "congelar": {"abaixo": 0.9, "acima": 0.95}}
    _done(server, "PUT", "/api/v1/slos/tudo", 201, json=objective)
    for name in ("um-1", "um-2"):
        _done(server, "POST", "/api/v1/workers", 201, json={"worker": name, "filas": ["escavador_um"]})
    _done(server, "DELETE", "/api/v1/workers/um-2", 204)
    for number in range(RUNS):
        body = {"correlation_id": f"r{number}", "coletas": [{"fonte": "um"}]}
        _done(server, "POST", API, 202, json=body)
    answered = 0
    while answered < RUNS:
        asked = {"max": 10, "wait": 10, "worker": "um-1"}
        for one in _done(server, "POST", "/api/v1/queues/escavador_um/lease", 200, json=asked)["mensagens"]:
            order = one["mensagem"]
            said = {
                **{key: order[key] for key in ("correlation_id", "timestamp", "ticket_id", "tentativa")},
                "tipo_evento": "resultado_coleta",
                "payload": {"fonte": "um", "status": "ok", "dados": []},
            }
            _done(server, "POST", "/api/v1/results", 202, json=said)
            answered += 1
    assert server.result(f"r{RUNS - 1}")["status"] == "concluida"
    _done(server, "POST", API, 202, json={"correlation_id": "recusada", "coletas": [{"fonte": "proibida"}]})
    assert server.result("recusada")["status"] == "erro"
    for name in ("tarde", "mais-tarde"):
        late = {
            "correlation_id": name,
            "coletas": [{"fonte": "ninguem"}],
            "timeout_s": 1,
            "unica": {"modo": "aberta", "chave": "x"},
        }
        _done(server, "POST", API, 202, json=late)
    assert server.result("tarde")["status"] == "timeout"


def plain(expression: str) -> str:
    filled = expression.replace("$job", ".*").replace("$instance", ".*").replace("$__rate_interval", "2m")
    return re.sub(r"rate\((\w+\{[^}]*\})\[[^\]]*\]\)", r"\1", filled)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_every_query_of_a_panel_has_data(scene: Scene, panel: Any) -> None:
    for query in panel.queries:
        found = scene.prometheus.query(plain(query.expression))
        assert found or panel.title in QUIET, query.expression
        name = re.search(r"(?:orchestration|opa|neural)_\w+", query.expression)
        assert name is not None
        text = scene.server.call("GET", "/metrics")
        assert text is not None and f"# TYPE {re.sub('_(sum|count|bucket)$', '', name[0])} " in text.text


def test_the_figures_are_what_was_done(scene: Scene) -> None:
    def values(expression: str, *labels: str) -> dict[str, float]:
        found = scene.prometheus.query(expression)
        return {" ".join(one["metric"].get(label, "") for label in labels): float(one["value"][1]) for one in found}

    assert values("orchestration_resource_allocations_total", "status") == {"success": RUNS, "failed": 0}
    assert sum(values("orchestration_scheduler_allocations_total", "method").values()) == RUNS
    assert values("orchestration_workers_registered_total") == {"": 2}
    assert values("orchestration_workers_deregistered_total") == {"": 1}
    assert values("orchestration_requests_merged_total") == {"": 1}
    assert values("opa_policy_rejections_total", "rule") == {"forbidden": 1}
    assert values("opa_validations_total", "result")["deny"] == 1
    assert values('orchestration_sla_alerts_published_total{alert_type="DEADLINE_EXCEEDED"}') == {"": 1}
    assert values("orchestration_sla_budget_remaining_percent", "slo")["tudo"] == pytest.approx(1 - 2 / 8 / 0.5)


def test_every_alert_of_features_measures_what_is_exported(scene: Scene) -> None:
    text = scene.server.call("GET", "/metrics")
    assert text is not None
    for alert in FEATURE_ALERTS:
        names = set(re.findall(r"(?:orchestration|opa|neural)_\w+", alert.measures))
        assert names, alert.name
        for name in names:
            assert f"# TYPE {re.sub('_(sum|count|bucket)$', '', name)} " in text.text, name
    eventually(lambda: "OraculoDeadlineMissed" in {one["labels"]["alertname"] for one in scene.prometheus.alerts()})
