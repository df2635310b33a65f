"""What every broker with a server must bear: a server that dies and comes back, a network that fails, many messages.

Each technology has one server for this whole module, which the tests kill and restart, and a proxy in front of it.
Those of one technology run in one worker.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from itertools import count

import pytest

from acceptance.chaos import LONG
from contracts.plain_clients import CARELESS, PLAIN
from contracts.private_server import CONFIRM, WITHOUT_GROUPS, PrivateServer
from contracts.under_load import Load
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Broker, Delivery, Outgoing, Settlement, publish_confirmed
from servers import remark, use
from waiting import DEADLINE_S

# By thread: an adapter that spins swallows whatever a signal raises in it, and the run would never end.
pytestmark = pytest.mark.timeout(300, method="thread")

BROKERS = ("rabbitmq", "kafka", "redis", "nats")  # those that take longest first: then two workers end together
RECOVERY_TIMEOUT_S = 30.0  # within which everything works again, on a busy machine too
BOUND = CONFIRM + 9.0  # no publish takes longer, whatever happens; the machine may be busy
CALM = {"confirm_timeout": "60"}  # where the server is well, a busy machine is no reason to give up
OUTAGE = 3.5  # of the network; longer than a confirmation is waited for, and about as long as a heartbeat
OUTAGES = 5 if LONG else 2  # of the server, one after the other
NOTICED = 45.0  # seconds after which a dead connection is noticed at both ends and its messages are with others
RELEASE = {"kafka": 20.0}  # seconds after which what an idle consumer does not use is given to others
_queues = count(1)


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(f"server-{name}")) for name in BROKERS]
)
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    use(request.param)
    with PrivateServer(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@pytest.fixture
def server(kept: PrivateServer) -> PrivateServer:
    use(kept.name)
    kept.heal()
    return kept


@pytest.fixture
def queue() -> str:
    return f"duro_{os.getpid()}_{next(_queues)}"


@pytest.fixture
def say(server: PrivateServer, request: pytest.FixtureRequest) -> Callable[[object], None]:
    """A figure for the end of the run."""
    test = request.node.originalname.removeprefix("test_").replace("_", " ")
    return lambda what: remark(server.name, f"{test}: {what}")


async def take(broker: Broker, queue: str, count: int, within: float = RECOVERY_TIMEOUT_S) -> list[Delivery]:
    """Exactly `count` messages, settled."""
    taken: list[Delivery] = []
    try:
        async with asyncio.timeout(within):
            while len(taken) < count:
                deliveries = await broker.fetch(queue, limit=count - len(taken), wait=within)
                await broker.settle([Settlement(delivery) for delivery in deliveries])
                taken += deliveries
    except TimeoutError:
        raise AssertionError(f"{len(taken)} of {count} messages came within {within} s") from None
    return taken


async def publish_until_confirmed(broker: Broker, message: Outgoing) -> None:
    async with asyncio.timeout(RECOVERY_TIMEOUT_S):
        while True:
            try:
                return await publish_confirmed(broker, [message])
            except BrokerUnavailableError:
                await asyncio.sleep(0.05)


def resident() -> int:
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- all is well -------------------------------------------------------------------------------------------------------


async def test_a_large_backlog_arrives_once_and_is_never_in_memory(
    server: PrivateServer, stack: AsyncExitStack, queue: str, say: Callable[[object], None]
) -> None:
    total, body = 100_000, b"%06d" + b"x" * 294
    publisher, consumer = server.broker(stack, confirm_timeout=f"{DEADLINE_S:g}"), server.broker(stack)
    clock = asyncio.get_running_loop().time
    await consumer.fetch(queue, limit=1, wait=0)
    before, most = resident(), 0
    began = clock()
    for first in range(0, total, 1000):
        await publish_confirmed(
            publisher, [Outgoing(queue, body % n, f"{queue}-{n}") for n in range(first, first + 1000)]
        )
    published = clock()
    came = bytearray(total)
    left = total
    while left:
        deliveries = await consumer.fetch(queue, limit=500, wait=RECOVERY_TIMEOUT_S)
        assert deliveries, f"{left} of {total} are missing"
        for delivery in deliveries:
            assert len(delivery.body) == 300
            came[int(delivery.body[:6])] += 1
        await consumer.settle([Settlement(delivery) for delivery in deliveries])
        left -= len(deliveries)
        most = max(most, resident())
    taken = clock()
    say(
        f"{total / (published - began):,.0f}/s published, {total / (taken - published):,.0f}/s taken, "
        f"{(most - before) / 2**20:.0f} MiB more"
    )
    assert came == b"\x01" * total
    assert await consumer.fetch(queue, limit=1, wait=0) == []
    assert most - before < 64 * 2**20


async def test_two_groups_both_get_everything(server: PrivateServer, stack: AsyncExitStack, queue: str) -> None:
    if server.name in WITHOUT_GROUPS:
        pytest.skip(WITHOUT_GROUPS[server.name])
    one, other = server.broker(stack, **CALM), server.broker(stack, group="outro")
    for broker in (one, other):
        assert await broker.fetch(queue, limit=1, wait=0) == []  # both groups are there
    await publish_confirmed(one, [Outgoing(queue, b"%d" % n, f"{n}") for n in range(100)])
    for broker in (one, other):
        assert sorted(int(d.body) for d in await take(broker, queue, 100)) == list(range(100))


async def test_two_processes_share_the_messages(server: PrivateServer, stack: AsyncExitStack, queue: str) -> None:
    brokers = [server.broker(stack, **CALM), server.broker(stack)]
    for broker in brokers:
        assert await broker.fetch(queue, limit=1, wait=0) == []
    got: list[list[int]] = [[], []]
    complete = asyncio.Event()

    async def consume(number: int) -> None:
        while True:
            deliveries = await brokers[number].fetch(queue, limit=7, wait=RECOVERY_TIMEOUT_S)
            got[number] += [int(delivery.body) for delivery in deliveries]
            await brokers[number].settle([Settlement(delivery) for delivery in deliveries])
            if sum(map(len, got)) >= 500:
                complete.set()

    consumers = [asyncio.create_task(consume(number)) for number in (0, 1)]
    await publish_confirmed(brokers[0], [Outgoing(queue, b"%d" % n, f"{n}") for n in range(500)])
    try:
        async with asyncio.timeout(RECOVERY_TIMEOUT_S):
            await complete.wait()
    finally:
        for consumer in consumers:
            consumer.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)
    assert sorted(got[0] + got[1]) == list(range(500))


async def test_nothing_is_hoarded(server: PrivateServer, stack: AsyncExitStack, queue: str) -> None:
    idle, busy = server.broker(stack), server.broker(stack, **CALM)
    await publish_confirmed(busy, [Outgoing(queue, b"%d" % n, f"{n}") for n in range(50)])
    (held,) = await idle.fetch(queue, limit=1, wait=RECOVERY_TIMEOUT_S)
    rest = await take(busy, queue, 49, within=RELEASE.get(server.name, 5.0))
    assert sorted([int(held.body), *(int(delivery.body) for delivery in rest)]) == list(range(50))


async def test_plain_clients_may_send_any_headers(server: PrivateServer, stack: AsyncExitStack, queue: str) -> None:
    broker = server.broker(stack, **CALM)
    if server.name != "rabbitmq":  # there a plain worker declares its queue itself
        assert await broker.fetch(queue, limit=1, wait=0) == []
    body = bytes(range(256))
    await PLAIN[server.name](server.server, queue, body)
    for delivery in await take(broker, queue, 2):
        assert delivery.body == body
        assert all(isinstance(text, str) for pair in delivery.headers.items() for text in pair)
    assert await broker.fetch(queue, limit=1, wait=0) == []


async def test_a_quick_answer_waits_for_who_has_never_read(
    server: PrivateServer, stack: AsyncExitStack, queue: str
) -> None:
    broker, answers = server.broker(stack, **CALM), f"{queue}_respostas"
    broker.expect(answers)
    await publish_confirmed(broker, [Outgoing(queue, b"order", "1")])
    await CARELESS[server.name](server.server, answers, b"answer")
    assert [delivery.body for delivery in await take(server.broker(stack), answers, 2)] == [b"answer", b"answer"]


async def test_two_megabytes_arrive_whole_or_are_refused_alone(
    server: PrivateServer, stack: AsyncExitStack, queue: str, say: Callable[[object], None]
) -> None:
    broker = server.broker(stack, **CALM)
    small = [Outgoing(queue, b"%d" % n, f"{n}") for n in range(20)]
    large = Outgoing(queue, os.urandom(2 * 2**20), "large")
    wanted = [message.body for message in [*small, large]]
    report = await broker.publish([*small[:10], large, *small[10:]])
    assert not report.unconfirmed and not report.no_queue
    if report.refused:
        (refused,) = report.refused
        assert refused.message is large and refused.reason
        wanted.remove(large.body)
        say(f"refused: {refused.reason}")
    else:
        say("delivered")
    assert sorted(d.body for d in await take(broker, queue, len(wanted))) == sorted(wanted)
    await publish_confirmed(broker, [Outgoing(queue, b"after", "after")])
    assert [d.body for d in await take(broker, queue, 1)] == [b"after"]


# -- the network fails -------------------------------------------------------------------------------------------------


class TestNetwork:
    """The publisher goes through the proxy, and so does the consumer: a single one, whose silence nobody hides."""

    @pytest.fixture
    def load(self, server: PrivateServer, stack: AsyncExitStack, queue: str) -> Load:
        return Load(server.broker(stack, proxied=True), [server.broker(stack, proxied=True)], queue)

    async def test_a_black_hole(self, server: PrivateServer, load: Load, say: Callable[[object], None]) -> None:
        async with load:
            await load.goes_on(500, RECOVERY_TIMEOUT_S)
            server.proxy.black_hole()
            await load.fails(BOUND)
            await asyncio.sleep(OUTAGE)
            server.proxy.heal()
            await load.goes_on(500, RECOVERY_TIMEOUT_S)
            await load.ends(2 * RECOVERY_TIMEOUT_S)
        say(load)
        assert load.slowest < BOUND

    async def test_a_dead_connection_is_noticed_by_one_who_only_waits(
        self, server: PrivateServer, stack: AsyncExitStack, queue: str, say: Callable[[object], None]
    ) -> None:
        """Nothing tells the client that its connection is gone, and it sends nothing but signs of life."""
        consumer, other = server.broker(stack, proxied=True), server.broker(stack, **CALM)
        assert await consumer.fetch(queue, limit=1, wait=0) == []
        waiting = asyncio.create_task(consumer.fetch(queue, limit=10, wait=60))
        await asyncio.sleep(0.2)  # it waits at the server
        server.proxy.abandon()
        clock = asyncio.get_running_loop().time
        began = clock()
        await publish_confirmed(other, [Outgoing(queue, b"x", f"{queue}-x")])
        async with asyncio.timeout(NOTICED):
            assert {delivery.body for delivery in await waiting} == {b"x"}
        say(f"after {clock() - began:.0f} s")

    async def test_resets(self, server: PrivateServer, load: Load, say: Callable[[object], None]) -> None:
        async with load:
            for _ in range(5):
                await load.goes_on(200, RECOVERY_TIMEOUT_S)
                server.proxy.reset()
            await load.goes_on(500, RECOVERY_TIMEOUT_S)
            await load.ends(2 * RECOVERY_TIMEOUT_S)
        say(load)
        assert load.slowest < BOUND

    async def test_lost_answers(self, server: PrivateServer, load: Load, say: Callable[[object], None]) -> None:
        """What is sent arrives and is never confirmed."""
        async with load:
            await load.goes_on(500, RECOVERY_TIMEOUT_S)
            server.proxy.half_open()
            await load.fails(BOUND)
            await load.fails(BOUND)
            server.proxy.heal()
            await load.goes_on(500, RECOVERY_TIMEOUT_S)
            await load.ends(2 * RECOVERY_TIMEOUT_S)
        say(load)
        assert load.slowest < BOUND

    async def test_answers_cut_in_the_middle(
        self, server: PrivateServer, load: Load, say: Callable[[object], None]
    ) -> None:
        async with load:
            for rest in (1, 33, 1000):
                await load.goes_on(200, RECOVERY_TIMEOUT_S)
                server.proxy.cut_after(rest, reset=True)
            await load.goes_on(500, RECOVERY_TIMEOUT_S)
            await load.ends(2 * RECOVERY_TIMEOUT_S)
        say(load)
        assert load.slowest < BOUND


# -- the server dies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_a_server_that_ends_under_load(
    server: PrivateServer, stack: AsyncExitStack, queue: str, how: str, say: Callable[[object], None]
) -> None:
    publisher, *consumers = [server.broker(stack) for _ in range(3)]
    async with Load(publisher, consumers, queue) as load:
        await load.goes_on(500, RECOVERY_TIMEOUT_S)
        await (server.kill() if how == "killed" else server.stop())
        await server.start()
        await load.goes_on(500, RECOVERY_TIMEOUT_S)
        await load.ends(2 * RECOVERY_TIMEOUT_S)
    say(f"{how}: {load}")
    assert load.slowest < BOUND


async def test_publishing_during_an_outage_says_so_and_works_afterwards(
    server: PrivateServer, stack: AsyncExitStack, queue: str
) -> None:
    broker = server.broker(stack)
    await publish_confirmed(broker, [Outgoing(queue, b"before", "before")])
    await server.kill()
    for _ in range(3):
        message = Outgoing(queue, b"during", "during")
        async with asyncio.timeout(BOUND):
            report = await broker.publish([message])
        assert list(report.unconfirmed) == [message] and not report.refused
    assert not broker.health().connected
    await server.start()
    await publish_until_confirmed(broker, Outgoing(queue, b"after", "after"))
    assert {delivery.body for delivery in await take(broker, queue, 2)} == {b"before", b"after"}
    assert broker.health().connected


async def test_no_consumer_is_silent_after_an_outage(server: PrivateServer, stack: AsyncExitStack, queue: str) -> None:
    """One fetch waits from before the outage until a message comes after it, which somebody else sent."""
    consumer, other = server.broker(stack), server.broker(stack)
    assert await consumer.fetch(queue, limit=1, wait=0) == []
    waiting = asyncio.create_task(consumer.fetch(queue, limit=10, wait=60))
    for cycle in range(OUTAGES):
        await asyncio.sleep(0.2)  # it waits at the server
        await server.kill()
        await server.start()
        body = b"%d" % cycle
        await publish_until_confirmed(other, Outgoing(queue, body, f"{queue}-{cycle}"))
        async with asyncio.timeout(RECOVERY_TIMEOUT_S):
            bodies: set[bytes] = set()
            while (
                body not in bodies
            ):  # one from before may come again: the server died before it wrote that it is settled
                deliveries = await waiting
                bodies = {delivery.body for delivery in deliveries}
                assert all(int(one) <= cycle for one in bodies)
                await consumer.settle([Settlement(delivery) for delivery in deliveries])
                waiting = asyncio.create_task(consumer.fetch(queue, limit=10, wait=60))
    waiting.cancel()
