"""`amqp://user:password@host:port/vhost?option=value` → Options; a fault in it stops the start."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from oraculo.errors import SettingsError

CLASSIC, QUORUM = "classic", "quorum"
ALLOWED = (
    "amqp[s]://[user:password@]host[:port][/vhost] with the options confirm_timeout (seconds, over 0), heartbeat "
    "(whole seconds, 1 to 3600), declare_after (seconds, 0 or more), queue_type (classic or quorum), prefetch (1 to "
    "65535) and, for amqps, cacertfile"
)


@dataclass(frozen=True, slots=True)
class Options:
    """`place` is what logs and errors may say: no user, no password."""

    place: str
    host: str = "localhost"
    port: int = 5672
    vhost: str = "/"
    user: str = "guest"
    password: str = "guest"
    tls: bool = False
    cacertfile: str | None = None
    confirm_timeout: float = 3.0
    heartbeat: int = 10
    declare_after: float = 5.0
    queue_type: str = CLASSIC
    prefetch: int = 1000

    def context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.cacertfile) if self.tls else None


def parse(url: str) -> Options:
    shown = url.split("?", 1)[0].rpartition("@")[2]
    try:
        return _parse(url)
    except (ValueError, KeyError) as error:
        scheme, separator, _ = url.partition("://")
        without_password = f"{scheme}://{shown.removeprefix(scheme + separator)}" if separator else shown
        raise SettingsError("ORACULO_BROKER", without_password, f"{ALLOWED} ({_said(error)})") from None


def _parse(url: str) -> Options:
    parts = urlsplit(url)
    if parts.scheme not in ("amqp", "amqps"):
        raise ValueError("the scheme is amqp or amqps")
    tls = parts.scheme == "amqps"
    host, port = parts.hostname or "localhost", parts.port or (5671 if tls else 5672)
    path = parts.path.removeprefix("/")
    if "/" in path:
        raise ValueError("a slash inside the vhost is written %2F")
    vhost = unquote(path) or "/"
    given: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else ():
        if name == "cacertfile" and not tls:
            raise ValueError("cacertfile needs amqps")
        if name in given:
            raise ValueError(f"{name} is given twice")
        given[name] = _OPTIONS[name](name, value)
    if parts.username is not None:
        given |= {"user": unquote(parts.username), "password": unquote(parts.password or "")}
    shown_host = f"[{host}]" if ":" in host else host
    place = f"{shown_host}:{port}/{'' if vhost == '/' else vhost}"
    return Options(place=place, host=host, port=port, vhost=vhost, tls=tls, **given)


def _seconds(name: str, text: str) -> float:
    value = float(text)
    if not 0 < value < 3600:
        raise ValueError(f"{name}={text}")
    return value


def _seconds_or_none(name: str, text: str) -> float:
    value = float(text)
    if not 0 <= value < 86400:
        raise ValueError(f"{name}={text}")
    return value


def _heartbeat(name: str, text: str) -> int:
    value = int(text)
    if not 1 <= value <= 3600:
        raise ValueError(f"{name}={text}")
    return value


def _prefetch(name: str, text: str) -> int:
    value = int(text)
    if not 1 <= value <= 65535:
        raise ValueError(f"{name}={text}")
    return value


def _queue_type(name: str, text: str) -> str:
    if text not in (CLASSIC, QUORUM):
        raise ValueError(f"{name}={text}")
    return text


def _file(name: str, text: str) -> str:
    if not text:
        raise ValueError(f"{name} is empty")
    return text


_OPTIONS = {
    "confirm_timeout": _seconds,
    "heartbeat": _heartbeat,
    "declare_after": _seconds_or_none,
    "queue_type": _queue_type,
    "prefetch": _prefetch,
    "cacertfile": _file,
}


def _said(error: Exception) -> str:
    return f"unknown option {error.args[0]}" if isinstance(error, KeyError) else str(error)
