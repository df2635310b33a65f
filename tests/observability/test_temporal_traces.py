"""Traces with the engine `temporal`: what Temporal's SDK says of an orchestration is inside its trace, once."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.context import Context
from redis import Redis
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from tools.servers.temporal import settings_of

import servers
from acceptance.replicas import Replica
from contracts.engine_cases import answer
from databases import database
from engines.temporal_world import World, connected, opened
from observability.otlp import Receiver, Seen
from oraculo.adapters.sinks.otel.export import Exporter
from oraculo.engines.temporal import connection
from oraculo.engines.temporal.codec import CONVERTER
from oraculo.engines.temporal.connection import connect
from oraculo.engines.temporal.sandbox import SANDBOX
from oraculo.engines.temporal.tracing import Tracing
from oraculo.engines.temporal.workflow import WORKFLOWS
from oraculo.runtime.answers import AnswerReader
from oraculo.wire import names
from oraculo.wire import trace_context as context

pytestmark = pytest.mark.xdist_group("engine-temporal")

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"
STARTS, RUNS, ENDS = (f"{verb}Workflow:OrchestrationWorkflow" for verb in ("Start", "Run", "Complete"))
ASKS, DOES = "StartActivity:carry_out", "RunActivity:carry_out"
TELLS, HEARS = "SignalWorkflow:tickets_completed", "HandleSignal:tickets_completed"


def one(found: list[Seen]) -> Seen:
    assert len(found) == 1, [span.name for span in found]
    return found[0]


def work(client: Redis, queue: str) -> dict[str, Any]:
    """A worker that knows nothing of traces: it takes an order, and answers with the four fields of the envelope."""
    ((_, ((_, fields),)),) = client.xread({queue: "0"}, block=20_000)
    order: dict[str, Any] = json.loads(fields[b"mensagem"])
    said = {field: answer(order, [1])[field] for field in ("correlation_id", "tipo_evento", "payload", "timestamp")}
    client.xadd(names.RESULTS, {"mensagem": json.dumps(said)})
    return order


def test_a_request_is_one_trace_over_two_processes_temporal_and_a_plain_worker(tmp_path: Path) -> None:
    name, store = f"rastro-{secrets.token_hex(4)}", asyncio.run(database())
    body = {"correlation_id": name, "coletas": [{"fonte": "a"}], "execucoes": [{"executador": "b"}]}
    with Receiver("grpc") as receiver, servers.own("redis", tmp_path / "redis") as redis:
        env = settings_of(servers.shared("temporal")) | {"TEMPORAL_TASK_QUEUE": f"t-{secrets.token_hex(4)}"}
        env["OTEL_EXPORTER_ENDPOINT"] = receiver.url
        replicas = [Replica(tmp_path / r, r, store, redis.url, f"--{r}-only", **env) for r in ("api", "engine")]
        try:
            for replica in replicas:
                replica.begin(OTEL_SERVICE_NAME=replica.name)
            api = replicas[0]
            while (answered := api.call("GET", "/ready")) is None or answered.status_code != 200:
                time.sleep(0.05)
            submitted = api.call("POST", "/api/v1/orchestrations", json=body, headers={"traceparent": CALLER})
            assert submitted is not None and submitted.status_code == 202, submitted
            with Redis(host="127.0.0.1", port=redis.port) as client:
                orders = [work(client, queue) for queue in ("escavador_a", "executador_b")]
            assert api.result(name)["status"] == "concluida"
        finally:
            codes = [replica.terminate() for replica in replicas if replica.running]
        assert codes == [0, 0]
    _check([span for span in receiver.spans if span.trace == TRACE], orders, name)


def _check(mine: list[Seen], orders: list[dict[str, Any]], name: str) -> None:
    """All of it was sent when the processes ended. How often a slow machine tries something again is not said here."""

    def named(text: str) -> list[Seen]:
        return [span for span in mine if span.name == text]

    request = one(named("POST /api/v1/orchestrations"))
    workflow = one(named("orchestration_workflow.run"))
    tickets = named("ticket_execution")
    assert (request.parent, workflow.parent) == (context.span_id(CALLER), request.id)
    assert {span.parent for span in tickets} == {workflow.id}
    assert {span.id for span in tickets} == {context.span_id(order["traceparent"]) for order in orders}
    start = one(named(STARTS))
    assert (start.parent, start.attributes["service.name"]) == (workflow.id, "api")
    told = named(TELLS)
    assert told and {span.parent for span in told} == {workflow.id}
    inside = [span for verb in (RUNS, ENDS, HEARS, ASKS) for span in named(verb)]
    assert {span.name for span in inside} == {RUNS, ENDS, HEARS, ASKS}
    assert {span.parent for span in inside} == {start.id}
    assert {span.attributes["service.name"] for span in [*inside, *told, *named(DOES)]} == {"engine"}
    assert {span.links[0] for span in named(HEARS)} == {span.id for span in told}
    assert {span.parent for span in named(DOES)} == {span.id for span in named(ASKS)}
    assert {span.attributes["temporalWorkflowID"] for span in [start, *told, *inside]} == {f"orch-{name}"}
    assert {span.attributes["neural.hive.component"] for span in mine} == {"orchestrator"}
    known = [request, workflow, *tickets, start, *told, *inside, *named(DOES)]
    assert len(mine) == len(known) == len({span.id for span in mine})
    assert not any(span.error for span in (request, workflow, *tickets))


async def collects(world: World, **more: Any) -> str:
    """Two collects, one after the other, each in a workflow task of its own; its id."""
    accepted = await world.oraculo.submit({"coletas": [{"fonte": "a"}, {"fonte": "b"}]}, **more)
    for source in "ab":
        await world.answer(await world.order(source))
    await world.result(accepted.correlation_id)
    await world.temporal.get_workflow_handle(f"orch-{accepted.correlation_id}").result()
    return accepted.correlation_id


async def history(world: World, name: str) -> WorkflowHistory:
    return await world.temporal.get_workflow_handle(f"orch-{name}").fetch_history()


async def test_a_replay_makes_no_span_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_CACHED_WORKFLOWS", 0)  # every workflow task replays what was before it
    with Receiver("http") as receiver:
        where = {"OTEL_EXPORTER_ENDPOINT": receiver.url}
        async with opened(tmp_path, servers.shared("temporal"), **where) as world:
            written = await history(world, await collects(await connected(world)))
        counts = Counter(span.name for span in receiver.spans)
        assert {counts[name] for name in (STARTS, RUNS, ENDS)} == {1}
        assert counts[HEARS] == counts[TELLS] == 2
        assert counts[DOES] == counts[ASKS] == 3
        assert len({span.trace for span in receiver.spans}) == 1
        replayed = Exporter(receiver.url, "http", {}, ("replay", ""))
        for interceptors in ([], [Tracing(replayed.tracer()).interceptor]):  # on or off is for each process to say
            await Replayer(
                workflows=WORKFLOWS, workflow_runner=SANDBOX, data_converter=CONVERTER, interceptors=interceptors
            ).replay_workflow(written)
        replayed.close()
        assert replayed.counts["feito"] == 0


async def test_what_is_asked_and_what_is_said_by_hand(tmp_path: Path) -> None:
    with Receiver("http") as receiver:
        where = {"OTEL_EXPORTER_ENDPOINT": receiver.url}
        async with opened(tmp_path, servers.shared("temporal"), **where) as world:
            await connected(world)
            name, (source,) = await world.submit(1)
            await world.order(source)
            handle = (await connect(world.engine.connection.address, "by hand")).get_workflow_handle(f"orch-{name}")
            await handle.query("get_status")
            await handle.signal("tickets_completed", "nothing that it understands")
            assert await world.oraculo.cancel(name)
            await world.result(name)
        start, workflow = one(receiver.named(STARTS)), one(receiver.named("orchestration_workflow.run"))
        said = one(receiver.named(HEARS))
        assert (said.parent, said.links) == (start.id, [])
        asked = one(receiver.named("StartWorkflowUpdate:command"))
        assert asked.parent == workflow.id
        heard = one(receiver.named("HandleUpdate:command"))
        assert (heard.parent, heard.links) == (start.id, [asked.id])
        assert {span.trace for span in receiver.spans} == {workflow.trace}
        assert not [span.name for span in receiver.spans if "Query" in span.name]


@pytest.mark.parametrize("caller", [None, f"{CALLER[:-2]}00"])
async def test_what_is_not_sampled_leaves_nothing_behind(tmp_path: Path, caller: str | None) -> None:
    with Receiver("http") as receiver:
        where = {"OTEL_EXPORTER_ENDPOINT": receiver.url, "OTEL_TRACES_SAMPLER_ARG": "0"}
        async with opened(tmp_path, servers.shared("temporal"), **where) as world:
            written = await history(world, await collects(await connected(world), traceparent=caller))
        assert receiver.spans == []
        assert "_tracer-data" not in written.to_json()
        assert world.oraculo.tracer is not None and world.oraculo.tracer.exporter.counts["feito"] == 0


async def test_a_workers_own_context_is_shown(tmp_path: Path) -> None:
    with Receiver("http") as receiver:
        where = {"OTEL_EXPORTER_ENDPOINT": receiver.url}
        async with opened(tmp_path, servers.shared("temporal"), **where) as world:
            await connected(world)
            accepted = await world.oraculo.submit({"coletas": [{"fonte": "a"}, {"fonte": "b"}]})
            for source, span in ("a", "a" * 16), ("b", "b" * 16):
                order = await world.order(source)
                own = context.child(order["traceparent"], span)
                said = answer(order, 1) | ({"traceparent": own} if source == "a" else {})
                headers = {"traceparent": own} if source == "b" else {}
                await world.engine.submit([AnswerReader()(json.dumps(said).encode(), names.RESULTS, headers)])
            await world.result(accepted.correlation_id)
        assert {span.parent for span in receiver.named("orchestrator.result")} == {"a" * 16, "b" * 16}


def test_spans_of_a_library_hide_secrets_and_are_counted() -> None:
    with Receiver("http") as receiver:
        exporter = Exporter(receiver.url, "http", {}, ("oraculo", ""))
        tracing, tracer = Tracing(exporter.tracer()), exporter.tracer()
        with tracing.inside(CALLER), pytest.raises(ValueError), tracer.start_as_current_span("live") as span:
            span.set_attribute("where", "amqp://me:hunter22@there")
            with tracing.inside(None):
                tracer.start_span("belongs to no trace").end()
            raise ValueError("password=hunter22")
        tracer.start_span("has no parent", Context()).end()
        exporter.close()
    (seen,) = receiver.spans
    assert (seen.name, seen.trace, seen.parent) == ("live", TRACE, context.span_id(CALLER))
    assert seen.attributes["where"] == "amqp://me:***@there"
    assert seen.error and "***" in seen.message and "exception" in seen.events
    assert not any(b"hunter22" in raw for raw in receiver.raw)
    assert exporter.counts == {"feito": 1, "enviado": 1, "perdido": 0}


OFF = """
import asyncio, sys
from oraculo.service import Oraculo
from oraculo.settings.settings import load

async def run():
    env = {"ORACULO_ENGINE": "temporal", "ORACULO_STORE": "sqlite://", "TEMPORAL_PORT": "1"}
    async with Oraculo(load(env, None)) as oraculo:
        assert type(oraculo.engine).__name__ == "TemporalEngine"
        sys.exit(", ".join(name for name in sys.modules if "opentelemetry" in name) or 0)

asyncio.run(run())
"""


def test_off_nothing_of_it_is_imported(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, "-c", OFF], cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert said.returncode == 0, said.stderr
