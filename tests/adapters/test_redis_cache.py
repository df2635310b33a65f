"""The cache: what it keeps, whose turn it is, and that nobody notices when it is away."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest
import trustme
from redis.asyncio import Redis
from tools.servers.redis import Redis as RedisServer
from tools.servers.server import free_port

from databases import database
from oraculo.adapters.caches.redis import RedisCache
from oraculo.api.cached_view import json_view
from oraculo.bootstrap.adapters import cache_of
from oraculo.errors import SettingsError
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.worker.worker import Worker
from servers import own, shared


def some_key() -> str:
    return f"teste:{secrets.token_hex(8)}"


async def test_it_keeps_for_a_while() -> None:
    cache, key = RedisCache(shared("redis")), some_key()
    assert await cache.get(key) is None
    await cache.put(key, b"\x00valor", 60)
    assert await cache.get(key) == b"\x00valor"
    await cache.put(key, b"breve", 0.02)
    while await cache.get(key) is not None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert cache.failures == 0
    await cache.close()


async def test_one_at_a_time_has_the_turn() -> None:
    cache, name = RedisCache(shared("redis")), some_key()
    assert await cache.turn(name, "um", 60)
    assert await cache.turn(name, "um", 60)
    assert not await cache.turn(name, "outro", 60)
    assert await cache.turn(name, "um", 0.02)
    while not await cache.turn(name, "outro", 60):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert not await cache.turn(name, "um", 60)
    await cache.close()


async def test_nothing_fails_while_it_is_away(tmp_path: Path) -> None:
    with own("redis", tmp_path) as server:
        cache = RedisCache(server.url, pause_s=0.05)
        await cache.put("a", b"1", 60)
        server.kill()
        assert await cache.get("a") is None
        await cache.put("a", b"2", 60)
        assert await cache.turn("x", "um", 1) and await cache.turn("x", "outro", 1)
        assert cache.failures == 1  # it is asked once, and then left alone
        server.start()
        while await cache.get("a") != b"3":
            await cache.put("a", b"3", 60)
        await cache.close()


async def test_what_one_process_shows_another_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()

    @worker.escavador("x")
    async def collect() -> int:
        return 1

    with own("redis", tmp_path) as redis:
        settings = load(
            {"ORACULO_STORE": await database(), "ORACULO_BROKER": redis.url, "ORACULO_CACHE": redis.url}, None
        )
        async with Oraculo(settings, workers=[worker]) as one, Oraculo(settings) as other:
            accepted = await one.submit({"coletas": [{"fonte": "x"}]})
            name = accepted.correlation_id
            assert await other.result(name, wait=30) is not None
            shown = await json_view(one, name)
            assert isinstance(other.cache, RedisCache)
            found: list[bytes | None] = []
            get = other.cache.get

            async def noted(key: str) -> bytes | None:
                found.append(await get(key))
                return found[-1]

            monkeypatch.setattr(other.cache, "get", noted)
            assert await json_view(other, name) == shown
            assert len(found) == 1 and found[0] is not None
            assert await json_view(other, name, "en")
            assert found[1] is None  # a language of its own is an entry of its own
            redis.kill()
            assert await json_view(other, name) == shown  # slower, and the same
            redis.start()


PASSWORD = "s%g/r@do"


def _node(folder: Path) -> RedisServer:
    """A node of a cluster with a password, which other nodes have to show too."""
    server = own("redis", folder)
    assert isinstance(server, RedisServer)
    server.config["cluster-enabled"] = "yes"
    server.config["cluster-announce-ip"] = "127.0.0.1"
    server.config["cluster-port"] = str(free_port())
    server.config |= {"requirepass": PASSWORD, "masterauth": PASSWORD}
    return server


async def _joined(first: RedisServer, second: RedisServer) -> None:
    """Make one cluster of two nodes, each with half of the slots."""
    halves = ("0 8191", "8192 16383")
    for server, half in zip((first, second), halves, strict=True):
        async with Redis.from_url(server.url, password=PASSWORD) as client:
            await client.execute_command(f"CLUSTER ADDSLOTSRANGE {half}")
    async with Redis.from_url(first.url, password=PASSWORD) as client:
        await client.execute_command(f"CLUSTER MEET 127.0.0.1 {second.port} {second.config['cluster-port']}")
    for server in (first, second):
        async with Redis.from_url(server.url, password=PASSWORD) as client:
            while (await client.execute_command("CLUSTER INFO"))["cluster_state"] != "ok":  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("named", [1, 2])
async def test_a_cluster_is_found_by_any_of_its_nodes(tmp_path: Path, named: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with _node(tmp_path / "a") as first, _node(tmp_path / "b") as second:
        assert isinstance(first, RedisServer) and isinstance(second, RedisServer)
        await _joined(first, second)
        nodes = [f"127.0.0.1:{server.port}" for server in (first, second)][:named]
        cache = cache_of(load({"REDIS_CLUSTER_NODES": ",".join(nodes), "REDIS_PASSWORD": PASSWORD}, None))
        assert isinstance(cache, RedisCache)
        for number in range(20):  # keys of both nodes
            await cache.put(f"k{number}", b"%d" % number, 60)
        assert [await cache.get(f"k{number}") for number in range(20)] == [b"%d" % n for n in range(20)]
        assert cache.failures == 0
        await cache.close()


async def test_one_address_may_be_a_server_alone(tmp_path: Path) -> None:
    with own("redis", tmp_path) as server:
        cache = cache_of(load({"REDIS_CLUSTER_NODES": f"127.0.0.1:{server.port}"}, None))
        assert isinstance(cache, RedisCache)
        await cache.put("a", b"1", 60)
        assert await cache.get("a") == b"1" and cache.failures == 0
        await cache.close()


async def test_one_address_with_a_password_and_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    server = own("redis", tmp_path)
    assert isinstance(server, RedisServer)
    files = {"tls-cert-file": str(tmp_path / "server.pem"), "tls-key-file": str(tmp_path / "server.pem")}
    server.config |= {"port": "0", "tls-port": str(server.port), "tls-auth-clients": "no", "requirepass": PASSWORD}
    server.config |= files
    given = {"REDIS_CLUSTER_NODES": f"localhost:{server.port}", "REDIS_SSL_ENABLED": "true", "REDIS_PASSWORD": PASSWORD}
    with server:
        for left_out, kept in (("", b"1"), ("REDIS_PASSWORD", None), ("REDIS_SSL_ENABLED", None)):
            cache = cache_of(load({name: value for name, value in given.items() if name != left_out}, None))
            assert isinstance(cache, RedisCache)
            await cache.put("a", b"1", 60)
            assert await cache.get("a") == kept, left_out
            assert (cache.failures == 0) is (kept is not None)
            await cache.close()


def test_what_is_allowed() -> None:
    assert cache_of(load({}, None)) is None
    for variable, value in (("ORACULO_CACHE", "http://x"), ("REDIS_CLUSTER_NODES", "redis")):
        with pytest.raises(SettingsError, match=variable):
            load({variable: value}, None)


async def test_it_is_left_alone_for_as_long_as_is_set(tmp_path: Path) -> None:
    with own("redis", tmp_path) as server:
        chosen = load({"ORACULO_CACHE": server.url, "REDIS_CIRCUIT_BREAKER_RECOVERY_TIMEOUT": "3600"}, None)
        cache = cache_of(chosen)
        assert isinstance(cache, RedisCache)
        await cache.put("a", b"1", 60)
        server.kill()
        assert await cache.get("a") is None
        server.start()
        await cache.put("a", b"2", 60)
        assert await cache.get("a") is None and cache.failures == 1, "it is back, and is not asked yet"
        await cache.close()
