"""Tickets of Fluxo C: one topic, a function for each task type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.processes import Server
from oraculo.client.client import Client
from oraculo.worker.worker import Worker
from waiting import DEADLINE_S
from worker.test_worker import working

EXAMPLE = Path(__file__).parents[2] / "examples" / "plano.json"

TICKETS = "execution.tickets"


def ticket(task_type: str, **more: Any) -> dict[str, Any]:
    return {"tipo_evento": "iniciar_execucao", "task_type": task_type, "task_id": "t1", "description": "d", **more}


async def test_a_ticket_goes_to_the_function_of_its_type() -> None:
    worker = Worker()

    @worker.ticket("BUILD")
    def build(params: Any, task_id: str, description: str) -> Any:
        return {"built": [params, task_id, description]}

    @worker.ticket("COMPENSATE")
    async def undo(parametros: Any, ticket_id: str) -> Any:
        return {"undone": parametros["action"], "ticket": ticket_id}

    assert worker.queues == [TICKETS]
    async with working(worker) as bench:
        assert await bench.given(TICKETS, **ticket("BUILD", parametros={"a": 1})) == {"built": [{"a": 1}, "t1", "d"]}
        undone = await bench.given(TICKETS, **ticket("COMPENSATE", parametros={"action": "undo"}))
        assert undone == {"undone": "undo", "ticket": "t"}


async def test_a_ticket_without_a_function_fails_and_may_be_tried_again() -> None:
    worker = Worker()
    worker.ticket("BUILD")(lambda: {})
    async with working(worker) as bench:
        answer = await bench.given(TICKETS, **ticket("DEPLOY"))
    (error,) = answer["erros"]
    assert (answer["status"], error["codigo"], error["definitivo"]) == ("erro", "tipo_desconhecido", False)
    assert error["mensagem"] == "this worker has no function for DEPLOY; it has BUILD"


async def test_a_function_without_a_type_takes_what_has_none_of_its_own() -> None:
    worker = Worker()
    worker.ticket("BUILD")(lambda: {"by": "build"})
    worker.ticket()(lambda task_type: {"by": task_type})
    async with working(worker) as bench:
        assert await bench.given(TICKETS, **ticket("BUILD")) == {"by": "build"}
        assert await bench.given(TICKETS, **ticket("QUERY")) == {"by": "QUERY"}


async def test_tickets_of_a_topic_of_another_name() -> None:
    worker = Worker()
    worker.ticket(topic="meus.tickets")(lambda: {"ok": True})
    async with working(worker) as bench:
        assert await bench.given("meus.tickets", **ticket("TEST")) == {"ok": True}


def test_what_cannot_be_registered() -> None:
    worker = Worker()
    with pytest.raises(ValueError, match="'build' is no task type of Fluxo C; allowed: BUILD, DEPLOY"):
        worker.ticket("build")
    with pytest.raises(TypeError, match=r"takes \['prompt'\]; allowed are .*task_type"):
        worker.ticket("BUILD")(lambda prompt: {})
    worker.executor("x")(lambda: {})
    with pytest.raises(ValueError, match="'executador_x' is the queue of another function"):
        worker.ticket(topic="executador_x")(lambda: {})
    with pytest.raises(TypeError, match=r"takes \['task_type'\]"):  # an ordinary order has none
        worker.executor("y")(lambda task_type: {})


def test_the_example_of_fluxo_c_goes_through_with_the_worker_that_is_shipped(tmp_path: Path) -> None:
    server = Server(tmp_path, "--worker", "oraculo.demo.tickets:worker", "--worker", "oraculo.collectors.all:worker")
    server.start()
    try:
        with Client(server.url) as client:
            name = client.submit(json.loads(EXAMPLE.read_text())).correlation_id
            plan = client.result(name, DEADLINE_S)
            request = {"coletas": [{"fonte": "eco", "parametros": {"n": 1}}]}
            echoed = client.result(client.submit(request).correlation_id, DEADLINE_S)
    finally:
        server.kill()
    assert plan is not None and plan["status"] == "concluida"
    assert [one["resultado"]["task_id"] for one in plan["execucoes"]] == ["construir", "testar", "validar", "publicar"]
    assert echoed is not None and echoed["coletas"][0]["dados"] == [{"n": 1}]
