"""Tenants as a process knows them, and messages that come by their queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from api.conftest import settings_for
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import Limits
from oraculo.ports.broker import Outgoing
from oraculo.ports.tenants import StoredTenant
from oraculo.runtime.tenants import TenantBook
from oraculo.service import Oraculo
from runtime.doubles import ManualClock
from waiting import until


async def test_a_tenant_appears_once_however_it_becomes_known() -> None:
    async with SqliteStore(":memory:", threads=False) as store:
        appeared: list[str] = []
        book = TenantBook(store, ManualClock(), appeared.append)
        await book.ensure("default")
        await book.ensure("acme")
        await book.ensure("acme")
        await store.put_tenant(StoredTenant("outro", ManualClock().now(), Limits(5)))
        await book.look()
        await book.look()
        assert appeared == ["acme", "outro"]
        assert (book.limits_of("outro"), book.limits_of("acme")) == (Limits(5), Limits())
        assert [one.name for one in await store.tenants()] == ["acme", "outro"]


def message(kind: str, payload: dict[str, Any], name: str) -> bytes:
    envelope = {"correlation_id": name, "tipo_evento": kind, "payload": payload, "timestamp": "2026-01-31T12:00:00Z"}
    return json.dumps(envelope).encode()


async def test_a_message_is_of_the_tenant_of_its_queue(tmp_path: Path) -> None:
    """Requests and answers of plain workers, with the same id in two tenants."""
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        acme = oraculo.within("acme")
        wanted = {"coletas": [{"fonte": "a"}], "correlation_id": "abc"}
        for one in (oraculo, acme):
            assert (await one.submit(wanted)).new
        [order] = await oraculo.broker.fetch("espaco_acme.escavador_a", limit=10, wait=5)
        told = json.loads(order.body)
        assert (told["correlation_id"], told["fila_resposta"]) == ("abc", "espaco_acme.orquestrador_resultados")
        answer = message("resultado_coleta", {"fonte": "a", "status": "ok", "dados": ["meu"], "erros": []}, "abc")
        request = message("iniciar_coleta", {"coletas": [{"fonte": "a"}]}, "por-fila")
        await oraculo.broker.publish(
            [
                Outgoing(told["fila_resposta"], answer, ""),
                Outgoing("espaco_acme.orquestrador_requisicoes", request, ""),
            ]
        )
        result = await acme.result("abc", wait=20)
        assert result is not None and result["coletas"][0]["dados"] == ["meu"]
        assert (await oraculo.state("abc")).closed_at is None
        await until(lambda: oraculo.engine.run_of("espaco_acme.por-fila"))
        assert await oraculo.engine.run_of("por-fila") is None
