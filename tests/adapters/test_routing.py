"""Two brokers as one: which queue is where, and whose trouble is whose."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta

import pytest

from adapters.test_failover import Member
from core.given import Story, coleta, plan
from oraculo import flow_parts
from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.registry.http import HttpRegistry
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.api.brokers import members
from oraculo.api.health import state_of_health
from oraculo.bootstrap import Oraculo
from oraculo.core.effects import Publish
from oraculo.core.plan import Task
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind
from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import Broker, Outgoing, Settle, Settlement, expect
from oraculo.runtime.perform import Performer
from oraculo.runtime.work import Work
from oraculo.settings import load
from oraculo.wire.flow.topics import Topics

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
        self.main.volatile = False
        self.both = RoutingBroker(self.main, self.other, Topics().every)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _no_result(_run: int) -> bytes | None:
    return None


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
    await pair.both.publish([message(queue) for queue in (*apart, *here)])
    for queue in apart:
        assert (await pair.other.backlog(queue)).waiting == (await pair.both.backlog(queue)).waiting == 1
        assert (await pair.main.backlog(queue)).waiting == 0
    for queue in here:
        assert (await pair.main.backlog(queue)).waiting == 1 and (await pair.other.backlog(queue)).waiting == 0


async def test_a_delivery_says_where_it_came_from_and_goes_back_there(pair: Pair) -> None:
    await pair.both.publish([message(TOPIC), message("q")])
    (one,) = await pair.both.fetch(TOPIC, limit=5, wait=1)
    (two,) = await pair.both.fetch("q", limit=5, wait=1)
    assert (one.broker, two.broker) == ("kafka", "amqp")
    await pair.both.settle([Settlement(one, Settle.RETRY), Settlement(two)])
    assert (await pair.both.backlog(TOPIC)).waiting == 1 and (await pair.both.backlog("q")).waiting == 0


async def test_answers_are_expected_where_they_come(pair: Pair) -> None:
    for queue in ("orquestrador_resultados", "execution.results"):
        expect(pair.both, queue)
    assert (pair.main.expected, pair.other.expected) == (["orquestrador_resultados"], ["execution.results"])


class TestPublishing:
    async def failure(self, pair: Pair, *queues: str) -> BrokerUnavailableError:
        with pytest.raises(BrokerUnavailableError) as error:
            await pair.both.publish([message(queue) for queue in queues])
        return error.value

    async def test_the_one_that_is_away_keeps_nothing_of_the_other_back(self, pair: Pair) -> None:
        pair.other.away = True
        error = await self.failure(pair, TOPIC, "q", TOPIC)
        assert [one.queue for one in error.unconfirmed or ()] == [TOPIC, TOPIC]
        assert (await pair.main.backlog("q")).waiting == 1 and error.works

    async def test_both_are_away(self, pair: Pair) -> None:
        pair.main.away = pair.other.away = True
        error = await self.failure(pair, TOPIC, "q")
        assert sorted(one.queue for one in error.unconfirmed or ()) == sorted([TOPIC, "q"]) and not error.works

    async def test_what_either_will_never_take(self, pair: Pair) -> None:
        never, later = message(TOPIC), message("q")
        pair.other.error = BrokerUnavailableError("too large", unconfirmed=[], refused=[(never, "too large")])
        pair.main.error = BrokerUnavailableError("no queue yet", works=True)
        with pytest.raises(BrokerUnavailableError) as error:
            await pair.both.publish([never, later])
        assert error.value.refused == [(never, "too large")] and error.value.unconfirmed == [later]
        assert error.value.works
        pair.main.error = BrokerUnavailableError("away")
        assert not (await self.failure(pair, TOPIC, "q")).works

    async def test_an_error_of_another_kind_concerns_its_own_share(self, pair: Pair) -> None:
        pair.main.error = BrokerError("odd")  # type: ignore[assignment]
        error = await self.failure(pair, TOPIC, "q")
        assert [one.queue for one in error.unconfirmed or ()] == ["q"]

    async def test_what_is_for_one_alone_is_its_own_affair(self, pair: Pair) -> None:
        pair.other.away = True
        await pair.both.publish([message("q")])
        assert [one.queue for one in (await self.failure(pair, TOPIC)).unconfirmed or ()] == [TOPIC]

    async def test_messages_for_the_one_that_is_away_hold_up_nobody(self, pair: Pair) -> None:
        reported: list[Work] = []
        performer = Performer(pair.both, None, MonotonicClock(), reported.extend, _no_result)
        task = asyncio.create_task(performer.run())
        pair.other.away = True
        tasks = [Task(Kind.EXECUCAO, "x", TOPIC, b"{}", timedelta(seconds=9), 1) for _ in range(5)]
        for state in (story(tasks), story([coleta()])):
            performer.take(state, [Publish([(p, 1) for p in range(len(state.tickets))])])
        await until(lambda: pair.main.depths().get("escavador_youtube") == (1, 0))
        assert TOPIC not in pair.other.depths()
        pair.other.away = False
        await until(lambda: pair.other.depths().get(TOPIC) == (5, 0))
        await until(lambda: sum(len(one.command.tickets) for one in reported) == 6)  # type: ignore[union-attr]
        task.cancel()
        await performer.close()


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
        assert memory.volatile and memory.depths() == {}
        failover = FailoverBroker([Member("amqp"), Member("redis")])
        assert not RoutingBroker(failover, Member("kafka"), ()).volatile

    async def test_failover_of_the_first_goes_on(self) -> None:
        one, two, apart = Member("amqp"), Member("redis"), Member("kafka")
        failover = FailoverBroker([one, two])
        both = RoutingBroker(failover, apart, {TOPIC})
        assert list(both.members) == ["amqp", "redis", "kafka"]
        one.away = True
        for _ in range(5):
            await both.publish([message("q"), message(TOPIC)])
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
            engine = oraculo.engine
            assert engine.prober is not None
            found = engine.prober.found
            await until(lambda: all(probe.ok for probe in found.values()))
            assert [(one["nome"], one["publica"], one["ok"]) for one in members(engine)] == [
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
        assert (options.tls, options.sasl, options.user, options.password) == (True, "SCRAM-SHA-512", "a@b", "p:/?#")

    @pytest.mark.parametrize(
        ("variables", "avro"),
        [
            ({}, False),
            ({"KAFKA_BOOTSTRAP_SERVERS": "k:9092"}, True),
            ({"ORACULO_BROKER": "kafka://k"}, True),
            ({"ORACULO_BROKER": "kafka://k,amqp://h"}, False),
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
