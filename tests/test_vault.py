"""References to Vault, against a server that answers as its API documents: logins, KV of both versions, and trouble."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapters.workload_api import agent
from oraculo import redaction
from oraculo.errors import SettingsError
from oraculo.settings import vault
from oraculo.settings.settings import load

SECRET = "canary-vault-Zk29xq"
JWT = "eyJ.service.account"


class VaultServer:
    """The part of the HTTP API that is used: POST auth/…/login, GET of a path; `sealed` answers are 503."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.sealed = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._answer(self)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.asked.append((request.command, request.path, dict(request.headers)))
        status, document = self._document(request, json.loads(body) if body else {})
        raw = json.dumps(document).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(raw)))
        request.end_headers()
        request.wfile.write(raw)

    def _document(self, request: BaseHTTPRequestHandler, body: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if self.sealed:
            self.sealed -= 1
            return 503, {"errors": ["Vault is sealed"]}
        logins = {
            "/v1/auth/approle/login": {"role_id": "r", "secret_id": "s"},
            "/v1/auth/kubernetes/login": {"role": "orchestrator-dynamic", "jwt": JWT},
            "/v1/auth/jwt/login": {"role": "other", "jwt": JWT},
        }
        of_svid = {"role": "svid", "jwt": "svid.vault.casa.sig"}
        if request.path in logins:
            if body not in (logins[request.path], of_svid):
                return 400, {"errors": ["invalid role or secret"]}
            return 200, {"auth": {"client_token": "hvs.good", "lease_duration": 3600, "renewable": True}}
        if request.headers.get("X-Vault-Token") != "hvs.good":
            return 403, {"errors": ["permission denied"]}
        held = {"password": SECRET, "uri": f"amqp://u:{SECRET}@h", "number": 7}
        if request.path == "/v1/secret/data/oraculo/kafka":
            return 200, {"data": {"data": held, "metadata": {"version": 3}}}
        if request.path == "/v1/kv1/oraculo":
            return 200, {"data": held}
        return 404, {"errors": []}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[VaultServer]:
    monkeypatch.setattr(vault, "RETRY_FIRST_S", 0.001)
    found = VaultServer()
    yield found
    found.close()


KAFKA = "vault:secret/data/oraculo/kafka#password"


@pytest.mark.parametrize("method", ["token", "approle", "kubernetes", "jwt"])
def test_each_way_to_log_in(server: VaultServer, method: str, tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text(JWT + "\n")
    login = {
        "token": {"VAULT_TOKEN": "hvs.good"},
        "approle": {"VAULT_ROLE_ID": "r", "VAULT_SECRET_ID": "env:ID", "ID": "s"},
        "kubernetes": {"VAULT_JWT_PATH": str(tmp_path / "jwt")},
        "jwt": {"VAULT_JWT_PATH": str(tmp_path / "jwt"), "VAULT_KUBERNETES_ROLE": "other"},
    }[method]
    given = {"VAULT_ADDRESS": server.url, "VAULT_AUTH_METHOD": method, **login}
    chosen = load(
        {
            **given,
            "KAFKA_SASL_PASSWORD": KAFKA,
            "ORACULO_BROKER": "vault:secret/data/oraculo/kafka#uri",
            "POSTGRES_PASSWORD": "vault:kv1/oraculo#password",
            "VAULT_NAMESPACE": "casa",
        },
        None,
    )
    assert (chosen.kafka.password, chosen.broker, chosen.postgres.password) == (SECRET, f"amqp://u:{SECRET}@h", SECRET)
    assert SECRET not in redaction.redact(f"text {SECRET}") and chosen.references["KAFKA_SASL_PASSWORD"] == KAFKA
    paths = [path for _, path, _ in server.asked]
    assert len(paths) == len(set(paths))  # one login, and each path once
    assert {headers["X-Vault-Namespace"] for _, _, headers in server.asked} == {"casa"}


@pytest.mark.parametrize(
    ("reference", "more", "says"),
    [
        ("vault:", {}, "vault:path#field"),
        ("vault:secret/data/oraculo/kafka", {}, "vault:path#field"),
        ("vault:secret/data/nothing#x", {}, "nothing at secret/data/nothing"),
        ("vault:secret/data/oraculo/kafka#x", {}, "no field 'x'"),
        ("vault:secret/data/oraculo/kafka#number", {}, "not a text"),
        (KAFKA, {"VAULT_TOKEN": "hvs.bad"}, "403"),
        (KAFKA, {"VAULT_TOKEN": ""}, "VAULT_TOKEN is needed"),
        (KAFKA, {"VAULT_ADDRESS": ""}, "VAULT_ADDRESS is needed"),
        (KAFKA, {"VAULT_AUTH_METHOD": "approle", "VAULT_ROLE_ID": "r", "VAULT_SECRET_ID": "x"}, "400"),
        (KAFKA, {"VAULT_AUTH_METHOD": "kubernetes", "VAULT_JWT_PATH": "/nowhere"}, "VAULT_JWT_PATH"),
        (KAFKA, {"VAULT_ADDRESS": "http://127.0.0.1:9", "VAULT_MAX_RETRIES": "1"}, "cannot be asked"),
        (KAFKA, {"VAULT_AUTH_METHOD": "ldap"}, "token, approle, kubernetes, jwt"),
    ],
)
def test_what_cannot_be_read_stops_the_start_with_one_line(
    server: VaultServer, reference: str, more: dict[str, str], says: str
) -> None:
    given = {"VAULT_ADDRESS": server.url, "VAULT_TOKEN": "hvs.good", "KAFKA_SASL_PASSWORD": reference, **more}
    with pytest.raises(SettingsError) as refused:
        load(given, None)
    assert says in str(refused.value) and "hvs." not in str(refused.value) and "\n" not in str(refused.value)


def test_a_vault_that_is_sealed_is_asked_again(server: VaultServer) -> None:
    server.sealed = 2
    given = {"VAULT_ADDRESS": server.url, "VAULT_TOKEN": "hvs.good", "KAFKA_SASL_PASSWORD": KAFKA}
    assert load(given, None).kafka.password == SECRET
    server.sealed = 9
    with pytest.raises(SettingsError, match="sealed"):
        load(given, None)


def test_a_folder_of_a_stranger_gets_neither_a_secret_nor_a_token(server: VaultServer, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"KAFKA_SASL_PASSWORD={KAFKA}\n")
    with pytest.raises(SettingsError, match="not secrets in Vault"):
        load({"VAULT_ADDRESS": server.url, "VAULT_TOKEN": "hvs.good"}, tmp_path / ".env")
    (tmp_path / ".env").write_text(f"VAULT_ADDRESS={server.url}\n")
    with pytest.raises(SettingsError, match="VAULT_ADDRESS is needed in the environment"):
        load({"VAULT_TOKEN": "hvs.good", "KAFKA_SASL_PASSWORD": KAFKA}, tmp_path / ".env")
    assert server.asked == []


def test_nothing_is_asked_without_a_reference(server: VaultServer) -> None:
    load({"VAULT_ADDRESS": server.url, "VAULT_TOKEN": "hvs.good"}, None)
    assert server.asked == []


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="spiffe") as folder:
        yield Path(folder)


def by_svid(server: VaultServer, socket: str, **more: str) -> str:
    given = {"VAULT_ADDRESS": server.url, "VAULT_AUTH_METHOD": "jwt", "VAULT_KUBERNETES_ROLE": "svid"}
    spiffe = {"SPIFFE_ENABLED": "true", "SPIFFE_SOCKET_PATH": socket, "SPIFFE_JWT_AUDIENCE": "vault.casa"}
    return load({**given, **spiffe, "KAFKA_SASL_PASSWORD": KAFKA, **more}, None).kafka.password


def test_a_login_shows_the_token_that_the_agent_gives_for_its_audience(server: VaultServer, short_folder: Path) -> None:
    with agent(short_folder) as found:
        assert by_svid(server, found.socket) == SECRET
        assert found.asked == [["vault.casa"]]


@pytest.mark.parametrize("there", [True, False])
def test_without_a_token_of_the_agent_nobody_logs_in_unless_that_is_allowed(
    there: bool, server: VaultServer, short_folder: Path
) -> None:
    (short_folder / "jwt").write_text("svid.vault.casa.sig")
    file = {"VAULT_JWT_PATH": str(short_folder / "jwt"), "VAULT_TIMEOUT_SECONDS": "5"}
    with agent(short_folder) as found:
        found.knows = False
        socket = found.socket if there else f"unix://{short_folder}/none.sock"
        with pytest.raises(SettingsError, match=r"KAFKA_SASL_PASSWORD.*the SPIFFE agent at unix:") as refused:
            by_svid(server, socket, **file)
        assert ("no identity issued" in str(refused.value)) is there
        assert server.asked == []
        assert by_svid(server, socket, SPIFFE_FALLBACK_ALLOWED="true", **file) == SECRET
