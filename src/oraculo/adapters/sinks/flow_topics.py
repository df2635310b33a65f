"""Telemetry, incidents and requests for approval of Fluxo C, on the topics where others look for them.

A projection of the journal: while the broker is away nothing is published and nothing is forgotten, and when it is back
everything is, in the order in which it happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from oraculo.core.events import OrchestrationStarted
from oraculo.core.flow.cognitive import TIPO
from oraculo.core.flow.profile import flow_in
from oraculo.errors import SinkUnavailableError, WireError
from oraculo.ports.broker import Broker, Outgoing
from oraculo.ports.projection import Entry, Sink
from oraculo.runtime import crash
from oraculo.wire.flow import schemas, telemetry

log = structlog.get_logger("oraculo.flow_topics")

MEMORY_TOPIC_MAX_MESSAGES = 10_000  # that a broker inside this process keeps while no consumer reads them
Encode = Callable[[str, dict[str, Any]], bytes]


class FlowTopics(Sink):
    """`topics`: record → where it is published. `encode` writes it, in Avro or JSON. `published` counts records;
    `refused` those that will never be taken, and those that have no queue, or that a broker inside this process has no
    room for."""

    name = "fluxo_c_topics"
    tipo = TIPO

    def __init__(self, broker: Broker, topics: Mapping[str, str], encode: Encode) -> None:
        self._broker = broker
        self._topics = topics
        self._encode = encode
        self.published: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def wants(self, started: OrchestrationStarted) -> bool:
        return flow_in(started.plan) is not None

    async def record(self, entries: Iterable[Entry]) -> None:
        messages: dict[int, str] = {}  # id of a message → its record
        outgoing: list[Outgoing] = []
        for entry in entries:
            step = entry.step
            for told in telemetry.tell(entry.state, step.first, step.at, step.events):
                message = self._message(told)
                if message is not None:
                    messages[id(message)] = told.record
                    outgoing.append(message)
        frame = schemas.TELEMETRY_FRAME in messages.values()
        if frame:
            crash.point("before_frame")
        await self._publish(outgoing, messages)
        if frame:
            crash.point("after_frame")

    def _message(self, told: telemetry.Told) -> Outgoing | None:
        try:
            body = self._encode(told.record, told.value)
        except WireError as error:  # nothing that we wrote ourselves; said, counted, and no reason to stop here
            log.error("cannot be written", record=told.record, plan_id=told.key, error=str(error))
            self.refused[told.record] += 1
            return None
        return Outgoing(self._topics[told.record], body, told.message_id, key=told.key)

    async def _publish(self, outgoing: list[Outgoing], records: Mapping[int, str]) -> None:
        if self._broker.traits.volatile:
            outgoing = await self._bounded(outgoing, records)
        if not outgoing:
            return
        report = await self._broker.publish(outgoing)
        for refusal in report.refused:
            log.error("the broker will never take this", queue=refusal.message.queue, reason=refusal.reason)
            self.refused[records[id(refusal.message)]] += 1
        if report.unconfirmed or report.no_room:
            raise SinkUnavailableError(report.reason)
        self.refused.update(records[id(message)] for message in report.no_queue)
        self.published.update(records[id(message)] for message in outgoing)

    async def _bounded(self, outgoing: list[Outgoing], records: Mapping[int, str]) -> list[Outgoing]:
        """Leave out messages of topics that are full: without a consumer, memory must not fill up."""
        full = {
            queue for queue in {message.queue for message in outgoing}
            if ((await self._broker.backlog(queue)).waiting or 0) >= MEMORY_TOPIC_MAX_MESSAGES
        }  # fmt: skip
        self.refused.update(records[id(message)] for message in outgoing if message.queue in full)
        return [message for message in outgoing if message.queue not in full]
