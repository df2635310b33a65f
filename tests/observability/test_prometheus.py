"""A real Prometheus scrapes a mixed load: every panel and alert has data, and the numbers are those of the journal."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tools.observability.alerts import ALERTS, RECORDINGS
from tools.observability.panels import ROWS, Panel
from tools.servers.prometheus import Prometheus

import servers
from acceptance.conftest import Server
from observability.otlp import Receiver
from observability.truth import Truth
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.families import described
from waiting import eventually

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
API = "/api/v1/orchestrations"
POISON = 11
pytestmark = pytest.mark.xdist_group("observability-prometheus")

PANELS = [panel for row in ROWS for panel in row.panels if panel.queries]
SUM = re.compile(r"sum(?: by \(([^)]*)\))? \((?:rate\()?(\w+)\{([^}]*)\}(?:\[[^\]]*\]\))?\)")
QUANTILE = re.compile(r"histogram_quantile\(([\d.]+), .*?(\w+)_bucket")


@dataclass
class Scene:
    """What is there after the load."""

    server: Server
    prometheus: Prometheus
    truth: Truth
    produced: tuple[float, float]  # Kafka's count before it was killed, and what it should have been


class Load:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.sent = 0

    def submit(self, name: str, **body: Any) -> None:
        answer = self.server.call("POST", API, json={"correlation_id": name, **body})
        assert answer is not None and answer.status_code == 202, answer

    def good(self, count: int, prefix: str) -> None:
        names = [f"{prefix}-{number}" for number in range(count)]
        for name in names:
            self.submit(name, coletas=[{"fonte": "um"}, {"fonte": "um"}], execucoes=[{"executador": "dois"}])
        for name in names:
            assert self.server.result(name)["status"] == "concluida"

    def bad(self) -> None:
        """Errors after retries, tickets and orchestrations out of time, a partial end, a cancelled one."""
        for number in range(3):
            self.submit(f"erro-{number}", coletas=[{"fonte": "falha", "max_tentativas": 3}])
        nobody = {"fonte": "ninguem", "timeout_s": 0.5, "max_tentativas": 2}
        self.submit("parcial", coletas=[{"fonte": "um"}, nobody], notificar={"fila": "avisos"})
        self.submit("fora-do-prazo", coletas=[{"fonte": "ninguem"}], timeout_s=1)
        self.submit("cancelada", coletas=[{"fonte": "ninguem"}])
        eventually(lambda: self._status("cancelada") == "em_execucao")  # its message is confirmed
        assert self.server.call("POST", f"{API}/cancelada/cancel") is not None
        endings = {"parcial": "parcial", "fora-do-prazo": "timeout", "cancelada": "cancelada", "erro-0": "erro"}
        for name, status in {**endings, "erro-1": "erro", "erro-2": "erro"}.items():
            assert self.server.result(name)["status"] == status

    def flow(self) -> None:
        """A plan of Fluxo C that fails and is undone, and one that ends well."""
        for name, workers in (("desfeito", ("dois", "quebra")), ("plano", ("dois", "dois"))):
            tasks = [
                {"task_id": f"t{n}", "task_type": "BUILD", "description": "x", "worker": one, "max_retries": 0,
                 "dependencies": [f"t{n - 1}"] if n else []}
                for n, one in enumerate(workers)
            ]  # fmt: skip
            plan = {
                "plan_id": name, "intent_id": "i", "correlation_id": name, "risk_band": "high", "tasks": tasks,
                "execution_order": [one["task_id"] for one in tasks],
            }  # fmt: skip
            answer = self.server.call("POST", "/api/v1/plans", json=plan)
            assert answer is not None and answer.status_code == 202, answer
        assert self.server.result("desfeito")["fluxo_c"]["metrics"]["compensated_tickets"] == 2
        assert self.server.result("plano")["status"] == "concluida"
        asked = self.server.call("POST", "/api/v1/workflows/orch-plano/query", json={"query_name": "get_status"})
        assert asked is not None and asked.status_code == 200

    def _status(self, name: str) -> str:
        shown = self.server.call("GET", f"{API}/{name}")
        assert shown is not None
        return str(shown.json()["status"])

    def strange(self) -> None:
        """A late answer, duplicates, one that disagrees, poison, a request that is repeated, wrong ones, nameless."""
        shown = self.server.call("GET", f"{API}/fora-do-prazo")
        assert shown is not None
        ticket = shown.json()["tickets"][0]
        late: dict[str, Any] = {
            "correlation_id": "fora-do-prazo",
            "tipo_evento": "resultado_coleta",
            "payload": {"fonte": "ninguem", "status": "ok", "dados": 1},
            "timestamp": "2025-10-14T12:00:00Z",
            "ticket_id": ticket["ticket_id"],
            "tentativa": ticket["tentativas"],
        }
        other = {**late, "payload": {**late["payload"], "dados": 2}}
        for said in (late, late, late, other):
            assert self.server.call("POST", "/api/v1/results", json=said) is not None
        unknown = {**late, "correlation_id": "de-outro-lugar", "ticket_id": None}
        for _ in range(POISON):
            assert self.server.call("POST", "/api/v1/results", json=unknown) is not None
        repeated = {"coletas": [{"fonte": "um"}], "correlation_id": "de-novo"}
        for _ in range(2):
            assert self.server.call("POST", API, json=repeated) is not None
        self.server.result("de-novo")
        unnamed = self.server.call("POST", API, json={"coletas": [{"fonte": "um"}]})
        assert unnamed is not None
        self.server.result(unnamed.json()["correlation_id"])
        for wrong in ({"coletas": 1}, {"coletas": []}):
            answer = self.server.call("POST", API, json=wrong)
            assert answer is not None and answer.status_code == 422


BREAKERS = {"ORACULO_BREAKER_FAILURES": "1000", "ORACULO_RETENTION": "52w"}  # nothing opens, nothing is forgotten


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("prometheus")
    servers.use("prometheus")
    kafka, redis, mongo = (servers.own(name, folder) for name in ("kafka", "redis", "ferretdb"))
    server = Server(folder, [])
    prometheus = servers.own("prometheus", folder)
    assert isinstance(prometheus, Prometheus)
    prometheus.targets, prometheus.rules = [f"127.0.0.1:{server.port}"], [ROOT / "deploy" / "prometheus" / "rules.yml"]
    with kafka, redis, mongo, Receiver("http") as receiver:
        env = {"ORACULO_BROKER": f"{kafka.url},{redis.url}", "PLANTED": "x", "PYTHONPATH": str(HERE)}
        env["ORACULO_TICKET_WEBHOOKS"] = "standard"
        server.up(**env, OTEL_EXPORTER_ENDPOINT=receiver.url, LOG_LEVEL="INFO", MONGODB_URI=mongo.url, **BREAKERS)
        worker = subprocess.Popen(
            [sys.executable, "-m", "oraculo", "worker", "planted_worker:both"],
            cwd=folder,
            env={**os.environ, **env, "LOG_LEVEL": "ERROR"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with prometheus:
                eventually(lambda: prometheus.query("orchestration_workflows_active"))
                yield _played(server, prometheus, kafka, mongo)
        finally:
            worker.kill()
            worker.wait()
            if server.running:
                server.kill()


def _played(server: Server, prometheus: Prometheus, kafka: Any, mongo: Any) -> Scene:
    load = Load(server)
    load.good(12, "antes")
    load.bad()
    load.flow()
    load.strange()
    eventually(lambda: _metric(server, "orchestration_notifications_total", resultado="entregue") == 1)
    sent = _metric(server, "orchestration_tickets_published_total", status="confirmed") + 1  # and the notice
    told = Truth(server.store).told
    eventually(lambda: sum(_all(server, "orchestration_topic_records_total")) == sum(told.values()))
    published = sent - 1
    sent += sum(told.values())
    produced = _metric(server, "orchestration_kafka_messages_produced_total")
    kafka.kill()
    load.good(4, "depois")
    eventually(lambda: _metric(server, "orchestration_broker_up", broker="kafka") == 0)
    mongo.kill()
    load.submit("aberta", coletas=[{"fonte": "ninguem"}])
    eventually(lambda: _measured(server, "escavador_um"))

    def scraped() -> Truth | None:
        """Nothing happens any more, and Prometheus knows all of it."""
        truth = Truth(server.store)
        wanted = [truth.total(f"orchestration_{name}") for name in ("journal_events_total", "dead_letters_waiting")]
        seen = prometheus.query("orchestration_journal_events_total")
        dead = prometheus.query("sum(orchestration_dead_letters_waiting)")
        running = (
            truth.open == 1 and not truth.owing and truth.total("orchestration_tickets_published_total") > published
        )
        known = running and seen and dead and [float(one[0]["value"][1]) for one in (seen, dead)] == wanted
        return truth if known else None

    truth = eventually(scraped)
    time.sleep(1.1)  # two more scrapes, so that alerts have looked at it
    return Scene(server, prometheus, truth, (produced, sent))


def _measured(server: Server, queue: str) -> bool:
    """The prober has looked at the queues since it is known."""
    answer = server.call("GET", "/metrics")
    names = ("orchestration_queue_depth", "orchestration_queue_oldest_seconds")
    return answer is not None and all(f'{name}{{fila="{queue}"}}' in answer.text for name in names)


def _metric(server: Server, name: str, **labels: str) -> float:
    answer = server.call("GET", "/metrics")
    assert answer is not None
    wanted = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    found = re.search(rf"^{name}{re.escape('{' + wanted + '}') if wanted else ''} (\S+)$", answer.text, re.MULTILINE)
    return float(found[1]) if found else -1


def _all(server: Server, name: str) -> list[float]:
    answer = server.call("GET", "/metrics")
    assert answer is not None
    return [float(value) for value in re.findall(rf"^{name}{{.*}} (\S+)$", answer.text, re.MULTILINE)]


def plain(expression: str) -> str:
    """With what Grafana would fill in."""
    return expression.replace("$job", ".*").replace("$instance", ".*").replace("$__rate_interval", "2m")


def as_it_stands(expression: str) -> str:
    """Totals since the start instead of rates."""
    return re.sub(r"rate\((\w+\{[^}]*\})\[[^\]]*\]\)", r"\1", plain(expression))


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_every_query_of_a_panel_has_data_and_agrees_with_the_journal(scene: Scene, panel: Panel) -> None:
    for query in panel.queries:
        found = scene.prometheus.query(plain(query.expression))
        assert found, query.expression
        stands = scene.prometheus.query(as_it_stands(query.expression))
        if quantile := QUANTILE.match(query.expression):
            _quantile(scene, float(quantile[1]), quantile[2], stands)
        elif panel.title in GAUGES:
            seen = {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in stands}
            assert GAUGES[panel.title](scene, seen), seen
        else:
            _sums(scene, query.expression, stands)


def _sums(scene: Scene, expression: str, stands: list[dict[str, Any]]) -> None:
    sums = list(SUM.finditer(expression))
    assert sums, f"nobody checks {expression}"
    known = {name for _, name, _ in (one.groups() for one in sums)}
    assert known <= scene.truth.series.keys() | MEANS.keys() | OUTSIDE.keys(), f"nobody checks {expression}"
    if len(sums) == 1 and sums[0].group() == expression:
        by, name, _ = sums[0].groups()
        labels = [one.strip() for one in by.split(",")] if by else []
        for sample in stands:
            wanted = {label: sample["metric"][label] for label in labels}
            assert float(sample["value"][1]) == _true(scene, name, wanted), (name, sample)
        if name in scene.truth.series:
            assert sum(float(one["value"][1]) for one in stands) == scene.truth.total(name)
        return
    group = sums[0].group(1)
    for sample in stands:
        labels_of = {group: sample["metric"][group]} if group else {}
        text = expression
        for one in sums:
            text = text.replace(one.group(), str(_true(scene, one.group(2), labels_of, one.group(3))))
        try:
            expected = eval(text)  # arithmetic of numbers
        except ZeroDivisionError:
            assert math.isnan(float(sample["value"][1]))
            continue
        assert float(sample["value"][1]) == pytest.approx(expected), expression


def _true(scene: Scene, name: str, labels: dict[str, str], conditions: str = "") -> float:
    if name in OUTSIDE:
        return OUTSIDE[name](scene, labels)
    if name in MEANS:
        return float("nan") if name not in MEANS else MEANS[name](scene, labels)
    if 'status=~"concluida|parcial"' in conditions:
        return sum(scene.truth.total(name, status=status) for status in ("concluida", "parcial"))
    return scene.truth.total(name, **labels)


def _quantile(scene: Scene, share: float, name: str, stands: list[dict[str, Any]]) -> None:
    """It lies in the bucket of the true one."""
    value = float(stands[0]["value"][1])
    if name == "orchestration_event_loop_lag_seconds":
        assert 0 <= value <= 2.5
        return
    durations = sorted(scene.truth.observed[name])
    assert durations, name
    (found,) = scene.prometheus.query(f"sum({name}_count)")
    count = int(float(found["value"][1]))
    overtaken = scene.truth.overtaken[name]
    assert len(durations) - len(overtaken) <= count <= len(durations), (name, count, durations)
    buckets = [0.0, *(float(one["metric"]["le"]) for one in _buckets(scene, name)), math.inf]
    for missed in combinations(overtaken, len(durations) - count):
        seen = sorted((Counter(durations) - Counter(missed)).elements())
        true = seen[math.ceil(share * len(seen)) - 1]
        index = next(i for i, bound in enumerate(buckets) if true <= bound)
        if buckets[max(0, index - 1)] <= value <= buckets[index]:
            return
    raise AssertionError((name, share, durations, value))


def _buckets(scene: Scene, name: str) -> list[dict[str, Any]]:
    found = scene.prometheus.query(f'sum by (le) ({name}_bucket{{le!="+Inf"}})')
    return sorted(found, key=lambda one: float(one["metric"]["le"]))


def _one(seen: dict[tuple[tuple[str, str], ...], float]) -> float:
    (value,) = seen.values()
    return value


def _by(seen: dict[tuple[tuple[str, str], ...], float], label: str) -> dict[str, float]:
    return {dict(key)[label]: value for key, value in seen.items()}


GAUGES: dict[str, Any] = {
    "Open": lambda scene, seen: _one(seen) == scene.truth.open,
    "Owed to the brokers": lambda scene, seen: _one(seen) == 0,
    "Oldest message owed": lambda scene, seen: _one(seen) == 0,
    "Store": lambda scene, seen: _one(seen) == 1,
    "Waiting in queues": lambda scene, seen: _by(seen, "fila")["orquestrador_resultados"] == 0,
    "Oldest in queues": lambda scene, seen: "escavador_um" in _by(seen, "fila"),
    "Consumers of queues": lambda scene, seen: "escavador_um" in _by(seen, "fila"),
    "Sent to queues": lambda scene, seen: (
        sum(seen.values()) >= scene.truth.total("orchestration_tickets_published_total") > 0
    ),
    "Answered from queues": lambda scene, seen: (
        sum(seen.values())
        == scene.truth.total("orchestration_tickets_completed_total", status="concluida")
        + scene.truth.total("orchestration_attempt_failures_total", causa="erro")
        > 0
    ),
    "Least time left": lambda scene, seen: 3000 < _one(seen) < 3600,
    "Dead letters waiting": lambda scene, seen: (
        _by(seen, "fila")["orquestrador_resultados"] == POISON
        and sum(seen.values()) - POISON
        == scene.truth.total("orchestration_dead_letters_total", motivo="attempts_used_up")
        > 0
    ),
    "Consumer lag": lambda scene, seen: _one(seen) == 0,
    "Brokers that answer": lambda scene, seen: _by(seen, "broker") == {"kafka": 0, "redis": 1},
    "Published to": lambda scene, seen: _by(seen, "broker") == {"kafka": 0, "redis": 1},
    "Round trip of probes": lambda scene, seen: 0 < _by(seen, "broker")["redis"] < 5,
    "Reconnects": lambda scene, seen: _by(seen, "broker").keys() == {"kafka", "redis"},
    "Connections made anew by probes": lambda scene, seen: _by(seen, "broker").keys() == {"kafka", "redis"},
    "Kafka errors since the start": lambda scene, seen: sum(seen.values()) > 0,
    "Produced to Kafka": lambda scene, seen: scene.produced[0] == scene.produced[1] <= _one(seen),
    "CPU": lambda scene, seen: _one(seen) > 0,
    "Memory": lambda scene, seen: _one(seen) > 10_000_000,
    "Open files": lambda scene, seen: _one(seen) > 3,
    "Processes": lambda scene, seen: _one(seen) == 1,
    "Workers over HTTP": lambda scene, seen: _one(seen) == 0,
    "Messages leased": lambda scene, seen: _one(seen) == 0,
    "Lines logged": lambda scene, seen: (
        _by(seen, "level")["info"] >= 2 * scene.truth.total("orchestration_workflows_completed_total")
    ),
    "Spans": lambda scene, seen: _by(seen, "resultado")["feito"] > 0,
    "Questions to workflows": lambda scene, seen: _by(seen, "query_name") == {"get_status": 1, "get_tickets": 0},
    "Projections behind": lambda scene, seen: (
        _by(seen, "projection").keys() == {"breakers", "fluxo_c_topics", "mongodb", "ticket_webhooks"}
    ),
    "Open breakers": lambda scene, seen: sum(seen.values()) == 0,
    "Telemetry on topics": lambda scene, seen: _by(seen, "record") == scene.truth.told,
    "Held back by the ceiling": lambda scene, seen: _one(seen) == 0,
    "Steps in one transaction": lambda scene, seen: _one(seen) >= 1,
}
# Of features that are off here: tests/api/test_slos.py, test_predictions.py, tests of policies and of the registry.
SWITCHED_ON_ELSEWHERE = (
    *("orchestration_sla_", "orchestration_ml_", "opa_", "orchestration_workers_", "neural_hive_pheromone_"),
    *("orchestration_resource_allocations", "orchestration_scheduler_a", "orchestration_scheduler_cache"),
    *(
        "orchestration_scheduler_discovery",
        "orchestration_scheduler_offers",
        "orchestration_scheduler_broker_offers",
        "orchestration_scheduler_rejections",
    ),
    *("orchestration_scheduler_workers", "orchestration_preemption", "orchestration_active_preemptions"),
    *("orchestration_tasks_preempted", "neural_hive_orchestrator_affinity"),
)
OUTSIDE: dict[str, Any] = {  # what no orchestration's journal holds: messages by source, requests that were refused
    "orchestration_kafka_messages_consumed_total": lambda scene, _: _received(scene, "@kafka"),
    "orchestration_messages_received_total": lambda scene, labels: _received(scene, "", labels["fila"]),
    "orchestration_plan_validations_total": lambda scene, labels: (
        2 if labels["result"] == "invalid" else scene.truth.total("orchestration_workflows_started_total") + 1
    ),
    "orchestrator_idempotency_cache_hits_total": lambda scene, _: 1,
    "neural_hive_orchestrator_correlation_id_missing_total": lambda scene, _: 1,
    "orchestration_breakers_opened_total": lambda scene, _: 0,
    "orchestration_runs_forgotten_total": lambda scene, _: 0,
    "orchestration_ticket_webhooks_total": lambda scene, _: 0,  # tests/api/test_ticket_service.py
}
MEANS: dict[str, Any] = {
    "orchestration_workflow_duration_seconds_sum": lambda scene, labels: _durations(scene, labels)[0],
    "orchestration_workflow_duration_seconds_count": lambda scene, labels: _durations(scene, labels)[1],
}


def _received(scene: Scene, broker: str, queue: str = "") -> float:
    """Messages that came over a broker; what came over HTTP is counted without one."""
    return sum(
        value
        for labels, value in scene.truth.series["orchestration_messages_total"].items()
        for fila in [dict(labels)["fila"]]
        if "@" in fila and fila.endswith(broker) and fila.startswith(queue)
    )


def _durations(scene: Scene, labels: dict[str, str]) -> tuple[float, float]:
    return scene.truth.endings[labels["status"]]


ACTIVE = {
    "OraculoBrokerSwitched", "OraculoDeadlineApproaching", "OraculoBrokerDown", "OraculoDeadLettersWaiting",
    "OraculoSlaViolations", "OraculoSuccessRateLow", "OraculoBurnRateFast", "OraculoBurnRateSlow",
    "OraculoConflictingAnswers",
}  # fmt: skip
# By when the queues and the table were looked at, and by how busy the machine is.
POSSIBLE = {"OraculoDeadLettersGrow", "OraculoQueueUnattended", "OraculoEventLoopLag"}
# Empty when somebody takes messages; nothing is projected here.
CONDITIONAL = {"OraculoConsumerSilent", "OraculoProjectionBehind"}
AT_ONCE = {one.name for one in ALERTS if one.lasts == "0m"}


def test_every_alert_measures_something_and_the_right_ones_are_active(scene: Scene) -> None:
    for alert in ALERTS:
        found = scene.prometheus.query(alert.measures)
        assert found or alert.name in CONDITIONAL, alert.name
        for name in re.findall(r"(?:orchestrat\w+|oraculo:[\w:]+|up)(?=[{\[\s)<]|$)", alert.measures):
            assert scene.prometheus.query(name), name
    for record in RECORDINGS:
        assert scene.prometheus.query(record.name), record.name
    states = {one["labels"]["alertname"]: one["state"] for one in scene.prometheus.alerts()}
    assert ACTIVE <= states.keys() <= ACTIVE | POSSIBLE, states
    assert {name for name, state in states.items() if state == "firing"} == ACTIVE & AT_ONCE
    ended = scene.truth.total("orchestration_workflows_completed_total")
    bad = ended - sum(
        scene.truth.total("orchestration_workflows_completed_total", status=one) for one in ("concluida", "parcial")
    )
    measured = scene.prometheus.query("oraculo:error_ratio:1h")
    assert float(measured[0]["value"][1]) == pytest.approx(bad / ended, abs=0.02)  # rates are extrapolated


def test_every_scrape_went_well(scene: Scene) -> None:
    (target,) = scene.prometheus.scrapes()
    assert (target["health"], target["lastError"]) == ("up", "")
    names = {one["metric"]["__name__"] for one in scene.prometheus.query('{job="oraculo"}')}
    stray = {name for name in names if not name.startswith(("scrape_", "up", "ALERTS", "oraculo:", "process_"))}
    exported = {one.name for one in described(Metrics().registry)}
    assert {re.sub("_(bucket|sum|count|created)$", "", name) for name in stray} <= exported | {
        name.removesuffix("_total") for name in exported
    }
    exported -= {"mongodb_persistence_fail_open_total"}  # nothing that MongoDB refuses for good was written
    missing = exported - {re.sub("_(bucket|sum|count)$", "", name) for name in names} - names
    elsewhere = ("mongodb_", "oraculo_projection_", *SWITCHED_ON_ELSEWHERE)  # tests/audit
    assert {name for name in missing if not name.startswith(elsewhere)} == set(), "exported and fed by nobody"
