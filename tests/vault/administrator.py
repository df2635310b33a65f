"""Who sets up the Vault of the tests, and the secret that it holds."""

from __future__ import annotations

from typing import Any

import httpx2
from tools.servers import vault

SECRET = "canary-vault-Zk29xq"
POLICY = 'path "secret/data/oraculo/*" { capabilities = ["read"] }\npath "kv1/oraculo" { capabilities = ["read"] }'


class Administrator:
    """Whoever holds the root token of this Vault."""

    def __init__(self, url: str) -> None:
        self._client = httpx2.Client(
            base_url=f"{url}/v1/", headers={"X-Vault-Token": vault.ROOT_TOKEN}, trust_env=False
        )

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self._client.request(method, path, json=body)
        assert answer.status_code in (200, 204), f"{method} {path}: {answer.status_code} {answer.text}"
        return dict(answer.json()) if answer.content else {}

    def make_token(self, *policies: str) -> str:
        made = self.ask("POST", "auth/token/create", {"policies": list(policies), "no_parent": True})
        return str(made["auth"]["client_token"])

    def close(self) -> None:
        self._client.close()
