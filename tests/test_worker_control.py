"""Workers of a broker register in the control queue and are told in their own; plain ones are seen by their answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from api.conftest import settings_for
from oraculo import Worker
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.api.worker_views import who_works
from oraculo.core.access import LOCAL
from oraculo.ports.broker import Outgoing, Settlement
from oraculo.service import Oraculo
from oraculo.wire import names
from oraculo.worker.transport import BrokerTransport
from waiting import until


async def listed(oraculo: Oraculo, name: str) -> dict[str, Any]:
    found = (await who_works(oraculo))["workers"]
    return next((one for one in found if one["nome"] == name), {})


async def test_a_worker_of_a_broker_registers_is_drained_and_leaves(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, ORACULO_WORKER_REGISTRY="true", ORACULO_WORKER_TIMEOUT_S="30")
    async with Oraculo(settings) as oraculo:
        worker, going = Worker(name="pão 1", concurrency=3), asyncio.Event()

        @worker.executor("x")
        async def execute() -> dict[str, Any]:
            await going.wait()
            return {"resultado": "ok"}

        running = asyncio.create_task(worker.run(BrokerTransport(oraculo.broker), register=True))
        try:
            await until(lambda: oraculo.registry.one("pão 1"), "it registers")
            one = await listed(oraculo, "pão 1")
            assert (one["transporte"], one["filas"], one["concorrencia"]) == ("broker", ["executador_x"], 3)
            await oraculo.registry.drain("pão 1", "troca", LOCAL)
            await until(lambda: not worker.takes_orders, "it is told")
            await oraculo.submit({"execucoes": [{"executador": "x"}], "correlation_id": "r1"})
            await oraculo.registry.resume("pão 1", "", LOCAL)
            await until(lambda: worker.busy, "it works again")
            going.set()
            assert (await oraculo.result("r1", wait=10) or {})["status"] == "concluida"
        finally:
            going.set()
            worker.stop()
            await running
        await until(lambda: _gone(oraculo, "pão 1"), "it is gone")


async def test_a_lost_worker_that_beats_again_is_told_to_register(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, ORACULO_WORKER_REGISTRY="true")
    async with Oraculo(settings) as oraculo:
        beat = orjson.dumps({"tipo": "batimento", "worker": "w1"})
        await oraculo.broker.publish([Outgoing(names.WORKERS, beat, "")])
        [order] = await oraculo.broker.fetch(names.worker_queue("w1"), limit=1, wait=10)
        assert orjson.loads(order.body) == {"ordem": "registrar"}
        await oraculo.broker.settle([Settlement(order)])


async def test_a_control_message_that_cannot_be_read_is_a_dead_letter(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, ORACULO_WORKER_REGISTRY="true")
    async with Oraculo(settings) as oraculo:
        for body in (b"{", b"[]", b'{"tipo": "oi"}', b'{"tipo": "registro", "worker": "w", "concorrencia": 0}'):
            await oraculo.broker.publish([Outgoing(names.WORKERS, body, "")])
        letters = await until(lambda: _letters(oraculo, 4), "all four are kept")
        assert [one.queue for one in letters] == [names.WORKERS] * 4
        assert any("concorrencia" in one.detail for one in letters)


async def _gone(oraculo: Oraculo, name: str) -> bool:
    return await oraculo.registry.one(name) is None


async def _letters(oraculo: Oraculo, count: int) -> list[Any]:
    found = await oraculo.store.dead_letters()
    return found if len(found) == count else []


async def test_the_control_queue_is_not_read_unless_that_is_set(tmp_path: Path) -> None:
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        assert names.WORKERS not in oraculo.consumers.queues


class OutsideBroker(MemoryBroker):
    """A broker that its process shares with others, as far as workers are seen."""

    traits = replace(MemoryBroker.traits, volatile=False)


async def test_a_plain_executor_is_seen_by_the_tickets_that_it_answers(tmp_path: Path) -> None:
    """It echoes the ticket and says neither who it is nor which queue it serves."""
    async with Oraculo(settings_for(tmp_path), broker=OutsideBroker()) as oraculo:
        await oraculo.submit({"execucoes": [{"executador": "x"}], "correlation_id": "r1"})
        [order] = await oraculo.broker.fetch("executador_x", limit=1, wait=10)
        sent = orjson.loads(order.body)
        answer = {
            "correlation_id": "r1",
            "tipo_evento": "resultado_execucao",
            "payload": {"status": "erro", "erros": [{"codigo": "E", "mensagem": "não deu", "definitivo": True}]},
            "timestamp": "2026-01-01T00:00:00Z",
            "ticket_id": sent["ticket_id"],
        }
        await oraculo.broker.publish([Outgoing(names.RESULTS, orjson.dumps(answer), "")])
        one = await until(lambda: listed(oraculo, "(executador_x)"), "it is seen")
        assert (one["transporte"], one["filas"], one["respondidas"]) == ("broker", ["executador_x"], 1)
        assert (one["situacao"], one["falhas"], one["ultimo_erro"]["mensagem"]) == ("visto", 1, "não deu")
