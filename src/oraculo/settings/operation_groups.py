"""Settings of daily operation: breakers, retention, the port of gRPC."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.core.retention import read_rules
from oraculo.settings import readers as read
from oraculo.settings.declare import setting


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """Destinations that fail again and again get no more orders until a probe is answered."""

    failures: int = setting(
        "ORACULO_BREAKER_FAILURES",
        "0",
        read.whole(0, 100_000),
        "Failures in a row after which the orders for one destination wait; 0: they never do",
    )
    probe_s: float = setting(
        "ORACULO_BREAKER_PROBE_S",
        "30",
        read.number(0.1, 86400),
        "Seconds until one of them goes out as a probe; doubled with each probe that fails",
    )
    probe_max_s: float = setting(
        "ORACULO_BREAKER_PROBE_MAX_S", "600", read.number(0.1, 86400), "The longest wait for the next probe"
    )


def _checked_rules(value: str) -> str:
    read_rules(value)
    return value


_RETENTION_RULES = read.Reader(_checked_rules, "AGE, TYPE=AGE, TENANT/*=AGE or TENANT/TYPE=AGE, commas between")


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long ended orchestrations are kept."""

    rules: str = setting(
        "ORACULO_RETENTION",
        "",
        _RETENTION_RULES,
        "How long ended orchestrations are kept, of all or of single types and tenants (`30d, relatorio=7d, "
        "acme/*=90d`); the most exact counts. Empty: until `oraculo prune`",
    )
    archive: str = setting(
        "ORACULO_RETENTION_ARCHIVE",
        "",
        read.text,
        "Folder that they are written to before they are forgotten, as JSON lines with the audit chain; empty: none",
    )


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """The services of the original over gRPC."""

    port: int | None = setting(
        "ORACULO_GRPC_PORT",
        "",
        read.optional_port,
        "Port on which registry, tickets and strategic commands are served over gRPC beside the API (extra `grpc`); "
        "empty: none, 0: a free one",
    )
