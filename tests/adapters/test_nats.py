"""What is particular to NATS JetStream, on real servers."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import nats
import pytest
import trustme
from nats.js import JetStreamContext
from nats.js.api import StorageType
from tools.servers.nats import Nats

from oraculo.adapters.brokers.nats_jetstream import NatsBroker
from oraculo.adapters.brokers.nats_jetstream import broker as adapter
from oraculo.adapters.brokers.nats_jetstream.streams import is_subject, name_of
from oraculo.errors import BrokerUnavailableError, SettingsError
from oraculo.ports.broker import Delivery, Outgoing, Settle, Settlement, publish_confirmed
from servers import class_of, shared, use
from waiting import DEADLINE_S

Open = Callable[[str], NatsBroker]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Brokers that are closed when the test is over."""
    async with AsyncExitStack() as stack:

        def make(url: str) -> NatsBroker:
            broker = NatsBroker(url)
            stack.push_async_callback(broker.close)
            return broker

        yield make


@pytest.fixture
async def plain() -> AsyncIterator[JetStreamContext]:
    """A client of the shared server that knows nothing of Oráculo."""
    connection = await nats.connect(shared("nats"))
    yield connection.jetstream()
    await connection.close()


def own(folder: Path, **options: object) -> Nats:
    use("nats")
    server = class_of("nats")(folder / "nats", **options)
    assert isinstance(server, Nats)
    return server


async def take(broker: NatsBroker, queue: str, count: int, *, acknowledge: bool = True) -> list[Delivery]:
    taken: list[Delivery] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(taken) < count:
            got = await broker.fetch(queue, limit=count - len(taken), wait=DEADLINE_S)
            if acknowledge:
                await broker.settle([Settlement(delivery) for delivery in got])
            taken += got
    return taken


async def put(broker: NatsBroker, queue: str, *bodies: bytes) -> None:
    await publish_confirmed(broker, [Outgoing(queue, body, "") for body in bodies])


class TestNames:
    def test_two_queues_never_share_a_stream(self) -> None:
        queues = ["a.b", "a~b", "a=2Eb", "a b", "a/b", "ação", "a_b", "a-b", "A.b"]
        assert len({name_of(queue) for queue in queues}) == len(queues)
        assert name_of("escavador_x.dlq") == "escavador_x~dlq"

    def test_what_is_a_subject(self) -> None:
        assert all(map(is_subject, ["a", "a.b", "escavador_ação", "a-b.dlq"]))
        assert not any(map(is_subject, ["", "a..b", ".a", "a.", "a b", "a*", ">", "$JS.API", "a\r\nb", "x" * 300]))


class TestUrl:
    @pytest.mark.parametrize(
        "url",
        [
            "nats://:s3cret@h?lease=0", "nats://u:s3cret@h?lease=x", "nats://h?confirm_timeout=0", "nats://h?nope=1",
            "nats://h?replicas=9", "nats://h?group=a.b", "nats://h?group=", "nats://h?monitor=h:8222", "nats://h?tls=yes",
            "nats://h/path", "nats://", "nats://h:port", "nats://h?servers=a/b", "amqp://h",
        ],
    )  # fmt: skip
    def test_what_is_not_allowed_is_said_without_the_password(self, url: str) -> None:
        with pytest.raises(SettingsError) as error:
            NatsBroker(url)
        assert "ORACULO_BROKER" in str(error.value) and "s3cret" not in str(error.value)

    async def test_credentials(self, tmp_path: Path, opened: Open) -> None:
        with own(tmp_path, extra='authorization { user: "ana", password: "p@ss" }') as server:
            await put(opened(server.url.replace("//", "//ana:p%40ss@")), "q", b"x")
            with pytest.raises(BrokerUnavailableError, match="Authorization Violation") as error:
                await put(opened(server.url.replace("//", "//ana:wrong-s3cret@")), "q", b"x")
            assert "s3cret" not in str(error.value)

    async def test_a_token(self, tmp_path: Path, opened: Open) -> None:
        with own(tmp_path, extra='authorization { token: "t0ken" }') as server:
            await put(opened(server.url.replace("//", "//t0ken@")), "q", b"x")

    async def test_tls_and_never_a_password_without_it(self, tmp_path: Path, opened: Open) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
        tls = f'tls {{ cert_file: "{tmp_path}/server.pem", key_file: "{tmp_path}/server.pem" }}'
        with own(tmp_path, extra=tls) as server:
            broker = opened(f"{server.url}?tls=1&tls_ca={tmp_path}/ca.pem")
            await put(broker, "q", b"x")
            assert len(await take(broker, "q", 1)) == 1
            with pytest.raises(BrokerUnavailableError, match="certificate"):
                await put(opened(f"{server.url}?tls=1"), "q", b"x")
        with pytest.raises(BrokerUnavailableError, match="offers no TLS"):
            await put(opened(f"{shared('nats')}?tls=1"), "q", b"x")

    async def test_the_next_server_of_the_list_is_tried(self, tmp_path: Path, opened: Open) -> None:
        with own(tmp_path) as server:
            broker = opened(f"nats://127.0.0.1:1?servers=127.0.0.1:{server.port}")
            async with asyncio.timeout(DEADLINE_S):
                while not broker.health().connected:
                    await asyncio.gather(broker.fetch("q", limit=1, wait=0.1), return_exceptions=True)
            await put(broker, "q", b"x")


class TestStreams:
    async def test_a_stream_that_covers_the_queue_is_used_as_it_is(self, plain: JetStreamContext, opened: Open) -> None:
        await plain.add_stream(name="deles", subjects=["deles.>"])
        broker = opened(shared("nats"))
        await publish_confirmed(broker, [Outgoing("deles.a", b"a", "same"), Outgoing("deles.b", b"b", "same")])
        assert (await broker.backlog("deles.a")).waiting == (await broker.backlog("deles.b")).waiting == 1
        assert [d.body for d in await take(broker, "deles.b", 1)] == [b"b"]
        assert [d.body for d in await take(broker, "deles.a", 1)] == [b"a"]
        assert (await plain.stream_info("deles")).state.messages == 2

    async def test_a_consumer_of_somebody_else_keeps_its_lease(self, plain: JetStreamContext, opened: Open) -> None:
        await plain.add_stream(name="alheio", subjects=["alheio"])
        await plain.pull_subscribe("alheio", durable="oraculo")
        broker = opened(shared("nats"))
        await plain.publish("alheio", b"x")
        await take(broker, "alheio", 1)
        assert (await plain.consumer_info("alheio", "oraculo")).config.ack_wait == 30

    async def test_the_lease_of_our_consumer_follows_the_url(self, plain: JetStreamContext, opened: Open) -> None:
        for lease in (5, 7):
            await opened(f"{shared('nats')}?lease={lease}").fetch("lease_muda", limit=1, wait=0)
            assert (await plain.consumer_info("lease_muda", "oraculo")).config.ack_wait == lease

    async def test_a_stream_that_vanished_is_made_again(self, plain: JetStreamContext, opened: Open) -> None:
        broker = opened(shared("nats"))
        await put(broker, "some", b"1")
        await plain.delete_stream("some")
        await put(broker, "some", b"2")
        assert [d.body for d in await take(broker, "some", 1)] == [b"2"]

    async def test_a_consumer_that_vanished_is_made_again(self, plain: JetStreamContext, opened: Open) -> None:
        broker = opened(shared("nats"))
        assert await broker.fetch("sem_consumidor", limit=1, wait=0) == []
        for body in (b"1", b"2"):
            await plain.delete_consumer("sem_consumidor", "oraculo")
            await put(broker, "sem_consumidor", body)
            assert body in [d.body for d in await take(broker, "sem_consumidor", int(body))]

    async def test_two_groups_get_everything_and_the_slower_keeps_it(
        self, plain: JetStreamContext, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(adapter, "PURGE_INTERVAL_S", 0.05)
        one, two = opened(shared("nats")), opened(f"{shared('nats')}?group=auditoria")
        for broker in (one, two):
            assert await broker.fetch("grupos", limit=1, wait=0) == []
        await put(one, "grupos", *(b"%d" % n for n in range(10)))
        assert len(await take(one, "grupos", 10)) == 10
        assert len(await take(two, "grupos", 4)) == 4
        await self._messages(plain, "grupos", 6)
        assert [d.body for d in await take(two, "grupos", 6)] == [b"%d" % n for n in range(4, 10)]
        await self._messages(plain, "grupos", 0)

    async def test_a_stream_without_consumers_keeps_everything(
        self, plain: JetStreamContext, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(adapter, "PURGE_INTERVAL_S", 0.01)
        broker = opened(shared("nats"))
        await put(broker, "ninguem", b"a", b"b")
        await put(broker, "alguem", b"a", b"b")
        await take(broker, "alguem", 2)
        await self._messages(plain, "alguem", 0)
        assert (await plain.stream_info("ninguem")).state.messages == 2

    async def _messages(self, plain: JetStreamContext, stream: str, count: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                if (await plain.stream_info(stream)).state.messages == count:
                    return
                await asyncio.sleep(0.02)

    async def test_no_jetstream(self, tmp_path: Path, opened: Open) -> None:
        with own(tmp_path, jetstream=False) as server:
            broker = opened(server.url)
            with pytest.raises(BrokerUnavailableError, match="JetStream"):
                await put(broker, "q", b"x")
            assert not broker.health().connected and "JetStream" in broker.health().error


class TestMessages:
    async def test_the_same_message_sent_again_is_one_and_two_of_a_call_are_two(self, opened: Open) -> None:
        broker = opened(shared("nats"))
        for _ in range(3):
            await publish_confirmed(broker, [Outgoing("mesma", b"x", "t1.1")])
        await publish_confirmed(broker, [Outgoing("mesma", b"y", "t2.1"), Outgoing("mesma", b"z", "t2.1")])
        assert sorted(d.body for d in await take(broker, "mesma", 3)) == [b"x", b"y", b"z"]
        assert await broker.fetch("mesma", limit=1, wait=0) == []

    async def test_a_plain_client_without_headers(self, plain: JetStreamContext, opened: Open) -> None:
        broker = opened(shared("nats"))
        assert await broker.fetch("simples", limit=1, wait=0) == []
        await plain.publish("simples", b"1")
        await plain.publish("simples", b"2", headers={"a": "", "b": "é"})
        bare, other = await take(broker, "simples", 2)
        assert bare.headers == {} and other.headers == {"a": "", "b": "é"}

    async def test_headers_that_no_library_would_write(self, opened: Open) -> None:
        broker = opened(shared("nats"))
        assert await broker.fetch("estranha", limit=1, wait=0) == []
        head = b"NATS/1.0\r\nno colon\r\na: \xff\r\nb:1\r\nb:  2 \r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", int(shared("nats").rpartition(":")[2]))
        await reader.readline()
        writer.write(b'CONNECT {"headers":true}\r\nHPUB estranha %d %d\r\n%bx\r\n' % (len(head), len(head) + 1, head))
        (delivery,) = await take(broker, "estranha", 1)
        assert delivery.headers == {"a": "\ufffd", "b": "2"}
        writer.close()
        await writer.wait_closed()

    async def test_headers_cannot_order_the_server_about(self, plain: JetStreamContext, opened: Open) -> None:
        broker = opened(shared("nats"))
        await put(broker, "ordens", b"first")
        headers = {"Nats-Rollup": "all", "nats-msg-id": "x", "oraculo-detalhe": "linha 1\r\nNats-TTL: 1s", "é ç": "ok"}
        for _ in range(2):
            await publish_confirmed(broker, [Outgoing("ordens", b"second", "", headers)])
        taken = await take(broker, "ordens", 3)
        assert [d.body for d in taken] == [b"first", b"second", b"second"]
        assert taken[1].headers == {"oraculo-detalhe": "linha 1  Nats-TTL: 1s", "-": "ok"}

    async def test_what_can_never_be_taken_harms_no_neighbour(self, tmp_path: Path, opened: Open) -> None:
        with own(tmp_path, max_payload=1024) as server:
            broker = opened(server.url)
            large, nameless = Outgoing("q", b"x" * 1025, "1"), Outgoing("a..b", b"x", "2")
            report = await broker.publish([Outgoing("q", b"a", "3"), large, nameless, Outgoing("q", b"b", "4")])
            assert not report.unconfirmed
            reasons = {refusal.message.message_id: refusal.reason for refusal in report.refused}
            assert reasons.keys() == {"1", "2"} and "max_payload of 1024" in reasons["1"] and "'a..b'" in reasons["2"]
            assert sorted(d.body for d in await take(broker, "q", 2)) == [b"a", b"b"]
            assert broker.health().reconnects == 0

    async def test_more_than_one_answer_may_hold(self, opened: Open) -> None:
        broker = opened(shared("nats"))
        for _ in range(4):
            await put(broker, "grandes", *(b"x" * 1_000_000 for _ in range(8)))
        assert len(await take(broker, "grandes", 32)) == 32

    async def test_the_oldest_that_waits(self, opened: Open) -> None:
        broker = opened(shared("nats"))
        assert await broker.fetch("idade", limit=1, wait=0) == []
        await put(broker, "idade", b"a")
        await asyncio.sleep(0.05)
        await put(broker, "idade", b"b")
        async with asyncio.timeout(DEADLINE_S):  # the server counts for its consumers a moment after it has confirmed
            while (found := await broker.backlog("idade")).waiting != 2:
                pass
        assert found.oldest_s is not None and 0.05 <= found.oldest_s < DEADLINE_S
        await take(broker, "idade", 2)
        assert (await broker.backlog("idade")).oldest_s is None
        assert (await broker.backlog("nunca_vista")).waiting == 0

    async def test_a_retry_outlives_the_process_that_asked_for_it(self, opened: Open) -> None:
        one, two = opened(shared("nats")), opened(shared("nats"))
        await put(one, "depois", b"x")
        (delivery,) = await take(one, "depois", 1, acknowledge=False)
        await one.settle([Settlement(delivery, Settle.RETRY, 0.3)])
        await one.close()
        assert await two.fetch("depois", limit=1, wait=0) == []
        (again,) = await take(two, "depois", 1)
        assert again.redelivered


class TestDurability:
    @pytest.mark.parametrize(
        ("sync_interval", "monitored", "expected"),
        [("", True, "crash-safe"), ("always", True, "power-safe"), ("always", False, "crash-safe")],
    )
    async def test_of_the_server(
        self, tmp_path: Path, opened: Open, sync_interval: str, monitored: bool, expected: str
    ) -> None:
        with own(tmp_path, sync_interval=sync_interval) as server:
            broker = opened(f"{server.url}?monitor={server.monitor}" if monitored else server.url)
            assert await broker.durability() == expected

    async def test_a_stream_in_memory(self, plain: JetStreamContext, opened: Open) -> None:
        await plain.add_stream(name="volatil", subjects=["volatil"], storage=StorageType.MEMORY)
        broker = opened(shared("nats"))
        await put(broker, "volatil", b"x")
        assert await broker.durability() == "best-effort"

    async def test_a_monitor_that_does_not_answer(self, opened: Open) -> None:
        assert await opened(f"{shared('nats')}?monitor=http://127.0.0.1:1").durability() == "crash-safe"


class TestSharing:
    async def test_what_came_for_a_fetch_that_went_away_goes_to_another_process(self, opened: Open) -> None:
        one, two = opened(shared("nats")), opened(shared("nats"))
        await put(one, "acumulo", b"0")
        await take(one, "acumulo", 1)
        gone = asyncio.create_task(one.fetch("acumulo", limit=10, wait=60))
        assert (
            await one.fetch("acumulo", limit=1, wait=0) == []
        )  # by now the request of the other one is with the server
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        await put(two, "acumulo", b"1", b"2", b"3")
        assert sorted(d.body for d in await take(two, "acumulo", 3)) == [b"1", b"2", b"3"]

    async def test_a_storm_of_cancelled_fetches_delays_nothing(self, opened: Open) -> None:
        broker = opened(shared("nats"))
        assert await broker.fetch("tempestade", limit=1, wait=0) == []
        for _ in range(100):
            impatient = asyncio.create_task(broker.fetch("tempestade", limit=5, wait=60))
            await asyncio.sleep(0)
            impatient.cancel()
            await asyncio.gather(impatient, return_exceptions=True)
        await put(broker, "tempestade", b"x")
        (delivery,) = await take(broker, "tempestade", 1)
        assert not delivery.redelivered

    async def test_a_slow_holder_keeps_its_message(self, opened: Open) -> None:
        one, two = (opened(f"{shared('nats')}?lease=1") for _ in range(2))
        await put(one, "lento", b"x")
        (held,) = await take(one, "lento", 1, acknowledge=False)
        assert await two.fetch("lento", limit=1, wait=3) == []
        await one.settle([Settlement(held)])
        assert await two.fetch("lento", limit=1, wait=1.5) == []

    async def test_what_is_held_at_close_is_given_back_at_once(self, opened: Open) -> None:
        one, two = (opened(f"{shared('nats')}?lease=3600") for _ in range(2))
        await put(one, "fecha", b"x")
        await take(one, "fecha", 1, acknowledge=False)
        await one.close()
        assert [(d.body, d.redelivered) for d in await take(two, "fecha", 1)] == [(b"x", True)]

    async def test_a_large_backlog_takes_no_memory_here(self, opened: Open) -> None:
        broker = opened(shared("nats"))
        body = b"x" * 1000
        for _ in range(20):
            await put(broker, "muitas", *(body for _ in range(1000)))
        tracemalloc.start()
        try:
            for _ in range(10):
                got = await broker.fetch("muitas", limit=100, wait=DEADLINE_S)
                await broker.settle([Settlement(delivery) for delivery in got])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 2_000_000
