"""The messages that tell workers what to do: envelopes of ours, and the tickets of Fluxo C.

A ticket of Fluxo C travels in Avro where Kafka's users expect it, with the registry's framing. Everywhere else it is
one JSON object that is both: an ExecutionTicket, and an envelope that a plain worker can answer as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime

from oraculo.core.flow import Flow
from oraculo.core.state import Orchestration
from oraculo.ports.broker import Outgoing
from oraculo.wire import payloads, strict_json, trace_context
from oraculo.wire.flow.tickets import allocation as allocated
from oraculo.wire.flow.tickets import execution_ticket

UNDOING = ("original_ticket_id", "action", "reason")  # what a worker has to know to undo something
Encode = Callable[[str, dict[str, object]], bytes]


class OrderWriter:
    """`encode` writes a record in Avro, for the queues in `topics`; without it everything is JSON."""

    def __init__(self, encode: Encode | None = None, topics: Collection[str] = ()) -> None:
        self._encode = encode
        self._topics = frozenset(topics) if encode is not None else frozenset()

    def write(self, state: Orchestration, tickets: Iterable[tuple[int, int]], now: datetime) -> Iterator[Outgoing]:
        """One message for each (position, attempt), in that order."""
        tickets = list(tickets)
        flow = state.plan.flow
        for (position, attempt), (queue, message_id, body) in zip(
            tickets, payloads.orders(state, tickets, now), strict=True
        ):
            message = Outgoing(queue, body, message_id)
            if state.traceparent is not None:
                message.headers = {trace_context.HEADER: payloads.trace_of(state, position, attempt)}
            if flow is not None:
                self._as_ticket(message, state, flow, position, now)
            yield message

    def _as_ticket(self, message: Outgoing, state: Orchestration, flow: Flow, position: int, now: datetime) -> None:
        record = execution_ticket(state, position, now)
        record["status"] = "PENDING"  # it is the worker who runs it
        message.key = flow.plan_id or flow.intent_id or str(record["ticket_id"])
        message.headers = {**(message.headers or {}), **_headers(flow)}
        if message.queue in self._topics:
            assert self._encode is not None
            message.body = self._encode("ExecutionTicket", record)
        else:
            record["allocation_metadata"] = allocated(state, position, now)
            envelope = strict_json.loads_trusted(message.body)
            if flow.specs[position].compensates is not None:
                told = {name: record["parameters"][name] for name in UNDOING}
                envelope["payload"]["parametros"] = {**envelope["payload"]["parametros"], **told}
            message.body = strict_json.compact({**record, **envelope})


def _headers(flow: Flow) -> dict[str, str]:
    said = {
        "x-neural-hive-intent-id": flow.intent_id,
        "x-neural-hive-plan-id": flow.plan_id,
        "x-neural-hive-trace-id": flow.trace_id,
        "x-neural-hive-span-id": flow.span_id,
    }
    return {name: value for name, value in said.items() if value}
