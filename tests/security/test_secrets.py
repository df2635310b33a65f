"""Thirty secrets, planted wherever there can be one, and everything that the product says to anybody: logs of all
processes, every route and page, metrics, traces, commands, errors, files that are exported, and last words of a process
that cannot start. A secret is shown where it is made, once, and nowhere else."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import pytest
from tools.servers.server import free_port

from acceptance.conftest import Process, Server
from api.test_matrix import ways
from observability.otlp import Receiver
from test_vault import SECRET as IN_VAULT
from test_vault import VaultServer
from waiting import DEADLINE_S, eventually

HERE = Path(__file__).parent
PLANTED_WORKER = HERE.parent / "observability"
SECRETS = {
    "api key": "chave-da-api-9c1f7e-0f1e2d3c4b5a69788796",
    "webhook secret": "whsec_c2VncmVkby1kby13ZWJob29rLWNvbS0zMi1ieXRl",
    "header of the collector": "senha-do-coletor-77ab",
    "address of the collector": "senha-na-url-otlp-8e77",
    "in Vault": IN_VAULT,
    "token of Vault": "hvs.token-que-vault-recusa-7f31",
    "secret id of Vault": "secret-id-que-vault-recusa-2b9c",
    "data key": "6d" * 15 + "a1b2c3d4e5f60718" + "9e" * 9,
    "SLA webhook": "senha-do-aviso-de-sla-41aa",
    "broker": "senha/do+broker-31f0",
    "token of NATS": "token-do-nats-90ab12",
    "PostgreSQL in a URL": "senha-do-postgres-na-url-5521",
    "PostgreSQL": "senha-do-postgres-8d3e",
    "cache": "senha-do-redis-do-cache-2b2b",
    "cluster of the cache": "senha-do-cluster-do-cache-3e3e",
    "MongoDB": "senha-do-mongo-19fd",
    "SASL of Kafka": "senha-sasl-do-kafka-c0de",
    "schema registry": "senha-do-registro-e1e1",
    "Temporal": "chave-do-temporal-6b6b6b",
    "broker of Celery": "senha-do-broker-do-celery-77",
    "backend of Celery": "senha-do-backend-do-celery-78",
    "S3": "segredo-do-s3-1c1c1c1c",
    "session of S3": "sessao-do-s3-2d2d2d2d",
    "OPA": "senha-do-opa-3c3c3c",
    "address of the server": "senha-na-url-do-servidor-4d4d",
    "worker's error": "segredo-do-worker-5d2a",
    "webhook of a request": "token-de-quem-chama-81e3",
    "wrong key": "chave-errada-de-quem-chama-6e1a-0123456789",
    "wrong password": "senha-errada-de-quem-entra-0a0a",
    "password of a user": "senha-da-ana-no-painel-b00b",
    "line of .env": "linha-sem-igual-e-com-segredo-f00d",
    "header of a request": "segredo-no-cabecalho-aa55aa",
}
MADE = ("stored key", "rotated key", "signing key", "session", "token of an order")  # shown once, where they are made
HTML = {"Accept": "text/html"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def forms(secret: str) -> set[str]:
    """A secret as it is, and as it stands in addresses, in JSON, in Base64."""
    raw = secret.encode()
    found = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}
    for before in (b"", b"a", b"aa"):  # each of the three ways in which it may be cut into groups
        found.add(base64.b64encode(before + raw).decode()[4:-4])
    return {form for form in found if len(form) >= 6}


class Told:
    """Everything that was said, and by whom."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def add(self, where: str, text: str | bytes) -> None:
        self.said.append((where, text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")))

    def found(self, secret: str) -> list[str]:
        """Where it is, and what stands around it."""
        return [
            f"{where}: …{text[max(0, at - 80) : at + 20]!r}"
            for where, text in self.said
            for form in forms(secret)
            if (at := text.find(form)) >= 0
        ]


class Installation:
    """A server with secrets in every setting, and what is done with it."""

    def __init__(self, folder: Path, told: Told, settings: dict[str, str]) -> None:
        self.folder, self.told, self.settings = folder, told, settings
        self.server = Server(folder, ["--worker", "planted_worker:worker"])
        self.keyed = {"Authorization": f"Bearer {SECRETS['api key']}"}

    def call(self, method: str, path: str, **options: Any) -> httpx2.Response:
        options.setdefault("headers", self.keyed)
        answer = self.server.call(method, path, **options)
        assert answer is not None, path
        self.told.add(f"{method} {path}", answer.text + str(answer.headers))
        return answer

    def shown_once(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """An answer with a secret that is made in it."""
        options.setdefault("headers", self.keyed)
        answer = self.server.call(method, path, **options)
        assert answer is not None and answer.is_success, answer and answer.text
        return answer

    def command_once(self, line: str) -> str:
        """What a command says that shows a secret which it has made."""
        return spoken(self.folder, line.split(), {**self.settings, **self.server.env}, Told(), 0)

    def add_user(self, name: str, password: str) -> None:
        """A user of the dashboard; the password is the first line of standard input."""
        done = subprocess.run(
            [sys.executable, "-m", "oraculo", "users", "add", name, "--role", "admin"],
            input=f"{password}\n{password}\n",
            cwd=self.folder,
            env={**os.environ, **self.settings, **self.server.env},
            capture_output=True,
            text=True,
            check=True,
        )
        self.told.add("users add", done.stdout + done.stderr)

    def command(self, line: str, more: dict[str, str]) -> str:
        return spoken(self.folder, line.split(), {**self.settings, **self.server.env, **more}, self.told)


def spoken(folder: Path, arguments: list[str], env: dict[str, str], told: Told, expect: int | None = None) -> str:
    """What a command says, on both streams."""
    number = len(list(folder.glob("command*")))
    errors = folder / f"command{number}"
    errors.mkdir()
    process = Process(arguments, errors, {"PYTHONPATH": str(PLANTED_WORKER), "LOG_LEVEL": "DEBUG", **env})
    process.begin()
    assert process.popen is not None
    out = process.popen.stdout.read()
    code = process.wait()
    said = out + (errors / "stderr.log").read_text()
    told.add(" ".join(arguments), said)
    assert expect is None or code == expect, (arguments, code, said[-1500:])
    return said


def of_the_server(one: Installation) -> dict[str, str]:
    """Work of every kind over HTTP; the secrets that were made meanwhile."""
    made: dict[str, str] = {}
    body: dict[str, Any] = {
        "correlation_id": "plantada",
        "coletas": [{"fonte": "falha", "parametros": {"a": 1}}, {"fonte": "alheia"}],
        "notificar": {"webhook": f"https://ana:{SECRETS['webhook of a request']}@127.0.0.1/aviso"},
    }
    assert one.call("POST", "/api/v1/orchestrations", json=body).status_code == 422
    del body["notificar"]
    assert one.call("POST", "/api/v1/orchestrations", json=body).status_code == 202
    for path in ("/api/v1/orchestrations", "/runs", "/ready", "/nada"):
        for headers in (
            {"X-API-Key": SECRETS["wrong key"]},
            {"Authorization": f"Bearer {SECRETS['wrong key']}", **HTML},
        ):
            one.call("GET", path, headers=headers)
    odd = {**one.keyed, "X-Odd": SECRETS["header of a request"], "Cookie": f"x={SECRETS['header of a request']}"}
    one.call("GET", "/api/v1/orchestrations/plantada", headers=odd)

    key = one.shown_once("POST", "/api/v1/keys", json={"role": "trabalhador", "queues": ["escavador_alheia"]}).json()
    made["stored key"] = key["key"]
    again = one.shown_once("POST", f"/api/v1/keys/{key['id']}/rotate", json={"overlap_s": 0}).json()
    made["rotated key"] = again["key"]
    one.call("GET", "/api/v1/keys")

    leased = one.shown_once(
        "POST", "/api/v1/queues/escavador_alheia/lease", json={"wait": 20}, headers={"X-API-Key": again["key"]}
    ).json()["mensagens"]
    order = leased[0]["mensagem"]
    made["token of an order"] = order["token"].rpartition(".")[2]
    answer = {**order, "tipo_evento": "resultado_coleta", "payload": {"fonte": "alheia", "status": "ok", "dados": [1]}}
    broken = {**answer, "payload": {"status": "talvez"}}
    for sent in (broken, {**answer, "token": "x" + order["token"]}, answer, answer):
        one.call("POST", "/api/v1/results", json=sent)
    eventually(lambda: one.call("GET", "/api/v1/orchestrations/plantada/result").status_code == 200)

    login = one.server.call("POST", "/login", content=urlencode({"key": SECRETS["wrong key"]}), headers=FORM)
    assert login is not None
    one.told.add("a login that is refused", login.text + str(login.headers))
    wrong = urlencode({"user": "ana", "password": SECRETS["wrong password"]})
    one.call("POST", "/login", content=wrong, headers=FORM)
    right = urlencode({"user": "ana", "password": SECRETS["password of a user"]})
    entered = one.server.call("POST", "/login", content=right, headers=FORM)
    assert entered is not None and entered.status_code == 303, entered
    found = re.search(r"orcs_\w+?_([\w-]{43})", entered.headers["set-cookie"])
    assert found
    made["session"] = found[1]
    in_browser = {**HTML, "Cookie": entered.headers["set-cookie"].partition(";")[0]}
    read_everything(one, in_browser)
    return {**made, "stored key": made["stored key"][-43:], "rotated key": made["rotated key"][-43:]}


def read_everything(one: Installation, in_browser: dict[str, str]) -> None:
    """Every route that is read with GET, about what there is; pages as a browser gets them."""
    letters = one.call("GET", "/api/v1/dead-letters").json()["dead_letters"]
    assert letters
    ticket = one.call("GET", "/api/v1/orchestrations/plantada").json()["tickets"][0]["ticket_id"]
    key = one.call("GET", "/api/v1/keys").json()["keys"][0]["id"]
    for way in ways(one.folder):
        if way.method != "GET" or "stream" in way.path or "live" in way.path:
            continue
        about = {"dead-letters": str(letters[0]["id"]), "tickets": ticket, "keys": key}
        value = next((known for name, known in about.items() if name in way.path), "plantada")
        path = way.path.replace("nada", value)
        one.call("GET", path, headers=in_browser if not path.startswith("/api/") else one.keyed)
    for letter in letters:
        one.call("GET", f"/api/v1/dead-letters/{letter['id']}")
        one.call("GET", f"/dead-letters/{letter['id']}", headers=in_browser)
    one.call("GET", "/api/v1/orchestrations/plantada/events?words=en")


def of_commands(one: Installation) -> dict[str, str]:
    """Commands about the server and about its store; the secrets that were made meanwhile."""
    signing = one.command_once("keys create --role trabalhador --queue escavador_x --sign")
    found = re.search(r"orcw_\w+?_([\w-]{43})", signing)
    assert found, signing
    asked = {"ORACULO_URL": one.server.url}
    for line in (
        *("ls", "show plantada", "events", "workers", "brokers", "replicas", "breakers", "pauses", "top --once --json"),
        *("dlq ls --json", "dlq show 1", "task-types ls", "schedules ls", "slos ls", "keys ls --json", "users ls"),
        *("tenants ls", "token-keys ls", "data-keys ls", "policy status", "audit verify", "version", "doctor"),
        *("doctor --json", "replay plantada", "rehearse plantada", "export-test plantada", "audit anchor --to a.json"),
        f"dlq ls --url http://ana:{SECRETS['address of the server']}@127.0.0.1:1",
    ):
        one.command(line, asked)
    for file in one.folder.rglob("a.json"):
        one.told.add(str(file), file.read_text())
    return {"signing key": found[1]}


def last_words(folder: Path, told: Told) -> None:
    """Processes that cannot start, or work with nothing that they were told to reach."""
    store = {"ORACULO_STORE": f"sqlite:///{folder}/away.db"}
    broker = quote(SECRETS["broker"], safe="+")
    with_vault = {"VAULT_ADDRESS": VAULT[0], "ORACULO_WEBHOOK_SECRET": "vault:secret/data/oraculo/kafka#password"}
    kafka = {
        "ORACULO_BROKER": "kafka://127.0.0.1:1",
        "KAFKA_SASL_USERNAME": "ana",
        "KAFKA_SASL_PASSWORD": SECRETS["SASL of Kafka"],
        "KAFKA_SASL_MECHANISM": "PLAIN",
        "KAFKA_SCHEMA_REGISTRY_URL": f"http://ana:{SECRETS['schema registry']}@127.0.0.1:1",
    }
    celery = {
        "ORACULO_ENGINE": "celery",
        "ORACULO_CELERY_BROKER": f"redis://:{SECRETS['broker of Celery']}@127.0.0.1:1/0",
        "ORACULO_CELERY_BACKEND": f"redis://:{SECRETS['backend of Celery']}@127.0.0.1:1/1",
    }
    bucket = {
        "ORACULO_ORDER_DATA": "s3://bucket",
        "ORACULO_S3_ENDPOINT": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": SECRETS["S3"],
        "AWS_SESSION_TOKEN": SECRETS["session of S3"],
    }
    in_url = {"ORACULO_STORE": f"postgresql://ana:{SECRETS['PostgreSQL in a URL']}@127.0.0.1:1/o"}
    reach = [  # settings of something that is away; a second of trying says all that is said about it
        {**store, "ORACULO_BROKER": f"amqp://ana:{broker}@127.0.0.1:1/"},
        {**store, "ORACULO_BROKER": f"nats://{SECRETS['token of NATS']}@127.0.0.1:1"},
        {**store, **kafka, "ORACULO_FLOW_C": "on"},
        {**store, "ORACULO_CACHE": f"redis://:{SECRETS['cache']}@127.0.0.1:1/0"},
        {**store, "REDIS_CLUSTER_NODES": "127.0.0.1:1", "REDIS_PASSWORD": SECRETS["cluster of the cache"]},
        {**store, "MONGODB_URI": f"mongodb://ana:{SECRETS['MongoDB']}@127.0.0.1:1/x?serverSelectionTimeoutMS=200"},
        {
            **store,
            "ORACULO_ENGINE": "temporal",
            "TEMPORAL_HOST": "127.0.0.1:1",
            "TEMPORAL_API_KEY": SECRETS["Temporal"],
        },
        {**store, "ORACULO_POLICIES": f"opa:http://ana:{SECRETS['OPA']}@127.0.0.1:1"},
        {**store, **bucket},
        {**store, "OTEL_EXPORTER_ENDPOINT": f"http://ana:{SECRETS['address of the collector']}@127.0.0.1:1"},
        {**in_url, **celery},
        in_url,
        {"POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": "1", "POSTGRES_PASSWORD": SECRETS["PostgreSQL"]},
    ]
    refused = [
        {**store, **with_vault, "VAULT_TOKEN": SECRETS["token of Vault"]},
        {
            **store,
            **with_vault,
            "VAULT_AUTH_METHOD": "approle",
            "VAULT_ROLE_ID": "r",
            "VAULT_SECRET_ID": SECRETS["secret id of Vault"],
        },
        {**store, "ORACULO_DATA_KEY": SECRETS["data key"] + "zz"},
        {**store, "ORACULO_SIGNING_KEY": SECRETS["data key"]},
        {**store, "ORACULO_SLA_WEBHOOK": f"gopher://ana:{SECRETS['SLA webhook']}@127.0.0.1/"},
        {**store, "ORACULO_BROKER": f"amqp//ana:{broker}@127.0.0.1:1/"},
        {**store, "ORACULO_API_KEY": SECRETS["wrong key"][:20], "ORACULO_HOST": "0.0.0.0"},
        {**store, "OTEL_EXPORTER_HEADERS": SECRETS["header of the collector"]},
    ]
    for settings in refused:
        assert spoken(folder, ["doctor"], settings, told)
    for settings in reach:
        assert spoken(folder, ["doctor", "--json"], settings, told)
    running = []
    for number, settings in enumerate((*refused, *reach)):
        room = folder / f"away{number}"
        room.mkdir()
        process = Process(["up", "--port", str(free_port())], room, {"LOG_LEVEL": "DEBUG", **settings})
        process.begin()
        running.append((room, process))
    for room, process in running:
        eventually(partial(said_anything, room / "stderr.log"))
        process.popen.terminate()  # type: ignore[union-attr]
    for room, process in running:
        process.wait(DEADLINE_S)
        told.add(f"{room.name}", (room / "stderr.log").read_text())
    strange = folder / "strange"
    strange.mkdir()
    (strange / ".env").write_text(f"ORACULO_STORE=sqlite:///x.db\n{SECRETS['line of .env']}\n")
    process = Process(["doctor"], strange, {})
    process.begin()
    process.wait()
    told.add(".env", (strange / "stderr.log").read_text())


def said_anything(log: Path) -> bool:
    return log.exists() and bool(log.read_text())


VAULT: list[str] = []


@pytest.mark.usefixtures("vault")
def test_what_is_planted_is_nowhere(tmp_path: Path) -> None:
    assert len(SECRETS) + len(MADE) >= 25
    told = Told()
    with Receiver("grpc") as receiver:
        settings = {
            "PYTHONPATH": str(PLANTED_WORKER),
            "PLANTED": SECRETS["worker's error"],
            "LOG_LEVEL": "DEBUG",
            "ORACULO_API_KEY": SECRETS["api key"],
            "ORACULO_WEBHOOK_SECRET": SECRETS["webhook secret"],
            "ORACULO_SLA": "true",
            "ORACULO_SLA_WEBHOOK": f"https://ana:{SECRETS['SLA webhook']}@example.com/x",
            "ORACULO_DATA_KEY": SECRETS["data key"],
            "ORACULO_LOCAL_USERS": "on",
            "ORACULO_RESULT_TOKENS": "require",
            "ORACULO_OIDC_ISSUER": "http://127.0.0.1:1",
            "ORACULO_OIDC_CLIENT_ID": "oraculo",
            "ORACULO_OIDC_CLIENT_SECRET": "vault:secret/data/oraculo/kafka#password",
            "VAULT_ADDRESS": VAULT[0],
            "VAULT_AUTH_METHOD": "token",
            "VAULT_TOKEN": "hvs.good",
            "OTEL_EXPORTER_ENDPOINT": receiver.url,
            "OTEL_EXPORTER_HEADERS": f"authorization=Bearer {SECRETS['header of the collector']}",
            "ORACULO_MAX_TENTATIVAS": "2",
        }
        one = Installation(tmp_path, told, settings)
        one.add_user("ana", SECRETS["password of a user"])
        one.server.up(**settings)
        try:
            made = {**of_the_server(one), **of_commands(one)}
            receiver.until(lambda seen: bool(seen.named("orchestration_workflow.run")))
        finally:
            if one.server.running:
                one.server.terminate()
        told.add("log", (tmp_path / "stderr.log").read_text())
        for raw in receiver.raw:
            told.add("traces", raw.decode("latin-1"))
        assert any(one["authorization"].endswith(SECRETS["header of the collector"]) for one in receiver.headers)
    last_words(tmp_path, told)
    for name in ("oraculo.db", "oraculo.db-wal"):  # sealed, hashed; tokens of orders are in no table
        if (tmp_path / name).exists():
            told.add(name, (tmp_path / name).read_bytes())
    assert set(made) == set(MADE)
    assert any("***" in text for _, text in told.said)
    found = {name: where for name, secret in {**SECRETS, **made}.items() if (where := told.found(secret))}
    assert found == {}, "\n".join(f"{name}: {where[:4]}" for name, where in found.items())


@pytest.fixture
def vault() -> Any:
    server = VaultServer()
    VAULT[:] = [server.url]
    yield server
    server.close()
