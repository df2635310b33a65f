"""Traces as a backend receives them: over gRPC and HTTP, through plain workers, a crash, and off."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from tools.servers.server import Server as Service

import servers
from acceptance.conftest import Server
from api.conftest import settings_for
from observability.otlp import Receiver, Seen
from oraculo.core.commands import RecordResult, Start
from oraculo.core.vocabulary import Kind
from oraculo.ports.work import Work
from oraculo.runtime.answers import AnswerReader
from oraculo.service import Oraculo
from oraculo.wire import trace_context as context

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"
WIDTH = 3
SERVER, PRODUCER = 2, 4


class PlainWorker(threading.Thread):
    """What anybody writes with pika: it takes an order, and answers with the four fields of the envelope."""

    def __init__(self, url: str, queues: list[str]) -> None:
        super().__init__(daemon=True)
        self.connection = pika.BlockingConnection(pika.URLParameters(url))
        self.channel = self.connection.channel()
        self.headers: dict[str, str] = {}  # queue → what its order carried
        for queue in queues:
            self.channel.queue_declare(queue, durable=True)
            self.channel.basic_consume(queue, self.answer)

    def run(self) -> None:
        self.channel.start_consuming()

    def answer(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        order = json.loads(body)
        collected = order["tipo_evento"] == "iniciar_coleta"
        self.headers[method.routing_key] = (properties.headers or {}).get("traceparent", "")
        assert self.headers[method.routing_key] == order.get("traceparent", "")
        answer = {
            "correlation_id": order["correlation_id"],
            "tipo_evento": "resultado_coleta" if collected else "resultado_execucao",
            "payload": {"fonte": order["payload"].get("fonte"), "status": "ok", "dados": [1]},
            "timestamp": order["timestamp"],
        }
        channel.basic_publish("", "orquestrador_resultados", json.dumps(answer).encode())
        channel.basic_ack(method.delivery_tag)

    def stop(self) -> None:
        self.connection.add_callback_threadsafe(self.channel.stop_consuming)
        self.join(10)
        self.connection.close()


@pytest.fixture(scope="module", params=[pytest.param("rabbitmq", marks=pytest.mark.xdist_group("traces-rabbitmq"))])
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with servers.own("rabbitmq", tmp_path_factory.mktemp("rabbit")) as server:
        yield server


def one(found: list[Seen]) -> Seen:
    assert len(found) == 1, [span.name for span in found]
    return found[0]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_fan_out_over_rabbitmq_with_a_plain_worker_is_one_trace(
    rabbit: Service, tmp_path: Path, protocol: str
) -> None:
    sources = [f"{protocol}{number}" for number in range(WIDTH)]
    queues = [*(f"escavador_{source}" for source in sources), f"executador_{protocol}"]
    body = {
        "correlation_id": f"rastro-{protocol}",
        "coletas": [{"fonte": source} for source in sources],
        "execucoes": [{"executador": protocol}],
        "notificar": {"fila": f"avisos_{protocol}"},
    }
    server = Server(tmp_path, [])
    worker = PlainWorker(rabbit.url, queues)
    worker.channel.queue_declare(f"avisos_{protocol}", durable=True)
    worker.start()
    with Receiver(protocol) as receiver:
        server.up(ORACULO_BROKER=rabbit.url, OTEL_EXPORTER_ENDPOINT=receiver.url, OTEL_EXPORTER_PROTOCOL=protocol)
        try:
            answer = server.call("POST", "/api/v1/orchestrations", json=body, headers={"traceparent": CALLER})
            assert answer is not None and answer.status_code == 202, answer
            assert server.result(f"rastro-{protocol}")["status"] == "concluida"
            shown = server.call("GET", f"/api/v1/orchestrations/rastro-{protocol}")
            assert shown is not None and shown.json()["trace_id"] == TRACE
            receiver.until(lambda seen: seen.named("orchestrator.notify") != [])
            metrics = server.call("GET", "/metrics")
            assert metrics is not None and 'orchestration_spans_total{resultado="enviado"}' in metrics.text
        finally:
            worker.stop()
            assert server.terminate() == 0
        _check(receiver, worker, queues, f"rastro-{protocol}")


def _check(receiver: Receiver, worker: PlainWorker, queues: list[str], name: str) -> None:
    mine = [span for span in receiver.spans if span.trace == TRACE]
    request = one([span for span in mine if span.name == "POST /api/v1/orchestrations"])
    assert (request.parent, request.kind) == ("00f067aa0ba902b7", SERVER)
    assert request.attributes["service.name"] == "oraculo"
    workflow = one([span for span in mine if span.name == "orchestration_workflow.run"])
    assert workflow.parent == request.id
    assert workflow.events["tickets_generated"] <= workflow.events["results_consolidated"] == workflow.end
    tickets = {span.attributes["messaging.destination"]: span for span in mine if span.name == "ticket_execution"}
    assert tickets.keys() == set(queues)
    assert {span.parent for span in tickets.values()} == {workflow.id}
    collects, execute = queues[:-1], queues[-1]
    assert sorted(tickets[execute].links) == sorted(tickets[queue].id for queue in collects)
    assert all(tickets[queue].links == [] for queue in collects)
    assert tickets[execute].start >= max(tickets[queue].end for queue in collects)
    for queue, ticket in tickets.items():
        assert ticket.kind == PRODUCER and ticket.attributes["messaging.system"] == "rabbitmq"
        assert worker.headers[queue] == f"00-{TRACE}-{ticket.id}-01"  # a worker's own spans would be inside
    notice = one([span for span in mine if span.name == "orchestrator.notify"])
    assert notice.parent == workflow.id and notice.start >= workflow.end
    made = [workflow, *tickets.values()]
    assert len(mine) == len(made) + 2
    assert not any(span.error for span in mine)
    for span in made:
        assert span.attributes["neural.hive.correlation.id"] == name
        assert span.attributes["neural.hive.component"] == "orchestrator"
        assert span.attributes["neural.hive.intent.id"] == name
        assert span.attributes["neural.hive.workflow.id"] == f"orch-flow-c-{name}"
        assert len(span.attributes["neural.hive.plan.id"]) == 36
    assert all(span.start <= span.end for span in mine)
    assert len({span.attributes["neural.hive.ticket.id"] for span in tickets.values()}) == len(queues)


def result(run: int, name: str, traceparent: str | None = None) -> Work:
    return Work(RecordResult(True, b"1", [], kind=Kind.COLETA, name=name, traceparent=traceparent), run=run)


async def test_a_trace_goes_on_after_a_restart(tmp_path: Path) -> None:
    body = {"coletas": [{"fonte": "a"}, {"fonte": "b"}], "correlation_id": "x"}
    with Receiver("http") as receiver:
        settings = settings_for(tmp_path, OTEL_EXPORTER_ENDPOINT=receiver.url)
        async with Oraculo(settings) as first:
            accepted = await first.submit(body)
            await first.engine.submit([result(accepted.run, "a")])
            (before,) = await first.broker.fetch("escavador_b", limit=1, wait=5)
        assert receiver.spans == []
        async with Oraculo(settings) as second:
            (again,) = await second.broker.fetch("escavador_b", limit=1, wait=5)
            assert again.headers == before.headers
            sent = context.parse(again.headers["traceparent"])
            assert sent is not None
            inside = context.child(sent, "1111111111111111")  # a span of a worker that knows of traces
            await second.engine.submit([result(accepted.run, "b", inside)])
            assert (await second.result("x", wait=10)) is not None
        await asyncio.to_thread(receiver.until, lambda seen: bool(seen.named("orchestration_workflow.run")))
        workflow = one(receiver.named("orchestration_workflow.run"))
        assert workflow.parent == ""
        tickets = receiver.named("ticket_execution")
        assert len(tickets) == 2 and {span.parent for span in tickets} == {workflow.id}
        assert {span.trace for span in receiver.spans} == {context.trace_id(sent)}
        assert one(receiver.named("orchestrator.result")).parent == "1111111111111111"
        assert context.span_id(sent) in {span.id for span in tickets}


async def test_off_nothing_is_made_and_a_callers_context_is_passed_on(tmp_path: Path) -> None:
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        await oraculo.submit({"coletas": [{"fonte": "a"}]})
        (order,) = await oraculo.broker.fetch("escavador_a", limit=1, wait=5)
        assert order.headers == {} and b"traceparent" not in order.body
        await oraculo.submit({"coletas": [{"fonte": "a"}]}, traceparent=CALLER)
        (order,) = await oraculo.broker.fetch("escavador_a", limit=1, wait=5)
        assert context.trace_id(order.headers["traceparent"]) == TRACE
        assert oraculo.tracer is None


async def test_the_context_of_a_message_is_that_of_its_envelope_or_of_its_headers(tmp_path: Path) -> None:
    message = {"correlation_id": "x", "tipo_evento": "iniciar_coleta", "timestamp": "2025-10-14T12:00:00Z"}
    request = {**message, "payload": {"coletas": [{"fonte": "a"}]}}
    answer = {**message, "tipo_evento": "resultado_coleta", "payload": {"fonte": "a", "dados": 1}}
    headers = {"traceparent": CALLER}
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        for translate, body in ((oraculo.requests.from_message, request), (AnswerReader(), answer)):
            for work in (
                translate(json.dumps(body).encode(), "q", headers),
                translate(json.dumps({**body, "traceparent": CALLER}).encode(), "q", {}),
            ):
                assert isinstance(work.command, Start | RecordResult)
                assert work.command.traceparent == CALLER
            work = translate(json.dumps(body).encode(), "q", {"traceparent": "nonsense"})
            assert isinstance(work.command, Start | RecordResult) and work.command.traceparent is None


async def test_what_ended_just_before_a_process_did_is_sent_by_the_next(tmp_path: Path) -> None:
    with Receiver("http", status=400) as gone, Receiver("http") as receiver:
        async with Oraculo(settings_for(tmp_path, OTEL_EXPORTER_ENDPOINT=gone.url)) as first:
            accepted = await first.submit({"coletas": [{"fonte": "a"}], "correlation_id": "x"})
            await first.engine.submit([result(accepted.run, "a")])
        async with Oraculo(settings_for(tmp_path, OTEL_EXPORTER_ENDPOINT=receiver.url)):
            pass
    assert {span.id for span in receiver.spans} == {span.id for span in gone.spans}
    assert len(receiver.spans) == 2


async def test_a_backend_that_refuses_costs_nothing_but_its_spans(tmp_path: Path) -> None:
    with Receiver("http", status=400) as receiver:
        async with Oraculo(settings_for(tmp_path, OTEL_EXPORTER_ENDPOINT=receiver.url)) as oraculo:
            accepted = await oraculo.submit({"coletas": [{"fonte": "a"}], "correlation_id": "x"})
            await oraculo.engine.submit([result(accepted.run, "a")])
            assert await oraculo.result("x", wait=10) is not None
    assert oraculo.tracer is not None
    assert oraculo.tracer.exporter.counts == {"feito": 2, "enviado": 0, "perdido": 2}
