"""Destination → queue: the queue on RabbitMQ, the stream on Redis, the subject on NATS, the topic on Kafka."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from oraculo import patterns
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, queue_in
from oraculo.core.vocabulary import Kind

RESULTS = "orquestrador_resultados"
REQUESTS = "orquestrador_requisicoes"
WORKERS = "orquestrador_workers"  # where workers of a broker say that they are there
OWN_PREFIX = "orquestrador_"

PROBE = "oraculo_sonda"  # messages that test a broker
DLQ = ".dlq"

NAME_PATTERN, QUEUE_PATTERN = patterns.NAME_PATTERN, patterns.QUEUE_PATTERN
_QUEUE = re.compile(QUEUE_PATTERN)


@lru_cache(4096)
def queue_of(kind: Kind, name: str) -> str:
    return f"escavador_{name}" if kind is Kind.COLETA else f"executador_{name}"


class QueueNames:
    """The queues of destinations of a tenant: the usual one of each, or the one that a setting gives it."""

    __slots__ = ("_others", "tenant")

    def __init__(self, others: Mapping[str, str] | None = None, tenant: str = DEFAULT_TENANT) -> None:
        self._others = dict(others or {})  # usual name → the one to use
        self.tenant = tenant

    def of(self, kind: Kind, name: str) -> str:
        """The queue of a destination."""
        return self.instead_of(queue_of(kind, name))

    def instead_of(self, usual: str) -> str:
        """The queue to use where this is the usual one."""
        queue = self._others.get(usual, usual)
        return queue if self.tenant == DEFAULT_TENANT else in_tenant(self.tenant, queue)

    def meant(self, queue: str) -> str:
        """The queue that the tenant means when it names one itself. One of another tenant stays what it is."""
        return queue_in(self.tenant, queue) or queue

    def within(self, tenant: str) -> QueueNames:
        """The queues of the same destinations of another tenant."""
        return self if tenant == self.tenant else QueueNames(self._others, tenant)


USUAL = QueueNames()


def worker_queue(worker: str) -> str:
    """The queue that a worker of this name alone takes from: what it is told, and what it is offered."""
    return "trabalhador_" + "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "-" for one in worker)


def is_own(queue: str) -> bool:
    """True for names that the orchestrator keeps for itself, whatever it is set to."""
    return queue.startswith(OWN_PREFIX) or queue == PROBE or queue.endswith(DLQ)


def dead_letter_queue(queue: str) -> str:
    return queue + DLQ


def is_queue_name(text: str) -> bool:
    return _QUEUE.match(text) is not None and not text.endswith("\n")
