"""What is particular to Redis Streams: entries, groups, trimming, names, settings. On a real server."""

from __future__ import annotations

import asyncio
import secrets
import time
import tracemalloc
from pathlib import Path

import orjson
import pytest
import trustme
from tools.servers.redis import Redis

from adapters.redis_tools import ack, blocked, messages, opened, plain, published, reading, take
from oraculo.adapters.brokers.redis_streams import RedisBroker, trim, upkeep
from oraculo.errors import BrokerUnavailableError, SettingsError
from oraculo.ports.broker import Outgoing, Settle, Settlement, publish_confirmed
from servers import own, shared
from waiting import DEADLINE_S, until


@pytest.fixture
def url() -> str:
    return shared("redis")


@pytest.fixture
def queue() -> str:
    return f"teste_{secrets.token_hex(6)}"


def configured(folder: Path, **config: str) -> Redis:
    server = own("redis", folder)
    assert isinstance(server, Redis)
    server.config.update({name.replace("_", "-"): value for name, value in config.items()})
    return server


class TestEntries:
    async def test_ours_begin_with_the_message(self, url: str, queue: str) -> None:
        async with opened(url) as broker:
            await publish_confirmed(broker, [Outgoing(queue, b"{}", "m-1"), Outgoing(queue, b"{}", "", {"é": "ã"})])
        (_, first), (_, second) = plain(url).xrange(queue)
        assert list(first.items()) == [(b"mensagem", b"{}"), (b"message_id", b"m-1")]
        assert list(second.items()) == [(b"mensagem", b"{}"), (b"headers", '{"é":"ã"}'.encode())]

    @pytest.mark.parametrize(
        ("fields", "body", "headers"),
        [
            ({"mensagem": "x"}, b"x", {}),
            ({"message_id": "1", "mensagem": "x", "traceparent": "00-1"}, b"x", {"traceparent": "00-1"}),
            ({"mensagem": "x", "headers": '{"a": "b", "n": 1}'}, b"x", {"a": "b", "n": "1"}),
            ({"mensagem": "x", "headers": "\xff", "data": "y"}, b"x", {"headers": "\xff", "data": "y"}),
            ({"mensagem": "x", "headers": "[1]"}, b"x", {"headers": "[1]"}),
            ({"message": "x"}, b"x", {}),
            ({"tipo": "t", "data": "x"}, b"x", {"tipo": "t"}),
            ({"body": "x"}, b"x", {}),
            ({"payload": "x", "a": "b"}, b"x", {"a": "b"}),
            ({"qualquer": b"\x00\xff"}, b"\x00\xff", {}),
            ({"mensagem": b""}, b"", {}),
        ],
    )  # fmt: skip
    async def test_plain_clients_are_read(
        self, url: str, queue: str, fields: dict[str, str], body: bytes, headers: dict[str, str]
    ) -> None:
        plain(url).xadd(queue, fields)
        async with opened(url) as broker:
            (delivery,) = await take(broker, queue, 1)
            await ack(broker, [delivery])
        assert (delivery.body, delivery.headers) == (body, headers)

    async def test_an_envelope_written_field_by_field(self, url: str, queue: str) -> None:
        envelope = {"correlation_id": "7", "tipo_evento": "resultado_coleta", "timestamp": "2025-10-14T12:00:00Z"}
        plain(url).xadd(queue, {**envelope, "payload": '{"fonte": "x"}', "tentativa": "2"})
        plain(url).xadd(queue, {**envelope, "payload": "{not json"})
        plain(url).xadd(queue, {"um": "1", "dois": b"\xff"})
        async with opened(url) as broker:
            whole, odd, other = (orjson.loads(d.body) for d in await take(broker, queue, 3))
        assert whole == {**envelope, "payload": {"fonte": "x"}, "tentativa": 2}
        assert odd == {**envelope, "payload": "{not json"}
        assert other == {"um": "1", "dois": "\ufffd"}


class TestRefusals:
    async def test_too_large_is_refused_alone(self, tmp_path: Path) -> None:
        with configured(tmp_path, proto_max_bulk_len="1mb") as server:
            async with opened(server) as broker:
                small, large, last = messages("fila", (b"a", b"x" * 2_000_000, b"c"))
                report = await broker.publish([small, large, last])
                assert [one.message for one in report.refused] == [large] and "1048576" in report.refused[0].reason
                assert not report.unconfirmed
                assert [d.body for d in await take(broker, "fila", 2)] == [b"a", b"c"]
                assert broker.health().reconnects == 0

    async def test_a_key_that_is_no_stream_and_headers_that_are_no_text(self, url: str, queue: str) -> None:
        plain(url).set(f"{queue}_texto", "x")
        async with opened(url) as broker:
            wrong = Outgoing(f"{queue}_texto", b"a", "1")
            odd = Outgoing(queue, b"b", "2", {"h": "\ud800"})
            report = await broker.publish([wrong, odd, Outgoing(queue, b"c", "3")])
            assert {one.message.message_id for one in report.refused} == {"1", "2"}
            assert not report.unconfirmed
            assert [d.body for d in await take(broker, queue, 1)] == [b"c"]
            with pytest.raises(BrokerUnavailableError, match="WRONGTYPE"):
                await broker.fetch(f"{queue}_texto", limit=1, wait=0.1)
            with pytest.raises(BrokerUnavailableError, match="WRONGTYPE"):
                await broker.fetch(f"{queue}_texto", limit=1, wait=0)

    async def test_a_full_server_says_so_and_recovers(self, tmp_path: Path) -> None:
        with configured(tmp_path) as server:
            async with opened(server) as broker:
                await publish_confirmed(broker, messages("fila", (b"a", b"b")))
                await ack(broker, await take(broker, "fila", 1))
                plain(server).config_set("maxmemory", "1")
                report = await broker.publish(messages("fila", (b"c", b"d")))
                assert "memory of the server is full" in report.reason
                assert [m.body for m in report.unconfirmed] == [b"c", b"d"]
                await ack(broker, await take(broker, "fila", 1))  # what is there can still be worked off
                plain(server).config_set("maxmemory", "0")
                await publish_confirmed(broker, messages("fila", (b"e",)))
                assert [d.body for d in await take(broker, "fila", 1)] == [b"e"]


class TestSharing:
    async def test_two_groups_get_everything_each_and_nothing_is_trimmed_too_early(
        self, url: str, queue: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trim, "STUCK_AFTER_S", 0.0)
        client = plain(url)
        async with opened(url) as one, opened(url, group="outro") as two:
            await publish_confirmed(one, messages(queue, (b"%d" % n for n in range(10))))
            assert await two.fetch(queue, limit=1, wait=0)  # the group exists from now on
            await ack(one, await take(one, queue, 10))
            await until(lambda: one._upkeep.trim._due.get(queue) is None)
            assert client.xlen(queue) == 10
            rest = await take(two, queue, 9)
            await ack(two, rest)
            await until(lambda: two._upkeep.trim._due.get(queue) is None)
            assert client.xlen(queue) == 10  # the first is held by the second group
        async with opened(url, group="outro") as two:
            await ack(two, await take(two, queue, 1))
            await until(lambda: client.xlen(queue) == 0)

    async def test_a_slow_holder_keeps_its_message(self, url: str, queue: str) -> None:
        async with opened(url, lease=1) as slow, opened(url, lease=1) as other:
            await publish_confirmed(slow, messages(queue, (b"x",)))
            (delivery,) = await take(slow, queue, 1)
            assert await other.fetch(queue, limit=1, wait=3.5) == []
            await ack(slow, [delivery])
        assert plain(url).xpending(queue, "oraculo")["pending"] == 0

    async def test_nothing_is_taken_that_nobody_asked_for(self, url: str, queue: str) -> None:
        async with opened(url) as one, opened(url) as other:
            await publish_confirmed(one, messages(queue, (b"%d" % n for n in range(20))))
            first = await one.fetch(queue, limit=5, wait=DEADLINE_S)
            assert len(first) + len(await take(other, queue, 15)) == 20

    async def test_what_came_for_one_who_went_away_reaches_another_process(self, url: str, queue: str) -> None:
        async with opened(url) as one, opened(url) as other:
            for n in range(10):
                waiting = asyncio.create_task(one.fetch(queue, limit=5, wait=60))
                await until(lambda: blocked(plain(url)))
                await publish_confirmed(other, messages(queue, (b"%d" % n,)))
                for _ in range(n):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                got = [] if waiting.cancelled() else waiting.result()
                await ack(one, got)
                bodies = [d.body for d in got] or [d.body for d in await take(other, queue, 1)]
                assert bodies == [b"%d" % n]

    async def test_a_prefetched_message_goes_back(self, url: str, queue: str) -> None:
        async with opened(url) as one, opened(url) as other:
            await publish_confirmed(other, messages(queue, (b"x",)))
            await one.fetch(f"{queue}_outra", limit=1, wait=0)
            looking = asyncio.create_task(one.fetch(queue, limit=1, wait=0))
            await asyncio.sleep(0)  # it begins
            await asyncio.sleep(0)  # its question goes out
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await until(lambda: one._sources[queue].ready)
            assert (await one.backlog(queue)).waiting == 1
            assert [d.body for d in await take(other, queue, 1)] == [b"x"]

    async def test_retry_reaches_a_process_that_waits(self, url: str, queue: str) -> None:
        async with opened(url) as one, opened(url) as other:
            await publish_confirmed(one, messages(queue, (b"x",)))
            (delivery,) = await take(one, queue, 1)
            waiting = asyncio.create_task(other.fetch(queue, limit=1, wait=60))
            await one.settle([Settlement(delivery, Settle.RETRY)])
            async with asyncio.timeout(DEADLINE_S):
                assert [(d.body, d.redelivered) for d in await waiting] == [(b"x", True)]

    async def test_closing_gives_back_and_leaves_nothing_behind(self, url: str, queue: str) -> None:
        client = plain(url)
        async with opened(url) as other:
            async with opened(url) as one:
                await publish_confirmed(one, messages(queue, (b"%d" % n for n in range(5))))
                await take(one, queue, 3)
                (held,) = await take(one, queue, 1)
                await one.settle([Settlement(held, Settle.RETRY, 600)])
                name = one._sources[queue].consumer
                session = one._connector.current
                assert session is not None
                ids = {session.control.client_id}
            assert name.encode() not in [c["name"] for c in client.xinfo_consumers(queue, "oraculo")]
            assert not ids & {int(c["id"]) for c in client.client_list()}
            assert len(await take(other, queue, 5)) == 5
            with pytest.raises(BrokerUnavailableError):
                await one.fetch(queue, limit=1, wait=1)

    async def test_one_who_waits_is_released_when_the_broker_is_closed(self, url: str, queue: str) -> None:
        broker = RedisBroker(url)
        waiting = asyncio.create_task(broker.fetch(queue, limit=1, wait=60))
        await until(lambda: reading(plain(url), queue))
        await broker.close()
        async with asyncio.timeout(DEADLINE_S):
            assert await waiting == []

    async def test_fifty_queues_are_waited_for_at_once(self, url: str, queue: str) -> None:
        async with opened(url) as broker:
            names = [f"{queue}_{n}" for n in range(50)]
            waiting = [asyncio.create_task(broker.fetch(name, limit=1, wait=60)) for name in names]
            await publish_confirmed(broker, [Outgoing(name, name.encode(), name) for name in names])
            async with asyncio.timeout(DEADLINE_S):
                got = [d.body.decode() for batch in await asyncio.gather(*waiting) for d in batch]
            assert got == names

    async def test_names_of_consumers_that_are_long_gone_are_removed(
        self, url: str, queue: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = plain(url)
        client.xgroup_create(queue, "oraculo", "0", mkstream=True)
        client.xadd(queue, {"mensagem": "x"})
        client.xreadgroup("oraculo", "oraculo-morto", {queue: ">"})
        client.xgroup_createconsumer(queue, "oraculo", "oraculo-vazio")
        client.xgroup_createconsumer(queue, "oraculo", "de-outro")
        monkeypatch.setattr(upkeep, "SWEEP_INTERVAL_S", 0.0)
        monkeypatch.setattr(upkeep, "CONSUMER_GONE_AFTER_S", 0.05)
        async with opened(url) as broker:
            waiting = asyncio.create_task(broker.fetch(queue, limit=1, wait=1))

            def names() -> set[bytes]:
                return {c["name"] for c in client.xinfo_consumers(queue, "oraculo")}

            await until(lambda: b"oraculo-vazio" not in names())
            assert {b"oraculo-morto", b"de-outro"} <= names()
            await waiting


class TestTrimming:
    async def test_acknowledged_entries_are_removed(self, url: str, queue: str) -> None:
        async with opened(url) as broker:
            await publish_confirmed(broker, messages(queue, (b"%d" % n for n in range(1000))))
            await ack(broker, await take(broker, queue, 1000))
            await until(lambda: plain(url).xlen(queue) == 0)
            assert (await broker.backlog(queue)).waiting == 0

    async def test_one_slow_message_does_not_hold_back_the_rest(
        self, url: str, queue: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trim, "STUCK_AFTER_S", 0.0)
        async with opened(url) as broker:
            await publish_confirmed(broker, messages(queue, (b"%d" % n for n in range(1000))))
            slow, *rest = await take(broker, queue, 1000)
            await ack(broker, rest)
            await until(lambda: plain(url).xlen(queue) == 1)
            await publish_confirmed(broker, messages(queue, (b"a", b"b")))
            assert (await broker.backlog(queue)).waiting == 2
            await ack(broker, [slow, *await take(broker, queue, 2)])
            await until(lambda: plain(url).xlen(queue) == 0)

    async def test_queues_that_plain_workers_read_are_trimmed_by_who_publishes(
        self, url: str, queue: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trim, "PUBLISH_TRIM_DELAY_S", 0.0)
        client = plain(url)
        async with opened(url) as broker:
            await publish_confirmed(broker, messages(queue, (b"a", b"b", b"c")))
            await until(lambda: broker._upkeep.trim._due.get(queue) is None)
            assert client.xlen(queue) == 3  # nobody reads it yet
            client.xgroup_create(queue, "trabalhador", "0")
            ((_, entries),) = client.xreadgroup("trabalhador", "eu", {queue: ">"}, count=2)
            client.xack(queue, "trabalhador", entries[0][0])
            await publish_confirmed(broker, messages(queue, (b"d",)))
            await until(lambda: client.xlen(queue) == 3)  # b is held, c and d wait


class TestBacklog:
    async def test_a_queue_that_does_not_exist_is_not_made(self, url: str, queue: str) -> None:
        async with opened(url) as broker:
            assert (await broker.backlog(queue)).waiting == 0
        assert not plain(url).exists(queue)

    async def test_how_many_and_for_how_long(self, url: str, queue: str) -> None:
        client = plain(url)
        before = int((time.time() - 60) * 1000)
        for n in range(3):
            client.xadd(queue, {"mensagem": "x"}, id=f"{before}-{n + 1}")
        async with opened(url) as broker:
            found = await broker.backlog(queue)
            assert found.waiting == 3 and found.oldest_s is not None and 59 < found.oldest_s < 120
            await take(broker, queue, 2)
            assert (await broker.backlog(queue)).waiting == 1
            await take(broker, queue, 1)
            assert (await broker.backlog(queue)).oldest_s is None

    async def test_entries_deleted_by_hand_and_ids_chosen_by_hand(self, url: str, queue: str) -> None:
        client = plain(url)
        for n in range(1, 6):
            client.xadd(queue, {"mensagem": "x"}, id=f"{n}-0")
        async with opened(url) as broker:
            await take(broker, queue, 2)
            client.xdel(queue, "4-0")
            found = await broker.backlog(queue)
            assert (found.waiting, found.oldest_s) == (2, None)

    async def test_a_large_backlog_costs_a_consumer_nothing(self, url: str, queue: str) -> None:
        async with opened(url) as broker:
            await publish_confirmed(broker, [Outgoing(queue, b"x" * 300, f"{n}") for n in range(20_000)])
            tracemalloc.start()
            try:
                for _ in range(50):
                    await ack(broker, await broker.fetch(queue, limit=100, wait=DEADLINE_S))
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < 2_000_000  # 20,000 of them are more than 6 million
            assert (await broker.backlog(queue)).waiting == 15_000


class TestSettings:
    @pytest.mark.parametrize(
        ("config", "claim"),
        [
            ({"appendonly": "no"}, "best-effort"),
            ({"appendfsync": "no"}, "crash-safe"),
            ({"appendfsync": "everysec"}, "crash-safe"),
            ({"appendfsync": "always"}, "power-safe"),
            ({"appendfsync": "always", "no_appendfsync_on_rewrite": "yes"}, "crash-safe"),
            ({"appendfsync": "always", "maxmemory_policy": "allkeys-lru"}, "best-effort"),
            ({"appendfsync": "always", "user": "oraculo on >segredo ~* +@all -config"}, "crash-safe"),
            ({"appendfsync": "always", "user": "oraculo on >segredo ~* +@all -config -info"}, "best-effort"),
        ],
    )
    async def test_durability_is_what_the_server_says(self, tmp_path: Path, config: dict[str, str], claim: str) -> None:
        with configured(tmp_path, **config) as server:
            where = server.url.replace("//", "//oraculo:segredo@") if "user" in config else server.url
            async with opened(where) as broker:
                assert await broker.durability() == claim

    async def test_replicas_are_waited_for(self, tmp_path: Path) -> None:
        with (
            configured(tmp_path / "um", repl_diskless_sync_delay="0") as server,
            configured(tmp_path / "dois") as replica,
        ):
            async with opened(server, wait_replicas=1, confirm_timeout=1) as broker:
                with pytest.raises(BrokerUnavailableError, match="0 of 1 replicas"):
                    await publish_confirmed(broker, messages("fila", (b"x",)))
                plain(replica).replicaof("127.0.0.1", server.port)
                await published(broker, messages("fila", (b"y",)))
                assert b"y" in [fields[b"mensagem"] for _, fields in plain(replica).xrange("fila")]
            async with opened(replica) as broker:
                with pytest.raises(BrokerUnavailableError, match="READONLY"):
                    await publish_confirmed(broker, messages("fila", (b"z",)))

    async def test_encrypted_with_a_password_and_another_database(self, tmp_path: Path) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        certificate = authority.issue_cert("localhost")
        certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
        server = configured(
            tmp_path,
            port="0",
            tls_cert_file=str(tmp_path / "server.pem"),
            tls_key_file=str(tmp_path / "server.pem"),
            tls_auth_clients="no",
            requirepass="s%g/r@do",
        )
        server.config["tls-port"] = str(server.port)
        address = f"rediss://:s%25g%2Fr%40do@localhost:{server.port}/3"
        with server:
            async with opened(address, ca=tmp_path / "ca.pem") as broker:
                await publish_confirmed(broker, messages("fila", (b"x",)))
                assert [d.body for d in await take(broker, "fila", 1)] == [b"x"]
            async with opened(address) as broker:
                with pytest.raises(BrokerUnavailableError, match="certificate"):
                    await publish_confirmed(broker, messages("fila", (b"x",)))
            wrong = f"rediss://:outra@localhost:{server.port}"
            async with opened(wrong, ca=tmp_path / "ca.pem") as broker:
                with pytest.raises(BrokerUnavailableError, match="WRONGPASS") as caught:
                    await publish_confirmed(broker, messages("fila", (b"x",)))
                assert "outra" not in str(caught.value) + broker.health().error

    @pytest.mark.parametrize(
        "wrong",
        [
            "amqp://h", "redis://h:porta", "redis://h:99999", "redis://h/banco", "redis://h/-1", "redis://h/0#x",
            "redis://h?lease=0", "redis://h?lease=nan", "redis://h?lease=x", "redis://h?confirm_timeout=-1",
            "redis://h?group=", "redis://h?group=a%20b", "redis://h?wait_replicas=1.5", "redis://h?wait_replicas=99",
            "redis://h?ca=/x", "rediss://h?ca=", "redis://h?outra=1", "redis://h?lease", "redis://h?lease=2&lease=3",
        ],
    )  # fmt: skip
    def test_a_wrong_url_stops_the_start(self, wrong: str) -> None:
        scheme, _, rest = wrong.partition("://")
        with pytest.raises(SettingsError) as caught:
            RedisBroker(f"{scheme}://eu:segredo@{rest}")
        assert "ORACULO_BROKER" in str(caught.value) and "segredo" not in str(caught.value)

    def test_it_is_made_without_a_loop_and_knows_its_defaults(self) -> None:
        broker = RedisBroker("redis://[::1]")
        assert broker._options.where == "[::1]:6379/0" and broker._options.lease == 10
        assert not broker.health().connected
