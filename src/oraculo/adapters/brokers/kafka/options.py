"""What a kafka:// URL may say."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from oraculo.errors import SettingsError

PORT = 9092
FETCH = 512 * 1024  # bytes of one partition in one answer
NOTICE = 5000  # milliseconds without an answer after which a consumer's connection is taken to be dead
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ALLOWED = (
    "kafka://[user:password@]host[:9092]/ with the options servers (host:port+host:port), group, partitions (1-1000), "
    "replication (-1 or 1-100), max_message (1000-100000000 bytes), confirm_timeout (0.1-60 s), lease (1-300 s), "
    f"tls (0, 1), tls_ca (a file), sasl ({', '.join(MECHANISMS)}), compression (none, gzip)"
)


@dataclass(frozen=True, slots=True)
class Options:
    servers: tuple[str, ...]
    group: str = "oraculo"
    partitions: int = 6
    replication: int = -1  # the server's default
    max_message: int = 8 * 1024 * 1024
    confirm_timeout: float = 3.0
    lease: float = 10.0
    tls: bool = False
    tls_ca: str | None = None
    sasl: str = "PLAIN"
    user: str | None = None
    password: str | None = None
    compression: str = "none"
    groups: Mapping[str, str] = field(default_factory=dict)  # queue → consumer group that is not made up of its name

    def group_of(self, queue: str) -> str:
        return self.groups.get(queue) or f"{self.group}.{queue}"

    @property
    def where(self) -> str:
        """For logs and errors: no credentials."""
        return ",".join(self.servers)

    def connection(self) -> dict[str, Any]:
        """The arguments that every client takes."""
        secure = "SSL" if self.tls else "PLAINTEXT"
        found: dict[str, Any] = {
            "bootstrap_servers": list(self.servers),
            "client_id": "oraculo",
            "retry_backoff_ms": 100,
            "metadata_max_age_ms": 60_000,
            "security_protocol": secure if self.user is None else f"SASL_{secure}",
        }
        if self.tls:
            found["ssl_context"] = ssl.create_default_context(cafile=self.tls_ca)
        if self.user is not None:
            found.update(
                sasl_mechanism=self.sasl, sasl_plain_username=self.user, sasl_plain_password=self.password or ""
            )
        return found

    def consumer(self) -> dict[str, Any]:
        """The arguments of one that is a member of a group."""
        lease = int(self.lease * 1000)
        return {
            **self.connection(),
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": lease,
            "rebalance_timeout_ms": lease,
            "request_timeout_ms": NOTICE,
            "heartbeat_interval_ms": 500,
            "max_poll_interval_ms": 2**31 - 1,  # we poll when somebody asks; slow work must not cost us the membership
            "max_partition_fetch_bytes": FETCH,
        }


def _number(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return read


def _replication(text: str) -> int:
    return -1 if text == "-1" else _whole(1, 100)(text)


def _group(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,100}", text, re.ASCII):
        raise ValueError(text)
    return text


def _one_of(*values: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return read


READ: dict[str, Callable[[str], Any]] = {
    "group": _group,
    "partitions": _whole(1, 1000),
    "replication": _replication,
    "max_message": _whole(1000, 100_000_000),
    "confirm_timeout": _number(0.1, 60),
    "lease": _number(1, 300),
    "tls": lambda text: _one_of("0", "1")(text) == "1",
    "tls_ca": str,
    "sasl": _one_of(*MECHANISMS),
    "compression": _one_of("none", "gzip"),
}


def parse(url: str, groups: Mapping[str, str] | None = None) -> Options:
    parts = urlsplit(url)
    try:
        return replace(_parse(parts), groups=groups or {})
    except ValueError:
        raise SettingsError("ORACULO_BROKER", _shown(parts), ALLOWED) from None


def _parse(parts: SplitResult) -> Options:
    if parts.scheme != "kafka" or parts.path not in ("", "/") or parts.fragment or not parts.hostname:
        raise ValueError(parts.scheme)
    servers = [_address(f"{_bracketed(parts.hostname)}:{parts.port or PORT}")]
    found: dict[str, Any] = {}
    for name, text in parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)):
        if name in found:
            raise ValueError(name)
        if name == "servers":
            servers += [_address(server) for server in re.split(r"[ +,]", text)]
        elif name in READ:
            found[name] = READ[name](text)
        else:
            raise ValueError(name)
    if parts.username is not None:
        found["user"], found["password"] = unquote(parts.username), unquote(parts.password or "")
    return Options(tuple(servers), **found)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _address(text: str) -> str:
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(?::(\d{1,5}))?", text)
    if found is None or not 0 < int(found[2] or PORT) < 65536:
        raise ValueError(text)
    return f"{found[1]}:{found[2] or PORT}"


def _shown(parts: SplitResult) -> str:
    """The URL without a password."""
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"***@{host}" if "@" in parts.netloc else host).geturl()
