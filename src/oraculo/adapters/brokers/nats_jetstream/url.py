"""`nats://[user:password@|token@]host[:port][?options]`, read and checked before anything connects."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from oraculo.errors import SettingsError

PORT = 4222
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PASSWORD = re.compile(r"(//)[^/@]*@")


@dataclass(frozen=True, slots=True)
class Options:
    """`servers` are `host:port`; a `token` is a user without a password."""

    servers: tuple[str, ...]
    user: str | None = None
    password: str | None = None
    token: str | None = None
    tls: bool = False
    tls_ca: str | None = None
    confirm_timeout: float = 3.0
    lease: float = 10.0
    group: str = "oraculo"
    replicas: int = 1
    monitor: str | None = None


def _seconds(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def _yes(text: str) -> bool:
    return {"1": True, "true": True, "0": False, "false": False}[text.lower()]


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError
    return text


def _http(text: str) -> str:
    if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname:
        raise ValueError
    return text.rstrip("/")


def _more_servers(text: str) -> tuple[str, ...]:
    return tuple(_server(part) for part in re.split(r"[+ ]", text) if part)  # a + in a query is read as a space


def _server(text: str) -> str:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.path or parts.query or parts.username is not None:
        raise ValueError
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or PORT}"


READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "confirm_timeout": (_seconds(0.1, 600), "seconds from 0.1 to 600"),
    "lease": (_seconds(1, 3600), "seconds from 1 to 3600"),
    "group": (_name, "letters, digits, - and _, at most 100"),
    "replicas": (_whole(1, 5), "a whole number from 1 to 5"),
    "monitor": (_http, "the address of the server's monitoring endpoint, as in http://host:8222"),
    "servers": (_more_servers, "further servers of the cluster, as in host2:4222+host3:4222"),
    "tls": (_yes, "0 or 1"),
    "tls_ca": (str, "the path of a file with certificates of authorities"),
}


def read(url: str) -> Options:
    """SettingsError, with the password left out, when anything in the URL is not allowed."""
    shown = _PASSWORD.sub(r"\1***@", url)

    def wrong(allowed: str) -> SettingsError:
        return SettingsError("ORACULO_BROKER", shown, allowed)

    try:
        parts = urlsplit(url)
        first = _server(parts.netloc.rpartition("@")[2])
    except ValueError:
        raise wrong("nats://[user:password@]host[:port]") from None
    if parts.scheme != "nats" or parts.path not in ("", "/") or parts.fragment:
        raise wrong("nats://[user:password@]host[:port] and options after a ?")
    given: dict[str, Any] = {}
    for key, text in parse_qsl(parts.query, keep_blank_values=True):
        if key not in READERS:
            raise wrong(f"the options are {', '.join(sorted(READERS))}, not {key!r}")
        reader, allowed = READERS[key]
        try:
            given[key] = reader(text)
        except (ValueError, KeyError):
            raise wrong(f"{key} must be {allowed}") from None
    servers = (first, *given.pop("servers", ()))
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password is not None else None
    if password is None:
        return Options(servers, token=user, **given)
    return Options(servers, user=user or "", password=password, **given)
