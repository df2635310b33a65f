"""Secrets in Vault (or OpenBao, which speaks the same): `vault:secret/data/oraculo/kafka#password`.

The path is that of the API: with `data/` for a KV engine of version 2. It is read once, at the start, by a client of
what is needed here: a login (AppRole, Kubernetes or JWT) and a read. No other request is made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from ssl import create_default_context
from typing import Any, Final, Protocol

import orjson

VAULT: Final = "vault:"
RETRY_FIRST_S = 0.2
ANSWER_MAX_BYTES = 1024 * 1024
_LOGIN_PATHS: Final = {"approle": "auth/approle/login", "kubernetes": "auth/kubernetes/login", "jwt": "auth/jwt/login"}
AUTH_METHODS: Final = ("token", *_LOGIN_PATHS)


class VaultOptions(Protocol):
    """How Vault is reached, and who asks."""

    @property
    def address(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def ca_bundle(self) -> str: ...
    @property
    def auth_method(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def role_id(self) -> str: ...
    @property
    def secret_id(self) -> str: ...
    @property
    def jwt_path(self) -> str: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def max_retries(self) -> int: ...


class SpiffeOptions(Protocol):
    """The agent of SPIFFE, where it gives the token of a login."""

    @property
    def enabled(self) -> bool: ...
    @property
    def socket(self) -> str: ...
    @property
    def audience(self) -> str: ...
    @property
    def fallback(self) -> bool: ...


class VaultReader:
    """Reads secrets; logs in once, before the first. ValueError says what is wrong, and shows no secret. With `spiffe`
    a login by JWT shows the token of the workload."""

    def __init__(self, options: VaultOptions, spiffe: SpiffeOptions | None = None) -> None:
        self._options = options
        self._spiffe = spiffe
        self._token = ""
        self._read: dict[str, Mapping[str, Any]] = {}

    def value(self, where: str) -> str:
        """The text of one field: `path#field`."""
        path, _, field = where.partition("#")
        path = path.strip("/")
        if not path or not field:
            raise ValueError("vault:path#field is needed, with the path of the API: vault:secret/data/oraculo#password")
        if not self._options.address:
            raise ValueError("VAULT_ADDRESS is needed in the environment for it")
        fields = self._fields(path)
        if field not in fields:
            raise ValueError(f"there is no field {field!r} in {path}")
        found = fields[field]
        if not isinstance(found, str):
            raise ValueError(f"the field {field!r} of {path} is not a text")
        return found.strip()

    def _fields(self, path: str) -> Mapping[str, Any]:
        if path not in self._read:
            if not self._token:
                self._token = self._logged_in()
            data = self._asked("GET", path).get("data")
            if not isinstance(data, Mapping):
                raise ValueError(f"Vault has no fields at {path}")
            inner = data.get("data") if isinstance(data.get("metadata"), Mapping) else data  # version 2 of KV, or 1
            if not isinstance(inner, Mapping):
                raise ValueError(f"Vault has no fields at {path}")
            self._read[path] = inner
        return self._read[path]

    def _logged_in(self) -> str:
        asks = self._options
        if asks.auth_method == "token":
            if not asks.token:
                raise ValueError("VAULT_TOKEN is needed, or another VAULT_AUTH_METHOD")
            return asks.token
        body = {"role_id": asks.role_id, "secret_id": asks.secret_id}
        if asks.auth_method != "approle":
            body = {"role": asks.role, "jwt": self._jwt()}
        told = self._asked("POST", _LOGIN_PATHS[asks.auth_method], body).get("auth")
        token = told.get("client_token") if isinstance(told, Mapping) else None
        if not isinstance(token, str) or not token:
            raise ValueError("Vault gave no token for the login")
        return token

    def _jwt(self) -> str:
        """The token of the workload, where SPIFFE gives it; else that of the file."""
        asks, spiffe = self._options, self._spiffe
        if spiffe is not None and spiffe.enabled and asks.auth_method == "jwt":
            try:
                return self._svid(spiffe)
            except ValueError:
                if not spiffe.fallback:
                    raise
        try:
            return Path(asks.jwt_path).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise ValueError(f"VAULT_JWT_PATH {asks.jwt_path} cannot be read") from None

    def _svid(self, spiffe: SpiffeOptions) -> str:
        try:
            from oraculo.adapters.identity.workload_api import jwt_svid
        except ModuleNotFoundError:
            raise ValueError("SPIFFE_ENABLED needs the extra grpc") from None
        return jwt_svid(spiffe.socket, spiffe.audience, self._options.timeout_s)

    def _asked(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """The answer. What may pass (no connection, 429, 5xx) is tried again a few times."""
        import httpx2  # few installations have secrets in Vault, and all read settings

        pause = RETRY_FIRST_S
        for left in range(self._options.max_retries, -1, -1):
            try:
                return self._once(method, path, body)
            except (httpx2.HTTPError, _PassingError) as error:
                if not left:
                    raise ValueError(f"Vault cannot be asked: {str(error) or type(error).__name__}") from None
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    def _once(self, method: str, path: str, body: Mapping[str, str] | None) -> Mapping[str, Any]:
        import httpx2

        asks, headers = self._options, {"X-Vault-Request": "true"}
        if self._token:
            headers["X-Vault-Token"] = self._token
        if asks.namespace:
            headers["X-Vault-Namespace"] = asks.namespace
        verify = create_default_context(cafile=asks.ca_bundle) if asks.ca_bundle else True
        url = f"{asks.address.rstrip('/')}/v1/{path}"
        content = None if body is None else orjson.dumps(body)
        with httpx2.Client(verify=verify, timeout=asks.timeout_s, follow_redirects=False, trust_env=False) as client:
            answer = client.request(method, url, headers=headers, content=content)
        if answer.status_code == 429 or answer.status_code >= 500:
            raise _PassingError(f"it answers {answer.status_code}" + (", it is sealed" * (answer.status_code == 503)))
        if answer.status_code == 404:
            raise ValueError(f"Vault has nothing at {path}")
        if answer.status_code in (400, 401, 403):
            raise ValueError(f"Vault refuses {path} ({answer.status_code}): the login or its policy is not right")
        if answer.status_code != 200 or len(answer.content) > ANSWER_MAX_BYTES:
            raise ValueError(f"Vault answers {answer.status_code} for {path}")
        try:
            found = orjson.loads(answer.content)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ValueError(f"Vault's answer for {path} is no JSON object")
        return found


class _PassingError(Exception):
    """Vault cannot answer now, and may in a moment."""
