"""NATS JetStream when things break: the server is killed or frozen, the network swallows everything, a process dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tools.servers.nats import Nats
from tools.servers.proxy import Proxy

from oraculo.adapters.brokers.nats_jetstream import NatsBroker
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Outgoing, Settlement, publish_confirmed
from servers import own
from waiting import DEADLINE_S, until

HOLDER = """
import asyncio, sys
from oraculo.adapters.brokers.nats_jetstream import NatsBroker

async def hold() -> None:
    broker = NatsBroker(sys.argv[1])
    print(len(await broker.fetch("q", limit=10, wait=30)), flush=True)
    await asyncio.sleep(600)

asyncio.run(hold())
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Nats]:
    with own("nats", tmp_path) as server:
        assert isinstance(server, Nats)
        yield server


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[NatsBroker]:
    broker = NatsBroker(url)
    try:
        yield broker
    finally:
        await broker.close()


async def until_published(broker: NatsBroker, queue: str, body: bytes, identity: str = "") -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                return await publish_confirmed(broker, [Outgoing(queue, body, identity)])
            except BrokerUnavailableError:
                await asyncio.sleep(0.05)


async def drain(broker: NatsBroker, queue: str, wanted: set[bytes]) -> list[bytes]:
    """Until all that is wanted came."""
    got: list[bytes] = []
    async with asyncio.timeout(DEADLINE_S):
        while not wanted <= set(got):
            with contextlib.suppress(BrokerUnavailableError):
                deliveries = await broker.fetch(queue, limit=50, wait=1)
                await broker.settle([Settlement(delivery) for delivery in deliveries])
                got += [delivery.body for delivery in deliveries]
    return got


async def test_a_server_killed_while_publishing_loses_nothing_that_was_confirmed(server: Nats) -> None:
    confirmed: list[bytes] = []
    over = False

    async def send(broker: NatsBroker, sender: int) -> None:
        number = 0
        while not over:
            number += 1
            left = [Outgoing("q", b"%d-%d-%d" % (sender, number, n), f"{sender}-{number}-{n}") for n in range(20)]
            bodies = [message.body for message in left]
            while left:
                left = list((await broker.publish(left)).unconfirmed)
                if left:
                    await asyncio.sleep(0.02)
            confirmed.extend(bodies)

    async with opened(server.url) as broker:
        sending = [asyncio.create_task(send(broker, sender)) for sender in range(3)]
        for _ in range(3):
            enough = len(confirmed) + 500
            await until(lambda enough=enough: len(confirmed) >= enough)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        over = True
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*sending)
        assert broker.health().reconnects >= 2
        got = await drain(broker, "q", set(confirmed))
        assert sorted(got) == sorted(confirmed)  # sent again with the same id, and taken once


async def test_a_server_killed_while_consuming_loses_nothing(server: Nats) -> None:
    wanted = {b"%d" % n for n in range(500)}
    async with opened(f"{server.url}?lease=1") as broker:
        await publish_confirmed(broker, [Outgoing("q", body, "") for body in wanted])
        draining = asyncio.create_task(drain(broker, "q", wanted))
        await asyncio.sleep(0)
        for _ in range(2):
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await draining


async def test_a_fetch_waits_through_a_restart(server: Nats) -> None:
    async with opened(server.url) as broker, opened(server.url) as other:
        assert await broker.fetch("q", limit=1, wait=0) == []
        waiting = asyncio.create_task(broker.fetch("q", limit=1, wait=60))
        await asyncio.sleep(0)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await until_published(other, "q", b"x")
        async with asyncio.timeout(DEADLINE_S):
            assert [delivery.body for delivery in await waiting] == [b"x"]


async def test_without_a_server_everything_fails_fast_and_says_why(server: Nats) -> None:
    clock = asyncio.get_running_loop().time
    async with opened(server.url) as broker:
        await publish_confirmed(broker, [Outgoing("q", b"x", "")])
        server.kill()
        await until(lambda: not broker.health().connected)
        begin = clock()
        for attempt in (
            lambda: publish_confirmed(broker, [Outgoing("q", b"x", "")]),
            lambda: broker.fetch("q", limit=1, wait=0),
            lambda: broker.backlog("q"),
            lambda: broker.durability(),
        ):
            with pytest.raises(BrokerUnavailableError):
                await attempt()
        assert clock() - begin < 2.0
        with pytest.raises(BrokerUnavailableError):
            await broker.fetch("q", limit=1, wait=0.3)
        assert clock() - begin >= 0.3
        await broker.settle([])
        await broker.reset()
        assert broker.health().error


async def test_a_frozen_server(server: Nats) -> None:
    clock = asyncio.get_running_loop().time
    async with opened(f"{server.url}?confirm_timeout=0.5") as broker:
        await publish_confirmed(broker, [Outgoing("q", b"before", "")])
        server.freeze()
        try:
            begin = clock()
            report = await broker.publish([Outgoing("q", b"x" * 100_000, "") for _ in range(100)])
            assert clock() - begin < 5.0
            assert len(report.unconfirmed) == 100
        finally:
            server.thaw()
        await until_published(broker, "q", b"after")
        assert {b"before", b"after"} <= set(await drain(broker, "q", {b"before", b"after"}))


async def test_a_network_that_swallows_everything_is_noticed_by_who_only_waits(server: Nats) -> None:
    with Proxy(server.port) as proxy:
        async with opened(f"nats://127.0.0.1:{proxy.port}") as broker, opened(server.url) as other:
            assert await broker.fetch("q", limit=1, wait=0) == []
            waiting = asyncio.create_task(broker.fetch("q", limit=1, wait=60))
            proxy.black_hole()
            await until(lambda: not broker.health().connected)
            proxy.heal()
            await publish_confirmed(other, [Outgoing("q", b"x", "")])
            async with asyncio.timeout(DEADLINE_S):
                assert [delivery.body for delivery in await waiting] == [b"x"]


async def test_the_messages_of_a_process_that_died_come_to_another(server: Nats) -> None:
    url = f"{server.url}?lease=1"
    async with opened(url) as broker:
        await publish_confirmed(broker, [Outgoing("q", b"%d" % n, "") for n in range(3)])
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDER, url, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        held = int(await asyncio.wait_for(process.stdout.readline(), DEADLINE_S))
        assert held == 3
        assert await broker.fetch("q", limit=10, wait=0) == []
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        assert sorted(await drain(broker, "q", {b"0", b"1", b"2"})) == [b"0", b"1", b"2"]


async def test_closing_in_the_middle_of_everything_leaves_nothing_behind(server: Nats) -> None:
    before = asyncio.all_tasks()
    broker = NatsBroker(server.url)
    verbs = [asyncio.create_task(broker.fetch("q", limit=1, wait=60)) for _ in range(3)]
    verbs += [asyncio.create_task(publish_confirmed(broker, [Outgoing("p", b"x", "")])) for _ in range(3)]
    await asyncio.sleep(0.01)
    await broker.close()
    await broker.close()
    async with asyncio.timeout(DEADLINE_S):
        outcomes = await asyncio.gather(*verbs, return_exceptions=True)
    assert all(outcome is None or isinstance(outcome, BrokerUnavailableError) for outcome in outcomes)
    assert asyncio.all_tasks() == before
    with pytest.raises(BrokerUnavailableError):
        await publish_confirmed(broker, [Outgoing("p", b"x", "")])


async def test_closing_at_any_moment_of_connecting_ends(server: Nats) -> None:
    """A cancellation that the client swallows must not leave anybody waiting."""
    before = asyncio.all_tasks()
    for moment in range(60):
        broker = NatsBroker(server.url)
        verb = asyncio.create_task(publish_confirmed(broker, [Outgoing("p", b"x", "")]))
        await asyncio.sleep(moment * 0.0002)
        async with asyncio.timeout(DEADLINE_S):
            await broker.close()
            await asyncio.gather(verb, return_exceptions=True)
        assert asyncio.all_tasks() == before
