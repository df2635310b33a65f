"""Destination → queue: the queue on RabbitMQ, the stream on Redis, the subject on NATS, the topic on Kafka."""

from __future__ import annotations

import re
from functools import lru_cache

from oraculo.core.vocabulary import Kind

RESULTS = "orquestrador_resultados"
REQUESTS = "orquestrador_requisicoes"

DLQ = ".dlq"

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}$"
QUEUE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,199}$"
_QUEUE = re.compile(QUEUE_PATTERN)


@lru_cache(4096)
def queue_of(kind: Kind, name: str) -> str:
    return f"escavador_{name}" if kind is Kind.COLETA else f"executador_{name}"


def dead_letter_queue(queue: str) -> str:
    return queue + DLQ


def is_queue_name(text: str) -> bool:
    return _QUEUE.match(text) is not None and not text.endswith("\n")
