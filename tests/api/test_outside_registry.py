"""Workers of another registry: that of another Oráculo, over its gRPC."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from tools.servers.server import free_port

from acceptance.conftest import Server
from adapters.workload_api import agent
from api.test_plans import Site
from oraculo.api.app import create_app
from oraculo.apps.grpc_api.messages import message
from oraculo.apps.grpc_api.outside import OutsideRegistry
from oraculo.apps.grpc_api.registry import PACKAGE, SERVICE
from oraculo.apps.grpc_api.server import serving as grpc_serving
from oraculo.core.access import LOCAL
from oraculo.settings.settings import load
from oraculo.wire.worker_messages import Registration
from waiting import until


async def registers(site: Site, name: str, **said: Any) -> None:
    body = {"worker": name, "capacidades": ["python"], **said}
    await site.oraculo.registry.register("default", Registration.model_validate(body), LOCAL, "http")


async def listed(site: Site) -> dict[str, dict[str, Any]]:
    return {one["nome"]: one for one in (await site.get("/workers"))["workers"]}


@asynccontextmanager
async def registry_of(site: Site) -> AsyncIterator[tuple[int, Any]]:
    async with (
        grpc_serving(create_app(site.oraculo), "127.0.0.1", 0) as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        yield port, channel


@pytest.fixture
async def sites(tmp_path: Path) -> AsyncIterator[tuple[Site, Site]]:
    """The one that asks, and the one that is asked."""
    (tmp_path / "asks").mkdir()
    (tmp_path / "asked").mkdir()
    async with Site(tmp_path / "asks") as asks, Site(tmp_path / "asked") as asked:
        yield asks, asked


def asking(site: Site, **variables: str) -> OutsideRegistry:
    chosen = load({"SERVICE_REGISTRY_HOST": "127.0.0.1", **variables}, None)
    return OutsideRegistry(site.oraculo.registry, chosen.worker_registry.outside, chosen.spiffe)


async def test_the_best_workers_of_the_other_registry_are_listed_here(sites: tuple[Site, Site]) -> None:
    ours, theirs = sites
    for number in range(4):
        metadata = {"max_concurrent_tasks": "3", "security_level": "RESTRICTED"}
        await registers(theirs, f"w{number}", versao="2.0", rotulos=metadata, nivel="RESTRICTED")
    await registers(ours, "own")
    async with registry_of(theirs) as (_, channel):
        outside = asking(ours, SERVICE_REGISTRY_MAX_RESULTS="3")
        await outside.round(channel, "there")
    found = await listed(ours)
    assert len(found) == 4 and found["own"]["transporte"] == "http"
    (one, *_) = (worker for name, worker in found.items() if name != "own")
    assert (one["transporte"], one["concorrencia"], one["nivel"]) == ("service-registry", 3, "RESTRICTED")
    assert (one["capacidades"], one["versao"]) == (["python"], "2.0")


async def test_who_registered_here_itself_stays_as_it_is(sites: tuple[Site, Site]) -> None:
    ours, theirs = sites
    await registers(ours, "w", capacidades=["java"])
    await registers(theirs, "w")
    async with registry_of(theirs) as (_, channel):
        await asking(ours).round(channel, "there")
    assert (await listed(ours))["w"]["capacidades"] == ["java"]
    async with registry_of(ours) as (_, channel):
        await asking(ours).round(channel, "itself")  # a registry that is told to ask itself
    assert (await listed(ours))["w"]["transporte"] == "http"


async def test_a_registration_is_written_once_and_heartbeats_then(sites: tuple[Site, Site]) -> None:
    ours, theirs = sites
    await registers(theirs, "w")
    async with registry_of(theirs) as (_, channel):
        outside = asking(ours)
        for _ in range(3):
            await outside.round(channel, "there")
        counts = ours.oraculo.registry.counts
        assert (counts.registered, counts.heartbeats) == (1, 2)
        await registers(theirs, "w", capacidades=["python", "rust"])
        await outside.round(channel, "there")
    assert counts.registered == 2
    assert (await listed(ours))["w"]["capacidades"] == ["python", "rust"]


async def test_what_it_names_no_more_is_not_remembered(sites: tuple[Site, Site]) -> None:
    """A registry that makes up names in every round does not fill the memory."""
    ours, theirs = sites
    outside = asking(ours, SERVICE_REGISTRY_MAX_RESULTS="2")
    async with registry_of(theirs) as (_, channel):
        for number in range(4):
            await registers(theirs, f"w{number}")
            await outside.round(channel, "there")
            assert len(outside.known) <= 2


async def test_a_registry_that_is_away_is_asked_again(sites: tuple[Site, Site]) -> None:
    ours, theirs = sites
    outside = asking(ours, SERVICE_REGISTRY_TIMEOUT_SECONDS="1")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{free_port()}") as nobody:
        await outside.round(nobody, "nowhere")
    await registers(theirs, "w")
    async with registry_of(theirs) as (_, channel):
        await outside.round(channel, "there")
    assert list(await listed(ours)) == ["w"]


async def _shown(outside: OutsideRegistry) -> list[dict[str, Any]]:
    """What a registry is shown beside a question."""
    seen: list[dict[str, Any]] = []

    async def discover(_: Any, context: Any) -> Any:
        seen.append(dict(context.invocation_metadata()))
        return message(f"{PACKAGE}.DiscoverResponse")()

    server = grpc.aio.server()
    answer = message(f"{PACKAGE}.DiscoverResponse").SerializeToString
    handler = grpc.unary_unary_rpc_method_handler(discover, message(f"{PACKAGE}.DiscoverRequest").FromString, answer)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {"DiscoverAgents": handler})])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await outside.round(channel, "there")
    await server.stop(0)
    return seen


async def test_the_registry_is_shown_the_token_for_its_audience(sites: tuple[Site, Site]) -> None:
    with tempfile.TemporaryDirectory(prefix="spiffe") as folder, agent(Path(folder)) as found:
        spiffe = {"SPIFFE_ENABLED": "true", "SPIFFE_SOCKET_PATH": found.socket}
        known = asking(sites[0], SERVICE_REGISTRY_JWT_AUDIENCE="registro.casa", **spiffe)
        (shown,) = await _shown(known)
        assert shown["authorization"] == "Bearer svid.registro.casa.sig"
        found.knows = False
        assert await _shown(asking(sites[0], **spiffe)) == [], "without a token it is not asked"
        (shown,) = await _shown(asking(sites[0], SPIFFE_FALLBACK_ALLOWED="true", **spiffe))
        assert "authorization" not in shown
    (shown,) = await _shown(asking(sites[0]))
    assert "authorization" not in shown


async def test_a_server_asks_the_registry_that_its_settings_name(sites: tuple[Site, Site], tmp_path: Path) -> None:
    await registers(sites[1], "w")
    server = Server(tmp_path, [])
    async with registry_of(sites[1]) as (port, _):
        await asyncio.to_thread(server.up, SERVICE_REGISTRY_HOST="127.0.0.1", SERVICE_REGISTRY_PORT=str(port))
        try:

            async def there() -> bool:
                answer = await asyncio.to_thread(server.call, "GET", "/api/v1/workers")
                return answer is not None and [one["nome"] for one in answer.json()["workers"]] == ["w"]

            await until(there)
        finally:
            server.kill()
