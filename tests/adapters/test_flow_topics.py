"""Telemetry of Fluxo C on its topics: what cannot be published now is not forgotten, whoever else the broker serves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.given import Story
from core.test_flow import made, node
from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.adapters.sinks.flow_topics import MEMORY_TOPIC_MAX_MESSAGES, FlowTopics
from oraculo.bootstrap.flow import codec_of, topics_of, topics_sink
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import SinkUnavailableError
from oraculo.ports.broker import Broker, Outgoing, publish_confirmed
from oraculo.ports.journal import Recorded
from oraculo.ports.projection import Entry
from oraculo.settings.settings import load

SETTINGS = load({}, None)


def sink_on(broker: Broker) -> FlowTopics:
    return topics_sink(SETTINGS, broker, codec_of(SETTINGS, LocalRegistry()))


def a_plan_that_ended() -> list[Entry]:
    story = Story(made(node("a")))
    story.ok(0)
    return entries_of(story)


def entries_of(story: Story) -> list[Entry]:
    entries, first = [], 1
    for at, events in story.journal:
        entries.append(Entry(Recorded(story.run, first, at, events), story.state))
        first += len(events)
    return entries


async def test_what_a_kafka_that_is_away_does_not_take_comes_again() -> None:
    """It waits although the main broker works, and is fit to say so of messages that nobody has a queue for."""
    kafka = KafkaBroker("kafka://127.0.0.1:9?confirm_timeout=1")
    broker = RoutingBroker(MemoryBroker(), kafka, topics_of(SETTINGS).every)
    sink = sink_on(broker)
    try:
        with pytest.raises(SinkUnavailableError):
            await sink.record(a_plan_that_ended())
        assert not sink.published and not sink.refused
    finally:
        await broker.close()


async def test_the_same_step_is_told_with_the_same_ids_in_the_same_order() -> None:
    broker = MemoryBroker()
    sink = sink_on(broker)
    for _ in range(2):
        await sink.record(a_plan_that_ended())
    told = [json.loads(one.body) for one in await broker.fetch("telemetry-flow-c", limit=100, wait=1)]
    assert told[: len(told) // 2] == told[len(told) // 2 :]
    assert [told[0]["event_type"], told[len(told) // 2 - 1]["event_type"]] == ["FLOW_C_STARTED", "FLOW_C_COMPLETED"]
    assert len(await broker.fetch("telemetry.orchestration", limit=10, wait=1)) == 2


async def test_where_nobody_listens_memory_does_not_fill_up() -> None:
    broker = MemoryBroker()
    await publish_confirmed(broker, [Outgoing("telemetry-flow-c", b"{}", "") for _ in range(MEMORY_TOPIC_MAX_MESSAGES)])
    sink = sink_on(broker)
    await sink.record(a_plan_that_ended())
    assert (await broker.backlog("telemetry-flow-c")).waiting == MEMORY_TOPIC_MAX_MESSAGES
    assert sink.refused["FlowCTelemetryEvent"] > 0 and sink.published["TelemetryFrame"] == 1


async def test_only_what_is_in_this_process_is_forgotten_with_it() -> None:
    broker = RoutingBroker(MemoryBroker(), KafkaBroker("kafka://127.0.0.1:9"), {"execution.tickets"})
    try:
        assert (broker.forgets("execution.tickets"), broker.forgets("escavador_x")) == (False, True)
        assert broker.main.forgets("execution.tickets")
    finally:
        await broker.close()


def parameters_of(incident: dict[str, Any]) -> dict[str, str]:
    """Of the playbook: the last of its details."""
    name, _, text = incident["details"][-1].partition("=")
    assert name == "parameters"
    found: dict[str, str] = json.loads(text)
    assert all(isinstance(value, str) for value in found.values())
    return found


async def test_an_incident_has_what_a_playbook_needs() -> None:
    story = Story(made(node("a"), node("b")))
    story.confirm(when=0)
    answer = story.answer(0, ok=False, definitivo=True, dados=b'{"agent_id":"agente-7"}')
    story.do(answer, 5)
    story.wake(15_000)  # the deadline of the plan has passed
    broker = MemoryBroker()
    await sink_on(broker).record(entries_of(story))
    found = [json.loads(one.body) for one in await broker.fetch("orchestration.incidents", limit=10, wait=1)]
    told = {one["incident_type"]: parameters_of(one) for one in found}
    broken, silent = told["WORKER_FAILURE"], told["TICKET_TIMEOUT"]
    assert broken["worker_id"] == "agente-7" and broken["ticket_id"] == ticket_id(story.run, 0)
    assert broken["task_id"] == "a" and broken["attempts"] == "1" and broken["delay_ms"] == "600000"
    assert silent["ticket_id"] == ticket_id(story.run, 1) and "worker_id" not in silent
    assert int(silent["delay_ms"]) > 0
    for one in found:
        assert parameters_of(one)["incident_id"] == one["incident_id"]
        assert parameters_of(one)["workflow_id"] == one["workflow_id"]


async def test_what_does_not_fit_together_is_an_incident() -> None:
    """A clock that was turned back: the first task was done before it began, says its journal."""
    story = Story(made(node("a"), node("b", "a")))
    story.confirm(0, when=10)
    story.ok(0, when=4)
    story.confirm(1, when=5)
    story.ok(1, when=6)
    broker = MemoryBroker()
    sink = sink_on(broker)
    for _ in range(2):
        await sink.record(entries_of(story))
    told = [json.loads(one.body) for one in await broker.fetch("orchestration.incidents", limit=10, wait=1)]
    assert len({one["incident_id"] for one in told}) == 1  # whenever it is seen again
    assert {(one["incident_type"], one["severity"]) for one in told} == {("INCONSISTENCY", "WARNING")}
    assert "a completed before it started" in json.dumps(told[0])
    frames = [json.loads(one.body) for one in await broker.fetch("telemetry.orchestration", limit=10, wait=1)]
    assert frames[0]["status"] == "SUCCESS"
