"""The registry of agents: workers that register, as the original's clients know them.

An agent is a worker of the registry (`docs/workers.md`): the same lease, the same discovery. What that has no field for
(`agent_type`, `namespace`, `cluster`) is among its labels.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

import orjson

from oraculo.api.problems import invalid
from oraculo.api.worker_registry import WorkersQuery, chosen
from oraculo.api.worker_views import DRAINING, LOST, registered_worker
from oraculo.apps.grpc_api.calls import Caller, Deed, asked
from oraculo.apps.grpc_api.messages import message
from oraculo.core.access import Scope
from oraculo.core.tenants import in_tenant, local_name
from oraculo.core.vocabulary import SecurityLevel
from oraculo.core.worker_scores import WorkerHealth, success_rate
from oraculo.errors import UnknownIdError
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.workers import StoredWorker
from oraculo.runtime.ids import new_correlation_id
from oraculo.wire.worker_messages import Heartbeat, Registration

SERVICE = "neural_hive.service_registry.ServiceRegistry"
PACKAGE = "neural_hive.service_registry"
DISCOVERED_AGENTS = 5  # unless the caller says how many
LISTED_AGENTS_MAX = 1000
WATCH_INTERVAL_S = 1.0
SCHEMA_VERSION = 1
ID_KEY = "agent_id"  # of the metadata: an agent that was here before
TYPE_LABEL, NAMESPACE_LABEL, CLUSTER_LABEL = "hive.agent_type", "hive.namespace", "hive.cluster"
OWN_LABELS = (TYPE_LABEL, NAMESPACE_LABEL, CLUSTER_LABEL)
FILTERS = ("namespace", "cluster", "version", "status", "security_level", "agent_type")
LEVELS = [level.value for level in SecurityLevel]
View = dict[str, Any]  # a worker as the HTTP API shows it, with its `health`


async def register(caller: Caller, request: Any) -> Any:
    """Register an agent. `agent_id` in its metadata takes the place of that one; else it gets a new id."""
    if not request.capabilities:
        raise invalid("capabilities", "give at least one", "invalid_request")
    metadata = dict(request.metadata)
    name = metadata.pop(ID_KEY, "") or new_correlation_id()
    types = message(f"{PACKAGE}.RegisterRequest").DESCRIPTOR.fields_by_name["agent_type"].enum_type
    kind = types.values_by_number.get(request.agent_type)
    if kind is None:
        raise invalid("agent_type", f"{request.agent_type} is not known", "invalid_request")
    labels = metadata | {
        TYPE_LABEL: kind.name,
        NAMESPACE_LABEL: request.namespace or "default",
        CLUSTER_LABEL: request.cluster or "local",
    }
    said: Registration = asked(
        Registration,
        worker=name,
        capacidades=list(request.capabilities),
        rotulos=labels,
        versao=request.version or "1.0.0",
        concorrencia=whole(metadata.get("max_concurrent_tasks", ""), 1),
        nivel=metadata.get("security_level", "").upper() or SecurityLevel.INTERNAL,
        telemetria=_telemetry(request),
    )
    stored, _ = await caller.oraculo.registry.register(caller.oraculo.tenant, said, caller.actor, "grpc")
    return message(f"{PACKAGE}.RegisterResponse")(agent_id=name, registered_at=_seconds(stored.registered_at))


def whole(text: str, otherwise: int) -> int:
    """A whole number above 0 in a text, else another."""
    return int(text) if text.isascii() and text.isdigit() and text.strip("0") else otherwise


def _telemetry(request: Any) -> dict[str, Any]:
    """What an agent says about its work; it is shown, and decides nothing."""
    if not request.HasField("telemetry"):
        return {}
    return {field.name: getattr(request.telemetry, field.name) for field in request.telemetry.DESCRIPTOR.fields}


async def heartbeat(caller: Caller, request: Any) -> Any:
    """Note a sign of life. NOT_FOUND: register again."""
    registry, key = caller.oraculo.registry, in_tenant(caller.oraculo.tenant, request.agent_id)
    await registry.beat(key, asked(Heartbeat, telemetria=_telemetry(request)), caller.actor)
    view = await _one(caller, request.agent_id)
    now = _seconds(caller.oraculo.now())  # it is written within a second
    return message(f"{PACKAGE}.HeartbeatResponse")(status=_status(view), last_seen=now)


async def deregister(caller: Caller, request: Any) -> Any:
    """Forget an agent that says goodbye; what it still has goes elsewhere."""
    registry, key = caller.oraculo.registry, in_tenant(caller.oraculo.tenant, request.agent_id)
    if not await registry.may_end(key, caller.actor) or not await registry.leave(key):
        raise UnknownIdError("agent", request.agent_id)
    return message(f"{PACKAGE}.DeregisterResponse")(success=True)


async def discover(caller: Caller, request: Any) -> Any:
    """List agents that have all of these capabilities and may get work, the best first."""
    limit = min(request.max_results or DISCOVERED_AGENTS, LISTED_AGENTS_MAX)
    if limit < 1:
        raise invalid("max_results", "at least 1", "invalid_request")
    able = [one for one in await _agents(caller) if one["situacao"] not in (DRAINING, LOST)]
    some = [one for one in able if _takes(one, request.filters)]
    found = chosen(some, asked(WorkersQuery, capacidade=list(request.capabilities), limit=limit))
    return message(f"{PACKAGE}.DiscoverResponse")(agents=[_info(one) for one in found], ranked=True)


async def get_agent(caller: Caller, request: Any) -> Any:
    """Show one agent."""
    return message(f"{PACKAGE}.GetAgentResponse")(agent=_info(await _one(caller, request.agent_id)))


async def list_agents(caller: Caller, request: Any) -> Any:
    """List agents by name."""
    found = [one for one in await _agents(caller) if _is_of(one, request.agent_type) and _takes(one, request.filters)]
    return message(f"{PACKAGE}.ListAgentsResponse")(agents=[_info(one) for one in found[:LISTED_AGENTS_MAX]])


async def watch(caller: Caller, request: Any) -> AsyncIterator[Any]:
    """Tell of every agent that there is, and then of what changes, within about a second."""
    event = message(f"{PACKAGE}.AgentChangeEvent")
    before: dict[str, View] = {}
    while caller.oraculo.is_ready():
        now = {one["nome"]: one for one in await _agents(caller) if _is_of(one, request.agent_type)}
        at = _seconds(caller.oraculo.now())
        for name in before.keys() - now.keys():
            yield event(event_type=event.DEREGISTERED, agent=_info(before[name]), timestamp=at)
        for name, one in now.items():
            kind = _change(before.get(name), one)
            if kind:
                yield event(event_type=event.EventType.Value(kind), agent=_info(one), timestamp=at)
        before = now
        await asyncio.sleep(WATCH_INTERVAL_S)


def _change(before: View | None, now: View) -> str:
    """What became of an agent between two looks; heartbeats alone are no change."""
    if before is None:
        return "REGISTERED"
    if before["situacao"] != now["situacao"]:
        return "STATUS_CHANGED"
    passing = ("visto_em", "expira_em", "pontuacao", "telemetria", "em_andamento", "executando", "respondidas")
    same = all(before[field] == now[field] for field in now.keys() - set(passing))
    return "" if same else "UPDATED"


async def notify(caller: Caller, request: Any) -> Any:
    """List a notice among the system events, for people. Agents have no door of their own: nothing is sent to one."""
    await _one(caller, request.agent_id)
    body = {"worker": request.agent_id, "tipo": request.notification_type or "INFO", "mensagem": request.message}
    body |= {"metadados": dict(request.metadata), "ator": caller.actor.id}
    event = SystemEvent("worker_notified", caller.oraculo.now(), body, tenant=caller.oraculo.tenant)
    await caller.oraculo.store.record_system_event(event)
    return message(f"{PACKAGE}.NotifyAgentResponse")(success=True)


# -- agents as they are ----------------------------------------------------------------------------------------------


async def _agents(caller: Caller) -> list[View]:
    """All workers of the tenant that registered, however they did."""
    registry = caller.oraculo.registry
    registered = [] if registry.is_empty else await registry.all_of(caller.oraculo.tenant)
    return [_view(caller, one) for one in registered]


async def _one(caller: Caller, agent_id: str) -> View:
    found = await caller.oraculo.registry.one(in_tenant(caller.oraculo.tenant, agent_id))
    if found is None:
        raise UnknownIdError("agent", agent_id)
    return _view(caller, found)


def _view(caller: Caller, one: StoredWorker) -> View:
    leases = caller.oraculo.leases
    view = registered_worker(one, leases.held_by(one.key), leases.workers.get(one.key), caller.oraculo.trails)
    said: Mapping[str, Any] = orjson.loads(one.beat).get("telemetria") or {}
    return view | {"nome": local_name(one.key), "telemetria": said}


def _is_of(view: View, kind: int) -> bool:
    types = message(f"{PACKAGE}.AgentInfo").DESCRIPTOR.fields_by_name["agent_type"].enum_type
    return not kind or _label(view, TYPE_LABEL, "WORKER") == types.values_by_number[kind].name


def _takes(view: View, filters: Mapping[str, str]) -> bool:
    """Whether an agent is one of those that filters name. A level is good for lower ones, too."""
    for name, wanted in filters.items():
        if name not in FILTERS:
            raise invalid(f"filters.{name[:40]}", f"allowed: {', '.join(FILTERS)}", "invalid_request")
        if name == "security_level":
            if wanted.upper() not in LEVELS:
                raise invalid("filters.security_level", f"allowed: {', '.join(LEVELS)}", "invalid_request")
            if LEVELS.index(view["nivel"]) < LEVELS.index(wanted.upper()):
                return False
        elif _field(view, name).lower() != wanted.lower():
            return False
    return True


def _field(view: View, name: str) -> str:
    if name == "status":
        return str(
            message(f"{PACKAGE}.AgentInfo").DESCRIPTOR.fields_by_name["status"].enum_type.values[_status(view)].name
        )
    if name == "version":
        return str(view["versao"])
    label = {"namespace": NAMESPACE_LABEL, "cluster": CLUSTER_LABEL, "agent_type": TYPE_LABEL}[name]
    return _label(view, label, {"namespace": "default", "cluster": "local", "agent_type": "WORKER"}[name])


def _label(view: View, label: str, otherwise: str) -> str:
    return str(view["rotulos"].get(label, otherwise))


def _status(view: View) -> int:
    """HEALTHY 1, UNHEALTHY 2, DEGRADED 3. One that is drained is fit for nothing new."""
    status = message(f"{PACKAGE}.AgentInfo").DESCRIPTOR.fields_by_name["status"].enum_type.values_by_name
    name = {WorkerHealth.ATIVO: "HEALTHY", WorkerHealth.DEGRADADO: "DEGRADED", DRAINING: "DEGRADED"}
    return int(status[name.get(view["situacao"], "UNHEALTHY")].number)


def _info(view: View) -> Any:
    labels = {name: text for name, text in view["rotulos"].items() if name not in OWN_LABELS}
    told, done = view["telemetria"], view["respondidas"] or 0
    telemetry: dict[str, Any] = {
        "success_rate": success_rate(done, view["falhas"] or 0),
        "avg_duration_ms": _number(told.get("avg_duration_ms")),
        "total_executions": done or _number(told.get("total_executions")),
        "failed_executions": view["falhas"] or _number(told.get("failed_executions")),
        "last_execution_at": _number(told.get("last_execution_at")),
    }
    info = message(f"{PACKAGE}.AgentInfo")
    return info(
        agent_id=view["nome"],
        agent_type=_label(view, TYPE_LABEL, "WORKER"),
        capabilities=view["capacidades"],
        metadata=labels,
        telemetry=telemetry,
        status=_status(view),
        registered_at=_seconds(view["registrado_em"]),
        last_seen=_seconds(view["visto_em"]),
        namespace=_field(view, "namespace"),
        cluster=_field(view, "cluster"),
        version=view["versao"],
        schema_version=SCHEMA_VERSION,
    )


def _number(said: Any) -> int:
    return int(said) if isinstance(said, int | float) and 0 <= said < 2**63 else 0


def _seconds(at: datetime) -> int:
    return int(at.timestamp())


DEEDS = {
    "Register": Deed(Scope.LEASE_TAKE, register),
    "Heartbeat": Deed(Scope.LEASE_TAKE, heartbeat),
    "Deregister": Deed(Scope.LEASE_TAKE, deregister),
    "DiscoverAgents": Deed(Scope.SYSTEM_READ, discover),
    "GetAgent": Deed(Scope.SYSTEM_READ, get_agent),
    "ListAgents": Deed(Scope.SYSTEM_READ, list_agents),
    "WatchAgents": Deed(Scope.SYSTEM_READ, watch),
    "NotifyAgent": Deed(Scope.QUEUE_PAUSE, notify),
}
