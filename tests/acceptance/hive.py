"""The others on Kafka: who decides on plans and who works on tickets, as plain clients with the Avro schemas alone."""

from __future__ import annotations

import io
import json
import secrets
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

import fastavro
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from acceptance.conftest import Server
from oraculo.wire.flow import schemas
from waiting import DEADLINE_S, eventually

Answer = Callable[[dict[str, Any]], dict[str, Any] | None]


def frame(record: str, value: dict[str, Any]) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schemas.schema(record)), value)
    return struct.pack(">bI", 0, schemas.NUMBERS[record]) + body.getvalue()


def unframe(record: str, raw: bytes) -> dict[str, Any]:
    magic, number = struct.unpack_from(">bI", raw)
    assert (magic, number) == (0, schemas.NUMBERS[record])
    file = io.BytesIO(raw[5:])
    found: dict[str, Any] = fastavro.schemaless_reader(file, fastavro.parse_schema(schemas.schema(record)))
    assert not file.read(), "bytes are left over"
    return found


def task(name: str, *needs: str, kind: str = "EXECUTE", **more: Any) -> dict[str, Any]:
    return {"task_id": name, "task_type": kind, "description": f"do {name}", "dependencies": list(needs), **more}


DIAMOND = [task("a", kind="BUILD"), task("b", "a"), task("c", "a", kind="TEST"), task("d", "b", "c", kind="DEPLOY")]


def plan(plan_id: str, tasks: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "plan_id": plan_id,
        "intent_id": f"intent-of-{plan_id}",
        "version": "1.0.0",
        "correlation_id": f"corr-{plan_id}",
        "tasks": list(tasks),
        "execution_order": [one["task_id"] for one in tasks],
        "risk_score": 0.2,
        "risk_band": "low",
        "risk_factors": {"size": 0.2},
        "complexity_score": 0.1,
        "explainability_token": "token",
        "reasoning_summary": "because",
        "status": "approved",
        "created_at": int(time.time() * 1000),
        "original_domain": "TECHNICAL",
        "original_priority": "NORMAL",
        "original_security_level": "INTERNAL",
        "schema_version": 1,
        **more,
    }


def decision(about: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "decision_id": f"decision-on-{about['plan_id']}",
        "plan_id": about["plan_id"],
        "intent_id": about["intent_id"],
        "correlation_id": about["correlation_id"],
        "trace_id": None,
        "span_id": None,
        "final_decision": "approve",
        "consensus_method": "voting",
        "aggregated_confidence": 0.9,
        "aggregated_risk": 0.1,
        "specialist_votes": [],
        "consensus_metrics": {
            "divergence_score": 0.1, "convergence_time_ms": 5, "unanimous": True, "fallback_used": False,
            "pheromone_strength": 0.5, "bayesian_confidence": 0.9, "voting_confidence": 0.9,
        },
        "explainability_token": "token",
        "reasoning_summary": "all agree",
        "compliance_checks": {"policy": True},
        "guardrails_triggered": [],
        "cognitive_plan": json.dumps(about),
        "requires_human_review": False,
        "created_at": int(time.time() * 1000),
        "valid_until": None,
        "metadata": {},
        "hash": "0" * 64,
        "schema_version": 1,
        **more,
    }  # fmt: skip


def as_json(_record: str, value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def from_json(_record: str, raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(raw)
    return found


def verdict(plan_id: str, decision: str, by: str, reason: str | None = None) -> dict[str, Any]:
    """An answer as the original's approval service gives it."""
    return {
        "plan_id": plan_id,
        "intent_id": f"intent-of-{plan_id}",
        "decision": decision,
        "approved_by": by,
        "approved_at": int(time.time() * 1000),
        "rejection_reason": reason,
        "cognitive_plan_json": None,
    }


class Hive:
    """On one Kafka, with topics of its own. `settings` are what the orchestrator is told of it; `pack` and `unpack` are
    how the others write and read records."""

    def __init__(
        self,
        servers: str,
        pack: Callable[[str, dict[str, Any]], bytes] = frame,
        unpack: Callable[[str, bytes], dict[str, Any]] = unframe,
    ) -> None:
        self.pack, self.unpack = pack, unpack
        mark = secrets.token_hex(4)
        self.servers = servers
        self.settings = {
            "KAFKA_BOOTSTRAP_SERVERS": servers,
            "KAFKA_CONSENSUS_TOPIC": f"plans.consensus.{mark}",
            "KAFKA_TICKETS_TOPIC": f"execution.tickets.{mark}",
            "KAFKA_RESULTS_TOPIC": f"execution.results.{mark}",
            "KAFKA_TELEMETRY_TOPIC": f"telemetry.orchestration.{mark}",
            "KAFKA_INCIDENTS_TOPIC": f"orchestration.incidents.{mark}",
            "KAFKA_CONSUMER_GROUP_ID": f"orchestrator-{mark}",
            "KAFKA_MESSAGE_FORMAT": "avro",
        }
        self._producer = Producer({**self.connection, "acks": "all", "enable.idempotence": True})

    @property
    def connection(self) -> dict[str, Any]:
        """As they come, clients wait up to ten seconds until they look again for a server that was away."""
        return {"bootstrap.servers": self.servers, "reconnect.backoff.max.ms": 500, "log_level": 0}

    def topic(self, name: str) -> str:
        return self.settings[f"KAFKA_{name.upper()}_TOPIC"]

    def send(self, topic: str, raw: bytes, key: str = "") -> None:
        failed: list[Any] = []
        self._producer.produce(
            topic, raw, key=key.encode() or None, on_delivery=lambda error, _: failed.append(error) if error else None
        )
        assert self._producer.flush(30) == 0
        assert failed == []

    def decide(self, about: dict[str, Any], **more: Any) -> None:
        self.send(
            self.topic("consensus"), self.pack(schemas.CONSOLIDATED_DECISION, decision(about, **more)), about["plan_id"]
        )

    def read(self, topic: str, enough: Callable[[list[Any]], bool], patience: float = 60.0) -> list[Any]:
        """All messages of a topic, from its beginning, until there are enough."""
        consumer = self._consumer(topic, f"look-{secrets.token_hex(4)}")
        found: list[Any] = []
        try:
            until = time.monotonic() + patience
            while not enough(found):
                assert time.monotonic() < until, f"{len(found)} messages in {topic}, not enough"
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    found.append(message)
        finally:
            consumer.close()
        return found

    def everything(self, topic: str) -> list[Any]:
        """All that a topic has now; nothing when there is no such topic."""
        consumer = self._client(f"look-{secrets.token_hex(4)}")
        found: list[Any] = []
        try:
            known = consumer.list_topics(timeout=30).topics
            parts = [TopicPartition(topic, number, 0) for number in known[topic].partitions] if topic in known else []
            until = time.monotonic() + DEADLINE_S
            total = sum(self._length(consumer, part, until) for part in parts)
            consumer.assign(parts)
            while len(found) < total:
                assert time.monotonic() < until, f"{len(found)} of {total} messages in {topic}"
                found += [one for one in consumer.consume(100, 0.1) if one.error() is None]
        finally:
            consumer.close()
        return found

    @staticmethod
    def _length(consumer: Consumer, part: TopicPartition, until: float) -> int:
        while True:
            try:
                first, end = consumer.get_watermark_offsets(part, timeout=30)
                return int(end - first)
            except KafkaException:  # a server that has just come back does not lead it yet
                assert time.monotonic() < until, f"nobody knows how long {part} is"
                time.sleep(0.05)

    def _consumer(self, topic: str, group: str) -> Consumer:
        consumer = self._client(group)
        consumer.subscribe([topic])
        return consumer

    def _client(self, group: str) -> Consumer:
        return Consumer(
            {
                **self.connection,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
                "allow.auto.create.topics": True,
            }
        )

    def worker(self, answer: Answer | None = None, agent: str = "agent-1") -> Worker:
        return Worker(self, answer or (lambda _ticket: {}), agent)


class Worker(threading.Thread):
    """Takes tickets, and answers each attempt once. `answer` gives what differs from a success; None: silence."""

    def __init__(self, hive: Hive, answer: Answer, agent: str) -> None:
        super().__init__(daemon=True)
        self._hive, self._answer, self._agent = hive, answer, agent
        self._stopping = threading.Event()
        self.tickets: list[dict[str, Any]] = []
        self.attempts: Counter[tuple[str, str]] = Counter()  # (ticket_id, attempt) → messages

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join(30)

    def run(self) -> None:
        consumer = self._hive._consumer(self._hive.topic("tickets"), f"workers-{secrets.token_hex(4)}")
        producer = Producer({**self._hive.connection, "acks": "all", "linger.ms": 2})
        try:
            while not self._stopping.is_set():
                for message in consumer.consume(100, 0.1):
                    if message.error() is None:
                        self._take(self._hive.unpack(schemas.EXECUTION_TICKET, message.value()), producer)
                producer.poll(0)
        finally:
            producer.flush(10)
            consumer.close()

    def _take(self, ticket: dict[str, Any], producer: Producer) -> None:
        self.tickets.append(ticket)
        self.attempts[ticket["ticket_id"], ticket["metadata"]["attempt"]] += 1
        more = self._answer(ticket)
        if more is None:
            return
        value = {
            "ticket_id": ticket["ticket_id"],
            "status": "COMPLETED",
            "result": {"success": True, "output": {"task": ticket["task_id"]}, "metadata": {}, "logs": []},
            "error_message": None,
            "actual_duration_ms": 5,
            "agent_id": self._agent,
            "timestamp": int(time.time() * 1000),
            "schema_version": 1,
            **more,
        }
        producer.produce(
            self._hive.topic("results"),
            self._hive.pack(schemas.EXECUTION_RESULT, value),
            key=ticket["ticket_id"].encode(),
        )


def ended(server: Server, plan_id: str) -> dict[str, Any]:
    """The final document of a plan that came over Kafka: it is not there yet when somebody asks too early."""

    def arrived() -> str | None:
        answer = server.call("GET", f"/api/v1/workflows/orch-{plan_id}")
        return None if answer is None or answer.status_code != 200 else str(answer.json()["correlation_id"])

    return server.result(eventually(arrived, f"{plan_id} arrives"))


FAILED = {
    "status": "FAILED",
    "result": {"success": False, "output": {}, "metadata": {"definitivo": "true"}, "logs": []},
    "error_message": "it broke",
}
