"""What every broker must do: at least once, in any order, nothing lost between taking and settling."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack

import pytest

from contracts.conftest import BrokerCase
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Broker, BrokerTraits, Delivery, Outgoing, Settle, Settlement, publish_confirmed
from waiting import DEADLINE_S, until


async def publish(broker: Broker, queue: str, *bodies: bytes) -> None:
    await publish_confirmed(broker, [Outgoing(queue, body, f"id-{n}") for n, body in enumerate(bodies)])


async def take(broker: Broker, queue: str, count: int) -> list[Delivery]:
    """Exactly `count` messages, in however many fetches."""
    taken: list[Delivery] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(taken) < count:
            taken += await broker.fetch(queue, limit=count - len(taken), wait=DEADLINE_S)
    return taken


async def ack(broker: Broker, deliveries: list[Delivery]) -> None:
    await broker.settle([Settlement(delivery) for delivery in deliveries])


class TestPublishAndFetch:
    async def test_what_is_published_is_delivered(self, broker: Broker, queue: str) -> None:
        await publish(broker, queue, b"a", b"b", b"c")
        taken = await take(broker, queue, 3)
        assert sorted(d.body for d in taken) == [b"a", b"b", b"c"]
        assert {d.queue for d in taken} == {queue}
        assert not any(d.redelivered for d in taken)

    async def test_publishing_nothing(self, broker: Broker) -> None:
        await publish_confirmed(broker, [])
        await broker.settle([])

    async def test_many_queues_in_one_call(self, broker_case: BrokerCase) -> None:
        one, two = broker_case.queue(), broker_case.queue()
        await publish_confirmed(broker_case.broker, [Outgoing(q, q.encode(), q) for q in (one, two, one)])
        assert [d.body for d in await take(broker_case.broker, one, 2)] == [one.encode()] * 2
        assert [d.body for d in await take(broker_case.broker, two, 1)] == [two.encode()]

    async def test_a_thousand_messages_arrive_once_each_when_all_is_well(self, broker: Broker, queue: str) -> None:
        await publish(broker, queue, *(b"%d" % n for n in range(1000)))
        taken = await take(broker, queue, 1000)
        await ack(broker, taken)
        assert {int(d.body) for d in taken} == set(range(1000)) and len(taken) == 1000
        assert await broker.fetch(queue, limit=1, wait=0) == []

    @pytest.mark.parametrize(
        "body",
        [
            b"", b"\x00", b"\x00" * 1000, b"\xff\xfe\xfd", bytes(range(256)), b"{", '{"é":"😀"}'.encode(), b"\r\n\r\n",
            b"x" * 65_536, random.Random(1).randbytes(1024 * 1024),
        ],
        ids=lambda body: f"{len(body)}-bytes-{body[:4].hex()}",
    )  # fmt: skip
    async def test_any_bytes_arrive_as_they_were(
        self, broker_case: BrokerCase, broker: Broker, queue: str, body: bytes
    ) -> None:
        if len(body) > 500_000:
            broker_case.real("it takes no large messages")
        await publish(broker, queue, body)
        (delivery,) = await take(broker, queue, 1)
        assert delivery.body == body

    async def test_headers_arrive(self, broker: Broker, queue: str) -> None:
        await publish_confirmed(broker, [Outgoing(queue, b"x", "id", {"motivo": "not_json", "origem": "fila"})])
        (delivery,) = await take(broker, queue, 1)
        assert {"motivo": "not_json", "origem": "fila"}.items() <= delivery.headers.items()

    async def test_never_more_than_asked_for(self, broker: Broker, queue: str) -> None:
        await publish(broker, queue, *(b"x" for _ in range(20)))
        assert 1 <= len(await broker.fetch(queue, limit=7, wait=DEADLINE_S)) <= 7


class TestWaiting:
    async def test_an_empty_queue_and_no_wait(self, broker: Broker, queue: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            assert await broker.fetch(queue, limit=10, wait=0) == []

    async def test_an_empty_list_when_the_wait_is_over(self, broker: Broker, queue: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            assert await broker.fetch(queue, limit=10, wait=0) == []  # it is connected now
            assert await broker.fetch(queue, limit=10, wait=0.05) == []

    async def test_a_message_ends_the_wait(self, broker: Broker, queue: str) -> None:
        waiting = asyncio.create_task(broker.fetch(queue, limit=10, wait=60))
        await asyncio.sleep(0)
        await publish(broker, queue, b"x")
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await waiting] == [b"x"]

    async def test_what_is_there_already_is_not_waited_for(self, broker: Broker, queue: str) -> None:
        await publish(broker, queue, b"x")
        async with asyncio.timeout(DEADLINE_S):
            assert len(await broker.fetch(queue, limit=100, wait=60)) == 1

    async def test_two_who_wait_get_one_message_each(self, broker: Broker, queue: str) -> None:
        waiting = [asyncio.create_task(broker.fetch(queue, limit=1, wait=60)) for _ in range(2)]
        await asyncio.sleep(0)
        await publish(broker, queue, b"a", b"b")
        async with asyncio.timeout(DEADLINE_S):
            got = [d.body for batch in await asyncio.gather(*waiting) for d in batch]
        assert sorted(got) == [b"a", b"b"]

    async def test_one_who_goes_away_loses_no_message_and_wakes_the_next(self, broker: Broker, queue: str) -> None:
        first = asyncio.create_task(broker.fetch(queue, limit=1, wait=60))
        await asyncio.sleep(0)
        second = asyncio.create_task(broker.fetch(queue, limit=1, wait=60))
        await asyncio.sleep(0)
        await publish(broker, queue, b"x")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        if not first.cancelled():
            second.cancel()  # it was quicker than the cancellation, which is fine
            return
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await second] == [b"x"]


class TestSettling:
    async def test_acknowledged_is_gone(self, broker_case: BrokerCase, queue: str) -> None:
        broker = broker_case.broker
        await publish(broker, queue, b"x")
        await ack(broker, await take(broker, queue, 1))
        await broker_case.lose_consumer(queue)
        assert await broker.fetch(queue, limit=1, wait=0) == []

    async def test_without_settlement_it_comes_again_and_says_so(self, broker_case: BrokerCase, queue: str) -> None:
        broker_case.real("it keeps no notes beside offsets")
        broker = broker_case.broker
        await publish(broker, queue, b"a", b"b", b"c")
        taken = await take(broker, queue, 3)
        await ack(broker, [d for d in taken if d.body == b"b"])
        await broker_case.lose_consumer(queue)
        again = await take(broker, queue, 2)
        assert sorted(d.body for d in again) == [b"a", b"c"]
        assert all(d.redelivered for d in again)

    async def test_it_comes_again_and_again_until_it_is_settled(self, broker_case: BrokerCase, queue: str) -> None:
        broker_case.real("it keeps no notes beside offsets")
        await publish(broker_case.broker, queue, b"x")
        for _ in range(5):
            (delivery,) = await take(broker_case.broker, queue, 1)
            await broker_case.lose_consumer(queue)
        (delivery,) = await take(broker_case.broker, queue, 1)
        await ack(broker_case.broker, [delivery])
        assert await broker_case.broker.fetch(queue, limit=1, wait=0) == []

    async def test_retry_gives_it_to_somebody_again(self, broker: Broker, queue: str) -> None:
        await publish_confirmed(broker, [Outgoing(queue, b"x", "id", {"h": "1"})])
        (delivery,) = await take(broker, queue, 1)
        await broker.settle([Settlement(delivery, Settle.RETRY)])
        (again,) = await take(broker, queue, 1)
        assert (again.body, again.redelivered, again.headers["h"]) == (b"x", True, "1")

    async def test_retry_with_a_delay_is_not_early(self, broker: Broker, queue: str) -> None:
        await publish(broker, queue, b"x")
        (delivery,) = await take(broker, queue, 1)
        clock = asyncio.get_running_loop().time
        before = clock()
        await broker.settle([Settlement(delivery, Settle.RETRY, 0.15)])
        assert await broker.fetch(queue, limit=1, wait=0) == []
        (again,) = await take(broker, queue, 1)
        assert again.body == b"x" and clock() - before >= 0.14

    async def test_settling_twice_does_no_harm(self, broker: Broker, queue: str) -> None:
        await publish(broker, queue, b"x", b"y")
        taken = await take(broker, queue, 2)
        await ack(broker, taken)
        await ack(broker, taken)
        await broker.settle([Settlement(taken[0], Settle.RETRY)])
        assert await broker.fetch(queue, limit=2, wait=0) == []

    async def test_one_call_may_settle_some_and_return_others(self, broker: Broker, queue: str) -> None:
        await publish(broker, queue, b"a", b"b")
        taken = {d.body: d for d in await take(broker, queue, 2)}
        await broker.settle([Settlement(taken[b"a"]), Settlement(taken[b"b"], Settle.RETRY)])
        assert [d.body for d in await take(broker, queue, 1)] == [b"b"]


async def test_competing_consumers_get_disjoint_messages_and_all_of_them(broker: Broker, queue: str) -> None:
    wanted = {b"%d" % n for n in range(300)}
    got: list[list[bytes]] = [[], [], []]
    left = len(wanted)
    everything = asyncio.Event()

    async def consume(number: int) -> None:
        nonlocal left
        while True:
            deliveries = await broker.fetch(queue, limit=7, wait=DEADLINE_S)
            got[number] += [d.body for d in deliveries]
            await ack(broker, deliveries)
            left -= len(deliveries)
            if left <= 0:
                everything.set()
            await asyncio.sleep(0)

    consumers = [asyncio.create_task(consume(n)) for n in range(3)]
    await publish(broker, queue, *wanted)
    async with asyncio.timeout(DEADLINE_S):
        await everything.wait()
    for consumer in consumers:
        consumer.cancel()
    await asyncio.gather(*consumers, return_exceptions=True)
    taken = [body for bodies in got for body in bodies]
    assert sorted(taken) == sorted(wanted)
    assert sum(1 for bodies in got if bodies) > 1


async def test_the_backlog_counts_who_consumes(broker: Broker, queue: str) -> None:
    if (await broker.backlog(queue)).consumers is None:
        pytest.skip("the broker cannot say")
    assert (await broker.backlog(queue)).consumers == 0
    asking = asyncio.create_task(broker.fetch(queue, limit=1, wait=DEADLINE_S))

    async def is_seen() -> bool:
        return (await broker.backlog(queue)).consumers == 1

    await until(is_seen)
    await publish_confirmed(broker, [Outgoing(queue, b"1", "")])
    await broker.settle([Settlement(one) for one in await asking])


async def test_the_backlog_counts_what_waits(broker: Broker, queue: str) -> None:
    if (await broker.backlog(queue)).waiting is None:
        pytest.skip("this broker cannot say how many messages wait")
    assert (await broker.backlog(queue)).waiting == 0
    await publish(broker, queue, b"a", b"b", b"c")
    assert (await broker.backlog(queue)).waiting == 3
    await ack(broker, await take(broker, queue, 3))
    assert (await broker.backlog(queue)).waiting == 0


async def test_a_full_broker_says_so_and_recovers(broker_case: BrokerCase, queue: str, stack: AsyncExitStack) -> None:
    broker = await broker_case.small(stack, 100)
    if broker is None:
        pytest.skip("the capacity of this broker is the server's affair")
    await publish(broker, queue, b"x" * 60)
    both = [Outgoing(queue, b"y" * 30, ""), Outgoing(queue + "_2", b"z" * 30, "")]
    report = await broker.publish(both)  # as much as fits: of a queue that holds much, nothing
    assert list(report.no_room) == both[:1] and not report.unconfirmed and not report.refused
    assert (await broker.backlog(queue)).waiting == 1
    await ack(broker, await take(broker, queue + "_2", 1))
    (refusal,) = (await broker.publish([Outgoing(queue, b"x" * 101, "")])).refused
    assert "101 bytes" in refusal.reason
    taken = await take(broker, queue, 1)
    with pytest.raises(BrokerUnavailableError):
        await publish(broker, queue, b"y" * 60)  # taken is not settled: it may come back
    await ack(broker, taken)
    await publish(broker, queue, b"y" * 60)
    assert [d.body for d in await take(broker, queue, 1)] == [b"y" * 60]


async def test_it_says_who_it_is(broker: Broker) -> None:
    assert broker.scheme and isinstance(broker.traits, BrokerTraits)
    assert await broker.durability() in ("power-safe", "crash-safe", "best-effort")
    if broker.traits.volatile:
        assert await broker.durability() == "best-effort"
