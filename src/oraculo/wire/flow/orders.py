"""Orders of Fluxo C: an order becomes an ExecutionTicket.

A ticket travels in Avro where Kafka's users expect it, with the registry's framing. Everywhere else it is one JSON
object that is both: an ExecutionTicket, and an envelope that a plain worker can answer as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from oraculo.core.flow.profile import Flow
from oraculo.core.state import Orchestration
from oraculo.ports.broker import Outgoing
from oraculo.wire import strict_json
from oraculo.wire.flow.tickets import allocation, execution_ticket
from oraculo.wire.ticket_tokens import HEADER

UNDO_PARAMETERS = ("original_ticket_id", "action", "reason")  # what a worker has to know to undo something
Encode = Callable[[str, dict[str, object]], bytes]


class TicketDress:
    """`encode` writes a record in Avro, for the queues in `topics`; without it everything is JSON."""

    def __init__(self, encode: Encode | None, topics: Collection[str]) -> None:
        self._encode = encode
        self._topics = frozenset(topics)

    def put_on(
        self,
        message: Outgoing,
        flow: Flow,
        state: Orchestration,
        position: int,
        now: datetime,
        token: str | None = None,
    ) -> None:
        """Make an order of a plan of Fluxo C an ExecutionTicket. In Avro the record has no field for a token: it goes
        into the metadata, and into a header."""
        record = execution_ticket(state, position, now)
        record["status"] = "PENDING"  # it is the worker who runs it
        _no_tries_of_its_own(record)
        message.key = flow.plan_id or flow.intent_id or str(record["ticket_id"])
        message.headers = {**(message.headers or {}), **_headers(flow)}
        if self._encode is not None and message.queue in self._topics:
            if token is not None:
                record["metadata"] = {**record["metadata"], "token": token}
                message.headers[HEADER] = token
            message.body = self._encode("ExecutionTicket", record)
        else:
            record["allocation_metadata"] = allocation(state, position, now)
            envelope = strict_json.loads_trusted(message.body)
            if flow.specs[position].compensates is not None:
                told = {name: record["parameters"][name] for name in UNDO_PARAMETERS}
                envelope["payload"]["parametros"] = {**envelope["payload"]["parametros"], **told}
            message.body = strict_json.compact({**record, **envelope})


def _no_tries_of_its_own(record: dict[str, Any]) -> None:
    """Say to a worker that it is to try once: the original's workers try `max_retries` times more by themselves, and
    each of ours would become as many. How often it is tried in all is in the metadata."""
    attempts = record["sla"]["max_retries"] + 1
    record["sla"] = {**record["sla"], "max_retries": 0}
    record["metadata"] = {**record["metadata"], "max_attempts": str(attempts)}


def _headers(flow: Flow) -> dict[str, str]:
    said = {
        "x-neural-hive-intent-id": flow.intent_id,
        "x-neural-hive-plan-id": flow.plan_id,
        "x-neural-hive-trace-id": flow.trace_id,
        "x-neural-hive-span-id": flow.span_id,
    }
    return {name: value for name, value in said.items() if value}
