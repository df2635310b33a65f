"""The services of the original over gRPC, asked by clients that protoc makes of their .proto, as the original's are."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest
from grpc_tools import protoc
from tools.protos import DESCRIPTORS, FOLDER, compiled
from tools.servers.server import free_port

from acceptance.conftest import Server
from api.conftest import API, settings_for
from api.test_keys import ADMIN, SHARED, bearer, made
from api.test_plans import TICKETS, Site, plan, task
from api.test_tls import Papers
from oraculo.api.app import create_app
from oraculo.apps.grpc_api.calls import address_of
from oraculo.apps.grpc_api.server import serving as grpc_serving
from oraculo.service import Oraculo

SERVICES = {
    "registry": ("service_registry", "ServiceRegistryStub"),
    "tickets": ("ticket_service", "TicketServiceStub"),
    "strategic": ("orchestrator_strategic", "OrchestratorStrategicStub"),
    "health": ("health", "HealthStub"),
}
Stubs = dict[str, tuple[ModuleType, ModuleType]]


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    """Per service what protoc makes for a client: messages, and the stub."""
    folder = tmp_path_factory.mktemp("stubs")
    files = [f"{name}.proto" for name, _ in SERVICES.values()]
    assert protoc.main(["protoc", f"-I{FOLDER}", f"--python_out={folder}", f"--grpc_python_out={folder}", *files]) == 0
    sys.path.insert(0, str(folder))
    try:
        yield {
            short: (importlib.import_module(f"{name}_pb2"), importlib.import_module(f"{name}_pb2_grpc"))
            for short, (name, _) in SERVICES.items()
        }
    finally:
        sys.path.remove(str(folder))


class Hive:
    """A client of every service on one channel."""

    def __init__(self, stubs: Stubs, channel: Any) -> None:
        self.registry, self.tickets, self.strategic, self.health = (
            getattr(stubs[name][1], stub)(channel) for name, (_, stub) in SERVICES.items()
        )
        self.of_registry, self.of_tickets, self.of_strategic, self.of_health = (stubs[name][0] for name in SERVICES)


@asynccontextmanager
async def hive_of(stubs: Stubs, site: Site) -> AsyncIterator[Hive]:
    app = create_app(site.oraculo)
    async with grpc_serving(app, "127.0.0.1", 0) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Hive(stubs, channel)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with Site(tmp_path, ORACULO_RESULT_TOKENS="accept") as site:
        yield site


@pytest.fixture
async def hive(site: Site, stubs: Stubs) -> AsyncIterator[Hive]:
    async with hive_of(stubs, site) as hive:
        yield hive


async def refused(call: Awaitable[Any], status: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    assert raised.value.code() is status, raised.value
    return str(raised.value.details())


async def test_an_agent_registers_beats_is_found_and_leaves(hive: Hive, site: Site) -> None:
    pb = hive.of_registry
    told = pb.AgentTelemetry(success_rate=0.9, avg_duration_ms=12, total_executions=10, failed_executions=1)
    agent = await hive.registry.Register(
        pb.RegisterRequest(
            agent_type=pb.WORKER,
            capabilities=["python", "build"],
            metadata={"http_port": "8080", "max_concurrent_tasks": "5", "security_level": "RESTRICTED"},
            namespace="hive",
            cluster="c1",
            version="2.1.0",
            telemetry=told,
        )
    )
    assert len(agent.agent_id) == 36 and agent.registered_at > 0
    [listed] = (await site.get("/workers"))["workers"]
    assert (listed["nome"], listed["transporte"], listed["concorrencia"]) == (agent.agent_id, "grpc", 5)
    beat = await hive.registry.Heartbeat(pb.HeartbeatRequest(agent_id=agent.agent_id, telemetry=told))
    assert beat.status == pb.HEALTHY and beat.last_seen >= agent.registered_at
    shown = (await hive.registry.GetAgent(pb.GetAgentRequest(agent_id=agent.agent_id))).agent
    assert (shown.agent_type, list(shown.capabilities), shown.namespace) == (pb.WORKER, ["python", "build"], "hive")
    assert (shown.cluster, shown.version, shown.status, shown.schema_version) == ("c1", "2.1.0", pb.HEALTHY, 1)
    assert dict(shown.metadata) == {"http_port": "8080", "max_concurrent_tasks": "5", "security_level": "RESTRICTED"}
    assert (shown.telemetry.avg_duration_ms, shown.telemetry.total_executions) == (12, 10)
    found = await hive.registry.DiscoverAgents(pb.DiscoverRequest(capabilities=["python"]))
    assert [one.agent_id for one in found.agents] == [agent.agent_id] and found.ranked
    assert (await hive.registry.Deregister(pb.DeregisterRequest(agent_id=agent.agent_id))).success
    for call in (
        hive.registry.Heartbeat(pb.HeartbeatRequest(agent_id=agent.agent_id)),
        hive.registry.GetAgent(pb.GetAgentRequest(agent_id=agent.agent_id)),
        hive.registry.Deregister(pb.DeregisterRequest(agent_id=agent.agent_id)),
    ):
        await refused(call, grpc.StatusCode.NOT_FOUND)
    said = await refused(
        hive.registry.Register(pb.RegisterRequest(agent_type=pb.WORKER)), grpc.StatusCode.INVALID_ARGUMENT
    )
    assert "capabilities" in said


async def test_discovery_narrows_ranks_and_leaves_out_who_gets_no_work(hive: Hive, site: Site) -> None:
    pb = hive.of_registry
    ids = {}
    for name, kind, level, capabilities in (
        ("a", pb.WORKER, "PUBLIC", ["x", "y"]),
        ("b", pb.WORKER, "RESTRICTED", ["x"]),
        ("c", pb.SCOUT, "INTERNAL", ["x", "y", "z"]),
    ):
        request = pb.RegisterRequest(agent_type=kind, capabilities=capabilities, namespace=f"n{name}")
        request.metadata.update({"agent_id": name, "security_level": level})
        ids[name] = (await hive.registry.Register(request)).agent_id
    assert ids == {"a": "a", "b": "b", "c": "c"}  # an agent that was here before keeps its id

    async def names(*capabilities: str, most: int = 0, **filters: str) -> list[str]:
        asked = pb.DiscoverRequest(capabilities=capabilities, filters=filters, max_results=most)
        return sorted(one.agent_id for one in (await hive.registry.DiscoverAgents(asked)).agents)

    assert await names("x") == ["a", "b", "c"] and await names("x", "y") == ["a", "c"] and await names("q") == []
    assert await names("x", security_level="INTERNAL") == ["b", "c"]  # a level is good for lower ones
    assert await names("x", agent_type="SCOUT") == ["c"] and await names("x", namespace="nb") == ["b"]
    assert await names("x", status="HEALTHY", cluster="local", version="1.0.0") == ["a", "b", "c"]
    assert len(await names("x", most=2)) == 2
    asked = pb.DiscoverRequest(filters={"colour": "red"})
    assert "namespace" in await refused(hive.registry.DiscoverAgents(asked), grpc.StatusCode.INVALID_ARGUMENT)
    assert (await site.client.post(f"{API}/workers/a/drain")).status_code == 200
    assert await names("x") == ["b", "c"]
    of_all = await hive.registry.ListAgents(pb.ListAgentsRequest())
    assert {one.agent_id: one.status for one in of_all.agents} == {"a": pb.DEGRADED, "b": pb.HEALTHY, "c": pb.HEALTHY}
    scouts = await hive.registry.ListAgents(pb.ListAgentsRequest(agent_type=pb.SCOUT))
    assert [one.agent_id for one in scouts.agents] == ["c"]
    notice = pb.NotifyAgentRequest(agent_id="b", notification_type="WARNING", message="soon")
    assert (await hive.registry.NotifyAgent(notice)).success
    [event, *_] = (await site.get("/system-events"))["eventos"]
    assert (event["evento"], event["worker"], event["mensagem"]) == ("worker_notified", "b", "soon")


async def test_a_watcher_is_told_who_comes_changes_and_goes(hive: Hive, site: Site) -> None:
    pb = hive.of_registry
    watched = hive.registry.WatchAgents(pb.WatchAgentsRequest(agent_type=pb.WORKER))
    for kind, name in ((pb.SCOUT, "other"), (pb.WORKER, "w")):
        asked = pb.RegisterRequest(agent_type=kind, capabilities=["x"], metadata={"agent_id": name})
        await hive.registry.Register(asked)
    first = await watched.read()
    assert (first.event_type, first.agent.agent_id) == (pb.AgentChangeEvent.REGISTERED, "w") and first.timestamp
    await site.client.post(f"{API}/workers/w/drain")
    second = await watched.read()
    assert (second.event_type, second.agent.status) == (pb.AgentChangeEvent.STATUS_CHANGED, pb.DEGRADED)
    await hive.registry.Deregister(pb.DeregisterRequest(agent_id="w"))
    assert (await watched.read()).event_type == pb.AgentChangeEvent.DEREGISTERED
    watched.cancel()


async def test_tickets_are_shown_listed_answered_and_given_their_token(tmp_path: Path, stubs: Stubs) -> None:
    async with Site(tmp_path, ORACULO_RESULT_TOKENS="require") as site, hive_of(stubs, site) as hive:
        pb = hive.of_tickets
        await site.bring(plan("p1", task("a"), task("b", "a")))
        await site.worker.take(TICKETS, 1)
        listed = await hive.tickets.ListTickets(pb.ListTicketsRequest(plan_id="p1"))
        assert [one.task_id for one in listed.tickets] == ["a", "b"] and listed.total == 2
        first = listed.tickets[0]
        [over_http, _] = (await site.get("/tickets?plan_id=p1"))["tickets"]
        assert all(getattr(first, one.name) == over_http[one.name] for one in first.DESCRIPTOR.fields)
        assert (await hive.tickets.GetTicket(pb.GetTicketRequest(ticket_id=first.ticket_id))).ticket == first
        assert not (await hive.tickets.ListTickets(pb.ListTicketsRequest(plan_id="p1", status="FAILED"))).tickets
        done = pb.UpdateTicketStatusRequest(ticket_id=first.ticket_id, status="COMPLETED")
        await refused(hive.tickets.UpdateTicketStatus(done), grpc.StatusCode.PERMISSION_DENIED)  # no token
        token = await hive.tickets.GenerateToken(pb.GenerateTokenRequest(ticket_id=first.ticket_id))
        assert token.access_token.count(".") == 2 and token.expires_at > 0
        carried = (("oraculo-token", token.access_token),)
        answer = await hive.tickets.UpdateTicketStatus(done, metadata=carried)
        assert answer.ticket.status == "COMPLETED"
        await refused(hive.tickets.UpdateTicketStatus(done, metadata=carried), grpc.StatusCode.FAILED_PRECONDITION)
        wrong = pb.UpdateTicketStatusRequest(ticket_id=first.ticket_id, status="REJECTED")
        assert "status" in await refused(hive.tickets.UpdateTicketStatus(wrong), grpc.StatusCode.INVALID_ARGUMENT)
        await refused(hive.tickets.GetTicket(pb.GetTicketRequest(ticket_id="?")), grpc.StatusCode.NOT_FOUND)


async def test_strategic_commands_are_those_of_the_core(hive: Hive, site: Site) -> None:
    pb = hive.of_strategic
    name = (await site.bring(plan("p1", task("a"), task("b", "a"))))["correlation_id"]
    await site.worker.take(TICKETS, 1)
    urgent = pb.AdjustPrioritiesRequest(workflow_id="orch-p1", new_priority=10, reason="queen", adjustment_id="x")
    first, again = [await hive.strategic.AdjustPriorities(urgent) for _ in range(2)]
    assert (first.success, first.previous_priority, first.applied_priority) == (True, 5, 9) and first.applied_at
    assert (again.success, again.previous_priority, again.message) == (True, 9, "it was so already")
    by_plan = pb.AdjustPrioritiesRequest(plan_id="p1", new_priority=0)
    await refused(hive.strategic.AdjustPriorities(by_plan), grpc.StatusCode.INVALID_ARGUMENT)
    paused = await hive.strategic.PauseWorkflow(pb.PauseWorkflowRequest(workflow_id=name, reason="look"))
    assert paused.success and paused.paused_at and not paused.HasField("scheduled_resume_at")
    timed = pb.PauseWorkflowRequest(workflow_id=name, pause_duration_seconds=60)
    await refused(hive.strategic.PauseWorkflow(timed), grpc.StatusCode.UNIMPLEMENTED)
    asked = pb.GetWorkflowStatusRequest(workflow_id="orch-p1", include_tickets=True, include_history=True)
    status = await hive.strategic.GetWorkflowStatus(asked)
    assert (status.state, status.plan_id, status.current_priority) == (pb.WORKFLOW_STATE_PAUSED, "p1", 9)
    assert (status.tickets.total, status.tickets.completed, status.progress_percent) == (2, 0, 0.0)
    assert status.started_at <= status.updated_at < status.sla_deadline and status.sla_remaining_seconds > 0
    kinds = [one.event_type for one in status.history]
    assert {"priority_changed", "orchestration_paused"} <= set(kinds) and all(one.timestamp for one in status.history)
    shown = (await site.get(f"/orchestrations/{name}"))["pausa"]
    assert (shown["motivo"], shown["ator"]) == ("look", "local")
    resumed = await hive.strategic.ResumeWorkflow(pb.ResumeWorkflowRequest(workflow_id="orch-p1"))
    assert resumed.success and resumed.resumed_at >= paused.paused_at
    balanced = await hive.strategic.RebalanceResources(
        pb.RebalanceResourcesRequest(
            workflow_ids=["orch-p1", "nobody"],
            target_allocation={"orch-p1": pb.ResourceAllocation(scheduling_priority=3, cpu_millicores=500)},
        )
    )
    assert not balanced.success
    assert [(one.workflow_id, one.success) for one in balanced.results] == [("orch-p1", True), ("nobody", False)]
    applied = balanced.results[0]
    assert (applied.previous_allocation.scheduling_priority, applied.applied_allocation.scheduling_priority) == (9, 3)
    again = pb.TriggerReplanningRequest(plan_id="p1", trigger_type=pb.TRIGGER_TYPE_DRIFT)
    assert "new plan" in await refused(hive.strategic.TriggerReplanning(again), grpc.StatusCode.UNIMPLEMENTED)
    await site.client.post(f"{API}/orchestrations/{name}/cancel")
    late = await hive.strategic.PauseWorkflow(pb.PauseWorkflowRequest(workflow_id=name))
    assert not late.success and late.message
    ended = await hive.strategic.GetWorkflowStatus(pb.GetWorkflowStatusRequest(workflow_id=name))
    assert (ended.state, ended.progress_percent) == (pb.WORKFLOW_STATE_CANCELLED, 100.0)
    nobody = pb.GetWorkflowStatusRequest(workflow_id="nobody")
    await refused(hive.strategic.GetWorkflowStatus(nobody), grpc.StatusCode.NOT_FOUND)


async def test_keys_roles_and_tenants_count_as_over_http(tmp_path: Path, stubs: Stubs) -> None:
    async with Site(tmp_path, ORACULO_API_KEY=SHARED) as site, hive_of(stubs, site) as hive:
        pb = hive.of_registry
        worker = await made(site.client, "trabalhador", queues=["escavador_a"])
        other = await made(site.client, "operador", tenant="acme")
        asked = pb.RegisterRequest(agent_type=pb.WORKER, capabilities=["x"], metadata={"agent_id": "w"})
        await refused(hive.registry.Register(asked), grpc.StatusCode.UNAUTHENTICATED)
        wrong = (("authorization", "Bearer orc_wrong"),)
        await refused(hive.registry.Register(asked, metadata=wrong), grpc.StatusCode.UNAUTHENTICATED)

        def by(key: dict[str, Any]) -> tuple[tuple[str, str], ...]:
            return (("authorization", bearer(key)["Authorization"]),)

        assert (await hive.registry.Register(asked, metadata=by(worker))).agent_id == "w"
        discover = pb.DiscoverRequest(capabilities=["x"])
        told = await refused(
            hive.registry.DiscoverAgents(discover, metadata=by(worker)), grpc.StatusCode.PERMISSION_DENIED
        )
        assert "system:read" in told
        admin = (("x-api-key", ADMIN["Authorization"].removeprefix("Bearer ")),)
        assert len((await hive.registry.DiscoverAgents(discover, metadata=admin)).agents) == 1
        assert not (await hive.registry.DiscoverAgents(discover, metadata=by(other))).agents
        health = await hive.health.Check(hive.of_health.HealthCheckRequest())
        assert health.status == hive.of_health.HealthCheckResponse.SERVING
        unknown = await hive.health.Check(hive.of_health.HealthCheckRequest(service="nobody"))
        assert unknown.status == hive.of_health.HealthCheckResponse.SERVICE_UNKNOWN


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


async def test_tls_is_that_of_the_server(tmp_path: Path, stubs: Stubs) -> None:
    papers = Papers(tmp_path)
    authority, chain, key = map(_read, (papers.ca, papers.client.cert, papers.client.key))
    oraculo = Oraculo(settings_for(tmp_path, **papers.mutual))
    async with oraculo, grpc_serving(create_app(oraculo), "127.0.0.1", 0) as port:
        known = grpc.ssl_channel_credentials(authority, key, chain)
        async with grpc.aio.secure_channel(f"localhost:{port}", known) as channel:
            hive = Hive(stubs, channel)
            health = await hive.health.Check(hive.of_health.HealthCheckRequest())
            assert health.status == hive.of_health.HealthCheckResponse.SERVING
        for strange in (grpc.ssl_channel_credentials(authority), None):
            where = f"localhost:{port}"
            channel = grpc.aio.insecure_channel(where) if strange is None else grpc.aio.secure_channel(where, strange)
            async with channel:
                asked = Hive(stubs, channel).health.Check(hive.of_health.HealthCheckRequest(), timeout=20)
                await refused(asked, grpc.StatusCode.UNAVAILABLE)


def test_a_blocking_client_of_the_original_works_with_oraculo_up(tmp_path: Path, stubs: Stubs) -> None:
    server, port = Server(tmp_path, []), free_port()
    server.up(ORACULO_GRPC_PORT=str(port), ORACULO_FLOW_C="off")
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            hive = Hive(stubs, channel)
            pb = hive.of_registry
            asked = pb.RegisterRequest(agent_type=pb.WORKER, capabilities=["python"])
            agent = hive.registry.Register(asked, wait_for_ready=True, timeout=60)
            hive.registry.Heartbeat(pb.HeartbeatRequest(agent_id=agent.agent_id))
            found = hive.registry.DiscoverAgents(pb.DiscoverRequest(capabilities=["python"], max_results=5), timeout=5)
            assert [one.agent_id for one in found.agents] == [agent.agent_id]
            with pytest.raises(grpc.RpcError) as raised:
                hive.tickets.ListTickets(hive.of_tickets.ListTicketsRequest())
            assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED  # Fluxo C is off
        second = Server(tmp_path / "second", [])
        second.cwd.mkdir()
        second.begin(ORACULO_GRPC_PORT=str(port))
        assert second.wait() == 1
        said = (second.cwd / "stderr.log").read_text()
        assert "ORACULO_GRPC_PORT" in said and "Traceback" not in said
    finally:
        assert server.terminate() == 0


def test_grpc_is_not_imported_unless_it_is_asked_for() -> None:
    code = "import sys, oraculo.cli.serve; sys.exit('grpc' in sys.modules or 'google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_descriptors_that_are_shipped_are_those_of_the_proto_files() -> None:
    assert DESCRIPTORS.read_bytes() == compiled(), "make protos"


@pytest.mark.parametrize(
    ("peer", "address"),
    [("ipv4:127.0.0.1:50000", "127.0.0.1"), ("ipv6:%5B::1%5D:50000", "::1"), ("unix:", "unix:")],
)
def test_the_address_of_a_peer_is_what_guesses_are_counted_by(peer: str, address: str) -> None:
    assert address_of(peer) == address
