"""`oraculo topics` on a real Kafka: makes what is missing, names what is too small, and makes nothing smaller."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from cli.processes import Cli
from oraculo.wire.flow.topic_table import needs_of
from oraculo.wire.flow.topics import Topics
from servers import own

pytestmark = pytest.mark.xdist_group("topics")  # on one server, the first test on an empty one
NEEDED = {need.name: need for need in needs_of(Topics())}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of our own: the names of topics are given."""
    with own("kafka", tmp_path_factory.mktemp("kafka")) as server:
        yield f"127.0.0.1:{server.port}"


def created(where: str, name: str, partitions: int, **config: str) -> None:
    async def create() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=where)
        await client.start()
        await client.create_topics(
            [
                NewTopic(
                    name, partitions, 1, topic_configs={key.replace("_", "."): value for key, value in config.items()}
                )
            ]
        )
        await client.close()

    asyncio.run(create())


def settings_of(where: str, name: str) -> dict[str, str]:
    async def ask() -> dict[str, str]:
        client = AIOKafkaAdminClient(bootstrap_servers=where)
        await client.start()
        (answer,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        await client.close()
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}

    return asyncio.run(ask())


def states(document: Any) -> dict[str, str]:
    return {one["topic"]: one["state"] for one in document["topics"]}


def test_what_is_missing_is_named_then_made_then_fine(alone: Cli, where: str) -> None:
    env = {"KAFKA_BOOTSTRAP_SERVERS": where}
    before = alone("topics", "check", **env)
    assert before.returncode == 1
    assert before.stdout == ""
    assert [line.split()[2] for line in before.stderr.splitlines()] == sorted(NEEDED)

    assert states(alone.json("topics", "check", code=1, **env)) == dict.fromkeys(NEEDED, "missing"), "none was made"
    assert states(alone.json("topics", "ensure", **env)) == dict.fromkeys(NEEDED, "created")
    for arguments in (["ensure"], ["check"]):
        found = alone.json("topics", *arguments, **env)
        assert found["ok"] is True
        assert states(found) == dict.fromkeys(NEEDED, "ok")
        assert {one["topic"]: one["partitions"] for one in found["topics"]} == {
            name: need.partitions for name, need in NEEDED.items()
        }
    kept = settings_of(where, "orchestration.incidents")
    assert kept["retention.ms"] == str(30 * 24 * 3600 * 1000)
    assert kept["min.insync.replicas"] == "1"
    assert kept["max.message.bytes"] == str(8 * 1024 * 1024)
    assert kept["compression.type"] == "producer"


def test_too_few_partitions_are_one_line_and_grow_only_when_asked(alone: Cli, where: str) -> None:
    name = f"poucas.{secrets.token_hex(4)}"
    created(where, name, 2, retention_ms="1000")
    env = {"KAFKA_BOOTSTRAP_SERVERS": where, "KAFKA_TICKETS_TOPIC": name}
    alone("topics", "ensure", **env)
    for arguments in (["check"], ["ensure"]):
        done = alone("topics", *arguments, "--json", **env)
        assert done.returncode == 1
        assert json.loads(done.stdout)["ok"] is False
        (line,) = [line for line in done.stderr.splitlines() if "partitions" in line]
        assert line.startswith(f"oraculo: topic {name} has too few partitions: 2, 12 are needed")
    done = alone("topics", "ensure", "--grow", **env)
    assert done.returncode == 0
    assert f"topic {name}: now has 12 partitions" in done.stdout
    assert f"topic {name} keeps records for 1000 ms, less than" in done.stderr, "told of, and not changed"
    assert settings_of(where, name)["retention.ms"] == "1000"


def test_a_topic_that_has_more_than_it_needs_is_left_alone(alone: Cli, where: str) -> None:
    name = f"muitas.{secrets.token_hex(4)}"
    created(where, name, 24)
    env = {"KAFKA_BOOTSTRAP_SERVERS": where, "KAFKA_TICKETS_TOPIC": name}
    found = alone.json("topics", "ensure", "--grow", **env)
    assert next(one for one in found["topics"] if one["topic"] == name)["partitions"] == 24


def test_a_small_cluster_says_how_small(alone: Cli, where: str) -> None:
    env = {
        "KAFKA_BOOTSTRAP_SERVERS": where,
        "KAFKA_RESULTS_TOPIC": f"um.{secrets.token_hex(4)}",
    }
    found = alone.json("topics", "ensure", "--partitions", "1", **env)
    assert {one["partitions_needed"] for one in found["topics"]} == {1}
    assert next(one for one in found["topics"] if one["topic"].startswith("um."))["partitions"] == 1
    asked = alone("topics", "check", "--partitions", "1", "--replication", "3", **env)
    assert asked.returncode == 1
    assert "has too few replicas: 1, 3 are needed" in asked.stderr


def test_topics_of_alerts_are_made_where_service_levels_are_watched(alone: Cli, where: str) -> None:
    env = {"KAFKA_BOOTSTRAP_SERVERS": where, "ORACULO_SLA": "true", "SLA_ALERTS_TOPIC": f"a.{secrets.token_hex(4)}"}
    told = {env["SLA_ALERTS_TOPIC"], "sla.violations", "sla.budgets", "sla.freeze.events"}
    looked = states(alone.json("topics", "check", code=1, **env))
    assert looked.keys() == NEEDED.keys() | told
    assert looked[env["SLA_ALERTS_TOPIC"]] == "missing"
    made = {one["topic"]: one for one in alone.json("topics", "ensure", "--partitions", "1", **env)["topics"]}
    assert {name for name in told if made[name]["state"] in ("created", "ok")} == told
    assert {made[name]["retention_ms"] for name in told} == {30 * 24 * 3600 * 1000}


def test_a_broker_of_kafka_is_taken_when_there_is_no_other(alone: Cli, where: str) -> None:
    assert alone.json("topics", "ensure", "--partitions", "1", ORACULO_BROKER=f"kafka://{where}")["ok"] is True


@pytest.mark.parametrize("command", ["check", "ensure"])
class TestBadInput:
    def test_no_kafka_is_one_line(self, alone: Cli, command: str) -> None:
        done = alone("topics", command)
        assert done.returncode == 2
        assert done.stderr.startswith("oraculo: there is no Kafka: set KAFKA_BOOTSTRAP_SERVERS")
        assert len(done.stderr.splitlines()) == 1

    def test_a_cluster_that_is_not_there_is_one_line(self, alone: Cli, command: str) -> None:
        done = alone("topics", command, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1")
        assert done.returncode == 5
        assert len(done.stderr.splitlines()) == 1
        assert "127.0.0.1:1" in done.stderr


def test_every_topic_of_fluxo_c_is_in_the_table() -> None:
    dead = {f"{name}.dlq" for name in (*Topics().read, Topics().tickets)}
    assert frozenset(NEEDED) == Topics().every | dead
