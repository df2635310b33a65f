"""Settings of policies: who evaluates them, what is asked when, and what the questions say (docs/policies.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson

from oraculo.settings import readers as read
from oraculo.settings.declare import setting
from oraculo.settings.readers import Reader

LOG_MODES = ("off", "refused", "all")
EMBEDDED, OPA = "embedded", "opa:"
PACKAGE_PREFIX = "neuralhive.orchestrator."
_PACKAGE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def _engine(value: str) -> str:
    if not value or value == EMBEDDED or value.startswith(f"{EMBEDDED}:"):
        return value
    if not value.startswith(OPA):
        raise ValueError
    return OPA + read.url("http", "https", several=False).parse(value.removeprefix(OPA))


def _packages(value: str) -> tuple[str, ...]:
    """A short name is one of the shipped packages' folder."""
    names = read.several.parse(value)
    if not all(_PACKAGE.fullmatch(name) for name in names):
        raise ValueError
    return tuple(name if "." in name else PACKAGE_PREFIX + name for name in names)


def _words(value: str) -> tuple[str, ...]:
    """A JSON list of texts, or texts with commas between."""
    if not value.startswith("["):
        return read.several.parse(value)
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        raise ValueError from None
    if not all(isinstance(one, str) for one in found):
        raise ValueError
    return tuple(found)


def _object(value: str) -> str:
    try:
        found = orjson.loads(value or "{}")
    except orjson.JSONDecodeError:
        raise ValueError from None
    if not isinstance(found, dict):
        raise ValueError
    return value


ENGINE: Reader[str] = Reader(
    _engine,
    "empty, `embedded`, `embedded:<folder>` or `opa:` and a URL that begins with http:// or https://",
    address=True,
)
PACKAGES = Reader(_packages, "names of packages with commas between, like resource_limits or my.company.rules")
WORDS = Reader(_words, "a JSON list of texts, or texts with commas between")
OBJECT = Reader(_object, "a JSON object")


@dataclass(frozen=True, slots=True)
class PoliciesSettings:
    """What policies are asked, and by whom they are evaluated."""

    engine: str = setting(
        "ORACULO_POLICIES",
        "",
        ENGINE,
        "Who evaluates policies: empty: none are asked; `embedded`: those that are shipped, in a process of our own; "
        "`embedded:<folder>`: those of a folder; `opa:http://host:8181`: Open Policy Agent",
    )
    plan: tuple[str, ...] = setting(
        "ORACULO_POLICIES_PLAN",
        "resource_limits,sla_enforcement",
        PACKAGES,
        "Packages that are asked before anything of a plan starts; a name without a dot is below "
        "`neuralhive.orchestrator`",
    )
    ticket: tuple[str, ...] = setting(
        "ORACULO_POLICIES_TICKET",
        "resource_limits,sla_enforcement,security_constraints",
        PACKAGES,
        "Packages that are asked before a ticket is released for the first time",
    )
    allocation: tuple[str, ...] = setting(
        "ORACULO_POLICIES_ALLOCATION",
        "resource_limits",
        PACKAGES,
        "Packages that are asked before a ticket is given to a worker that a scheduler chose",
    )
    result: tuple[str, ...] = setting(
        "ORACULO_POLICIES_RESULT",
        "",
        PACKAGES,
        "Packages that are asked before what a worker answered counts; empty: answers count at once",
    )
    fail_open: tuple[str, ...] = setting(
        "ORACULO_POLICIES_FAIL_OPEN",
        "",
        PACKAGES,
        "Packages that allow when they cannot be evaluated; every other one refuses",
    )
    timeout_s: float = setting(
        "ORACULO_POLICIES_TIMEOUT_S",
        "1",
        read.number(0.01, 60),
        "How long embedded policies may take for one input; then they are stopped",
    )
    log: str = setting(
        "ORACULO_POLICIES_LOG",
        "refused",
        read.one_of(*LOG_MODES),
        "Decisions that are logged, with secrets hidden: `off`, `refused` (and errors), `all`",
    )
    namespace: str = setting(
        "ORACULO_POLICIES_NAMESPACE", "default", read.word, "`input.context.namespace` of every question"
    )


@dataclass(frozen=True, slots=True)
class OpaSettings:
    """Open Policy Agent as the original names it, and what its policies are told."""

    enabled: bool = setting(
        "OPA_ENABLED", "false", read.flag, "When ORACULO_POLICIES is not set: the OPA of OPA_HOST is asked"
    )
    host: str = setting("OPA_HOST", "localhost", read.host, "Its host")
    port: int = setting("OPA_PORT", "8181", read.whole(1, 65535), "Its port")
    timeout_s: float = setting("OPA_TIMEOUT_SECONDS", "2", read.number(0.01, 60), "How long one call of OPA may take")
    attempts: int = setting("OPA_RETRY_ATTEMPTS", "3", read.whole(1, 10), "Calls for one question when OPA fails")
    cache_s: float = setting(
        "OPA_CACHE_TTL_SECONDS",
        "30",
        read.number(0, 3600),
        "How long what was allowed is not asked again when all that policies read is the same; 0: always asked",
    )
    fail_open: bool = setting(
        "OPA_FAIL_OPEN",
        "false",
        read.flag,
        "`true`: policies that cannot be evaluated allow, all but security_constraints",
    )
    breaker: bool = setting("OPA_CIRCUIT_BREAKER_ENABLED", "true", read.flag, "OPA is left alone after failures")
    breaker_failures: int = setting(
        "OPA_CIRCUIT_BREAKER_FAILURE_THRESHOLD", "5", read.whole(1, 1000), "Failures in a row after which it is"
    )
    breaker_reset_s: float = setting(
        "OPA_CIRCUIT_BREAKER_RESET_TIMEOUT", "60", read.number(0.1, 3600), "Seconds until it is tried again"
    )
    max_tickets: int = setting(
        "OPA_MAX_CONCURRENT_TICKETS",
        "50000",
        read.whole(1, 1000000),
        "`input.parameters.max_concurrent_tickets`: tickets that a plan may have",
    )
    capabilities: tuple[str, ...] = setting(
        "OPA_ALLOWED_CAPABILITIES", "", WORDS, "`input.parameters.allowed_capabilities`; empty: all"
    )
    tenants: tuple[str, ...] = setting("OPA_ALLOWED_TENANTS", "", WORDS, "`input.security.allowed_tenants`; empty: all")
    roles: str = setting(
        "OPA_RBAC_ROLES", "{}", OBJECT, "`input.security.rbac_roles`: JSON object, who → list of roles; empty: no roles"
    )
    scheduler: bool = setting(
        "OPA_INTELLIGENT_SCHEDULER_ENABLED", "true", read.flag, "`input.flags.intelligent_scheduler_enabled`"
    )
    burst: bool = setting("OPA_BURST_CAPACITY_ENABLED", "true", read.flag, "`input.flags.burst_capacity_enabled`")
    burst_threshold: float = setting("OPA_BURST_THRESHOLD", "0.8", read.number(0, 1), "`input.flags.burst_threshold`")
    predictive: bool = setting(
        "OPA_PREDICTIVE_ALLOCATION_ENABLED", "false", read.flag, "`input.flags.predictive_allocation_enabled`"
    )
    auto_scaling: bool = setting("OPA_AUTO_SCALING_ENABLED", "false", read.flag, "`input.flags.auto_scaling_enabled`")
    scheduler_namespaces: tuple[str, ...] = setting(
        "OPA_SCHEDULER_NAMESPACES", "", WORDS, "`input.flags.scheduler_namespaces`; empty: all"
    )
    premium_tenants: tuple[str, ...] = setting("OPA_PREMIUM_TENANTS", "", WORDS, "`input.flags.premium_tenants`")
