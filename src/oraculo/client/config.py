"""What both clients know: the address of the server, the key, the timeouts, and how a call becomes a request."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import wraps
from ssl import SSLContext
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit
from warnings import warn

import httpx2

from oraculo import redaction
from oraculo.client.calls import HttpCall
from oraculo.client.tls import TlsFiles
from oraculo.errors import ServerUnreachableError, SettingsError

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8000"
TLS_VARIABLES = ("ORACULO_URL_CA", "ORACULO_URL_CERT", "ORACULO_URL_KEY")
TIMEOUT_S = 15.0
STREAM_SILENCE_S = 60.0  # a stream has a sign of life every 15 s; four missed ones are a dead connection
EVENT_MAX_BYTES = 64 * 1024 * 1024
KEPT_CONNECTIONS = 64

HTTP_FAILURES = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)


class ClientConfig:
    """The address of the server, the key, and the timeout of a client. `url` defaults to ORACULO_URL, `api_key` to
    ORACULO_API_KEY; `timeout` is in seconds; `language` is asked for with `Accept-Language`, `words` with
    `Oraculo-Words`; `tls` are the files for a server over TLS, by default those of ORACULO_URL_CA, ORACULO_URL_CERT and
    ORACULO_URL_KEY."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_S,
        language: str | None = None,
        tls: TlsFiles | None = None,
        words: str | None = None,
    ) -> None:
        if words not in (None, "pt", "en"):
            raise ValueError(f"words={words!r}; allowed: pt, en")
        self.url = (url or _of_environment("ORACULO_URL") or DEFAULT_URL).rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError("ORACULO_URL", self.url, "http://host:port or https://host:port")
        key = api_key if api_key is not None else _of_environment("ORACULO_API_KEY")
        self.timeout = timeout
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        if language is not None:
            headers["Accept-Language"] = language
        if (words or language) == "en":
            headers["Oraculo-Words"] = "en"
        self.options: dict[str, Any] = {
            "base_url": self.url,
            "headers": headers,
            # A server on this machine is never reached through a proxy.
            "trust_env": parts.hostname not in ("localhost", "127.0.0.1", "::1"),
            "verify": self._verify(parts.scheme, tls),
            "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS),
        }

    @staticmethod
    def _verify(scheme: str, tls: TlsFiles | None) -> SSLContext | bool:
        if scheme != "https":
            return True  # nothing to verify, and files that are not needed need not exist
        return (tls or TlsFiles(*map(_of_environment, TLS_VARIABLES))).context() or True

    def request(self, call: HttpCall, *, stream: bool = False) -> dict[str, Any]:
        """The arguments of an HTTP request for one call."""
        content = call.content()
        headers = dict(call.headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        read_timeout = STREAM_SILENCE_S if stream else self.timeout + call.server_wait_s
        return {
            "method": call.method,
            "url": call.path,
            "params": dict(call.query) or None,
            "content": content,
            "headers": headers,
            "timeout": httpx2.Timeout(self.timeout, read=read_timeout, pool=None),
        }

    def unreachable(self, error: Exception) -> ServerUnreachableError:
        absent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.InvalidURL)
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        return ServerUnreachableError(redaction.urls(self.url), reason, connected=not absent)


def _of_environment(name: str) -> str:
    """The value of a variable, or what it refers to; empty when it is not set."""
    value = os.environ.get(name, "").strip()
    if not value.startswith(("file:", "env:")):
        return value
    from oraculo.settings.references import dereferenced  # brings all settings along, which most clients do without

    return dereferenced(name, value, os.environ)


def renamed(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Accept former names of keyword arguments, `former="current"`, with a DeprecationWarning."""

    def decorate(method: Callable[P, T]) -> Callable[P, T]:
        @wraps(method)
        def accept(*args: P.args, **kwargs: P.kwargs) -> T:
            for former in names.keys() & kwargs.keys():
                warn(f"the argument {former} is called {names[former]} now", DeprecationWarning, stacklevel=2)
                kwargs[names[former]] = kwargs.pop(former)
            return method(*args, **kwargs)

        return accept

    return decorate
