"""Logs: every line is JSON with ECS names; an orchestration is found over all processes; no secret is in any line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acceptance.conftest import Server
from observability.otlp import Receiver
from oraculo import __version__, redaction
from oraculo.adapters.sinks.otel.export import Exporter
from oraculo.settings.settings import load
from waiting import DEADLINE_S, eventually

HERE = Path(__file__).parent
DEPLOY = HERE.parents[1] / "deploy"
REQUIRED = {"@timestamp", "log.level", "message", "ecs.version", "service.name", "service.version", "host.name"}


def lines(path: Path) -> list[dict[str, Any]]:
    """Every line parses and has what ECS wants of it."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for line in found:
        assert line.keys() >= REQUIRED, line
    return found


def start(folder: Path, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    with open(folder / "stderr.log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "oraculo", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(HERE), "LOG_LEVEL": "INFO", **env},
            stdout=subprocess.DEVNULL,
            stderr=log,
        )


def test_one_orchestration_over_three_processes(tmp_path: Path) -> None:
    server = Server(tmp_path, [])
    server.up(LOG_LEVEL="DEBUG")
    workers = [
        start(tmp_path / name, "worker", f"planted_worker:{name}", "--url", server.url) for name in ("worker", "other")
    ]
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    try:
        for name in ("procurada", "outra"):
            body = {"correlation_id": name, "coletas": [{"fonte": "um"}], "execucoes": [{"executador": "dois"}]}
            headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
            assert server.call("POST", "/api/v1/orchestrations", json=body, headers=headers) is not None
            assert server.result(name)["status"] == "concluida"
    finally:
        for one in workers:
            one.terminate()
            one.wait()
        assert server.terminate() == 0
    files = [tmp_path / "stderr.log", tmp_path / "worker" / "stderr.log", tmp_path / "other" / "stderr.log"]
    every = [(file, line) for file in files for line in lines(file)]
    mine = sorted(
        (
            (line["@timestamp"], file.parent.name, line)
            for file, line in every
            if line.get("correlation_id") == "procurada"
        ),
        key=lambda one: one[0],
    )
    told = [(where, line.get("event.action") or line["message"]) for _, where, line in mine]
    home = tmp_path.name
    assert {where for where, _ in told} == {home, "worker", "other"}
    actions = [action for where, action in told if where == home]
    assert (actions[0], actions[-1]) == ("orchestration_started", "orchestration_closed")
    assert ("worker", "work done") in told and ("other", "work done") in told
    assert {action for where, action in told if where == home} >= {
        "tickets_dispatched",
        "ticket_concluded",
        "fan_in_closed",
    }
    for _, _, line in mine:
        assert line["trace.id"] == trace
        assert "ticket_id" in line or "plan_id" in line
    answered = {line["ticket_id"] for _, where, line in mine if where != home}
    assert answered == {line["ticket_id"] for _, _, line in mine if line.get("event.action") == "ticket_concluded"}
    assert len({line["plan_id"] for _, _, line in mine if "plan_id" in line}) == 1


SECRETS = {
    "api": "chave-da-api-9c1f7e",
    "webhook": "whsec_c2VncmVkby1kby13ZWJob29rLWNvbS0zMi1ieXRl",
    "otel": "senha-do-coletor-77ab",
    "broker": "senha/do+broker-31f0",
    "worker": "segredo-do-worker-5d2a",
    "caller": "token-de-quem-chama-81e3",
}


def test_a_planted_secret_is_nowhere(tmp_path: Path) -> None:
    key = {"authorization": f"Bearer {SECRETS['api']}"}
    said: list[str] = []
    with Receiver("grpc") as receiver:
        server = Server(tmp_path, ["--worker", "planted_worker:worker"])
        server.up(
            LOG_LEVEL="DEBUG",
            PYTHONPATH=str(HERE),
            PLANTED=SECRETS["worker"],
            ORACULO_API_KEY=SECRETS["api"],
            ORACULO_WEBHOOK_SECRET=SECRETS["webhook"],
            OTEL_EXPORTER_ENDPOINT=receiver.url,
            OTEL_EXPORTER_HEADERS=f"authorization=Bearer {SECRETS['otel']}",
            ORACULO_MAX_TENTATIVAS="2",
        )
        away = f"amqp://ana:{SECRETS['broker'].replace('/', '%2F')}@127.0.0.1:1/"
        deaf = start(tmp_path / "deaf", "up", "--port", "0", ORACULO_BROKER=away, LOG_LEVEL="DEBUG")
        idle = start(tmp_path / "idle", "worker", "planted_worker:other", ORACULO_BROKER=away, LOG_LEVEL="DEBUG")
        try:
            body = {
                "correlation_id": "plantada",
                "coletas": [{"fonte": "falha"}],
                "notificar": {"webhook": f"https://ana:{SECRETS['caller']}@127.0.0.1/aviso"},
            }
            said.append(_text(server, "POST", "/api/v1/orchestrations", json=body, headers=key))
            del body["notificar"]
            said.append(_text(server, "POST", "/api/v1/orchestrations", json=body, headers=key))
            with httpx2.Client(trust_env=False) as client:
                wrong = {"authorization": f"Bearer {SECRETS['caller']}"}
                said.append(client.get(f"{server.url}/api/v1/orchestrations", headers=wrong).text)
            eventually(
                lambda: _text(server, "GET", "/api/v1/orchestrations/plantada/result", headers=key).count("erro")
            )
            receiver.until(lambda seen: bool(seen.named("orchestration_workflow.run")))
            for path in (
                "/metrics",
                "/ready",
                "/api/v1/orchestrations/plantada",
                "/api/v1/orchestrations/plantada/events",
            ):
                said.append(_text(server, "GET", path, headers=key))
            for folder in ("deaf", "idle"):
                eventually(lambda one=folder: "probe failed" in (tmp_path / one / "stderr.log").read_text())
        finally:
            for process in (deaf, idle):
                process.terminate()
                process.wait(DEADLINE_S)
            assert server.terminate() == 0
    assert any("***" in text for text in said)  # the error of the worker was shown, without its secret
    assert any(one["authorization"] == f"Bearer {SECRETS['otel']}" for one in receiver.headers)
    for file in (tmp_path, tmp_path / "deaf", tmp_path / "idle"):
        lines(file / "stderr.log")
        said.append((file / "stderr.log").read_text())
    said += [raw.decode("latin-1") for raw in receiver.raw]
    for name, secret in SECRETS.items():
        assert [text[:2000] for text in said if secret in text] == [], name


def _text(server: Server, method: str, path: str, **options: Any) -> str:
    answer = server.call(method, path, **options)
    assert answer is not None
    return answer.text


class TestRedaction:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("amqp://ana:senha@host:5672/", "amqp://ana:***@host:5672/"),
            ("postgresql://u:p@ss@h/db is away", "postgresql://u:***@h/db is away"),
            ("redis://:x@h/0", "redis://:***@h/0"),
            ("Authorization: Bearer abc.def", "Authorization: *** ***"),
            ('{"token": "abc", "n": 1}', '{"token": "***", "n": 1}'),
            ("password=abc&n=1", "password=***&n=1"),
            ("x-api-key: abc", "x-api-key: ***"),
            ("signed with whsec_YWJj", "signed with ***"),
            ("eyJhbGciOi.eyJzdWIi.c2ln", "***"),
            ("sem resposta de escavador_x em 30 s", "sem resposta de escavador_x em 30 s"),
            ("https://example.com/feed.xml?page=2", "https://example.com/feed.xml?page=2"),
        ],
    )
    def test_texts(self, text: str, shown: str) -> None:
        assert redaction.redact(text) == shown

    def test_values_that_are_known(self) -> None:
        redaction.know(["só-eu-sei", "a%2Fb%2Fcde", "abc"])
        assert redaction.redact("só-eu-sei a/b/cde abc") == "*** *** abc"

    def test_structures_by_the_names_in_them(self) -> None:
        given = {"headers": {"Authorization": "x", "n": 1}, "list": ["Bearer abcd"], "webhook_secret": "y", "key": "z"}
        shown = {
            "headers": {"Authorization": "***", "n": 1},
            "list": ["Bearer ***"],
            "webhook_secret": "***",
            "key": "z",
        }
        assert redaction.clean(given) == shown
        assert redaction.clean(ValueError("token=abc")) == "token=***"


class TestElk:
    def test_every_field_that_is_logged_is_mapped(self, tmp_path: Path) -> None:
        template = json.loads((DEPLOY / "elk" / "index-template.json").read_text())
        mapped = _flat(template["template"]["mappings"]["properties"])
        wanted = REQUIRED | {"correlation_id", "ticket_id", "plan_id", "trace.id", "span.id", "error.stack_trace"}
        wanted |= {"event.action", "error.message", "log.logger", "process.pid", "duration_ms", "tentativa", "queue"}
        assert wanted <= mapped


def _flat(properties: dict[str, Any], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for name, one in properties.items():
        found |= _flat(one["properties"], f"{prefix}{name}.") if "properties" in one else {prefix + name}
    return found


@pytest.mark.parametrize(("given", "version"), [("", __version__), ("7.7.0-casa", "7.7.0-casa")])
def test_the_version_of_the_service_is_the_one_that_is_set(given: str, version: str) -> None:
    program = (
        "import structlog; from oraculo import logs; from oraculo.settings.settings import load\n"
        f"logs.configure('INFO', 'json', *load({{'SERVICE_VERSION': '{given}'}}, None).traces.service)\n"
        "structlog.get_logger('x').info('started')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr.splitlines()[-1])["service.version"] == version
    exported = Exporter(
        "http://127.0.0.1:9/v1/traces", "http", {}, load({"SERVICE_VERSION": given}, None).traces.service
    )
    assert dict(exported._resource.attributes)["service.version"] == version
    exported.close()
