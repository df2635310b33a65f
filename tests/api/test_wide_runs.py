"""A run whose orders need more than the broker holds: the others go on, and it ends with its cancellation."""

from __future__ import annotations

from pathlib import Path

from api.conftest import API, CurlWorker, client_of, settings_for
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from waiting import until


async def test_one_wide_run_holds_up_no_other_and_leaves_when_cancelled(tmp_path: Path) -> None:
    broker = MemoryBroker(1_000_000)
    async with Oraculo(settings_for(tmp_path), broker=broker) as service, client_of(create_app(service)) as client:
        worker = CurlWorker(client)
        wide = {"correlation_id": "larga", "coletas": [{"fonte": "a"}], "execucoes": [{"executador": "b"}] * 100}
        assert (await client.post(f"{API}/orchestrations", json=wide)).status_code == 202
        (order,) = await worker.take("escavador_a", 1)
        await worker.answer(
            {
                "correlation_id": "larga",
                "tipo_evento": "resultado_coleta",
                "timestamp": "2025-10-14T12:00:00Z",
                "ticket_id": order["mensagem"]["ticket_id"],
                "payload": {"fonte": "a", "status": "ok", "dados": "x" * 50_000},
            }
        )
        effects = service.engine.status
        await until(lambda: effects().effects.waiting > 80)
        other = {"correlation_id": "inocente", "coletas": [{"fonte": "c"}]}
        assert (await client.post(f"{API}/orchestrations", json=other)).status_code == 202
        assert (await worker.take("escavador_c", 1))[0]["mensagem"]["correlation_id"] == "inocente"
        assert sum(sum(depth) for depth in broker.depths().values()) < 20
        assert effects().effects.failing_since is None
        assert (await client.post(f"{API}/orchestrations/larga/cancel")).status_code in (200, 202)
        await until(lambda: effects().effects.waiting == 0)
