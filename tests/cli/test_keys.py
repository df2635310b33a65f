"""`oraculo keys`: on the store without a server, and through one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cli.processes import Cli, Server

LONG = "uma-chave-de-teste-com-mais-de-32-letras"

pytestmark = pytest.mark.xdist_group("cli-keys")


def test_keys_without_a_server(alone: Cli) -> None:
    assert alone("keys", "ls").returncode == 3 and not (alone.folder / "oraculo.db").exists()
    made = alone.json("keys", "create", "--role", "admin", "--expires", "90d", "--nota", "primeira")
    assert made["key"].startswith(f"orc_{made['id']}_") and made["criada_por"] == "local"
    [listed] = alone.json("keys", "ls")["keys"]
    assert listed == {name: value for name, value in made.items() if name != "key"}
    shown = alone("keys", "ls")
    assert made["id"] in shown.stdout and made["key"][-43:] not in shown.stdout
    rotated = alone("keys", "rotate", made["id"], "--overlap", "1h")
    assert rotated.stdout.startswith(f"orc_{made['id']}_") and rotated.stdout.count("\n") == 1
    assert alone.json("keys", "revoke", made["id"])["situacao"] == "revogada"
    assert alone("keys", "rotate", made["id"]).returncode == 3
    assert alone("keys", "revoke", "knone").returncode == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--role", "trabalhador"], "queues"),
        (["--role", "leitor", "--queue", "a"], "queues"),
        (["--role", "leitor", "--tenant", "Acme"], "'Acme' does not match"),
        (["--role", "trabalhador", "--tenant", "acme", "--queue", "espaco_outro.a"], "belongs to another tenant"),
        (["--role", "leitor", "--expires", "ontem"], "'ontem' is not an age"),
        (["--role", "leitor", "--expires", "1s"], "expires_s"),
        (["--role", "rei"], "rei"),
    ],
)
def test_a_key_that_cannot_be(alone: Cli, arguments: list[str], says: str) -> None:
    done = alone("keys", "create", *arguments)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_tenants(alone: Cli) -> None:
    assert alone("tenants", "ls").returncode == 3
    made = alone.json("keys", "create", "--role", "operador", "--tenant", "acme", "--expires", "90d")
    assert made["tenant"] == "acme"
    [listed] = alone.json("tenants", "ls")["tenants"]
    assert listed["tenant"] == "acme" and set(listed["limites"].values()) == {None}
    more = ("--max-dead-letters", "7", "--bytes-per-second", "1000", "--max-streams", "3")
    put = alone.json("tenants", "put", "acme", "--max-open", "10", "--per-second", "2.5", *more)
    assert list(put["limites"].values()) == [10, 2.5, 7, 1000, 3] and put["criado_em"] == listed["criado_em"]
    assert "acme" in alone("tenants", "ls").stdout
    for arguments, status, says in (
        (["put", "Acme"], 2, "does not match"),
        (["put", "acme", "--per-second", "0"], 2, "por_segundo"),
        (["rm", "acme"], 1, "1 keys"),
        (["rm", "nenhum"], 3, "nenhum"),
    ):
        done = alone("tenants", *arguments)
        assert done.returncode == status and says in done.stderr and "Traceback" not in done.stderr
    alone("keys", "revoke", made["id"])
    assert alone.json("tenants", "rm", "acme") == {"tenant": "acme"}
    assert alone.json("tenants", "ls") == {"tenants": []}


def test_through_a_server_and_beside_one(tmp_path: Path) -> None:
    server = Server(tmp_path, ORACULO_API_KEY=LONG)
    server.start()
    try:
        cli = Cli(tmp_path, server.url)
        done = cli("keys", "ls", "--url", server.url)
        assert done.returncode == 4
        admin = {"ORACULO_API_KEY": LONG}
        worker = cli.json(
            *("keys", "create", "--role", "trabalhador", "--queue", "escavador_a", "--queue", "escavador_b"),
            *("--url", server.url),
            **admin,
        )
        assert worker["queues"] == ["escavador_a", "escavador_b"] and worker["criada_por"] == "api-key"
        denied = cli("keys", "ls", "--url", server.url, ORACULO_API_KEY=worker["key"])
        assert denied.returncode == 4 and "key:admin" in denied.stderr
        reader = cli.json("keys", "create", "--role", "leitor")  # on the store, while the server runs
        assert cli("ls", ORACULO_API_KEY=reader["key"]).returncode == 0
        assert cli("cancel", "x", ORACULO_API_KEY=reader["key"]).returncode == 4
        rotated = cli.json("keys", "rotate", reader["id"], "--overlap", "0s", "--url", server.url, **admin)
        assert cli("ls", ORACULO_API_KEY=reader["key"]).returncode == 4
        assert cli("ls", ORACULO_API_KEY=rotated["key"]).returncode == 0
        assert cli.json("keys", "revoke", reader["id"], "--url", server.url, **admin)["situacao"] == "revogada"
        assert cli("ls", ORACULO_API_KEY=rotated["key"]).returncode == 4
        ids = [one["id"] for one in cli.json("keys", "ls", "--url", server.url, **admin)["keys"]]
        assert ids == [reader["id"], worker["id"]]
    finally:
        server.kill()


def test_beyond_loopback_a_first_key_lets_the_server_start(tmp_path: Path) -> None:
    refused = Cli(tmp_path)("up", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2 and "oraculo keys create --role admin" in refused.stderr
    key = Cli(tmp_path).json("keys", "create", "--role", "admin")["key"]
    server = Server(tmp_path, "--host", "0.0.0.0")
    server.start()
    try:
        where = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{where}/api/v1/whoami", trust_env=False).status_code == 401
        headers = {"Authorization": f"Bearer {key}"}
        answer = httpx2.get(f"{where}/api/v1/whoami", headers=headers, trust_env=False)
        assert answer.status_code == 200 and "key:admin" in answer.json()["scopes"]
    finally:
        server.kill()


def test_users(alone: Cli) -> None:
    """The password is the first line of standard input; it is neither shown nor kept."""

    def with_password(*arguments: str, password: str = "uma senha bem longa") -> dict[str, Any]:
        done = alone("users", *arguments, "--json", input=f"{password}\n")
        assert done.returncode == 0, done.stderr
        assert password not in done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    made = with_password("add", "ana", "--role", "admin", "--role", "auditor")
    assert (made["roles"], made["situacao"]) == (["admin", "auditor"], "ativo")
    assert alone("users", "add", "rui", "--role", "leitor", input="curta\n").returncode == 2
    assert with_password("passwd", "ana", password="outra senha bem longa")["nome"] == "ana"
    assert alone.json("users", "disable", "ana")["situacao"] == "desativado"
    assert alone.json("users", "enable", "ana")["situacao"] == "ativo"
    [listed] = alone.json("users", "ls")["users"]
    assert listed["nome"] == "ana" and "ana" in alone("users", "ls").stdout
    assert alone("users", "rm", "ana").returncode == 0 and alone.json("users", "ls")["users"] == []
    assert alone("users", "rm", "ana").returncode == 3
