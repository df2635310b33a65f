"""`kafka://[user:password@]host[:port]` and its options, and what they mean to the client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oraculo.adapters.brokers.kit.tls import TlsOptions
from oraculo.adapters.brokers.kit.url import (
    CONFIRM_TIMEOUT_S,
    Option,
    UrlGrammar,
    addresses,
    matching,
    one_of,
    seconds,
    whole,
)

PORT = 9092
FETCH_MAX_BYTES = 512 * 1024  # of one partition in one answer
CONSUMER_REQUEST_TIMEOUT_MS = 5000  # without an answer for so long a consumer's connection is taken to be dead
ISOLATION = "read_committed"  # what a producer took back was never said: records of aborted transactions are not read


@dataclass(frozen=True, slots=True)
class Options:
    """`where` is what logs and errors may say; `groups`: queue → consumer group that is not made up of its name;
    `workers`: a queue, and the consumer group of workers that are not Oráculo's and take from it too."""

    servers: tuple[str, ...]
    group: str = "oraculo"
    partitions: int = 6
    replication: int = -1  # the server's default
    max_message: int = 8 * 1024 * 1024
    confirm_timeout: float = CONFIRM_TIMEOUT_S
    lease: float = 10.0
    tls: TlsOptions | None = None
    sasl: str = "PLAIN"
    user: str | None = None
    password: str | None = None
    compression: str = "none"
    workers: tuple[str, str] = ("", "")
    groups: Mapping[str, str] = field(default_factory=dict)

    def group_of(self, queue: str) -> str:
        """The consumer group that reads a queue."""
        return self.groups.get(queue) or f"{self.group}.{queue}"

    @property
    def where(self) -> str:
        """The servers, for logs and errors: no credentials."""
        return ",".join(self.servers)

    def connection(self) -> dict[str, Any]:
        """The arguments that every client takes."""
        secure = "PLAINTEXT" if self.tls is None else "SSL"
        found: dict[str, Any] = {
            "bootstrap_servers": list(self.servers),
            "client_id": "oraculo",
            "retry_backoff_ms": 100,
            "metadata_max_age_ms": 60_000,
            "security_protocol": secure if self.user is None else f"SASL_{secure}",
        }
        if self.tls is not None:
            found["ssl_context"] = self.tls.context()
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
            "isolation_level": ISOLATION,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": lease,
            "rebalance_timeout_ms": lease,
            "request_timeout_ms": CONSUMER_REQUEST_TIMEOUT_MS,
            "heartbeat_interval_ms": 500,
            "max_poll_interval_ms": 2**31 - 1,  # a fetch polls; slow work must not cost the membership
            "max_partition_fetch_bytes": FETCH_MAX_BYTES,
        }


def _queue_and_group(text: str) -> tuple[str, str]:
    queue, _, group = text.partition(":")
    for name in (queue, group):
        if not re.fullmatch(r"[\w.-]{1,249}", name, re.ASCII):
            raise ValueError(text)
    return queue, group


GRAMMAR = UrlGrammar(
    "kafka://[user:password@]host[:port]",
    ports={"kafka": PORT},
    options={
        "servers": addresses(PORT),
        "group": matching(r"[\w.-]{1,100}", "1 to 100 letters, digits and _ . -"),
        "partitions": whole(1, 1000),
        "replication": Option(lambda text: -1 if text == "-1" else whole(1, 100).read(text), "-1 or 1 to 100"),
        "max_message": whole(1000, 100_000_000),
        "lease": seconds(1, 300),
        "sasl": one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        "compression": one_of("none", "gzip"),
        "workers": Option(_queue_and_group, "a queue and a consumer group with : between"),
    },
)


def parse(url: str, groups: Mapping[str, str] | None = None) -> Options:
    found = GRAMMAR.parse(url)
    return Options(
        found.servers,
        user=found.user,
        password=found.password if found.user is None else found.password or "",
        tls=found.tls,
        confirm_timeout=found.confirm_timeout,
        groups=groups or {},
        **found.options,
    )
