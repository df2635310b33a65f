"""Telemetry, incidents and requests for approval of Fluxo C, on the topics where others look for them.

A projection of the journal: while the broker is away nothing is published and nothing is forgotten, and when it is back
everything is, in the order in which it happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from oraculo.core.cognitive import TIPO
from oraculo.core.events import OrchestrationStarted
from oraculo.errors import BrokerError, BrokerUnavailableError, SinkUnavailableError, WireError
from oraculo.ports.broker import Broker, Outgoing
from oraculo.ports.projection import Entry, Sink
from oraculo.runtime import crash
from oraculo.wire import strict_json
from oraculo.wire.flow import schemas, telemetry

log = structlog.get_logger("oraculo.flow_topics")

MOST = 10_000  # messages of a topic that a broker inside this process keeps for nobody
Encode = Callable[[str, dict[str, Any]], bytes]


class FlowTopics(Sink):
    """`topics`: record → where it is published. `encode` writes it, in Avro or JSON; what `plain` names is always JSON.
    `published` counts records; `refused` those that will never be taken, and those that nobody has a queue for, or that
    a broker inside this process has no room for."""

    name = "fluxo_c_topics"
    tipo = TIPO

    def __init__(self, broker: Broker, topics: Mapping[str, str], encode: Encode, plain: Iterable[str] = ()) -> None:
        self._broker = broker
        self._topics = topics
        self._encode = encode
        self._plain = frozenset(plain)
        self.published: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def wants(self, started: OrchestrationStarted) -> bool:
        return started.plan.flow is not None

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
        plain = told.record in self._plain
        try:
            body = strict_json.compact(told.value) if plain else self._encode(told.record, told.value)
        except WireError as error:  # nothing that we wrote ourselves; said, counted, and no reason to stop here
            log.error("cannot be written", record=told.record, plan_id=told.key, error=str(error))
            self.refused[told.record] += 1
            return None
        return Outgoing(self._topics[told.record], body, told.message_id, key=told.key)

    async def _publish(self, outgoing: list[Outgoing], records: Mapping[int, str]) -> None:
        if self._broker.volatile:
            outgoing = await self._bounded(outgoing, records)
        if not outgoing:
            return
        try:
            await self._broker.publish(outgoing)
        except BrokerUnavailableError as error:
            for message, reason in error.refused:
                log.error("the broker will never take this", queue=message.queue, reason=reason)
                self.refused[records[id(message)]] += 1
            if not error.works and (error.unconfirmed is None or error.unconfirmed):
                raise SinkUnavailableError(str(error)) from error
            self.refused.update(records[id(message)] for message in error.unconfirmed or ())
        except BrokerError as error:
            raise SinkUnavailableError(str(error)) from error
        self.published.update(records[id(message)] for message in outgoing)

    async def _bounded(self, outgoing: list[Outgoing], records: Mapping[int, str]) -> list[Outgoing]:
        """Where nobody listens, memory must not fill up."""
        full = {
            queue for queue in {message.queue for message in outgoing}
            if ((await self._broker.backlog(queue)).waiting or 0) >= MOST
        }  # fmt: skip
        self.refused.update(records[id(message)] for message in outgoing if message.queue in full)
        return [message for message in outgoing if message.queue not in full]
