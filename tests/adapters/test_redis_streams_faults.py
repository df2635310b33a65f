"""Redis Streams when something breaks: the server, the network, a consumer. On real servers, real processes."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.servers.proxy import Proxy
from tools.servers.redis import Redis
from tools.servers.server import Server

from adapters.redis_tools import ack, blocked, messages, opened, plain, published, take
from oraculo.adapters.brokers.redis_streams import RedisBroker
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Outgoing, Settle, Settlement, publish_confirmed
from servers import own
from waiting import DEADLINE_S, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """With `everysec`, a server killed while its disk is busy may lose what it confirmed (docs/brokers/redis.md)."""
    server = own("redis", tmp_path)
    assert isinstance(server, Redis)
    server.config["appendfsync"] = "always"
    with server:
        yield server


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.port) as proxy:
        yield proxy


async def test_nothing_confirmed_is_lost_when_the_server_is_killed_while_publishing(server: Server) -> None:
    confirmed: set[bytes] = set()
    stop = asyncio.Event()

    async def publish(broker: RedisBroker) -> None:
        number = 0
        while not stop.is_set():
            batch = messages("fila", (b"%d" % n for n in range(number, number + 100)))
            number += 100
            report = await broker.publish(batch)
            if not report.complete:
                await asyncio.sleep(0.01)
            confirmed.update(m.body for m in report.confirmed(batch))

    async with opened(server) as broker:
        publishing = asyncio.create_task(publish(broker))
        for kill, wanted in enumerate((2000, 4000, 6000), 1):
            await until(lambda wanted=wanted: len(confirmed) >= wanted)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await until(lambda kill=kill: broker.health().reconnects >= kill)
        before = len(confirmed)
        await until(lambda: len(confirmed) > before)
        stop.set()
        await publishing
        assert broker.health().reconnects == 3
        found: set[bytes] = set()
        while batch := await broker.fetch("fila", limit=5000, wait=0):
            found.update(delivery.body for delivery in batch)
            await ack(broker, batch)
        assert confirmed <= found


async def test_everything_is_consumed_although_the_server_is_killed_meanwhile(server: Server) -> None:
    wanted = {b"%d" % n for n in range(6000)}
    done: set[bytes] = set()

    async def consume(broker: RedisBroker) -> None:
        while done != wanted:
            try:
                deliveries = await broker.fetch("fila", limit=50, wait=1)
            except BrokerUnavailableError:
                continue
            await ack(broker, deliveries)
            done.update(delivery.body for delivery in deliveries)

    async with opened(server, lease=2) as broker, opened(server, lease=2) as other:
        await publish_confirmed(broker, messages("fila", wanted))
        consumers = [asyncio.create_task(consume(one)) for one in (broker, other)]
        for part in (1000, 3000):
            await until(lambda part=part: len(done) >= part)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*consumers)


async def test_what_was_settled_while_the_server_was_away_stays_settled(server: Server) -> None:
    async with opened(server) as broker, opened(server, lease=1) as other:
        await publish_confirmed(broker, messages("fila", (b"a", b"b", b"c")))
        taken = await take(broker, "fila", 3)
        await asyncio.to_thread(server.kill)
        await broker.settle([Settlement(d) for d in taken if d.body != b"b"])
        await broker.settle([Settlement(d, Settle.RETRY) for d in taken if d.body == b"b"])
        await asyncio.to_thread(server.start)
        (again,) = await take(other, "fila", 1)
        assert (again.body, again.redelivered) == (b"b", True)
        await ack(other, [again])
        await until(lambda: plain(server).xpending("fila", "oraculo")["pending"] == 0)


async def test_a_frozen_server_is_noticed_in_time_and_used_again_when_it_thaws(server: Server) -> None:
    async with opened(server, confirm_timeout=1) as broker:
        await publish_confirmed(broker, messages("fila", (b"a",)))
        server.freeze()
        try:
            async with asyncio.timeout(DEADLINE_S):
                report = await broker.publish(messages("fila", (b"b",)))
            assert [m.body for m in report.unconfirmed] == [b"b"]
            await until(lambda: not broker.health().connected)
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(BrokerUnavailableError):
                    await publish_confirmed(broker, messages("fila", (b"c",)))
        finally:
            server.thaw()
        await published(broker, messages("fila", (b"d",)))
        assert {b"a", b"d"} <= {d.body for d in await broker.fetch("fila", limit=10, wait=DEADLINE_S)}


async def test_a_black_hole_is_noticed_and_left_behind(proxy: Proxy) -> None:
    async with opened(f"redis://127.0.0.1:{proxy.port}", confirm_timeout=0.3) as broker:
        waiting = asyncio.create_task(broker.fetch("fila", limit=1, wait=60))
        await published(broker, messages("outra", (b"x",)))
        proxy.black_hole()
        with pytest.raises(BrokerUnavailableError):
            await publish_confirmed(broker, messages("outra", (b"y",)))
        assert not broker.health().connected
        proxy.heal()
        await published(broker, messages("fila", (b"z",)))
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await waiting] == [b"z"]


async def test_a_message_whose_delivery_was_lost_on_the_way_comes_again(server: Server, proxy: Proxy) -> None:
    client = plain(server)
    async with opened(f"redis://127.0.0.1:{proxy.port}") as broker:
        assert await broker.fetch("fila", limit=1, wait=0.01) == []
        waiting = asyncio.create_task(broker.fetch("fila", limit=1, wait=60))
        await until(lambda: blocked(client))
        proxy.half_open()
        client.xadd("fila", {"mensagem": "x"})
        assert client.xpending("fila", "oraculo")["pending"] == 1
        proxy.heal()
        async with asyncio.timeout(DEADLINE_S):  # sooner than the lease ends
            (delivery,) = await waiting
        assert (delivery.body, delivery.redelivered) == (b"x", True)


async def test_a_lost_confirmation_is_told_apart_from_those_that_came(proxy: Proxy) -> None:
    async with opened(f"redis://127.0.0.1:{proxy.port}", confirm_timeout=0.5) as broker:
        await publish_confirmed(broker, messages("fila", (b"x",)))
        proxy.cut_after(200)
        batch = messages("fila", (b"%d" % n for n in range(50)))
        report = await broker.publish(batch)
        unconfirmed = list(report.unconfirmed)
        assert 0 < len(unconfirmed) < 50 and unconfirmed == batch[-len(unconfirmed) :]


async def test_cut_off_for_the_whole_wait_is_said_at_its_end(server: Server) -> None:
    async with opened(server) as broker:
        await publish_confirmed(broker, messages("fila", (b"x",)))
        await asyncio.to_thread(server.kill)
        await until(lambda: not broker.health().connected)
        with pytest.raises(BrokerUnavailableError):
            await broker.fetch("fila", limit=1, wait=0.3)
        with pytest.raises(BrokerUnavailableError):
            await broker.fetch("fila", limit=1, wait=0)
        assert broker.health().error
        waiting = asyncio.create_task(broker.fetch("fila", limit=1, wait=60))
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await waiting] == [b"x"]


async def test_a_server_that_was_emptied_is_used_on(server: Server) -> None:
    client = plain(server)
    async with opened(server) as broker:
        await publish_confirmed(broker, messages("fila", (b"a",)))
        (held,) = await take(broker, "fila", 1)
        waiting = asyncio.create_task(broker.fetch("fila", limit=1, wait=60))
        await until(lambda: blocked(client))
        client.flushall()
        await published(broker, messages("fila", (b"b",)))
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await waiting] == [b"b"]
        await ack(broker, [held])


TAKER = """
import asyncio, sys
from oraculo.adapters.brokers.redis_streams import RedisBroker
from oraculo.ports.broker import Settle, Settlement
async def main():
    broker = RedisBroker(sys.argv[1])
    taken = await broker.fetch("fila", limit=10, wait=10)
    if sys.argv[2] == "retry":
        await broker.settle([Settlement(delivery, Settle.RETRY, 600) for delivery in taken])
    print(len(taken), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("what", ["hold", "retry"])
async def test_what_a_dead_process_held_comes_to_another(server: Server, what: str) -> None:
    async with opened(server, lease=1) as broker:
        await publish_confirmed(broker, [Outgoing("fila", b"%d" % n, "", {"h": "1"}) for n in range(3)])
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", TAKER, f"{server.url}?lease=1", what, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            assert await process.stdout.readline() == b"3\n"
        assert await broker.fetch("fila", limit=10, wait=2) == []  # it is alive, and keeps what it holds
        process.send_signal(signal.SIGKILL)
        await process.communicate()
        again = await take(broker, "fila", 3)
        assert {d.body for d in again} == {b"0", b"1", b"2"}
        assert all(d.redelivered and d.headers == {"h": "1"} for d in again)


async def test_one_who_was_taken_for_dead_learns_that_others_have_its_messages(server: Server) -> None:
    client = plain(server)
    async with opened(server, lease=1) as broker:
        await publish_confirmed(broker, messages("fila", (b"x",)))
        (delivery,) = await take(broker, "fila", 1)
        client.xclaim("fila", "oraculo", "outro", 0, [delivery.tag[0]])
        source = broker._sources["fila"]
        await until(lambda: not source.held)
        await broker.settle([Settlement(delivery, Settle.RETRY)])
        assert [row["consumer"] for row in client.xpending_range("fila", "oraculo", "-", "+", 10)] == [b"outro"]


async def test_one_queue_whose_reader_was_disconnected_goes_on(server: Server) -> None:
    client = plain(server)
    async with opened(server) as broker:
        waiting = asyncio.create_task(broker.fetch("fila", limit=1, wait=60))
        (reader,) = await until(lambda: blocked(client))
        client.client_kill_filter(_id=reader["id"])
        await published(broker, messages("fila", (b"x",)))
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await waiting] == [b"x"]
        assert broker.health().reconnects == 0
