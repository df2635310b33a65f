"""What is peculiar to Kafka: partitions that move while messages of them are held, single messages settled in any
order, names and sizes that a topic does not take. On a real server, apart from what needs none."""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest
from hypothesis import given
from hypothesis import strategies as st
from tools.servers import kafka_jars
from tools.servers.kafka import Kafka, MockKafka

from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.adapters.brokers.kafka import consume as queue_module
from oraculo.adapters.brokers.kafka.assignor import MemberState, News, share
from oraculo.adapters.brokers.kafka.client_internals import ended, start
from oraculo.adapters.brokers.kafka.ledger import Ledger
from oraculo.adapters.brokers.kafka.url import parse
from oraculo.errors import BrokerError, BrokerUnavailableError, SettingsError
from oraculo.ports.broker import Broker, Delivery, Outgoing, Settle, Settlement, publish_confirmed
from servers import class_of, own, shared, use
from waiting import DEADLINE_S, until


def some_queue() -> str:
    return f"teste_{secrets.token_hex(8)}"


def messages(queue: str, count: int, first: int = 0) -> list[Outgoing]:
    return [Outgoing(queue, b"%d" % n, f"id-{n}") for n in range(first, first + count)]


async def take(broker: Broker, queue: str, count: int, within: float = DEADLINE_S) -> list[Delivery]:
    taken: list[Delivery] = []
    async with asyncio.timeout(within):
        while len(taken) < count:
            taken += await broker.fetch(queue, limit=count - len(taken), wait=within)
    return taken


async def ack(broker: Broker, deliveries: list[Delivery]) -> None:
    await broker.settle([Settlement(delivery) for delivery in deliveries])


async def publish_until_confirmed(broker: Broker, left: Sequence[Outgoing]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while left:
            left = (await broker.publish(left)).unconfirmed


def bodies(deliveries: list[Delivery]) -> list[int]:
    return sorted(int(delivery.body) for delivery in deliveries)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


def opened(stack: AsyncExitStack, url: str) -> KafkaBroker:
    broker = KafkaBroker(url)
    stack.push_async_callback(broker.close)
    return broker


# -- the ledger --------------------------------------------------------------------------------------------------------


class TestLedger:
    def test_the_offset_is_that_of_the_lowest_message_that_is_not_settled(self) -> None:
        ledger = Ledger(0, 10)
        for offset in range(10, 15):
            ledger.take(offset)
            ledger.hand_out(offset)
        assert ledger.word()[0] == 10
        ledger.settle(11)
        ledger.settle(10)
        assert ledger.word()[0] == 12
        for offset in (14, 13, 12):
            ledger.settle(offset)
        assert ledger.word()[0] == 15

    def test_settling_twice_or_what_was_given_back_does_nothing(self) -> None:
        ledger = Ledger(0, 0)
        ledger.take(0)
        assert not ledger.settle(0)  # nobody has it
        assert ledger.hand_out(0) and not ledger.hand_out(0)
        assert ledger.give_back(0) and not ledger.settle(0)
        assert ledger.hand_out(0) and ledger.settle(0) and not ledger.settle(0)
        assert ledger.held == 0

    def test_a_note_of_somebody_else_says_nothing(self) -> None:
        for note in ("", "x", "oraculo1", "oraculo1;", "oraculo1;x;1,2", "oraculo9;3;0,1", ";;;", "oraculo1;2;@,;,;1,"):
            ledger = Ledger(0, 5, note)
            assert ledger.take(5)

    @given(st.lists(st.integers(0, 60), max_size=60), st.integers(0, 60), st.integers(1, 60), st.integers(0, 3000))
    def test_whoever_comes_next_gets_all_that_is_not_settled_and_little_else(
        self, settled: list[int], handed: int, taken: int, room: int
    ) -> None:
        """Whatever the order, wherever the note is cut off, and again after another handover."""
        ledger = Ledger(0, 100)
        for offset in range(100, 100 + taken):
            ledger.take(offset)
        for offset in range(100, 100 + min(handed, taken)):
            ledger.hand_out(offset)
        done = {100 + n for n in settled if ledger.settle(100 + n)}
        left = set(range(100, 160)) - done
        for _ in range(2):
            word = ledger.word(room)
            ledger = Ledger(0, *word)
            again = {offset for offset in range(word[0], 160) if ledger.take(offset)}
            assert left <= again
            assert room < 1000 or again == left
            assert all(offset < ledger.seen for offset in again if offset < 100 + min(handed, taken))
            ledger = Ledger(0, *word)

    def test_a_message_that_waits_for_its_time_waits_for_the_next_owner_too(self) -> None:
        ledger = Ledger(0, 0)
        for offset in range(3):
            ledger.take(offset)
            ledger.hand_out(offset)
        ledger.postpone(1, 1234.5)
        ledger.settle(2)
        heir = Ledger(0, *ledger.word())
        assert [heir.take(offset) for offset in range(3)] == [True, True, False]
        assert [heir.due(offset) for offset in range(2)] == [0.0, 1234.5]

    def test_messages_in_other_hands_are_parked_until_they_are_let_go(self) -> None:
        ledger = Ledger(0, 0)
        assert ledger.told(frozenset({1, 2})) == []
        kept = [Delivery("q", b"", (ledger, n)) for n in range(3)]
        assert [ledger.take(n) and ledger.park(n, kept[n]) for n in range(3)] == [False, True, True]
        assert ledger.waiting(0, 3) == 1
        ledger.drop(1)  # settled there
        assert ledger.told(frozenset()) == [kept[2]] and kept[2].redelivered
        assert ledger.hand_out(2) and not ledger.hand_out(1)


class TestSharing:
    @given(
        st.sets(st.integers(0, 30)),
        st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 30))), min_size=1, max_size=6),
    )
    def test_every_partition_goes_to_one_member_and_evenly(
        self, partitions: set[int], members: list[tuple[bool, set[int]]]
    ) -> None:
        stakes = {f"m{n}": MemberState(has=frozenset(has), wants=wants) for n, (wants, has) in enumerate(members)}
        given_ = share(partitions, stakes)
        assert sorted(number for some in given_.values() for number in some) == sorted(partitions)
        takers = [member for member, stake in stakes.items() if stake.wants] or list(stakes)
        sizes = [len(given_[member]) for member in takers]
        assert max(sizes) - min(sizes) <= 1
        assert all(not given_[member] for member in stakes if member not in takers)

    def test_partitions_stay_where_they_are_when_that_is_even(self) -> None:
        stakes = {"a": MemberState(has=frozenset({1, 3})), "b": MemberState(has=frozenset({0, 2}))}
        assert share(range(4), stakes) == {"a": [1, 3], "b": [0, 2]}

    def test_what_is_said_is_understood_and_what_is_not_ours_is_ignored(self) -> None:
        stake = MemberState({1: [5, 6]}, {2: [7]}, frozenset({1}), False)
        assert MemberState.read(stake.write()) == stake
        for odd in (None, b"", b"\xff", b"[]", b'{"held":3}', b'{"held":{"x":[1]},"done":{},"has":[],"wants":1}'):
            assert MemberState.read(odd) == MemberState() and News.read(odd) == News()

    def test_an_owner_hears_of_its_own_partitions_only(self) -> None:
        news = News.of([1], [MemberState({1: [5], 2: [6]}, {1: [4]}), MemberState({1: [9]})])
        assert News.read(news.write()) == News({1: [5, 9]}, {1: [4]})


# -- the URL -----------------------------------------------------------------------------------------------------------


class TestUrl:
    def test_all_of_it(self) -> None:
        options = parse("kafka://ana:s%40@one?servers=two:9093+three&group=g&partitions=3&replication=2&lease=20&tls=1")
        assert options.servers == ("one:9092", "two:9093", "three:9092")
        assert (options.user, options.password, options.group, options.partitions) == ("ana", "s@", "g", 3)
        assert options.connection()["security_protocol"] == "SASL_SSL"
        assert "s@" not in options.where

    @pytest.mark.parametrize(
        "rest",
        [
            "?nothing=1", "?partitions=0", "?partitions=x", "?replication=0", "?lease=0", "?confirm_timeout=0",
            "?group=", "?group=a%20b", "/path", "?tls=2", "?sasl=GSSAPI", "?max_message=1", "?servers=a:b",
            "?servers=", "#x", "?group=a&group=b",
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_said_without_the_password(self, rest: str) -> None:
        with pytest.raises(SettingsError) as raised:
            KafkaBroker(f"kafka://ana:segredo@host:9092{rest}")
        assert raised.value.variable == "ORACULO_BROKER" and "segredo" not in str(raised.value)

    @pytest.mark.parametrize("url", ["kafka://", "kafka://host:99999", "amqp://host", "kafka:///x"])
    def test_no_host(self, url: str) -> None:
        with pytest.raises(SettingsError):
            KafkaBroker(url)


# -- names and sizes ---------------------------------------------------------------------------------------------------


async def test_a_name_that_kafka_does_not_allow_is_refused_alone(stack: AsyncExitStack) -> None:
    broker, queue = opened(stack, shared("kafka")), some_queue()
    for name in ("não", "a b", "x" * 250, "", "..", "a/b"):
        bad = Outgoing(name, b"x", "bad")
        report = await broker.publish([*messages(queue, 1), bad])
        assert not report.unconfirmed
        (refused,) = report.refused
        assert refused.message is bad and refused.reason
        with pytest.raises(BrokerError):
            await broker.fetch(name, limit=1, wait=DEADLINE_S)
        assert (await broker.backlog(name)).waiting == 0
    assert (await broker.backlog(queue)).waiting == 6


async def test_a_message_that_its_topic_does_not_take_is_refused_alone(stack: AsyncExitStack) -> None:
    broker, queue = opened(stack, shared("kafka")), some_queue()
    async with _admin(shared("kafka")) as admin:
        await admin.create_topics([NewTopic(queue, 2, 1, topic_configs={"max.message.bytes": "20000"})])
    large = Outgoing(queue, b"x" * 20_000, "large")
    fits = Outgoing(queue, b"7" * 19_000, "fits")
    report = await broker.publish([*messages(queue, 50), large, fits])
    assert not report.unconfirmed and [one.message for one in report.refused] == [large]
    await publish_confirmed(
        broker, [Outgoing(queue, b"8" * 500, str(n)) for n in range(200)]
    )  # more than one batch may have
    taken = await take(broker, queue, 251)
    assert sorted(len(d.body) for d in taken)[-2:] == [500, 19_000]


async def test_headers_and_keys_of_plain_clients(stack: AsyncExitStack) -> None:
    broker, queue = opened(stack, shared("kafka")), some_queue()
    assert await broker.fetch(queue, limit=1, wait=0) == []
    consumer = AIOKafkaConsumer(queue, bootstrap_servers=_address(shared("kafka")), auto_offset_reset="earliest")
    async with consumer:
        await publish_confirmed(broker, [Outgoing(queue, b"x", "um-id", {"traceparent": "00-ab", "é": "ü"})])
        record = await asyncio.wait_for(consumer.getone(), DEADLINE_S)
    assert (record.key, record.value) == (b"um-id", b"x")
    assert dict(record.headers) == {"traceparent": b"00-ab", "é": "ü".encode()}


async def test_a_backlog_does_not_make_the_topic(stack: AsyncExitStack) -> None:
    broker, queue = opened(stack, shared("kafka")), some_queue()
    assert (await broker.backlog(queue)).waiting == 0
    async with _admin(shared("kafka")) as admin:
        assert queue not in await admin.list_topics()


async def test_messages_go_to_all_partitions_even_one_by_one(stack: AsyncExitStack) -> None:
    broker, queue = opened(stack, shared("kafka") + "?partitions=4"), some_queue()
    for n in range(8):
        await publish_confirmed(broker, messages(queue, 1, n))
    taken = await take(broker, queue, 8)
    assert sorted(delivery.tag[0].partition for delivery in taken) == [0, 0, 1, 1, 2, 2, 3, 3]


async def test_many_who_publish_single_messages_at_once_share_batches(stack: AsyncExitStack) -> None:
    broker, queue = opened(stack, shared("kafka")), some_queue()
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(publish_confirmed(broker, [message]) for message in messages(queue, 500)))
    assert bodies(await take(broker, queue, 500)) == list(range(500))


# -- partitions move ---------------------------------------------------------------------------------------------------


async def test_whoever_takes_over_gets_only_what_is_not_settled(stack: AsyncExitStack) -> None:
    """Also where the first message of a partition was never settled and all later ones were."""
    queue = some_queue()
    first = opened(stack, shared("kafka") + "?partitions=2")
    await publish_confirmed(first, messages(queue, 100))
    taken = await take(first, queue, 100)
    held = {min((d for d in taken if d.tag[0].partition == n), key=lambda d: d.tag[1]).body for n in (0, 1)}
    await ack(first, [delivery for delivery in taken if delivery.body not in held])
    await first.close()
    second = opened(stack, shared("kafka"))
    again = await take(second, queue, 2)
    assert {delivery.body for delivery in again} == held and all(delivery.redelivered for delivery in again)
    await ack(second, again)
    await publish_confirmed(second, messages(queue, 1, 100))
    assert bodies(await take(second, queue, 1)) == [100]


async def test_slow_work_stays_with_who_does_it_when_others_come(stack: AsyncExitStack) -> None:
    """The newcomer gets partitions, and all of their messages but those that are being worked on."""
    queue = some_queue()
    slow, quick = opened(stack, shared("kafka")), opened(stack, shared("kafka"))
    await publish_confirmed(slow, [Outgoing(queue, b"%d" % n, f"id-{n}", key=str(n)) for n in range(60)])
    held: list[Delivery] = []
    while len({delivery.tag[0].partition for delivery in held}) < 4:  # of six: whichever three go, some are of these
        held += await take(slow, queue, 1)
    got = await take(quick, queue, 1)  # now both have partitions, and neither has all that it holds messages of
    await ack(quick, got)
    assert {delivery.tag[0].partition for delivery in held} & set(quick._queues[queue].ownership.ledgers)
    async with asyncio.timeout(DEADLINE_S):
        while len(held + got) < 60:
            for broker in (quick, slow):
                some = await broker.fetch(queue, limit=30, wait=0.2)
                await ack(broker, some)
                got += some
    assert bodies(held + got) == list(range(60))
    await ack(slow, held)
    await _settled(stack, queue, slow, quick)


async def test_what_a_process_lets_go_of_goes_to_the_new_owner(stack: AsyncExitStack) -> None:
    queue = some_queue()
    slow, quick = opened(stack, shared("kafka")), opened(stack, shared("kafka"))
    await publish_confirmed(slow, messages(queue, 12))
    held = await take(slow, queue, 12)
    assert await quick.fetch(queue, limit=1, wait=0.2) == []
    await until(lambda: _partitions(quick, queue))
    await slow.settle([Settlement(delivery, Settle.RETRY) for delivery in held])
    again: list[Delivery] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(again) < 12:
            for broker in (quick, slow):
                some = await broker.fetch(queue, limit=12, wait=0.2)
                await ack(broker, some)
                again += some
    assert bodies(again) == list(range(12)) and all(delivery.redelivered for delivery in again)
    assert {delivery.tag[0] for delivery in again} & set(quick._queues[queue].ownership.ledgers.values())


async def test_a_delay_is_kept_by_the_next_owner(stack: AsyncExitStack) -> None:
    queue = some_queue()
    first, second = opened(stack, shared("kafka")), opened(stack, shared("kafka"))
    await publish_confirmed(first, messages(queue, 1))
    (delivery,) = await take(first, queue, 1)
    due = time.time() + 3.0
    await first.settle([Settlement(delivery, Settle.RETRY, 3.0)])
    await first.close()
    (again,) = await take(second, queue, 1)
    assert time.time() >= due - 0.1 and again.redelivered


async def test_the_messages_of_a_process_that_is_killed_come_to_another(stack: AsyncExitStack) -> None:
    queue, url = some_queue(), shared("kafka") + "?lease=6"
    survivor = opened(stack, url)
    await publish_confirmed(survivor, messages(queue, 20))
    script = (
        "import asyncio, sys\n"
        "from oraculo.adapters.brokers.kafka import KafkaBroker\n"
        "async def main():\n"
        "    broker, taken = KafkaBroker(sys.argv[1]), []\n"
        "    while len(taken) < 20:\n"
        "        taken += await broker.fetch(sys.argv[2], limit=20, wait=10)\n"
        "    print('taken', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, url, queue], stdout=subprocess.PIPE) as victim:  # noqa: ASYNC220
        assert victim.stdout is not None
        assert await asyncio.to_thread(victim.stdout.readline) == b"taken\n"
        waiting = asyncio.create_task(take(survivor, queue, 20, within=DEADLINE_S))
        await until(lambda: _partitions(survivor, queue))
        victim.kill()
        again = await waiting
    assert bodies(again) == list(range(20)) and all(delivery.redelivered for delivery in again)


async def test_who_does_not_fetch_leaves_the_group(stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "IDLE_TIMEOUT_S", 0.5)
    monkeypatch.setattr(queue_module, "TEND_INTERVAL_S", 0.1)
    queue = some_queue()
    broker = opened(stack, shared("kafka"))
    await publish_confirmed(broker, messages(queue, 3))
    await ack(broker, await take(broker, queue, 3))
    await until(lambda: broker._queues[queue]._consumer is None)
    assert (await broker.backlog(queue)).waiting == 0
    await publish_confirmed(broker, messages(queue, 3))
    assert (await broker.backlog(queue)).waiting == 3
    assert bodies(await take(broker, queue, 3)) == [0, 1, 2]


async def test_a_plain_consumer_may_share_the_work(stack: AsyncExitStack) -> None:
    """A member of the same group that shares by round robin, as many clients do by default."""
    broker, queue = opened(stack, shared("kafka") + "?partitions=4"), some_queue()
    assert await broker.fetch(queue, limit=1, wait=0) == []
    plain = AIOKafkaConsumer(
        queue, bootstrap_servers=_address(shared("kafka")), group_id=f"oraculo.{queue}", auto_offset_reset="earliest"
    )
    async with plain:
        await publish_confirmed(broker, messages(queue, 40))
        ours: list[int] = []
        theirs: list[int] = []
        async with asyncio.timeout(DEADLINE_S):
            while len(ours) + len(theirs) < 40:
                some = await broker.fetch(queue, limit=40, wait=0.2)
                await ack(broker, some)
                ours += bodies(some)
                for records in (await plain.getmany(timeout_ms=100)).values():
                    theirs += [int(record.value) for record in records]
        assert ours and theirs and sorted(ours + theirs) == list(range(40))


async def test_a_topic_that_is_deleted_is_made_anew_and_read(stack: AsyncExitStack) -> None:
    broker, queue = opened(stack, shared("kafka")), some_queue()
    await publish_confirmed(broker, messages(queue, 60))
    await ack(broker, await take(broker, queue, 60))
    async with _admin(shared("kafka")) as admin:
        await admin.delete_topics([queue])
        while queue in await admin.list_topics():
            pass
    await publish_until_confirmed(broker, messages(queue, 12))
    async with asyncio.timeout(DEADLINE_S):
        while 99 not in bodies(await broker.fetch(queue, limit=100, wait=1)):
            await publish_until_confirmed(broker, messages(queue, 1, 99))


async def test_a_partition_that_begins_anew_is_read_from_its_beginning(stack: AsyncExitStack) -> None:
    broker = opened(stack, "kafka://127.0.0.1:1")
    with pytest.raises(BrokerUnavailableError):
        await broker.fetch("q", limit=1, wait=0.01)
    queue = broker._queues["q"]
    queue.ownership.gain(0, (10, ""), News())
    queue._serving.set()
    at, record = TopicPartition("q", 0), SimpleNamespace(value=b"x", headers=())
    queue._store({at: [SimpleNamespace(offset=10, **vars(record))]})
    (old,) = await broker.fetch("q", limit=1, wait=0)
    queue._store({at: [SimpleNamespace(offset=offset, **vars(record)) for offset in (0, 1)]})
    new = await broker.fetch("q", limit=5, wait=0)
    assert [delivery.tag[1] for delivery in new] == [0, 1]
    await ack(broker, [old, *new])
    assert queue.ownership.ledgers[0].word()[0] == 2
    queue._serving.clear()


async def test_random_consumers_come_and_go_and_nothing_is_lost(stack: AsyncExitStack) -> None:
    """Messages are settled in any order, retried, or left; members join and leave; somebody settles each message."""
    queue, chance = some_queue(), random.Random(7)
    publisher = opened(stack, shared("kafka"))
    await publish_confirmed(publisher, messages(queue, 300))
    settled: set[int] = set()

    async def consume() -> None:
        broker = KafkaBroker(shared("kafka"))
        try:
            for _ in range(chance.randrange(3, 8)):
                some = await broker.fetch(queue, limit=chance.randrange(1, 60), wait=1)
                chance.shuffle(some)
                done = some[: chance.randrange(len(some) + 1)]
                await ack(broker, done)
                settled.update(bodies(done))
                retried = [Settlement(d, Settle.RETRY, chance.choice((0.0, 0.2))) for d in some[len(done) :: 2]]
                await broker.settle(retried)
        finally:
            await broker.close()

    async with asyncio.timeout(DEADLINE_S):
        while len(settled) < 300:
            await asyncio.gather(consume(), consume())
    assert settled == set(range(300))
    assert await publisher.fetch(queue, limit=1, wait=0) == []


# -- a server of our own -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    use("kafka")
    with own("kafka", tmp_path_factory.mktemp("own")) as server:
        assert isinstance(server, Kafka)
        yield server


@pytest.mark.xdist_group("own-kafka")
class TestOwnServer:
    async def test_a_frozen_server_is_noticed_and_comes_back(self, private: Kafka, stack: AsyncExitStack) -> None:
        broker, queue = opened(stack, private.url + "?confirm_timeout=1"), some_queue()
        await publish_until_confirmed(broker, messages(queue, 1))
        await ack(broker, await take(broker, queue, 1))
        private.freeze()
        try:
            async with asyncio.timeout(DEADLINE_S):
                report = await broker.publish(messages(queue, 3))
            assert len(report.unconfirmed) == 3
            assert not broker.health().connected and broker.health().error
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(BrokerUnavailableError):
                    await publish_confirmed(broker, messages(queue, 3))
                with pytest.raises(BrokerUnavailableError):
                    await broker.fetch(queue, limit=1, wait=0.1)
        finally:
            private.thaw()
        async with asyncio.timeout(DEADLINE_S):
            await publish_until_confirmed(broker, messages(queue, 1, 10))
            while 10 not in bodies(await broker.fetch(queue, limit=100, wait=DEADLINE_S)):
                pass
        assert broker.health().connected and broker.health().reconnects > 0

    async def test_closing_while_the_server_is_frozen(self, private: Kafka) -> None:
        broker, queue = KafkaBroker(private.url + "?confirm_timeout=1"), some_queue()
        await publish_until_confirmed(broker, messages(queue, 1))
        await take(broker, queue, 1)
        private.freeze()
        try:
            async with asyncio.timeout(DEADLINE_S):
                await broker.close()
        finally:
            private.thaw()

    async def test_durability_is_what_the_settings_say(self, private: Kafka, stack: AsyncExitStack) -> None:
        broker = opened(stack, private.url)
        assert await broker.durability() == "crash-safe"
        for wanted, settings in (
            ("power-safe", {"log.flush.interval.messages": "1"}),
            ("best-effort", {"log.flush.interval.messages": "1", "unclean.leader.election.enable": "true"}),
            ("crash-safe", {}),
        ):
            async with _admin(private.url) as admin:
                await admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "1", settings)])
            async with asyncio.timeout(DEADLINE_S):
                while await broker.durability() != wanted:
                    pass


async def test_no_server_at_all(stack: AsyncExitStack) -> None:
    broker = opened(stack, "kafka://127.0.0.1:1")
    for _ in range(2):
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(BrokerUnavailableError):
                await publish_confirmed(broker, messages("q", 1))
            with pytest.raises(BrokerUnavailableError):
                await broker.fetch("q", limit=1, wait=0.1)
            with pytest.raises(BrokerUnavailableError):
                await broker.backlog("q")
            with pytest.raises(BrokerUnavailableError):
                await broker.durability()
    assert not broker.health().connected and "127.0.0.1:1" in broker.health().error


# -- the servers themselves --------------------------------------------------------------------------------------------


async def test_the_imitation_serves_where_there_is_no_java(tmp_path: Path, stack: AsyncExitStack) -> None:
    if (reason := MockKafka.missing()) is not None:
        pytest.skip(reason)
    with MockKafka(tmp_path) as server:
        broker = opened(stack, server.url)
        await publish_confirmed(broker, messages("q", 100))
        taken = await take(broker, "q", 100)
        await ack(broker, taken)
        assert bodies(taken) == list(range(100)) and await broker.fetch("q", limit=1, wait=0) == []
        await broker.close()


def test_a_jar_that_is_not_the_pinned_one_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORACULO_SERVICES", str(tmp_path / "kept"))
    monkeypatch.setenv("MAVEN_CENTRAL_URL", (tmp_path / "central").as_uri())
    good = kafka_jars.Jar("a.b", "c", "1", hashlib.sha256(b"good").hexdigest())
    bad = kafka_jars.Jar("a.b", "d", "1", hashlib.sha256(b"good").hexdigest())
    monkeypatch.setattr(kafka_jars, "version", lambda: "1")
    for jar, body in ((good, b"good"), (bad, b"bad")):
        there = tmp_path / "central" / jar.path
        there.parent.mkdir(parents=True)
        there.write_bytes(body)
    monkeypatch.setattr(kafka_jars, "pinned", lambda: [good])
    assert [file.name for file in kafka_jars.fetch().iterdir()] == ["c-1.jar"]
    monkeypatch.setattr(kafka_jars, "pinned", lambda: [good, bad])
    with pytest.raises(kafka_jars.JarsMissingError, match=r"d-1\.jar"):
        kafka_jars.fetch()
    monkeypatch.setattr(kafka_jars, "pinned", lambda: [kafka_jars.Jar("a.b", "e", "1", "")])
    with pytest.raises(kafka_jars.JarsMissingError):
        kafka_jars.fetch()
    assert class_of("kafka").version()


def _partitions(broker: KafkaBroker, queue: str) -> set[int]:
    return set(broker._queues[queue].ownership.ledgers) if queue in broker._queues else set()


def _address(url: str) -> str:
    return url.removeprefix("kafka://").partition("?")[0]


class _admin:
    """An administrator for as long as it is needed."""

    def __init__(self, url: str) -> None:
        self._client = AIOKafkaAdminClient(bootstrap_servers=_address(url))

    async def __aenter__(self) -> AIOKafkaAdminClient:
        await self._client.start()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


async def _settled(stack: AsyncExitStack, queue: str, *brokers: KafkaBroker) -> None:
    """The owners have heard of everything that was settled elsewhere, and whoever comes after them finds nothing."""
    held = [ledger.parked for broker in brokers for ledger in broker._queues[queue].ownership.ledgers.values()]
    await until(lambda: not any(held))
    for broker in brokers:
        await broker.close()
    assert await opened(stack, shared("kafka")).fetch(queue, limit=100, wait=0) == []


@pytest.mark.parametrize("kind", [AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer])
async def test_a_start_that_is_broken_off_leaves_no_connection_open(
    kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has accepted the connection and does not answer what it is asked about the cluster."""
    asked: asyncio.Queue[AIOKafkaConnection] = asyncio.Queue()
    send = AIOKafkaConnection.send

    def silent(self: AIOKafkaConnection, request: Any, expect_response: bool = True) -> Any:
        if not isinstance(request, MetadataRequest):
            return send(self, request, expect_response)
        asked.put_nowait(self)
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(AIOKafkaConnection, "send", silent)
    client = kind(bootstrap_servers=_address(shared("kafka")))
    starting = asyncio.create_task(start(client))
    async with asyncio.timeout(DEADLINE_S):
        connection = await asked.get()
    assert connection.connected()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert starting.cancelled() and not connection.connected()
    await ended(client.close() if kind is AIOKafkaAdminClient else client.stop())


async def test_a_look_up_that_is_never_answered_keeps_nobody_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits for ever for the partitions of a topic when its connection is closed meanwhile."""
    broker, queue = KafkaBroker(shared("kafka") + "?confirm_timeout=2"), some_queue()
    link = broker._cluster
    answer = link.partitions

    async def never(_topic: str) -> list[int]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(link, "partitions", never)
    with pytest.raises(BrokerUnavailableError):
        await publish_confirmed(broker, messages(queue, 1))
    monkeypatch.setattr(link, "partitions", answer)
    await publish_until_confirmed(broker, messages(queue, 1))
    await ack(broker, await take(broker, queue, 1))
    await broker.close()


async def test_a_caller_that_comes_while_it_is_closed_does_not_connect_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up of a topic that is under way asks for the connection once more; a fetch begins with a new queue."""
    broker = KafkaBroker(shared("kafka"))
    link, asked, closed = broker._cluster, asyncio.Event(), asyncio.Event()
    await publish_until_confirmed(broker, messages(some_queue(), 1))
    settings = link.settings

    async def late(kind: ConfigResourceType, name: str) -> dict[str, str] | None:
        asked.set()
        await closed.wait()
        return await settings(kind, name)

    monkeypatch.setattr(link, "settings", late)
    looking = asyncio.create_task(link.topic(some_queue()))
    await asked.wait()
    closing = asyncio.create_task(broker.close())
    await until(lambda: not link.up)
    closed.set()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(BrokerUnavailableError):
            await broker.fetch(some_queue(), limit=1, wait=DEADLINE_S)
        await closing
        with pytest.raises(BrokerUnavailableError):
            await looking
        with pytest.raises(BrokerUnavailableError):
            await link.ready(DEADLINE_S)
    assert not link.up and not link._tasks and not link._closings
