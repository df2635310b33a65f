"""`oraculo acl export`: users with least rights, logged in on the real servers; what is not theirs is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import nats
import pika
import pika.exceptions
import pytest
import redis
from tools.servers.nats import Nats
from tools.servers.rabbitmq import RabbitMQ
from tools.servers.redis import Redis

from cli.processes import Cli
from oraculo.adapters.brokers.registry import open_broker
from oraculo.cli.acl_forms import users_of
from oraculo.errors import BrokerError
from oraculo.ports.broker import Broker, Outgoing, Settlement, publish_confirmed
from oraculo.runtime.probes import PROBE_TIMEOUT_S
from oraculo.wire import names
from servers import class_of, own, use
from waiting import until

MINE, OTHER = "escavador_meu.1", "executador_outro"


class Exported:
    """What the command gave: the text for the server, and the passwords."""

    def __init__(self, folder: Path, server: str) -> None:
        document = Cli(folder).json("acl", "export", server, "--queue", MINE, "--queue", OTHER, "--notice", "avisos")
        self.text: str = document["text"]
        self.passwords: dict[str, str] = {one["user"]: one["password"] for one in document["users"]}
        self.orchestrator, self.mine, self.other = self.passwords

    def url(self, scheme: str, port: int, user: str, password: str | None = None, options: str = "") -> str:
        return f"{scheme}://{user}:{password or self.passwords[user]}@127.0.0.1:{port}{options}"


async def story(orchestrator: Broker, worker: Broker) -> None:
    """An order, its answer, a dead letter, a notice and a probe, through our own adapters."""
    expected = [Outgoing(MINE, b'{"n": 1}', "m1"), Outgoing("avisos", b"{}", "m2")]
    got = asyncio.create_task(worker.fetch(MINE, limit=1, wait=30))
    await until(lambda: publish_or_none(orchestrator, expected), "the order to be confirmed", ignoring=(BrokerError,))
    (order,) = await got
    assert order.body == b'{"n": 1}'
    await publish_confirmed(worker, [Outgoing(names.RESULTS, b'{"ok": 1}', "a1")])
    await publish_confirmed(worker, [Outgoing(names.dead_letter_queue(MINE), b"{}", "a2")])
    await worker.settle([Settlement(order)])
    (answer,) = await orchestrator.fetch(names.RESULTS, limit=1, wait=30)
    assert answer.body == b'{"ok": 1}'
    await orchestrator.settle([Settlement(answer)])
    for one in (orchestrator, worker):
        await publish_confirmed(one, [Outgoing(names.PROBE, b"{}", "")])
        (probe,) = await one.fetch(names.PROBE, limit=1, wait=PROBE_TIMEOUT_S)
        await one.settle([Settlement(probe)])
    assert (await orchestrator.backlog(MINE)).waiting == 0


async def publish_or_none(broker: Broker, messages: list[Outgoing]) -> bool:
    await publish_confirmed(broker, messages)
    return True


async def with_both(orchestrator: str, worker: str) -> None:
    async with AsyncExitStack() as stack:
        brokers = [open_broker(orchestrator), open_broker(worker)]
        for broker in brokers:
            stack.push_async_callback(broker.close)
        brokers[0].expect(names.RESULTS)
        await story(*brokers)


async def refused_login(url: str) -> None:
    broker = open_broker(url)
    try:
        with pytest.raises(BrokerError):
            await publish_confirmed(broker, [Outgoing(names.RESULTS, b"{}", "x")])
    finally:
        await broker.close()


# -- RabbitMQ ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[tuple[RabbitMQ, Exported]]:
    exported = Exported(tmp_path, "rabbitmq")
    server = own("rabbitmq", tmp_path)
    assert isinstance(server, RabbitMQ)
    with server:
        (tmp_path / "definitions.json").write_text(exported.text)
        server.control("import_definitions", str(tmp_path / "definitions.json"))
        yield server, exported


def test_rabbitmq(rabbitmq: tuple[RabbitMQ, Exported]) -> None:
    server, exported = rabbitmq

    def url(user: str, password: str | None = None) -> str:
        return exported.url("amqp", server.port, user, password, "/?declare_after=0")

    asyncio.run(with_both(url(exported.orchestrator), url(exported.mine)))
    asyncio.run(refused_login(url(exported.mine, "wrong")))

    def refused(user: str, act: Callable[[Any], Any]) -> None:
        login = pika.URLParameters(exported.url("amqp", server.port, user))
        with pika.BlockingConnection(login) as connection:
            channel = connection.channel()
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
                act(channel)
            assert error.value.reply_code == 403

    refused(exported.other, lambda channel: channel.basic_get(MINE))
    refused(exported.mine, lambda channel: channel.basic_get(OTHER))
    refused(exported.mine, lambda channel: channel.basic_get(names.RESULTS))
    refused(exported.mine, lambda channel: channel.queue_delete(names.RESULTS))
    refused(exported.mine, lambda channel: channel.queue_purge(names.RESULTS))
    refused(exported.mine, lambda channel: channel.queue_declare("another"))
    refused(exported.mine, lambda channel: channel.exchange_declare("another"))
    refused(exported.mine, lambda channel: channel.basic_get(names.dead_letter_queue(MINE)))
    refused(exported.orchestrator, lambda channel: channel.basic_get(MINE))
    refused(exported.orchestrator, lambda channel: channel.queue_declare("another"))


# -- Redis -------------------------------------------------------------------------------------------------------------


def test_redis(tmp_path: Path) -> None:
    exported = Exported(tmp_path, "redis")
    server = own("redis", tmp_path)
    assert isinstance(server, Redis)
    (tmp_path / "users.acl").write_text(exported.text)
    server.config["aclfile"] = str(tmp_path / "users.acl")
    with server:

        def url(user: str, password: str | None = None) -> str:
            return exported.url("redis", server.port, user, password)

        asyncio.run(with_both(url(exported.orchestrator), url(exported.mine)))
        asyncio.run(refused_login(url(exported.mine, "wrong")))
        with redis.Redis(port=server.port) as nobody, pytest.raises(redis.AuthenticationError):
            nobody.ping()
        for user, acts in {
            exported.mine: [
                lambda client: client.xadd(OTHER, {"mensagem": "{}"}),
                lambda client: client.xadd(names.REQUESTS, {"mensagem": "{}"}),
                lambda client: client.xrange(names.RESULTS),
                lambda client: client.xtrim(names.RESULTS, maxlen=0),
                lambda client: client.xreadgroup("oraculo", "x", {OTHER: ">"}),
                lambda client: client.delete(MINE),
                lambda client: client.config_get("*"),
                lambda client: client.acl_list(),
                lambda client: client.flushall(),
            ],
            exported.other: [lambda client: client.xreadgroup("oraculo", "x", {MINE: ">"})],
            exported.orchestrator: [
                lambda client: client.set("k", "v"),
                lambda client: client.xadd("another", {"mensagem": "{}"}),
                lambda client: client.flushall(),
                lambda client: client.acl_setuser("intruder", enabled=True),
            ],
        }.items():
            with redis.Redis.from_url(url(user)) as client:
                for act in acts:
                    with pytest.raises(redis.exceptions.NoPermissionError):
                        act(client)


# -- NATS --------------------------------------------------------------------------------------------------------------


def test_nats(tmp_path: Path) -> None:
    exported = Exported(tmp_path, "nats")
    use("nats")
    kind = class_of("nats")
    assert issubclass(kind, Nats)
    with kind(tmp_path / "nats", extra=exported.text) as server:

        def url(user: str, password: str | None = None) -> str:
            return exported.url("nats", server.port, user, password)

        asyncio.run(with_both(url(exported.orchestrator), url(exported.mine)))
        asyncio.run(refused_login(url(exported.mine, "wrong")))

        async def refused(user: str, act: Callable[[Any], Awaitable[Any]]) -> None:
            errors: list[Exception] = []

            async def heard(error: Exception) -> None:
                errors.append(error)

            client = await nats.connect(url(user), error_cb=heard, allow_reconnect=False)
            await act(client)
            await client.flush()
            await until(lambda: any("permissions violation" in str(error).lower() for error in errors), "a refusal")
            await client.close()

        async def attempts() -> None:
            mine, other = exported.mine, exported.other
            for subject in (OTHER, names.REQUESTS, f"$JS.API.STREAM.DELETE.{names.RESULTS}"):
                await refused(mine, lambda client, subject=subject: client.publish(subject, b"{}"))
            for stream in (names.RESULTS, "executador_outro"):
                await refused(
                    mine,
                    lambda client, stream=stream: client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.oraculo", b"1"),
                )
            await refused(mine, lambda client: client.publish(f"$JS.API.STREAM.PURGE.{names.RESULTS}", b""))
            await refused(
                other, lambda client: client.publish("$JS.API.CONSUMER.MSG.NEXT.escavador_meu~1.oraculo", b"1")
            )
            for subject in ("_INBOX.>", f"_INBOX.{exported.orchestrator}.>", MINE, names.RESULTS, ">"):
                await refused(other, lambda client, subject=subject: client.subscribe(subject))
            await refused(exported.orchestrator, lambda client: client.publish("another", b""))
            await refused(exported.orchestrator, lambda client: client.subscribe(">"))

        asyncio.run(attempts())


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_worker_of_a_tenant_answers_to_its_own_queue() -> None:
    orchestrator, worker = users_of(["espaco_acme.escavador_a"])
    assert worker.gives == ("espaco_acme.orquestrador_resultados", "espaco_acme.escavador_a.dlq")
    assert {names.RESULTS, "espaco_acme.orquestrador_resultados"} <= set(orchestrator.takes)


def test_the_text_goes_to_standard_output_and_the_passwords_beside_it(tmp_path: Path) -> None:
    done = Cli(tmp_path)("acl", "export", "rabbitmq", "--queue", MINE, "--vhost", "producao")
    document = json.loads(done.stdout)
    assert {one["vhost"] for one in document["permissions"]} == {"producao"}
    for line in done.stderr.splitlines()[1:]:
        user, _, password = line.partition(":")
        assert user in ("oraculo", "trabalhador_escavador_meu~1") and len(password) >= 32
        assert password not in done.stdout
    assert done.stdout != Cli(tmp_path)("acl", "export", "rabbitmq", "--queue", MINE).stdout


@pytest.mark.parametrize("arguments", [["rabbitmq"], ["kafka", "--queue", MINE], ["redis", "--queue", "a b"]])
def test_what_is_wrong_is_said(tmp_path: Path, arguments: list[str]) -> None:
    done = Cli(tmp_path)("acl", "export", *arguments)
    assert done.returncode == 2 and done.stderr and not done.stdout
