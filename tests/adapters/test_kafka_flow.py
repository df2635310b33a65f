"""What the topics of Fluxo C need of Kafka: keys placed as its own clients do, one group for several topics, gzip."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from io import BytesIO

import fastavro
import pytest
from aiokafka import TopicPartition
from confluent_kafka import Consumer, Producer
from hypothesis import given
from hypothesis import strategies as st

from adapters.test_kafka import _address, _admin, ack, bodies, opened, some_queue, take
from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.adapters.brokers.kafka.assignor import MemberState, News, OwnershipAssignor
from oraculo.adapters.brokers.kafka.publish import partition_of
from oraculo.adapters.brokers.kafka.url import parse
from oraculo.bootstrap import flow as flow_parts
from oraculo.errors import SettingsError
from oraculo.ports.broker import Outgoing, publish_confirmed
from oraculo.settings.settings import load
from oraculo.wire.flow import schemas
from oraculo.wire.flow.decisions import decision_of
from servers import shared, use
from waiting import DEADLINE_S, until
from wire.flow.samples import DECISION, TICKET

PARTITIONS = 6


def real() -> str:
    """Not an imitation."""
    use("kafka")
    return shared("kafka")


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("abc", 479470107),
    ],
)
def test_a_key_belongs_where_the_hash_of_kafkas_java_client_says(key: str, hashed: int) -> None:
    assert partition_of(key, range(1000)) == (hashed & 0x7FFFFFFF) % 1000


@given(st.text(min_size=1), st.integers(1, 50))
def test_a_key_always_belongs_to_one_partition(key: str, count: int) -> None:
    assert partition_of(key, range(count)) in range(count)


async def test_messages_of_one_key_share_a_partition_with_those_of_plain_clients(stack: AsyncExitStack) -> None:
    url, queue = real(), some_queue()
    broker = opened(stack, f"{url}?partitions={PARTITIONS}")
    keys = [f"plan-{number}" for number in range(8)]
    await publish_confirmed(broker, [Outgoing(queue, b"%d" % n, f"id-{n}", {"h": "x"}, keys[n % 8]) for n in range(24)])
    plain = Producer({"bootstrap.servers": _address(url), "partitioner": "murmur2_random"})
    for number, key in enumerate(keys):
        plain.produce(queue, b"%d" % (100 + number), key=key)
    assert await asyncio.to_thread(plain.flush, 10) == 0
    taken = await take(broker, queue, 32)
    where = {int(one.body): one.tag[0].partition for one in taken}
    for number in range(24):
        assert where[number] == where[100 + number % 8] == partition_of(keys[number % 8], range(PARTITIONS))
    assert len(set(where.values())) > 1
    headers = {int(one.body): one.headers for one in taken}
    assert headers[5] == {"h": "x", "message_id": "id-5"}
    for key in range(8):  # in order, one behind the other
        offsets = [one.tag[1] for one in sorted(taken, key=lambda one: int(one.body)) if int(one.body) % 8 == key][:3]
        assert offsets == sorted(offsets)
    await ack(broker, taken)


async def test_one_group_reads_several_topics_and_no_message_is_mistaken_for_another(stack: AsyncExitStack) -> None:
    url, group = f"{real()}?partitions=2", f"grupo-{secrets.token_hex(4)}"
    queues = [some_queue(), some_queue()]
    both = dict.fromkeys(queues, group)
    brokers = [KafkaBroker(url, both), KafkaBroker(url, both)]
    for broker in brokers:
        stack.push_async_callback(broker.close)
    for queue in queues:
        await publish_confirmed(brokers[0], [Outgoing(queue, b"%d" % n, f"{queue}-{n}") for n in range(40)])
    seen: dict[str, list[int]] = {queue: [] for queue in queues}

    async def consume(broker: KafkaBroker, queue: str) -> None:
        while len(seen[queue]) < 40:
            taken = await broker.fetch(queue, limit=3, wait=0.5)
            seen[queue] += bodies(taken)
            await ack(broker, taken)

    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(consume(broker, queue) for broker in brokers for queue in queues))
    assert {queue: sorted(found) for queue, found in seen.items()} == {queue: list(range(40)) for queue in queues}
    for broker in brokers:
        await broker.close()
    async with _admin(real()) as admin:
        groups = {name for name, _ in await admin.list_consumer_groups()}
        assert group in groups and not groups & {f"oraculo.{queue}" for queue in queues}
        said = await admin.list_consumer_group_offsets(group)
        for queue in queues:
            assert sum(said[TopicPartition(queue, number)].offset for number in range(2)) == 40


def test_members_hear_of_nobody_who_reads_another_topic() -> None:
    class Said:
        def __init__(self, topic: str, stake: MemberState) -> None:
            self.subscription, self.user_data = [topic], stake.write()

    class Cluster:
        def partitions_for_topic(self, topic: str) -> set[int]:
            return {0}

    given = OwnershipAssignor(MemberState).assign(
        Cluster(),
        {
            "a": Said("one", MemberState()),
            "b": Said("one", MemberState({0: [5]})),
            "c": Said("two", MemberState({0: [9]})),
        },
    )
    heard = {member: News.read(said.user_data) for member, said in given.items()}
    owner = next(member for member in ("a", "b") if given[member].assignment[0][1])
    assert heard[owner].held.get(0, []) == ([5] if owner == "a" else []) and heard["c"] == News()


async def test_what_is_compressed_arrives_as_it_was(stack: AsyncExitStack) -> None:
    queue, body = some_queue(), b"0" * 100_000
    broker = opened(stack, f"{real()}?compression=gzip")
    await publish_confirmed(broker, [Outgoing(queue, body, "id")])
    assert [one.body for one in await take(broker, queue, 1)] == [body]
    batch = (await broker._cluster.ready(5)).producer.create_batch()
    batch.append(key=None, value=body, timestamp=None)
    batch.close()
    assert len(batch._build()) < 2000


async def test_a_decision_of_a_plain_producer_and_a_ticket_for_a_plain_consumer(stack: AsyncExitStack) -> None:
    """With the settings of an installation: everything else stays on its own broker."""
    address, consensus, tickets = _address(real()), some_queue(), some_queue()
    chosen = load(
        {
            "KAFKA_BOOTSTRAP_SERVERS": address,
            "KAFKA_CONSENSUS_TOPIC": consensus,
            "KAFKA_TICKETS_TOPIC": tickets,
            "KAFKA_MESSAGE_FORMAT": "avro",
            "KAFKA_CONSUMER_GROUP_ID": f"grupo-{secrets.token_hex(4)}",
        },
        None,
    )
    broker, codec = flow_parts.broker_for(chosen), flow_parts.codec_of(chosen, flow_parts.registry_of(chosen))
    stack.push_async_callback(broker.close)
    plain = Producer({"bootstrap.servers": address})
    file = BytesIO(b"\0\0\0\0\2")
    file.seek(5)
    fastavro.schemaless_writer(file, fastavro.parse_schema(schemas.schema("ConsolidatedDecision")), DECISION)
    plain.produce(consensus, file.getvalue())
    plain.produce(consensus, json.dumps(DECISION))
    assert await asyncio.to_thread(plain.flush, 10) == 0
    taken = await take(broker, consensus, 2)
    await codec.learn([one.body for one in taken])
    for one in taken:
        decision = decision_of(codec.decode(("ConsolidatedDecision", "CognitivePlan"), one.body))
        assert decision.plan is not None and decision.plan.plan_id == "plan-1"
    await ack(broker, taken)
    body = codec.encode("ExecutionTicket", TICKET)
    await publish_confirmed(broker, [Outgoing(tickets, body, "id", None, "plan-1"), Outgoing("fila", b"x", "id")])
    consumer = Consumer({"bootstrap.servers": address, "group.id": tickets, "auto.offset.reset": "earliest"})
    consumer.subscribe([tickets])
    record = await asyncio.to_thread(consumer.poll, DEADLINE_S)
    consumer.close()
    assert record is not None and record.error() is None
    assert record.key() == b"plan-1" and dict(record.headers())["message_id"] == b"id"
    parsed = fastavro.parse_schema(schemas.schema("ExecutionTicket"))
    assert fastavro.schemaless_reader(BytesIO(record.value()[5:]), parsed, None) == TICKET
    assert [one.body for one in await broker.fetch("fila", limit=5, wait=0)] == [b"x"]


def test_compression_is_none_or_gzip() -> None:
    assert parse("kafka://h").compression == "none"
    with pytest.raises(SettingsError, match="gzip"):
        parse("kafka://h?compression=zstd")


async def test_what_a_producer_took_back_is_never_delivered_and_waits_for_no_consumer(stack: AsyncExitStack) -> None:
    url, queue = f"{real()}?partitions=1", some_queue()
    broker = opened(stack, url)
    await publish_confirmed(broker, [Outgoing(queue, b"0", "first")])
    producer = Producer({"bootstrap.servers": _address(real()), "transactional.id": f"approval-{queue}"})
    await asyncio.to_thread(producer.init_transactions, DEADLINE_S)

    def transaction(bodies: list[bytes], *, commit: bool) -> None:
        producer.begin_transaction()
        for body in bodies:
            producer.produce(queue, body)
        producer.flush(DEADLINE_S)
        producer.commit_transaction(DEADLINE_S) if commit else producer.abort_transaction(DEADLINE_S)

    await asyncio.to_thread(transaction, [b"100", b"101"], commit=False)
    await asyncio.to_thread(transaction, [b"1", b"2"], commit=True)
    await asyncio.to_thread(transaction, [b"102"], commit=False)
    taken = await take(broker, queue, 3)
    assert bodies(taken) == [0, 1, 2]
    await ack(broker, taken)

    async def nothing_waits() -> bool:
        assert await broker.fetch(queue, limit=10, wait=0.1) == []
        return (await broker.backlog(queue)).waiting == 0

    await until(nothing_waits, "marks and aborted records count as read")
    producer.begin_transaction()
    producer.produce(queue, b"3")
    await asyncio.to_thread(producer.flush, DEADLINE_S)
    assert await broker.fetch(queue, limit=10, wait=0.2) == [] and (await broker.backlog(queue)).waiting == 0
    await asyncio.to_thread(producer.commit_transaction, DEADLINE_S)
    assert bodies(await take(broker, queue, 1)) == [3]


async def test_what_workers_of_another_group_have_taken_does_not_wait(stack: AsyncExitStack) -> None:
    queue, theirs = some_queue(), f"worker-agents-{secrets.token_hex(4)}"
    broker = KafkaBroker(f"{real()}?partitions=2&workers={queue}:{theirs}")
    stack.push_async_callback(broker.close)
    await publish_confirmed(broker, [Outgoing(queue, b"%d" % n, f"{queue}-{n}") for n in range(10)])
    assert (await broker.backlog(queue)).waiting == 10

    def work(count: int) -> None:
        consumer = Consumer({
            "bootstrap.servers": _address(real()), "group.id": theirs, "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        })  # fmt: skip
        try:
            consumer.subscribe([queue])
            for taken in consumer.consume(count, DEADLINE_S):
                assert taken.error() is None
                consumer.commit(message=taken, asynchronous=False)
        finally:
            consumer.close()

    await asyncio.to_thread(work, 4)
    assert (await broker.backlog(queue)).waiting == 6
    ours = await take(broker, queue, 10)  # a worker of ours reads all of it: whichever group is ahead counts
    await ack(broker, ours)

    async def nothing_waits() -> bool:
        return (await broker.backlog(queue)).waiting == 0

    await until(nothing_waits)


def test_the_group_of_the_workers_is_known_wherever_the_tickets_are() -> None:
    def workers(**given: str) -> list[tuple[str, str]]:
        urls = flow_parts._with_workers(settings := load({"ORACULO_FLOW_C": "on", **given}, None)).split(",")
        own = [flow_parts.kafka_url(settings)] if settings.kafka.servers else []
        return [parse(url).workers for url in (*urls, *own) if url.startswith("kafka:")]

    usual = ("execution.tickets", "worker-agents")
    assert workers(ORACULO_BROKER="kafka://a:9092,kafka://b:9092?lease=5") == [usual, usual]
    assert workers(ORACULO_BROKER="kafka://a:9092?workers=t:g") == [("t", "g")]
    assert workers(KAFKA_BOOTSTRAP_SERVERS="a:9092", KAFKA_WORKERS_GROUP_ID="x") == [("execution.tickets", "x")]
    with pytest.raises(SettingsError, match="workers"):
        parse("kafka://a?workers=only-a-queue")
