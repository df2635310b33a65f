"""Queues of destinations with other names than the usual ones: ORACULO_QUEUES, on both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from api.conftest import API, CurlWorker, client_of, result_of
from oraculo import Worker
from oraculo.api.app import create_app
from oraculo.core.vocabulary import Kind
from oraculo.errors import PlanError, SettingsError
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire.names import USUAL, QueueNames

OTHERS = "escavador_a=videos, executador_x = fila.de.x"


@asynccontextmanager
async def opened(folder: Path, *workers: Worker, queues: str = OTHERS) -> AsyncIterator[Oraculo]:
    settings = load({"ORACULO_STORE": f"sqlite:///{folder / 'o.db'}", "ORACULO_QUEUES": queues}, None)
    async with Oraculo(settings, workers=workers) as oraculo:
        yield oraculo


def test_the_usual_name_unless_there_is_another_one() -> None:
    names = QueueNames({"escavador_a": "videos"})
    assert (names.of(Kind.COLETA, "a"), names.of(Kind.EXECUCAO, "a")) == ("videos", "executador_a")
    assert USUAL.of(Kind.COLETA, "a") == "escavador_a"


@pytest.mark.parametrize(
    "value",
    [
        "a=videos",
        "escavador_a",
        "escavador_a=",
        "escavador_a=com espaço",
        "escavador_a=x,escavador_a=y",
        "escavador_a=x,escavador_b=x",
        "escavador_a=orquestrador_resultados",
        "escavador_a=orquestrador_outra",
        "escavador_a=x.dlq",
        "escavador_a=oraculo_sonda",
    ],
)
def test_a_wrong_value_stops_the_start(value: str) -> None:
    with pytest.raises(SettingsError, match="ORACULO_QUEUES"):
        load({"ORACULO_QUEUES": value}, None)


async def test_orders_go_to_the_other_queue_and_lists_find_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as oraculo, client_of(create_app(oraculo)) as client:
        worker = CurlWorker(client)
        request = {
            "correlation_id": "abc",
            "coletas": [{"fonte": "a"}, {"fonte": "b"}],
            "execucoes": [{"executador": "x"}],
        }
        assert (await client.post(f"{API}/orchestrations", json=request)).status_code == 202
        shown = (await client.get(f"{API}/orchestrations/abc")).json()
        assert [one["destino"] for one in shown["tickets"]] == ["videos", "escavador_b", "fila.de.x"]
        for queue in ("videos", "escavador_b", "fila.de.x"):
            [order] = await worker.lease(queue)
            await worker.answer(result_of(order["mensagem"], echo=False))
        assert (await client.get(f"{API}/orchestrations/abc/result")).json()["status"] == "concluida"
        for query, count in (({"fonte": "a"}, 1), ({"executador": "x"}, 1), ({"fonte": "x"}, 0)):
            found = (await client.get(f"{API}/orchestrations", params=query)).json()["orchestrations"]
            assert len(found) == count, query


async def test_named_tasks_and_a_worker_of_our_own(tmp_path: Path) -> None:
    worker = Worker()
    worker.escavador("a")(lambda parametros: ["ok"])
    async with opened(tmp_path, worker) as oraculo:
        accepted = await oraculo.submit({"tarefas": {"um": {"fonte": "a"}}})
        result = await oraculo.result(accepted.correlation_id, wait=30)
        assert result is not None and result["tarefas"]["um"]["dados"] == ["ok"]
        assert "videos" in oraculo.queues() and "escavador_a" not in oraculo.queues()


async def test_topics_of_fluxo_c_stay_refused(tmp_path: Path) -> None:
    settings = {"ORACULO_STORE": "sqlite://", "ORACULO_FLOW_C": "on", "ORACULO_QUEUES": "escavador_a=execution.tickets"}
    async with Oraculo(load(settings, None)) as oraculo:
        with pytest.raises(PlanError, match="belongs to the orchestrator"):
            await oraculo.submit({"coletas": [{"fonte": "a"}]})
