"""The forms in which the original's services read and write on Kafka: JSON without a schema registry, Avro with the
registry's numbers where there is one. The others are plain clients."""

from __future__ import annotations

import asyncio
import io
import json
import struct
import threading
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest

from acceptance.conftest import Server
from acceptance.hive import FAILED, Hive, as_json, ended, from_json, plan, task, verdict
from acceptance.journals import check
from adapters.test_registry import Registry
from oraculo.wire.flow import schemas
from servers import imitated, shared

pytestmark = pytest.mark.xdist_group("flow_c")
THEIR_NUMBER = 700  # and above: schemas that others registered


@pytest.fixture(scope="module")
def servers() -> str:
    url = shared("kafka")
    if imitated("kafka"):
        pytest.skip("only an imitation of Kafka is here")
    return url.removeprefix("kafka://").rstrip("/")


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    """One that runs beside the test."""
    found, loop = Registry(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(found.start(), loop).result(10)
    for number, record in enumerate(schemas.NUMBERS, THEIR_NUMBER):
        found.add(number, {**schemas.schema(record), "doc": "as others have it"})
    yield found
    asyncio.run_coroutine_threadsafe(found.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def run(hive: Hive, tmp: Any, **env: str) -> Iterator[Server]:
    one = Server(tmp.mktemp("flow_c_formats"), [])
    one.env |= hive.settings | env
    one.up()
    yield one
    assert one.terminate() == 0
    check(one.store)


def story(up: Server, hive: Hive, mark: str) -> None:
    """A plan that fails, one that a human refuses and one that a human lets run, all told to the others."""

    def answer(ticket: dict[str, Any]) -> dict[str, Any]:
        return FAILED if ticket["task_id"] == "breaks" else {}

    with hive.worker(answer) as worker:
        hive.decide(plan(f"{mark}-fails", [task("breaks")]))
        found = ended(up, f"{mark}-fails")["fluxo_c"]
        assert (found["status"], found["errors"]) == ("FAILED", [])
        assert [one["task_type"] for one in worker.tickets] == ["EXECUTE", "COMPENSATE"]
        for name in ("no", "yes"):
            hive.decide(plan(f"{mark}-{name}", [task("a")]), final_decision="review_required")
        requests = "cognitive-plans-approval-requests"
        keys = {f"{mark}-no".encode(), f"{mark}-yes".encode()}
        asked = hive.read(requests, lambda seen: {one.key() for one in seen} >= keys)
        about = [hive.unpack(schemas.COGNITIVE_PLAN, one.value()) for one in asked if one.key() in keys]
        assert {one["plan_id"] for one in about} == {f"{mark}-no", f"{mark}-yes"}
        for one in about:
            assert (one["risk_score"], one["risk_band"]) == (0.2, "low")
            assert one.get("is_destructive", False) is False and one.get("destructive_tasks", []) == []
        responses = "cognitive-plans-approval-responses"
        hive.send(
            responses, hive.pack(schemas.APPROVAL_RESPONSE, verdict(f"{mark}-no", "rejected", "rui", "cedo demais"))
        )
        hive.send(responses, hive.pack(schemas.APPROVAL_RESPONSE, verdict(f"{mark}-yes", "approved", "rui")))
        refused = ended(up, f"{mark}-no")
        assert refused["status"] == "cancelada" and ended(up, f"{mark}-yes")["status"] == "concluida"
        shown = up.call("GET", f"/api/v1/orchestrations/{refused['correlation_id']}")
        assert shown is not None and "cedo demais" in shown.text
    incidents = hive.read(hive.topic("incidents"), bool)
    assert hive.unpack(schemas.INCIDENT, incidents[0].value())["incident_type"] == "WORKER_FAILURE"
    frames = hive.read(hive.topic("telemetry"), lambda seen: len(seen) >= 3)
    assert {json.loads(one.value())["status"] for one in frames} == {"FAILED", "SUCCESS"}


def test_without_a_registry_everything_is_json(servers: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    hive = Hive(servers, as_json, from_json)
    for up in run(hive, tmp_path_factory, KAFKA_MESSAGE_FORMAT="auto"):
        story(up, hive, "json")


def test_with_a_registry_everything_is_avro_with_its_numbers(
    servers: str, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def schema(number: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(registry.schemas[number]["schema"])
        return found

    def pack(record: str, value: dict[str, Any]) -> bytes:
        number = THEIR_NUMBER + list(schemas.NUMBERS).index(record)
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(schema(number)), value)
        return struct.pack(">bI", 0, number) + body.getvalue()

    def unpack(record: str, raw: bytes) -> dict[str, Any]:
        magic, number = struct.unpack_from(">bI", raw)
        assert magic == 0 and schema(number)["name"] == record
        found: Any = fastavro.schemaless_reader(io.BytesIO(raw[5:]), fastavro.parse_schema(schema(number)), None)
        return dict(found)

    hive = Hive(servers, pack, unpack)
    for up in run(hive, tmp_path_factory, KAFKA_MESSAGE_FORMAT="auto", KAFKA_SCHEMA_REGISTRY_URL=registry.url):
        story(up, hive, "avro")
    registered = [path for path in registry.asked if path.startswith("POST")]
    assert any("cognitive-plans-approval-requests-value" in path for path in registered)
    assert not any(hive.topic("telemetry") in path for path in registered)  # its values are JSON
