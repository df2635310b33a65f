"""With ORACULO_DATA_KEY, what Temporal and Celery's broker keep holds no payload: real servers are searched for planted
texts, and found to have them where nothing is sealed."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis
from temporalio.api.common.v1 import Payload
from temporalio.converter import WorkflowSerializationContext
from tools.servers.temporal import Temporal

import servers
from contracts.engine_cases import OnCeleryAndRedis, answer, source
from engines.temporal_world import World, connected, opened
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.sealing.messages import StoreMessageSeal
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.engines.celery_engine.engine import RECORDED_HERE_MAX_ANSWERS
from oraculo.engines.temporal.codec import SEALED_ENCODING, SealingCodec
from oraculo.errors import ErasedError
from waiting import until

DATA_KEY = "6d" * 32
PARAMETER, RESULT, FAILURE, REASON = (f"canary-{what}-x9Kq2" for what in ("parametro", "resultado", "erro", "motivo"))
PLANTED = (PARAMETER, RESULT, FAILURE, REASON)


def everywhere(data: bytes) -> bytes:
    """The bytes, and what of them is base64 or compressed, opened."""
    found = [data]
    for text in re.findall(rb"[A-Za-z0-9+/]{24,}", data):
        for start in range(4):
            part = text[start:]
            found.append(base64.b64decode(part[: len(part) // 4 * 4]))
    for match in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
        reader = zlib.decompressobj()
        try:
            found.append(reader.decompress(data[match.start() :]))
        except zlib.error:
            continue
    return b"\n".join(found)


# -- Temporal ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def temporal(tmp_path: Path) -> AsyncIterator[Temporal]:
    with servers.own("temporal", tmp_path) as server:
        assert isinstance(server, Temporal)
        yield server


async def done(world: World) -> None:
    """A run with planted texts in parameters, a result and an error, and one that is cancelled for a planted reason."""
    sources = [f"f{secrets.token_hex(4)}" for _ in range(3)]
    coletas = [{"fonte": one, "parametros": {"q": PARAMETER}, "max_tentativas": 1} for one in sources]
    accepted = await world.oraculo.submit({"coletas": coletas[:2]})
    await world.answer(await world.order(sources[0]), dados={"texto": RESULT * 2000})
    await world.answer(await world.order(sources[1]), errors=[{"codigo": "x", "mensagem": FAILURE}])
    found = await world.result(accepted.correlation_id)
    assert RESULT in json.dumps(found)
    other = await world.oraculo.submit({"coletas": coletas[2:]})
    await world.order(sources[2])
    await world.oraculo.cancel(other.correlation_id, REASON)
    assert (await world.result(other.correlation_id))["status"] == "cancelada"
    await world.check(accepted.correlation_id)


def kept(server: Temporal) -> bytes:
    """Everything that is in Temporal's database."""
    return everywhere(b"\n".join(one.read_bytes() for one in sorted(server.folder.glob("temporal.db*"))))


async def test_temporals_database_holds_no_payload(temporal: Temporal, tmp_path: Path) -> None:
    async with opened(tmp_path, temporal.url, ORACULO_DATA_KEY=DATA_KEY) as world:
        await done(await connected(world))
    found = kept(temporal)
    assert SEALED_ENCODING in found
    for planted in PLANTED:
        assert planted.encode() not in found, planted


async def test_without_a_key_the_same_search_finds_them(temporal: Temporal, tmp_path: Path) -> None:
    async with opened(tmp_path, temporal.url) as world:
        await done(await connected(world))
    found = kept(temporal)
    assert [planted for planted in PLANTED if planted.encode() in found] == list(PLANTED)


async def test_a_payload_has_the_key_of_the_tenant_of_its_workflow(tmp_path: Path) -> None:
    async with SqliteStore(str(tmp_path / "o.db")) as store:
        seal = StoreMessageSeal(Sealing([b"m" * 32]), store)
        codec = SealingCodec(seal)
        plain = Payload(metadata={"encoding": b"json/plain"}, data=b'"x"')
        for workflow in ("orch-espaco_acme.um", "orch-um", "plano-da-fluxo-c"):
            of = codec.with_context(WorkflowSerializationContext("default", workflow))
            (sealed,) = await of.encode([plain])
            assert await codec.decode([sealed]) == [plain]
            if "acme" in workflow:
                of_acme = sealed
        assert sorted(one.tenant for one in await store.data_keys()) == ["acme", "default"]
        await store.forget_data_keys("acme", (await store.data_keys())[0].created_at)
        other = SealingCodec(StoreMessageSeal(Sealing([b"m" * 32]), store))
        with pytest.raises(ErasedError):
            await other.decode([of_acme])
        assert await other.decode([sealed, plain]) == [plain, plain]


# -- Celery ------------------------------------------------------------------------------------------------------------


class SealedCelery(OnCeleryAndRedis):
    def __init__(self, folder: Path, key: str) -> None:
        self.key = key
        super().__init__(folder)

    def settings(self) -> dict[str, str]:
        return {**super().settings(), **({"ORACULO_DATA_KEY": self.key} if self.key else {})}

    def tasks(self) -> tuple[int, bytes]:
        """How many answers wait as tasks, and everything that is in tasks and their results."""
        with redis.Redis.from_url(self.broker_url.partition("?")[0]) as server:
            found: list[bytes] = []
            for key in server.keys("*"):
                if server.type(key) == b"list":
                    found += server.lrange(key, 0, -1)
                elif server.type(key) == b"hash":
                    found += server.hvals(key)
                elif key.startswith(b"celery-task-meta-"):
                    found.append(server.get(key))
            return server.llen("oraculo.resultado_coleta"), everywhere(b"\n".join(found))


@pytest.mark.parametrize("key", [DATA_KEY, ""], ids=["sealed", "in clear"])
async def test_answers_in_celerys_broker_are_sealed_where_payloads_are(tmp_path: Path, key: str) -> None:
    """A single answer never gets there: it is recorded although no Celery process lives. Many at once do."""
    fleet = await asyncio.to_thread(SealedCelery, tmp_path, key)
    try:
        await asyncio.to_thread(fleet.start)
        fonte = source()
        name = fleet.submit(coletas=[{"fonte": fonte, "parametros": {"q": PARAMETER}}])
        order = await fleet.take(fonte)
        for one in fleet.celery:
            one.kill()
        said = answer(order, {"texto": RESULT})
        await fleet.send(said)
        assert RESULT in json.dumps(await asyncio.to_thread(fleet.result, name))
        assert fleet.tasks()[0] == 0
        await fleet.send(*[said] * 20 * RECORDED_HERE_MAX_ANSWERS)
        await until(lambda: fleet.tasks()[0] > 0, "a task for the answers")
        assert (RESULT.encode() in fleet.tasks()[1]) is not bool(key)
        for one in fleet.celery:
            await asyncio.to_thread(one.start)
        await until(lambda: fleet.tasks()[0] == 0 and RESULT.encode() not in fleet.tasks()[1], "the task done")
        assert PARAMETER.encode() not in fleet.tasks()[1]
    finally:
        await asyncio.to_thread(fleet.close)
