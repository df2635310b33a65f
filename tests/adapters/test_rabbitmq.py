"""What is peculiar to RabbitMQ: queues that others declare, returned messages, alarms, channels that the server closes,
servers that die or freeze. All on a real server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pika
import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.servers.server import free_port

from oraculo.adapters.brokers.rabbitmq import RabbitMQBroker, consume, publish, transport
from oraculo.adapters.brokers.rabbitmq import url as broker_url
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import LOCAL, Scope
from oraculo.core.vocabulary import Status
from oraculo.engines.local import local_engine, local_front
from oraculo.errors import BrokerUnavailableError, SettingsError
from oraculo.ports.broker import Broker, Delivery, Outgoing, Settle, Settlement, publish_confirmed
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.requests import RequestIntake
from oraculo.wire import names, requests
from oraculo.wire.requests import Defaults
from servers import own, shared
from waiting import DEADLINE_S, until

AT_ONCE = "?declare_after=0"
LARGEST = 100_000


def some_queue() -> str:
    return f"teste_{secrets.token_hex(8)}"


def messages(queue: str, count: int, first: int = 0) -> list[Outgoing]:
    return [Outgoing(queue, b"%d" % n, f"id-{n}") for n in range(first, first + count)]


async def take(broker: Broker, queue: str, count: int) -> list[Delivery]:
    taken: list[Delivery] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(taken) < count:
            taken += await broker.fetch(queue, limit=count - len(taken), wait=DEADLINE_S)
    return taken


async def ack(broker: Broker, deliveries: list[Delivery]) -> None:
    await broker.settle([Settlement(delivery) for delivery in deliveries])


async def publish_at_last(broker: Broker, batch: list[Outgoing]) -> None:
    """As the orchestrator does: what is not confirmed is sent again."""
    async with asyncio.timeout(DEADLINE_S):
        while batch:
            report = await broker.publish(batch)
            batch = [*report.unconfirmed, *report.no_queue]
            if batch:
                await asyncio.sleep(0.05)


def answer_at_once(channel: Any, source: str) -> None:
    """The four fields of the envelope, to a queue that it takes for granted."""
    end = time.monotonic() + DEADLINE_S
    while (body := channel.basic_get(f"escavador_{source}", auto_ack=True)[2]) is None:
        assert time.monotonic() < end, "no order came"
    order = json.loads(body)
    payload = {"fonte": source, "status": "ok", "dados": [1]}
    said = {"tipo_evento": "resultado_coleta", "payload": payload}
    said |= {field: order[field] for field in ("correlation_id", "timestamp")}
    channel.basic_publish("", names.RESULTS, json.dumps(said).encode())


async def concluded(engine: Kernel, correlation_id: str) -> bool:
    state = await engine.state_of(correlation_id)
    return state is not None and state.status is Status.CONCLUIDA


@pytest.fixture
def url() -> str:
    return shared("rabbitmq")


@contextlib.contextmanager
def plain(url: str) -> Iterator[Any]:
    """A plain client, as workers use it."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        yield connection.channel()


@pytest.fixture
async def open_broker() -> AsyncIterator[Callable[[str], RabbitMQBroker]]:
    async with contextlib.AsyncExitStack() as stack:

        def open_one(url: str) -> RabbitMQBroker:
            broker = RabbitMQBroker(url)
            stack.push_async_callback(broker.close)
            return broker

        yield open_one


@pytest.fixture
def broker(open_broker: Callable[[str], RabbitMQBroker], url: str) -> RabbitMQBroker:
    return open_broker(url + AT_ONCE)


@pytest.fixture(scope="module", params=[pytest.param("strict", marks=pytest.mark.xdist_group("strict-rabbitmq"))])
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with little patience and small messages, which also speaks TLS. It may be frozen, but not killed."""
    folder = tmp_path_factory.mktemp("strict")
    server: Any = own("rabbitmq", folder)
    server.folder.mkdir(parents=True)
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    for name, pem in {"cert": certificate.cert_chain_pems[0], "key": certificate.private_key_pem}.items():
        pem.write_to_path(server.folder / f"{name}.pem")
    authority.cert_pem.write_to_path(server.folder / "ca.pem")
    server.tls_port = free_port()
    server.config = {
        "max_message_size": str(LARGEST),
        "consumer_timeout": "1000",
        "ssl_options.certfile": str(server.folder / "cert.pem"),
        "ssl_options.keyfile": str(server.folder / "key.pem"),
    }
    (server.folder / "advanced.config").write_text("[{rabbit, [{channel_tick_interval, 250}]}].\n")
    with server:
        yield server


class TestAnswers:
    """Those of workers that publish to the queue of results and never declare it."""

    async def test_one_that_comes_before_anybody_has_read_counts(
        self, strict: Any, open_broker: Callable[[str], RabbitMQBroker], tmp_path: Path
    ) -> None:
        source, clock = some_queue(), MonotonicClock()
        with plain(strict.url) as channel:
            channel.queue_delete(names.RESULTS)  # as on the first day
            channel.queue_declare(f"escavador_{source}", durable=True)
            async with SqliteStore(str(tmp_path / "oraculo.db")) as store:
                ports = KernelPorts(store, open_broker(strict.url), clock)
                front = local_front(ports, KernelOptions())  # `--api-only`: answers are not read here
                QueueConsumers(ports.broker, front).answers(names.RESULTS, AnswerReader(), scope=Scope.RESULT_WRITE)
                async with front:
                    request = requests.parse({"correlation_id": "cedo", "coletas": [{"fonte": source}]})
                    await RequestIntake(front, store, clock, Defaults()).accept(request, actor=LOCAL)
                    await asyncio.to_thread(answer_at_once, channel, source)
                ports = KernelPorts(store, open_broker(strict.url), clock)
                engine = local_engine(ports, KernelOptions())
                consumers = QueueConsumers(ports.broker, engine)
                consumers.answers(names.RESULTS, AnswerReader(), scope=Scope.RESULT_WRITE)
                async with engine:
                    consumers.start(dead_letters=False)
                    await until(lambda: concluded(engine, "cedo"))
                    state = await engine.state_of("cedo")
                    await consumers.stop()
        assert state is not None and [ticket.attempt for ticket in state.tickets] == [1]

    async def test_a_queue_that_is_there_is_left_as_it_is(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue, answers = open_broker(url + AT_ONCE), some_queue(), some_queue()
        broker.expect(answers)
        with plain(url) as channel:
            channel.queue_declare(answers, arguments={"x-max-length": 3})  # not durable, too
            await publish_confirmed(broker, messages(queue, 1))
            channel.queue_declare(answers, arguments={"x-max-length": 3})

    async def test_one_that_cannot_be_made_holds_up_nothing(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue = open_broker(url + AT_ONCE), some_queue()
        broker.expect("amq.reservada")
        await publish_confirmed(broker, messages(queue, 1))
        assert len(await take(broker, queue, 1)) == 1


class TestQueues:
    async def test_a_worker_that_declares_otherwise_can_still_start_after_us(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue = open_broker(url), some_queue()
        report = await broker.publish(messages(queue, 3))
        assert f"queue {queue} does not exist yet" in report.reason
        assert len(report.no_queue) == 3 and not report.unconfirmed
        with plain(url) as channel:
            channel.queue_declare(queue)  # not durable: pika's default
            await publish_at_last(broker, messages(queue, 3))
            bodies = [body for _, _, body in (channel.basic_get(queue, auto_ack=True) for _ in range(3))]
        assert bodies == [b"0", b"1", b"2"]

    async def test_a_queue_that_is_missing_for_long_is_made(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue = open_broker(f"{url}?declare_after=0.2"), some_queue()
        with pytest.raises(BrokerUnavailableError):
            await publish_confirmed(broker, messages(queue, 1))
        await publish_at_last(broker, messages(queue, 1))
        with plain(url) as channel:
            assert channel.queue_declare(queue, durable=True).method.message_count == 1

    async def test_the_queue_of_an_order_is_left_to_its_worker(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(publish, "DECLARE_AFTER_S", 0.0)
        broker, queue, other = open_broker(url), some_queue(), some_queue()
        orders = [replace(message, awaits_reader=True) for message in messages(queue, 2)]
        for _ in range(3):
            assert list((await broker.publish([*orders, *messages(other, 1)])).no_queue) == orders
        with plain(url) as channel:
            assert channel.queue_declare(other, passive=True).method.message_count == 3
            channel.queue_declare(queue)  # as the worker of the design documents does
            await publish_at_last(broker, list(orders))
            assert channel.queue_declare(queue).method.message_count == 2

    async def test_the_others_of_the_batch_are_confirmed(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, here, nowhere = open_broker(url), some_queue(), some_queue()
        with plain(url) as channel:
            channel.queue_declare(here)
        mixed = [m for pair in zip(messages(here, 50), messages(nowhere, 50), strict=True) for m in pair]
        for _ in range(2):  # the second time the queue is known to be missing
            report = await broker.publish(mixed)
            assert {m.queue for m in report.no_queue} == {nowhere}
            assert len(report.no_queue) == 50 and not report.refused and not report.unconfirmed
        assert (await broker.backlog(here)).waiting == 100

    @pytest.mark.parametrize("queue", [names.RESULTS, names.REQUESTS, "{}.dlq"])
    async def test_our_own_queues_are_made_at_once(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str, queue: str
    ) -> None:
        queue = queue.format(some_queue())
        broker = open_broker(url)
        with plain(url) as channel:
            channel.queue_delete(queue)
            await publish_confirmed(broker, messages(queue, 1))
            assert channel.queue_declare(queue, durable=True).method.message_count == 1
            channel.queue_delete(queue)

    async def test_messages_of_a_deleted_queue_have_no_queue(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue, other = open_broker(url), some_queue(), some_queue()
        with plain(url) as channel:
            channel.queue_declare(queue)
            channel.queue_declare(other)
            await publish_confirmed(broker, messages(queue, 1) + messages(other, 1))
            channel.queue_delete(queue)
        same = Outgoing(queue, b"x", "same")
        batch = [same, Outgoing(queue, b"x", "same"), Outgoing(queue, b"y", "same"), Outgoing(queue, b"", "")]
        report = await broker.publish([*batch, Outgoing(other, b"x", "same"), Outgoing(other, b"", "")])
        assert report.no_queue == batch

    async def test_a_consumer_goes_on_when_its_queue_is_deleted(self, broker: RabbitMQBroker, url: str) -> None:
        queue = some_queue()
        waiting = asyncio.create_task(broker.fetch(queue, limit=10, wait=DEADLINE_S))
        with plain(url) as channel:
            await until(lambda: _exists(url, queue))
            channel.queue_delete(queue)
            await until(lambda: _exists(url, queue))
            channel.basic_publish("", queue, b"after")
        assert [d.body for d in await waiting] == [b"after"]

    async def test_an_existing_queue_is_consumed_as_it_is(self, broker: RabbitMQBroker, url: str) -> None:
        queue = some_queue()
        with plain(url) as channel:
            channel.queue_declare(queue, arguments={"x-max-length": 10})
            channel.basic_publish("", queue, b"x")
        await ack(broker, await take(broker, queue, 1))

    async def test_quorum_queues_have_a_net_and_count(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue = open_broker(f"{url}{AT_ONCE}&queue_type=quorum"), some_queue()
        await publish_confirmed(broker, messages(queue, 2))
        taken = await take(broker, queue, 2)
        await broker.settle([Settlement(taken[0]), Settlement(taken[1], Settle.RETRY)])
        (again,) = await take(broker, queue, 1)
        assert (again.body, again.redelivered, again.headers["x-delivery-count"]) == (taken[1].body, True, "1")
        assert await broker.fetch(queue, limit=1, wait=0) == []
        with plain(url) as channel:
            channel.queue_declare(
                queue,
                durable=True,
                arguments={
                    "x-queue-type": "quorum",
                    "x-delivery-limit": 100,
                    "x-dead-letter-exchange": "",
                    "x-dead-letter-routing-key": f"{queue}.dlq",
                    "x-dead-letter-strategy": "at-least-once",
                    "x-overflow": "reject-publish",
                },
            )
            channel.queue_declare(f"{queue}.dlq", durable=True, arguments={"x-queue-type": "quorum"})


def _exists(url: str, queue: str) -> bool:
    with plain(url) as channel:
        try:
            return channel.queue_declare(queue, passive=True).method.consumer_count > 0
        except pika.exceptions.ChannelClosedByBroker:
            return False


class TestPlainClients:
    async def test_whatever_they_put_in_the_headers(self, broker: RabbitMQBroker, url: str) -> None:
        queue = some_queue()
        odd = {"n": 7, "b": b"\xff", "t": True, "l": [1, {"x": None}], "f": {"é": "ü"}, "s": "text", "v": None}
        with plain(url) as channel:
            channel.queue_declare(queue, durable=True)
            channel.basic_publish("", queue, b"odd", pika.BasicProperties(headers=odd, priority=3, content_type="x/y"))
            channel.basic_publish("", queue, b"bare")
        taken = {d.body: d.headers for d in await take(broker, queue, 2)}
        assert taken[b"bare"] == {}
        assert taken[b"odd"].keys() == odd.keys()
        assert (taken[b"odd"]["n"], taken[b"odd"]["s"], taken[b"odd"]["b"]) == ("7", "text", "\ufffd")

    async def test_ours_are_persistent_and_carry_their_id(self, broker: RabbitMQBroker, url: str) -> None:
        queue = some_queue()
        await publish_confirmed(broker, [Outgoing(queue, b"x", "id-1", {"a": "é"}), Outgoing(queue, b"", "")])
        with plain(url) as channel:
            _, properties, body = channel.basic_get(queue, auto_ack=True)
            assert (properties.delivery_mode, properties.message_id, properties.headers) == (2, "id-1", {"a": "é"})
            _, properties, body = channel.basic_get(queue, auto_ack=True)
            assert (properties.delivery_mode, properties.message_id, body) == (2, None, b"")


class TestWire:
    """The short cut says the same as pika."""

    @settings(max_examples=50)
    @given(st.text(max_size=40), st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3), st.binary())
    def test_what_we_write_pika_reads(self, ident: str, headers: dict[str, str], body: bytes) -> None:
        for room in (7, 100_000):
            properties = transport.properties_for(Outgoing("q", body, ident, headers))
            data = transport.publish_frame(5, "fila") + b"".join(transport.content_frames(5, properties, body, room))
            frames = []
            while data:
                size, frame = pika.frame.decode_frame(data)
                frames.append(frame)
                data = data[size:]
            method, header, *parts = frames
            assert (method.method.routing_key, method.method.mandatory) == ("fila", True)
            assert (header.properties.message_id or "", header.properties.headers or {}) == (ident, headers)
            assert header.properties.delivery_mode == 2 and header.body_size == len(body)
            assert b"".join(part.fragment for part in parts) == body

    @settings(max_examples=50)
    @given(st.lists(st.tuples(st.booleans(), st.binary(max_size=300)), max_size=20), st.integers(1, 400))
    def test_messages_arrive_however_the_stream_is_cut(self, sent: list[tuple[bool, bytes]], cut: int) -> None:
        stream = b""
        for tag, (again, body) in enumerate(sent, 1):
            deliver = pika.spec.Basic.Deliver("1", tag, again, "", "fila")
            properties = pika.BasicProperties(headers={"n": tag}, priority=1, message_id="x")
            stream += pika.frame.Method(5, deliver).marshal() + pika.frame.Header(5, len(body), properties).marshal()
            stream += pika.frame.Body(5, body).marshal() if body else b""
        arrived: list[Any] = []
        receiver = SimpleNamespace(delivered=lambda *what: arrived.append(what))
        one: Any = object.__new__(transport.AmqpTransport)
        one._rest, one.bytes_received, one.receivers = b"", 0, {5: receiver}
        for start in range(0, len(stream), cut):
            one._on_data_available(stream[start : start + cut])
        assert arrived == [(tag, again, {"n": str(tag)}, body) for tag, (again, body) in enumerate(sent, 1)]
        assert one.bytes_received == len(stream)

    @pytest.mark.parametrize("short_cut", [True, False])
    async def test_messages_of_all_sizes(
        self, broker: RabbitMQBroker, short_cut: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not short_cut:
            monkeypatch.delattr(transport.AmqpTransport, "_on_data_available")
        queue, chance = some_queue(), random.Random(7)
        bodies = [chance.randbytes(chance.choice((0, 1, 300, 4_000, 15_000, 17_000, 131_064, 131_065, 400_000)))
                  for _ in range(120)]  # fmt: skip
        await publish_confirmed(
            broker, [Outgoing(queue, body, f"{n}", {"n": f"{n}"} if n % 2 else None) for n, body in enumerate(bodies)]
        )
        taken = await take(broker, queue, len(bodies))
        assert [d.body for d in taken] == bodies
        assert [d.headers.get("n") for d in taken] == [f"{n}" if n % 2 else None for n in range(len(bodies))]
        await ack(broker, taken)
        await broker.reset()
        assert await broker.fetch(queue, limit=1, wait=0) == []


class TestConsuming:
    async def test_the_messages_of_a_dead_process_come_to_another(self, broker: RabbitMQBroker, url: str) -> None:
        queue = some_queue()
        await publish_confirmed(broker, messages(queue, 5))
        program = (
            "import asyncio, sys\n"
            "from oraculo.adapters.brokers.rabbitmq import RabbitMQBroker\n"
            "async def main():\n"
            "    broker = RabbitMQBroker(sys.argv[1])\n"
            "    taken = await broker.fetch(sys.argv[2], limit=5, wait=10)\n"
            "    print(len(taken), flush=True)\n"
            "    await asyncio.sleep(60)\n"
            "asyncio.run(main())\n"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, url, queue, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None and int(await process.stdout.readline()) > 0
        process.send_signal(signal.SIGKILL)
        await process.wait()
        taken = await take(broker, queue, 5)
        assert sorted(d.body for d in taken) == [b"0", b"1", b"2", b"3", b"4"] and any(d.redelivered for d in taken)

    async def test_a_slow_holder_keeps_its_message_and_hoards_nothing(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(consume, "IDLE_TIMEOUT_S", 0.3)
        slow, other, queue = open_broker(url), open_broker(url), some_queue()
        with plain(url) as channel:
            channel.queue_declare(queue)
        await publish_confirmed(slow, messages(queue, 20))
        held = await take(slow, queue, 3)
        rest = await take(other, queue, 17)
        assert {d.body for d in rest}.isdisjoint(d.body for d in held)
        assert await other.fetch(queue, limit=1, wait=0.5) == []
        await ack(other, rest)
        await ack(slow, held)
        await publish_confirmed(slow, messages(queue, 1, first=100))
        assert [d.body for d in await take(slow, queue, 1)] == [b"100"]  # and the paused consumer starts again

    async def test_more_may_be_held_than_a_fetch_asks_for(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue = open_broker(f"{url}{AT_ONCE}&prefetch=10"), some_queue()
        await publish_confirmed(broker, messages(queue, 200))
        held: list[Delivery] = []
        for _ in range(100):
            held += await take(broker, queue, 1)
        await ack(broker, held[::2])  # gaps
        await ack(broker, held[1::2])
        held = await take(broker, queue, 100)
        await ack(broker, held)
        await broker.reset()
        assert await broker.fetch(queue, limit=1, wait=0) == []

    async def test_a_long_backlog_stays_on_the_server(
        self, open_broker: Callable[[str], RabbitMQBroker], url: str
    ) -> None:
        broker, queue = open_broker(url + AT_ONCE), some_queue()
        for first in range(0, 20_000, 5_000):
            await publish_confirmed(broker, [Outgoing(queue, b"x" * 200, f"{n}") for n in range(first, first + 5_000)])
        looking = open_broker(url)
        for _ in range(3):
            await ack(broker, await broker.fetch(queue, limit=100, wait=DEADLINE_S))
        on_the_server = (await looking.backlog(queue)).waiting
        assert on_the_server is not None and on_the_server >= 20_000 - 3 * 100 - 200
        with plain(url) as channel:
            channel.queue_delete(queue)

    async def test_the_backlog_counts_what_lies_here(self, broker: RabbitMQBroker) -> None:
        queue = some_queue()
        assert (await broker.backlog(queue)).waiting == 0
        await publish_confirmed(broker, messages(queue, 10))
        await take(broker, queue, 4)

        async def six_are_left() -> bool:
            return (await broker.backlog(queue)).waiting == 6

        await until(six_are_left)

    async def test_the_server_closes_the_channel_of_who_holds_too_long(
        self, strict: Any, open_broker: Callable[[str], RabbitMQBroker]
    ) -> None:
        broker, queue = open_broker(strict.url + AT_ONCE), some_queue()
        await publish_confirmed(broker, messages(queue, 1))
        held = await take(broker, queue, 1)
        (again,) = await take(broker, queue, 1)
        assert again.redelivered and broker.health().reconnects == 0
        await ack(broker, held)  # too late, and of no consequence
        await ack(broker, [again])
        assert (await broker.backlog(queue)).waiting == 0


class TestTrouble:
    async def test_a_message_that_is_too_large_is_refused_alone(
        self, strict: Any, open_broker: Callable[[str], RabbitMQBroker]
    ) -> None:
        broker, queue = open_broker(strict.url + AT_ONCE), some_queue()
        large = Outgoing(queue, b"x" * (LARGEST + 1), "large")
        for _ in range(2):  # the second time the limit is known
            report = await broker.publish([*messages(queue, 10), large, *messages(queue, 10)])
            assert str(LARGEST) in report.reason
            assert not report.unconfirmed and [one.message for one in report.refused] == [large]
        await publish_confirmed(broker, [Outgoing(queue, b"x" * LARGEST, "largest")])
        bodies = [d.body for d in await take(broker, queue, 41)]
        assert {b"%d" % n for n in range(10)} <= set(bodies)
        assert max(map(len, bodies)) <= LARGEST and broker.health().reconnects == 0

    async def test_names_that_amqp_cannot_carry_are_refused(self, broker: RabbitMQBroker) -> None:
        queue = some_queue()
        bad = [
            Outgoing("x" * 256, b"", "1"),
            Outgoing("", b"", "2"),
            Outgoing("amq.nobody", b"", "3"),
            Outgoing(queue, b"", "x" * 256),
            Outgoing(queue, b"", "5", {"k" * 256: "v"}),
            Outgoing(queue, b"", "6", {"k": "v" * 200_000}),
        ]
        report = await broker.publish([*bad, *messages(queue, 2)])
        assert not report.unconfirmed
        assert {one.message.message_id for one in report.refused} == {m.message_id for m in bad}
        assert (await broker.backlog(queue)).waiting == 2

    async def test_a_frozen_server_is_noticed_and_found_again(
        self, strict: Any, open_broker: Callable[[str], RabbitMQBroker]
    ) -> None:
        broker, queue = open_broker(f"{strict.url}{AT_ONCE}&confirm_timeout=0.5&heartbeat=2"), some_queue()
        await publish_confirmed(broker, messages(queue, 1))
        await ack(broker, await take(broker, queue, 1))
        strict.freeze()
        try:
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(BrokerUnavailableError):
                    await publish_confirmed(broker, messages(queue, 1))
            await until(lambda: broker._in.error)  # the consuming one, by silence
            with pytest.raises(BrokerUnavailableError):
                await broker.fetch(queue, limit=1, wait=0.1)
            assert not broker.health().connected and "guest" not in broker.health().error
        finally:
            strict.thaw()
        await publish_at_last(broker, messages(queue, 5, first=10))
        assert {d.body for d in await take(broker, queue, 5)} & {b"10", b"11", b"12", b"13", b"14"}
        assert broker.health().connected and broker.health().reconnects >= 2

    async def test_a_server_without_memory_takes_no_messages_but_gives_them(
        self, strict: Any, open_broker: Callable[[str], RabbitMQBroker]
    ) -> None:
        broker, queue = open_broker(f"{strict.url}{AT_ONCE}&confirm_timeout=1"), some_queue()
        await publish_confirmed(broker, messages(queue, 5))
        await asyncio.to_thread(strict.control, "set_vm_memory_high_watermark", "0.000001")
        try:
            with pytest.raises(BrokerUnavailableError):
                await publish_confirmed(broker, messages(queue, 1, first=5))
            with pytest.raises(BrokerUnavailableError, match="takes no messages now"):
                await publish_confirmed(broker, messages(queue, 1, first=6))
            await ack(broker, await take(broker, queue, 5))
            assert (await broker.backlog(queue)).waiting == 0
        finally:
            await asyncio.to_thread(strict.control, "set_vm_memory_high_watermark", "0.4")
        await publish_at_last(broker, messages(queue, 1, first=7))
        assert broker.health().reconnects == 0

    async def test_nothing_confirmed_is_lost_when_the_server_is_killed(
        self, tmp_path: Path, open_broker: Callable[[str], RabbitMQBroker]
    ) -> None:
        server: Any = own("rabbitmq", tmp_path)
        with server:
            broker, queue = open_broker(server.url + AT_ONCE), some_queue()
            confirmed: set[bytes] = set()
            received: set[bytes] = set()
            stop = asyncio.Event()

            async def publish() -> None:
                number = 0
                while not stop.is_set():
                    batch = messages(queue, 20, first=number)
                    number += 20
                    report = await broker.publish(batch)
                    confirmed.update(m.body for m in report.confirmed(batch))
                    if not report.complete:
                        await asyncio.sleep(0.05)

            async def consume() -> None:
                while not (stop.is_set() and confirmed <= received):
                    with contextlib.suppress(BrokerUnavailableError):
                        deliveries = await broker.fetch(queue, limit=7, wait=0.5)
                        await ack(broker, deliveries[:-1])  # the last one must come again
                        received.update(d.body for d in deliveries[:-1])
                        await broker.settle([Settlement(d, Settle.RETRY, 0.05) for d in deliveries[-1:]])
                        received.update(d.body for d in deliveries if d.redelivered)

            tasks = [asyncio.create_task(publish()), asyncio.create_task(consume())]
            await until(lambda: len(confirmed) > 200)
            await asyncio.to_thread(server.kill)
            await until(lambda: not broker.health().connected)
            assert broker.health().error
            with pytest.raises(BrokerUnavailableError):
                await publish_confirmed(broker, messages(queue, 1))
            late, other = open_broker(server.url), some_queue()
            waiting = asyncio.create_task(late.fetch(other, limit=1, wait=60))  # there is no server yet
            await asyncio.to_thread(server.start)
            at_the_restart = len(confirmed)
            await publish_at_last(broker, messages(other, 1))
            async with asyncio.timeout(DEADLINE_S):
                assert len(await waiting) == 1
            await until(lambda: len(confirmed) > at_the_restart + 200)
            stop.set()
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.gather(*tasks)
            assert confirmed <= received
            assert broker.health().connected and broker.health().reconnects >= 2

    async def test_nobody_listens(self, open_broker: Callable[[str], RabbitMQBroker]) -> None:
        broker = open_broker("amqp://user:secret@127.0.0.1:1/")
        assert not broker.health().connected
        with pytest.raises(BrokerUnavailableError, match="ConnectionRefused") as caught:
            await publish_confirmed(broker, messages("x", 1))
        with pytest.raises(BrokerUnavailableError):
            await broker.fetch("x", limit=1, wait=0.05)
        with pytest.raises(BrokerUnavailableError):
            await broker.backlog("x")
        assert await broker.durability() == "best-effort"
        assert "secret" not in f"{caught.value} {broker.health()}"

    async def test_closing_ends_everything(self, url: str) -> None:
        broker, queue = RabbitMQBroker(url + AT_ONCE), some_queue()
        await publish_confirmed(broker, messages(queue, 3))
        held = await take(broker, queue, 1)
        waiting = asyncio.create_task(broker.fetch(some_queue(), limit=1, wait=60))
        await asyncio.sleep(0)
        await broker.close()
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises((asyncio.CancelledError, BrokerUnavailableError)):
                await waiting
        await ack(broker, held)  # of no consequence
        with pytest.raises(BrokerUnavailableError, match="closed"):
            await publish_confirmed(broker, messages(queue, 1))
        with plain(url) as channel:
            assert channel.queue_declare(queue, passive=True).method.message_count == 3

    async def test_a_wrong_password(self, open_broker: Callable[[str], RabbitMQBroker], url: str) -> None:
        broker = open_broker(url.replace("guest:guest", "guest:other"))
        with pytest.raises(BrokerUnavailableError, match="ACCESS_REFUSED") as caught:
            await publish_confirmed(broker, messages("x", 1))
        assert "other" not in str(caught.value)


class TestDurability:
    @pytest.mark.parametrize(
        ("declared", "claim"),
        [
            (None, "crash-safe"),
            ({"durable": True}, "crash-safe"),
            ({"durable": True, "arguments": {"x-queue-type": "quorum"}}, "power-safe"),
            ({"durable": False}, "best-effort"),
            ({"durable": True, "auto_delete": True}, "best-effort"),
        ],
    )
    async def test_it_is_that_of_the_queue_of_results(
        self, strict: Any, open_broker: Callable[[str], RabbitMQBroker], declared: dict[str, Any] | None, claim: str
    ) -> None:
        with plain(strict.url) as channel:
            channel.queue_delete(names.RESULTS)
            if declared is not None:
                channel.queue_declare(names.RESULTS, **declared)
            assert await open_broker(strict.url).durability() == claim
            channel.queue_delete(names.RESULTS)

    async def test_of_what_would_be_made(self, strict: Any, open_broker: Callable[[str], RabbitMQBroker]) -> None:
        assert await open_broker(f"{strict.url}?queue_type=quorum").durability() == "power-safe"


class TestConnecting:
    async def test_over_tls(self, strict: Any, open_broker: Callable[[str], RabbitMQBroker]) -> None:
        place = f"amqps://guest:guest@localhost:{strict.tls_port}/{AT_ONCE}"
        broker, queue = open_broker(f"{place}&cacertfile={strict.folder / 'ca.pem'}"), some_queue()
        await publish_confirmed(broker, [*messages(queue, 50), Outgoing(queue, b"x" * 90_000, "big")])
        await ack(broker, await take(broker, queue, 51))
        with pytest.raises(BrokerUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            await publish_confirmed(open_broker(place), messages(queue, 1))

    def test_on_uvloop(self, url: str) -> None:
        uvloop = pytest.importorskip("uvloop")

        async def there_and_back() -> None:
            broker, queue = RabbitMQBroker(url + AT_ONCE), some_queue()
            await publish_confirmed(broker, messages(queue, 300))
            await ack(broker, await take(broker, queue, 300))
            await broker.reset()
            assert await broker.fetch(queue, limit=1, wait=0) == []
            await broker.close()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(there_and_back())

    async def test_another_virtual_host(self, strict: Any, open_broker: Callable[[str], RabbitMQBroker]) -> None:
        await asyncio.to_thread(strict.control, "add_vhost", "a/b c")
        await asyncio.to_thread(strict.control, "set_permissions", "-p", "a/b c", "guest", ".*", ".*", ".*")
        broker, queue = open_broker(f"{strict.url}a%2Fb%20c{AT_ONCE}"), some_queue()
        await publish_confirmed(broker, messages(queue, 1))
        assert (await open_broker(strict.url).backlog(queue)).waiting == 0
        assert (await broker.backlog(queue)).waiting == 1

    @pytest.mark.parametrize(
        "bad",
        [
            "amqp://u:secret@h/?prefetch=0", "amqp://u:secret@h/?prefetch=x", "amqp://u:secret@h/?heartbeat=0",
            "amqp://u:secret@h/?queue_type=stream", "amqp://u:secret@h/?confirm_timeout=0", "amqp://u:secret@h:x/",
            "amqp://u:secret@h/?declare_after=-1", "amqp://u:secret@h/?nonsense=1", "amqp://u:secret@h/a/b",
            "amqp://u:secret@h/?prefetch", "amqp://u:secret@h/?cacertfile=/x", "http://u:secret@h/",
            "amqp://u:secret@h/?prefetch=1&prefetch=2", "amqp://u:secret@h/?confirm_timeout=nan",
        ],
    )  # fmt: skip
    def test_a_url_that_is_not_allowed(self, bad: str) -> None:
        with pytest.raises(SettingsError, match="ORACULO_BROKER") as caught:
            RabbitMQBroker(bad)
        assert "secret" not in str(caught.value) and "prefetch" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "vhost", "user", "password"),
    [
        ("amqp://guest@rabbitmq//", "/", "guest", "guest"),
        ("amqp://rabbitmq", "/", "guest", "guest"),
        ("amqp://ana@rabbitmq/%2F", "/", "ana", ""),
        ("amqp://ana:p@rabbitmq/um", "um", "ana", "p"),
    ],
)
def test_urls_as_celery_writes_them(text: str, vhost: str, user: str, password: str) -> None:
    found = broker_url.parse(text)
    assert (found.host, found.vhost, found.user, found.password) == ("rabbitmq", vhost, user, password)


def test_without_the_client_the_extra_is_named() -> None:
    program = "import sys; sys.modules['pika'] = None; import oraculo.adapters.brokers.rabbitmq"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr
    assert "oraculo[rabbitmq]" in said.splitlines()[-1]
