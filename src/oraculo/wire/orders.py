"""The messages that tell workers what to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime

from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.broker import Outgoing
from oraculo.wire import payloads, trace_context
from oraculo.wire.flow.orders import Encode, TicketDress
from oraculo.wire.signatures import HEADER as SIGNATURE_HEADER


class OrderWriter:
    """`encode` writes a record in Avro, for the queues in `topics`; without it everything is JSON. `refer` says which
    orders refer to their data; `issue` gives their tokens, `sign` the signatures of their bodies; without them they
    have none."""

    def __init__(
        self,
        encode: Encode | None = None,
        topics: Collection[str] = (),
        refer: payloads.Refer | None = None,
        issue: payloads.Issue | None = None,
        sign: Callable[[bytes], str] | None = None,
    ) -> None:
        self._dress = TicketDress(encode, topics)
        self._refer = refer
        self._issue = issue
        self._sign = sign

    def write(self, state: Orchestration, tickets: Iterable[tuple[int, int]], now: datetime) -> Iterator[Outgoing]:
        """One message for each (position, attempt), in that order."""
        flow = flow_in(state.plan)
        if flow is None and self._sign is None and state.traceparent is None:
            for queue, message_id, body in payloads.orders(state, tickets, now, self._refer, self._issue):
                yield Outgoing(queue, body, message_id, awaits_reader=True)
            return
        tickets = list(tickets)
        orders = payloads.orders(state, tickets, now, self._refer, self._issue)
        for (position, attempt), (queue, message_id, body) in zip(tickets, orders, strict=True):
            message = Outgoing(queue, body, message_id, awaits_reader=True)
            if state.traceparent is not None:
                message.headers = {trace_context.HEADER: payloads.trace_of(state, position, attempt)}
            if flow is not None:
                self._dress.put_on(message, flow, state, position, now, self._token(state, position, attempt))
            if self._sign is not None:
                message.headers = {**(message.headers or {}), SIGNATURE_HEADER: self._sign(message.body)}
            yield message

    def _token(self, state: Orchestration, position: int, attempt: int) -> str | None:
        if self._issue is None:
            return None
        ticket = ticket_id(state.run, position)
        return self._issue(f"{ticket}.{attempt}", ticket, attempt, state.correlation_id)
