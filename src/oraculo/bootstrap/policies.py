"""Settings → policies. What evaluates them is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import orjson

from oraculo.core.policies import PolicyPoint
from oraculo.errors import PolicyError, SettingsError
from oraculo.ports.clock import Clock
from oraculo.ports.policies import PolicyEngine
from oraculo.runtime.policies.asking import Policies, PolicyOptions
from oraculo.runtime.policies.inputs import PolicyFacts
from oraculo.runtime.policies.seen import DecisionLog, PolicySeen
from oraculo.settings.policy_groups import EMBEDDED, OPA
from oraculo.settings.settings import Settings

SHIPPED = Path(__file__).parents[1] / "shipped_policies"


def engine_name(settings: Settings) -> str:
    """What ORACULO_POLICIES says, or the variables of OPA; empty: no policies are asked."""
    if settings.policies.engine or not settings.opa.enabled:
        return settings.policies.engine
    return f"{OPA}http://{settings.opa.host}:{settings.opa.port}"


def options_of(settings: Settings) -> PolicyOptions:
    """What is asked when, and what every question says."""
    asked, opa = settings.policies, settings.opa
    return PolicyOptions(
        {
            PolicyPoint.PLAN: asked.plan,
            PolicyPoint.TICKET: asked.ticket,
            PolicyPoint.ALLOCATION: asked.allocation,
            PolicyPoint.RESULT: asked.result,
        },
        opa.fail_open,
        frozenset(asked.fail_open),
        opa.cache_s,
        PolicyFacts(
            asked.namespace,
            {"max_concurrent_tickets": opa.max_tickets, "allowed_capabilities": list(opa.capabilities)},
            {
                "intelligent_scheduler_enabled": opa.scheduler,
                "burst_capacity_enabled": opa.burst,
                "burst_threshold": opa.burst_threshold,
                "predictive_allocation_enabled": opa.predictive,
                "auto_scaling_enabled": opa.auto_scaling,
                "scheduler_namespaces": list(opa.scheduler_namespaces),
                "premium_tenants": list(opa.premium_tenants),
            },
            {"allowed_tenants": list(opa.tenants), "rbac_roles": orjson.loads(opa.roles or "{}")},
        ),
    )


def policy_engine_of(settings: Settings, packages: Sequence[str]) -> PolicyEngine | None:
    """The adapter that the settings name, not opened; None: no policies are asked. SettingsError: a folder that is not
    one of policies."""
    name, opa = engine_name(settings), settings.opa
    if not name:
        return None
    if name.startswith(OPA):
        from oraculo.adapters.policies.opa import OpaOptions, OpaPolicies

        failures = opa.breaker_failures if opa.breaker else 0
        return OpaPolicies(
            name.removeprefix(OPA), OpaOptions(opa.timeout_s, opa.attempts, failures, opa.breaker_reset_s)
        )
    from oraculo.adapters.policies.embedded import EmbeddedPolicies, read_folder

    folder = name.removeprefix(EMBEDDED).removeprefix(":")
    try:
        found = read_folder(Path(folder) if folder else SHIPPED)
    except PolicyError as error:
        raise SettingsError("ORACULO_POLICIES", name, str(error)) from None
    return EmbeddedPolicies(found, packages, settings.policies.timeout_s)


async def policies_of(settings: Settings, clock: Clock, stack: AsyncExitStack) -> Policies:
    """Policies, ready to be asked. SettingsError: those that are embedded do not compile, or a package is missing."""
    options = options_of(settings)
    packages = list(dict.fromkeys(one for asked in options.packages.values() for one in asked))
    engine = policy_engine_of(settings, packages)
    if engine is None:
        return Policies()
    stack.push_async_callback(engine.close)
    try:
        await engine.open()
    except PolicyError as error:
        raise SettingsError("ORACULO_POLICIES", engine_name(settings), str(error)) from None
    seen: list[PolicySeen] = [] if settings.policies.log == "off" else [DecisionLog(settings.policies.log)]
    return Policies(engine, options, clock.now, seen)
