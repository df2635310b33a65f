"""What each Kafka topic of Fluxo C needs, dead letters and alerts included: partitions, and how long records are kept.

Compression is left to producers: what Oráculo writes is gzip, which every Kafka client can read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from oraculo.wire import names
from oraculo.wire.flow.topics import Topics

REPLICAS = 3  # wanted of a topic, where there are as many brokers
MESSAGE_MAX_BYTES = 8 * 1024 * 1024
SLA_PARTITIONS, SLA_RETENTION_DAYS = 3, 30  # alerts are few, and looked for afterwards


@dataclass(frozen=True, slots=True)
class TopicNeed:
    name: str
    partitions: int
    retention: timedelta


def needs_of(topics: Topics, partitions: int | None = None, sla: Iterable[str] = ()) -> list[TopicNeed]:
    """One for each topic, by its name; `partitions` is for all of them instead of what each should have. `sla` are the
    topics on which alerts of service levels are told, where they are."""
    rows = [
        (topics.consensus, 6, 7),
        (topics.tickets, 12, 7),
        (topics.results, 6, 7),
        (topics.telemetry, 12, 14),
        (topics.incidents, 6, 30),
        (topics.events, 3, 7),
        (topics.approval_requests, 3, 7),
        (topics.approval_responses, 3, 30),
    ]
    rows += [(names.dead_letter_queue(name), 3, 30) for name in (*topics.read, topics.tickets)]
    rows += [(name, SLA_PARTITIONS, SLA_RETENTION_DAYS) for name in sla]
    return sorted(
        (TopicNeed(name, partitions or wanted, timedelta(days=days)) for name, wanted, days in rows),
        key=lambda need: need.name,
    )
