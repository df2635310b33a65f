"""Payloads are sealed behind the API: nobody notices, until the key of a tenant is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from api.conftest import API, CurlWorker, assert_problem, client_of, result_of, settings_for
from oraculo.api.app import create_app
from oraculo.errors import SettingsError
from oraculo.service import Oraculo

SECRET = "canary-Zk29xq-" + "x" * 5000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEALED = {"ORACULO_DATA_KEY": "6d" * 32}
REQUEST = {
    "correlation_id": "um",
    "coletas": [{"fonte": "youtube", "parametros": {"q": SECRET}}],
    "execucoes": [{"executador": "relatorio"}],
}


def files_with(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


async def done(client: httpx2.AsyncClient) -> str:
    """The address of the data that the second order refers to, when everything has ended."""
    assert (await client.post(f"{API}/orchestrations", json=REQUEST)).status_code == 202
    worker = CurlWorker(client)
    await worker.do("escavador_youtube", dados=SECRET)
    [order] = await worker.lease("executador_relatorio")
    reference: str = order["mensagem"]["payload"]["dados_ref"]["url"]
    assert SECRET in (await client.get(reference)).text
    await worker.answer(result_of(order["mensagem"], arquivo=SECRET))
    unwanted = {**result_of(order["mensagem"]), "correlation_id": "ninguem", "ticket_id": SECRET[:30]}
    await worker.answer(unwanted)
    return reference


async def test_nobody_notices_until_the_key_is_forgotten(tmp_path: Path) -> None:
    where = {"ORACULO_ORDER_DATA": str(tmp_path / "dados"), "ORACULO_ORDER_MAX_BYTES": "4000"}
    settings = settings_for(tmp_path, **SEALED, **where)
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        reference = await done(client)
        found = (await client.get(f"{API}/orchestrations/um/result")).json()
        assert found["status"] == "concluida" and SECRET in str(found)
        assert files_with(tmp_path, SECRET[:20]) == []
        (letter,) = (await client.get(f"{API}/dead-letters")).json()["dead_letters"]
        assert (await oraculo.store.forget_data_keys("default", NOW)).keys == 1
        for path in ("", "/result", "/events"):
            assert_problem(await client.get(f"{API}/orchestrations/um{path}"), 410, "erased")
        assert (await client.get("/runs/um", headers={"Accept": "text/html"})).status_code == 410
        assert_problem(await client.post(f"{API}/orchestrations/um/retry", json={}), 410, "erased")
        assert (await client.get(reference)).status_code == 404
        (listed,) = (await client.get(f"{API}/orchestrations")).json()["orchestrations"]
        assert (listed["correlation_id"], listed["status"]) == ("um", "concluida")
        shown = (await client.get(f"{API}/dead-letters/{letter['id']}")).json()
        assert "forgotten" in shown["detalhe"] and SECRET[:20] not in str(shown)
        told = (await client.post(f"{API}/dead-letters/{letter['id']}/requeue")).json()
        assert (told["situacao"], told["motivo"], told["removida"]) == ("quarantined", "erased", False)
        assert (await client.delete(f"{API}/dead-letters/{letter['id']}")).status_code == 204
        again = await client.post(f"{API}/orchestrations", json=REQUEST)
        assert_problem(again, 409, "correlation_id_taken")
        late = {"correlation_id": "um", "tipo_evento": "resultado_coleta", "timestamp": "2025-10-14T12:00:00Z"}
        late["payload"] = {"fonte": "youtube", "status": "ok", "dados": 1}
        assert (await CurlWorker(client).answer(late))["recusados"][0]["motivo"] == "unknown_correlation"
        assert (
            await client.post(f"{API}/orchestrations", json={**REQUEST, "correlation_id": "dois"})
        ).status_code == 202
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:  # a start after it
        assert (await client.get(f"{API}/orchestrations/dois")).status_code == 200
        assert_problem(await client.get(f"{API}/orchestrations/um"), 410, "erased")
    with pytest.raises(SettingsError, match="the store is sealed"):
        async with Oraculo(settings_for(tmp_path)):
            pass
    with pytest.raises(SettingsError, match="another master key"):
        async with Oraculo(settings_for(tmp_path, ORACULO_DATA_KEY="6e" * 32)):
            pass


@pytest.mark.parametrize("key", ["curta", "6d" * 31, "z" * 64, "6d" * 33])
def test_a_master_key_that_is_none_is_refused_without_being_shown(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError, match="openssl rand -hex 32") as refused:
        settings_for(tmp_path, ORACULO_DATA_KEY=key)
    assert key not in str(refused.value)
