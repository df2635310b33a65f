"""Alerts, violations, budgets and freezes on the topics where others look for them, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from oraculo.adapters.sinks.flow_topics import MEMORY_TOPIC_MAX_MESSAGES
from oraculo.core.sla.watch import AlertKind
from oraculo.errors import SinkUnavailableError
from oraculo.ports.broker import Broker, Outgoing
from oraculo.ports.sla import ToldAlert
from oraculo.wire.sla import record_of

log = structlog.get_logger("oraculo.sla")


class SlaTopics:
    """`topics`: record → where it is published."""

    def __init__(self, broker: Broker, topics: Mapping[str, str]) -> None:
        self._broker = broker
        self._topics = topics

    async def send(self, alerts: Sequence[ToldAlert]) -> None:
        """Publish them; SinkUnavailableError: all of them come again."""
        outgoing = [
            Outgoing(self._topics[record_of(AlertKind(one.kind))], one.body, one.id, key=one.id) for one in alerts
        ]
        if self._broker.traits.volatile:  # without a consumer, memory must not fill up
            waiting = {queue: (await self._broker.backlog(queue)).waiting or 0 for queue in self._topics.values()}
            outgoing = [one for one in outgoing if waiting[one.queue] < MEMORY_TOPIC_MAX_MESSAGES]
        if not outgoing:
            return
        report = await self._broker.publish(outgoing)
        for refusal in report.refused:
            log.error("the broker will never take this", queue=refusal.message.queue, reason=refusal.reason)
        if report.unconfirmed or report.no_room or report.no_queue:
            raise SinkUnavailableError(report.reason or "a topic of alerts does not exist")
