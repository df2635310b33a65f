"""Attacks on memory and on installation that have no other place: what was found once stays mended."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import orjson

from api.conftest import API, CurlWorker, client_of, settings_for
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.api.app import create_app
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch
from oraculo.service import Oraculo
from runtime.doubles import ManualClock
from waiting import until

ROOT = Path(__file__).resolve().parents[2]
MIB = 1024 * 1024


async def test_a_result_that_every_execution_needs_is_not_in_memory_once_for_each(tmp_path: Path) -> None:
    """300 orders of half a mebibyte are 150 MiB; the broker takes 2 MiB at once, and the rest is not written yet."""
    broker = MemoryBroker(2 * MIB)
    async with Oraculo(settings_for(tmp_path), broker=broker) as service, client_of(create_app(service)) as client:
        wide = {"correlation_id": "larga", "coletas": [{"fonte": "a"}], "execucoes": [{"executador": "b"}] * 300}
        assert (await client.post(f"{API}/orchestrations", json=wide)).status_code == 202
        worker = CurlWorker(client)
        (order,) = await worker.take("escavador_a", 1)
        answer = {
            "correlation_id": "larga",
            "tipo_evento": "resultado_coleta",
            "timestamp": "2025-10-14T12:00:00Z",
            "ticket_id": order["mensagem"]["ticket_id"],
            "payload": {"fonte": "a", "status": "ok", "dados": "x" * (MIB // 2)},
        }
        tracemalloc.start()
        try:
            await worker.answer(answer)
            await until(lambda: service.engine.status().effects.waiting > 250)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 40 * MIB
        await client.post(f"{API}/orchestrations/larga/cancel")
        await until(lambda: service.engine.status().effects.waiting == 0)


async def test_a_list_of_dead_letters_does_not_read_their_bodies(tmp_path: Path) -> None:
    async with SqliteStore(f"{tmp_path}/api.db") as store:
        body = b"x" * MIB
        letters = [DeadLetter("escavador_a", "bad_json", "", body, f"c{n}") for n in range(50)]
        await store.append(Batch(ManualClock().now(), dead=letters))
    async with Oraculo(settings_for(tmp_path)) as service, client_of(create_app(service)) as client:
        tracemalloc.start()
        try:
            listed = await client.get(f"{API}/dead-letters?limit=50")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(orjson.loads(listed.content)["dead_letters"]) == 50
        assert peak < 5 * MIB
        assert await service.store.dead_letters_in(DEFAULT_TENANT, 100) == 50


def test_every_package_that_make_installs_comes_by_its_hash() -> None:
    """But this project itself, which comes without others."""
    installs = re.findall(r"^.*pip install.*$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert len(installs) >= 3
    for line in installs:
        assert "--require-hashes" in line or ("--no-deps" in line and line.endswith(" -e .")), line
    for lock in ROOT.glob("requirements*.lock"):
        packages = re.findall(r"^([\w.\[\]-]+==.*(?:\n    .*)*)", lock.read_text(encoding="utf-8"), re.M)
        assert packages, lock.name
        assert [one.splitlines()[0] for one in packages if "--hash=sha256:" not in one] == [], lock.name
