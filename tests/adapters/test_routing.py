"""Two brokers as one: which queue is where, and whose trouble is whose."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.test_failover import Member
from core.given import Story, coleta, plan
from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.adapters.brokers.kit.tls import TlsOptions
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.registry.http import HttpRegistry
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.api.brokers import members
from oraculo.api.health import state_of_health
from oraculo.bootstrap import flow as flow_parts
from oraculo.core.commands import ConfirmDispatch
from oraculo.core.effects import Publish
from oraculo.core.plan import Task
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind
from oraculo.ports.broker import Broker, Outgoing, PublishReport, Refusal, Settle, Settlement, publish_confirmed
from oraculo.ports.broker_group import process_local
from oraculo.ports.work import Work
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire.flow.topics import Topics
from waiting import until

TOPIC = "execution.tickets"


class Counting(Member):
    """It counts as Kafka's adapter does."""

    def __init__(self) -> None:
        super().__init__("kafka")
        self.produced: Counter[str] = Counter()
        self.consumed: Counter[str] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()


class Pair:
    def __init__(self) -> None:
        self.main, self.other = Member("amqp", "power-safe"), Counting()
        self.both = RoutingBroker(self.main, self.other, Topics().every)


def confirmed(reported: Sequence[Work]) -> int:
    """How many tickets these confirm."""
    return sum(len(one.command.tickets) for one in reported if isinstance(one.command, ConfirmDispatch))


def story(tasks: Sequence[Task]) -> Orchestration:
    state = Story(plan(tasks)).state
    assert state is not None
    return state


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    yield pair
    await pair.both.close()


def message(queue: str) -> Outgoing:
    return Outgoing(queue, queue.encode(), queue)


async def test_every_queue_is_where_it_belongs(pair: Pair) -> None:
    apart = [*Topics().every, "plans.consensus.dlq", "execution.tickets.dlq"]
    here = ["escavador_youtube", "orquestrador_resultados", "execution.ticket", "orquestrador_resultados.dlq"]
    await publish_confirmed(pair.both, [message(queue) for queue in (*apart, *here)])
    for queue in apart:
        assert (await pair.other.backlog(queue)).waiting == (await pair.both.backlog(queue)).waiting == 1
        assert (await pair.main.backlog(queue)).waiting == 0
    for queue in here:
        assert (await pair.main.backlog(queue)).waiting == 1 and (await pair.other.backlog(queue)).waiting == 0


async def test_a_delivery_says_where_it_came_from_and_goes_back_there(pair: Pair) -> None:
    await publish_confirmed(pair.both, [message(TOPIC), message("q")])
    (one,) = await pair.both.fetch(TOPIC, limit=5, wait=1)
    (two,) = await pair.both.fetch("q", limit=5, wait=1)
    assert (one.broker, two.broker) == ("kafka", "amqp")
    await pair.both.settle([Settlement(one, Settle.RETRY), Settlement(two)])
    assert (await pair.both.backlog(TOPIC)).waiting == 1 and (await pair.both.backlog("q")).waiting == 0


async def test_answers_are_expected_where_they_come(pair: Pair) -> None:
    for queue in ("orquestrador_resultados", "execution.results"):
        pair.both.expect(queue)
    assert (pair.main.expected, pair.other.expected) == (["orquestrador_resultados"], ["execution.results"])


class TestPublishing:
    async def report(self, pair: Pair, *queues: str) -> PublishReport:
        return await pair.both.publish([message(queue) for queue in queues])

    async def test_the_one_that_is_away_keeps_nothing_of_the_other_back(self, pair: Pair) -> None:
        pair.other.away = True
        report = await self.report(pair, TOPIC, "q", TOPIC)
        assert [one.queue for one in report.no_queue] == [TOPIC, TOPIC] and report.reason == "away"
        assert (await pair.main.backlog("q")).waiting == 1 and not report.unconfirmed

    async def test_both_are_away(self, pair: Pair) -> None:
        pair.main.away = pair.other.away = True
        report = await self.report(pair, TOPIC, "q")
        assert [one.queue for one in report.unconfirmed] == ["q"]
        assert [one.queue for one in report.no_queue] == [TOPIC]

    async def test_what_either_will_never_take(self, pair: Pair) -> None:
        never, later = message(TOPIC), message("q")
        pair.other.report = PublishReport(refused=[Refusal(never, "too large")], reason="too large")
        pair.main.report = PublishReport(no_queue=[later], reason="no queue yet")
        report = await pair.both.publish([never, later])
        assert report == PublishReport((), [later], [Refusal(never, "too large")], "no queue yet; too large")

    async def test_what_is_for_one_alone_is_its_own_affair(self, pair: Pair) -> None:
        pair.other.away = True
        await publish_confirmed(pair.both, [message("q")])
        assert [one.queue for one in (await self.report(pair, TOPIC)).no_queue] == [TOPIC]

    async def test_messages_for_the_one_that_is_away_hold_up_nobody(self, pair: Pair) -> None:
        reported: list[Work] = []
        store = SqliteStore(":memory:", threads=False)
        ports = KernelPorts(store, pair.both, MonotonicClock())
        runner = EffectRunner(ports, KernelOptions(), reported.extend)
        task = asyncio.create_task(runner.run())
        pair.other.away = True
        tasks = [Task(Kind.EXECUCAO, "x", TOPIC, b"{}", timedelta(seconds=9), 1) for _ in range(5)]
        for state in (story(tasks), story([coleta()])):
            runner.take(state, [Publish([(p, 1) for p in range(len(state.tickets))])])
        await until(lambda: pair.main.depths().get("escavador_youtube") == (1, 0))
        assert TOPIC not in pair.other.depths()
        pair.other.away = False
        await until(lambda: pair.other.depths().get(TOPIC) == (5, 0))
        await until(lambda: confirmed(reported) == 6)
        task.cancel()
        await runner.close()


async def test_together_they_are_as_good_as_the_weaker(pair: Pair) -> None:
    assert await pair.both.durability() == "crash-safe"
    assert pair.both.health().connected
    pair.other.away = True
    assert not pair.both.health().connected and pair.both.health().error == "kafka: away"


class TestAmongOthers:
    """Probes, metrics and the API see each of them by its name."""

    async def test_names(self, pair: Pair) -> None:
        assert list(pair.both.members) == ["amqp", "kafka"] and pair.both.scheme == "amqp+kafka"
        assert (pair.both.active, pair.both.apart, pair.both.epoch) == ("amqp", {"kafka"}, 0)
        twins = RoutingBroker(Member("kafka"), Member("kafka"), ())
        assert list(twins.members) == ["kafka", "kafka-fluxo-c"]

    async def test_it_forgets_what_the_first_forgets(self) -> None:
        memory = RoutingBroker(MemoryBroker(), Member("kafka"), ())
        assert memory.traits.volatile and process_local(memory) is memory.main
        failover = FailoverBroker([Member("amqp"), Member("redis")])
        assert not RoutingBroker(failover, Member("kafka"), ()).traits.volatile

    async def test_failover_of_the_first_goes_on(self) -> None:
        one, two, apart = Member("amqp"), Member("redis"), Member("kafka")
        failover = FailoverBroker([one, two])
        both = RoutingBroker(failover, apart, {TOPIC})
        assert list(both.members) == ["amqp", "redis", "kafka"]
        one.away = True
        for _ in range(5):
            await publish_confirmed(both, [message("q"), message(TOPIC)])
        assert both.active == "redis" and both.epoch == 1 and both.doubted("amqp") and not both.doubted("kafka")
        one.away = False
        for _ in range(3):
            both.probed("amqp", True)
            both.probed("kafka", True)
        taken = await both.fetch("q", limit=10, wait=1)
        assert {delivery.broker for delivery in taken} == {"redis"}
        await both.settle([Settlement(delivery) for delivery in taken])
        await both.close()

    async def test_probes_metrics_and_health(self, pair: Pair) -> None:
        chosen = load({"ORACULO_STORE": "sqlite://", "ORACULO_BROKER": "amqp://h"}, None)
        async with Oraculo(chosen, broker=pair.both) as oraculo:
            assert oraculo.prober is not None
            found = oraculo.prober.found
            await until(lambda: all(probe.ok for probe in found.values()))
            assert [(one["nome"], one["publica"], one["ok"]) for one in members(oraculo)] == [
                ("amqp", True, True), ("kafka", True, True),
            ]  # fmt: skip
            shown = oraculo.metrics.exposition().decode()
            for name in ("amqp", "kafka"):
                assert f'orchestration_broker_active{{broker="{name}"}} 1.0' in shown
            assert "orchestration_broker_switches_total{" not in shown  # nothing ever switches between the two
            assert (await state_of_health(oraculo))["status"] == "ok"
            pair.other.away = True
            assert (await state_of_health(oraculo))["status"] == "degraded"


class TestSettings:
    def made(self, **variables: str) -> Broker:
        return flow_parts.broker_for(load(variables, None))

    async def test_without_kafka_everything_is_on_the_broker(self) -> None:
        assert isinstance(self.made(), MemoryBroker)
        assert isinstance(self.made(ORACULO_BROKER="kafka://k:9092", KAFKA_BOOTSTRAP_SERVERS="k:9092"), KafkaBroker)
        assert isinstance(self.made(ORACULO_FLOW_C="off", KAFKA_BOOTSTRAP_SERVERS="k:9092"), MemoryBroker)

    async def test_with_kafka_the_topics_are_there_and_read_by_the_group_of_the_settings(self) -> None:
        made = self.made(KAFKA_BOOTSTRAP_SERVERS="k:9092,l:9093", KAFKA_CONSUMER_GROUP_ID="g", KAFKA_RESULTS_TOPIC="r")
        assert isinstance(made, RoutingBroker) and isinstance(made.other, KafkaBroker)
        options = made.other._options
        assert (options.servers, options.compression) == (("k:9092", "l:9093"), "gzip")
        assert [options.group_of(queue) for queue in ("plans.consensus", "r", "x")] == ["g", "g", "oraculo.x"]

    async def test_another_kafka_than_the_brokers(self) -> None:
        made = self.made(ORACULO_BROKER="kafka://k", KAFKA_BOOTSTRAP_SERVERS="other:9092")
        assert isinstance(made, RoutingBroker) and list(made.members) == ["kafka", "kafka-fluxo-c"]

    async def test_how_one_logs_in(self) -> None:
        made = self.made(
            KAFKA_BOOTSTRAP_SERVERS="k:9092",
            KAFKA_SECURITY_PROTOCOL="SASL_SSL",
            KAFKA_SASL_MECHANISM="SCRAM-SHA-512",
            KAFKA_SASL_USERNAME="a@b",
            KAFKA_SASL_PASSWORD="p:/?#",
        )
        assert isinstance(made, RoutingBroker) and isinstance(made.other, KafkaBroker)
        options = made.other._options
        assert (options.tls, options.sasl) == (TlsOptions(), "SCRAM-SHA-512")
        assert (options.user, options.password) == ("a@b", "p:/?#")

    async def test_whom_one_trusts_and_what_one_shows(self, tmp_path: Path) -> None:
        files = {name: tmp_path / f"{name} of kafka.pem" for name in ("CA", "CERTIFICATE", "KEY")}
        for path in files.values():
            path.touch()
        given = {f"KAFKA_SSL_{name}_LOCATION": str(path) for name, path in files.items()}
        made = self.made(KAFKA_BOOTSTRAP_SERVERS="k:9092", KAFKA_SECURITY_PROTOCOL="SSL", **given)
        assert isinstance(made, RoutingBroker) and isinstance(made.other, KafkaBroker)
        assert made.other._options.tls == TlsOptions(*map(str, files.values()))
        made = self.made(KAFKA_BOOTSTRAP_SERVERS="k:9092", **given)
        assert isinstance(made, RoutingBroker) and isinstance(made.other, KafkaBroker)
        assert made.other._options.tls is None  # not spoken, whatever files there are

    @pytest.mark.parametrize(
        ("variables", "avro"),
        [
            ({}, False),
            ({"KAFKA_BOOTSTRAP_SERVERS": "k:9092"}, False),
            ({"KAFKA_BOOTSTRAP_SERVERS": "k:9092", "KAFKA_SCHEMA_REGISTRY_URL": "http://r:1"}, True),
            ({"KAFKA_BOOTSTRAP_SERVERS": "k:9092", "KAFKA_MESSAGE_FORMAT": "avro"}, True),
            ({"ORACULO_BROKER": "kafka://k", "KAFKA_MESSAGE_FORMAT": "avro"}, True),
            (
                {
                    "ORACULO_BROKER": "kafka://k",
                    "KAFKA_SCHEMA_REGISTRY_URL": "http://r:1",
                    "KAFKA_MESSAGE_FORMAT": "json",
                },
                False,
            ),
            ({"ORACULO_BROKER": "kafka://k,amqp://h", "KAFKA_MESSAGE_FORMAT": "avro"}, False),
        ],
    )
    async def test_the_form_of_records(self, variables: dict[str, str], avro: bool) -> None:
        settings = load(variables, None)
        raw = flow_parts.codec_of(settings, LocalRegistry()).encode(
            "OrchestrationIncident",
            {
                "incident_id": "i", "workflow_id": "w", "incident_type": "INCONSISTENCY", "severity": "WARNING",
                "details": [], "affected_tickets": [], "correlation_id": "c", "trace_id": "t",
                "recommended_playbook": None, "auto_remediation_enabled": None, "escalation_required": None,
                "created_at": 1, "hash": "h",
            },
        )  # fmt: skip
        assert (raw[:1] == b"\0") is avro

    async def test_the_registry(self) -> None:
        assert isinstance(flow_parts.registry_of(load({}, None)), LocalRegistry)
        chosen = load({"KAFKA_SCHEMA_REGISTRY_URL": "http://registry:8081"}, None)
        assert isinstance(flow_parts.registry_of(chosen), HttpRegistry)
