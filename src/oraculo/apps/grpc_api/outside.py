"""Workers of another registry, which are listed here, too: the best of them, asked for again and again.

One that registered here itself stays as it is; one that the other registry names no more is lost when its lease ends.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import orjson
import structlog
from pydantic import ValidationError

from oraculo.adapters.identity.workload_api import jwt_svid
from oraculo.apps.grpc_api.messages import message
from oraculo.apps.grpc_api.registry import CLUSTER_LABEL, NAMESPACE_LABEL, PACKAGE, SERVICE, TYPE_LABEL, whole
from oraculo.core.access import BROKER
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant
from oraculo.core.vocabulary import SecurityLevel
from oraculo.errors import OraculoError, UnknownIdError
from oraculo.runtime.workers import WorkerBook
from oraculo.settings.access_groups import SpiffeSettings
from oraculo.settings.worker_groups import OutsideRegistrySettings
from oraculo.wire.worker_messages import Heartbeat, Registration

log = structlog.get_logger("oraculo.workers")

OVER = "service-registry"
ACTOR = replace(BROKER, id=OVER)
ROUNDS_PER_LEASE = 3
LEASE_BOUNDS_S = (5.0, 3600.0)
_LEVELS = frozenset(level.value for level in SecurityLevel)


class OutsideRegistry:
    """Asks another registry, and keeps what it says in our own."""

    def __init__(self, registry: WorkerBook, options: OutsideRegistrySettings, spiffe: SpiffeSettings) -> None:
        self._registry = registry
        self._options = options
        self._spiffe = spiffe
        self._away = False
        self.known: dict[str, bytes] = {}  # agent → how it described itself last

    async def run(self) -> None:
        """Ask for ever."""
        host = self._options.host
        where = f"[{host.strip('[]')}]:{self._options.port}" if ":" in host else f"{host}:{self._options.port}"
        async with grpc.aio.insecure_channel(where) as channel:
            while True:
                await self.round(channel, where)
                await asyncio.sleep(self._options.interval_s)

    async def round(self, channel: Any, where: str) -> None:
        """Ask once."""
        try:
            found = await self._best(channel)
            named = {in_tenant(DEFAULT_TENANT, agent.agent_id) for agent in found}
            self.known = {key: said for key, said in self.known.items() if key in named}
            for agent in found:
                await self._keep(agent)
        except (grpc.aio.AioRpcError, ValueError, OraculoError) as error:
            if not self._away:
                said = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
                log.warning("workers of the other registry not read", registry=where, error=said)
            self._away = True
            return
        if self._away:
            log.info("workers of the other registry are read again", registry=where)
        self._away = False

    async def _best(self, channel: Any) -> list[Any]:
        request, answer = message(f"{PACKAGE}.DiscoverRequest"), message(f"{PACKAGE}.DiscoverResponse")
        call = channel.unary_unary(f"/{SERVICE}/DiscoverAgents", request.SerializeToString, answer.FromString)
        token = await self._token()
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        said = await call(request(max_results=self._options.most), timeout=self._options.timeout_s, metadata=metadata)
        return list(said.agents)[: self._options.most]

    async def _token(self) -> str:
        """The token of this workload; empty where there is none and none is needed. ValueError: one is needed."""
        spiffe = self._spiffe
        if not spiffe.enabled:
            return ""
        try:
            return await asyncio.to_thread(jwt_svid, spiffe.socket, self._options.audience, self._options.timeout_s)
        except ValueError:
            if spiffe.fallback:
                return ""
            raise

    async def _keep(self, agent: Any) -> None:
        """Register an agent here, or note that it is alive."""
        key = in_tenant(DEFAULT_TENANT, agent.agent_id)
        stored = await self._registry.one(key)
        if stored is not None and stored.alive and orjson.loads(stored.body).get("transporte") != OVER:
            return
        try:
            said = self._registration(agent)
        except ValidationError as error:
            log.warning("worker of the other registry left out", worker=agent.agent_id[:100], error=str(error)[:300])
            return
        described = said.model_dump_json(exclude={"telemetria"}).encode()
        if stored is not None and stored.alive and self.known.get(key) == described:
            try:
                await self._registry.beat(key, Heartbeat.model_validate({"telemetria": said.telemetria}), ACTOR)
                return
            except UnknownIdError:
                pass  # it was lost meanwhile
        await self._registry.register(DEFAULT_TENANT, said, ACTOR, OVER)
        self.known[key] = described

    def _registration(self, agent: Any) -> Registration:
        metadata = dict(agent.metadata)
        types = agent.DESCRIPTOR.fields_by_name["agent_type"].enum_type.values_by_number
        kind = types.get(agent.agent_type)
        labels = metadata | {
            TYPE_LABEL: "WORKER" if kind is None else kind.name,
            NAMESPACE_LABEL: agent.namespace or "default",
            CLUSTER_LABEL: agent.cluster or "local",
        }
        level = metadata.get("security_level", "").upper()
        low, high = LEASE_BOUNDS_S
        telemetry = {field.name: getattr(agent.telemetry, field.name) for field in agent.telemetry.DESCRIPTOR.fields}
        return Registration.model_validate(
            {
                "worker": agent.agent_id,
                "capacidades": list(agent.capabilities),
                "rotulos": labels,
                "versao": agent.version,
                "concorrencia": whole(metadata.get("max_concurrent_tasks", ""), 1),
                "nivel": level if level in _LEVELS else SecurityLevel.INTERNAL,
                "telemetria": telemetry,
                "timeout_s": min(max(ROUNDS_PER_LEASE * self._options.interval_s, low), high),
            }
        )
