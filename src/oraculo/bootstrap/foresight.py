"""From settings to what looks ahead: predicted durations, trails of workers, and the alerts of service levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.sinks.sla_topics import SlaTopics
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.notifier import Notifier
from oraculo.ports.projection import Sink
from oraculo.ports.store import Store
from oraculo.runtime.durations.learning import Durations
from oraculo.runtime.loops import Loop
from oraculo.runtime.sla.delivery import AlertDelivery, to_webhook
from oraculo.runtime.sla.monitor import SlaMonitor
from oraculo.runtime.trails import Trails
from oraculo.settings.settings import Settings
from oraculo.wire import sla as wire

if TYPE_CHECKING:
    from oraculo.adapters.sla_management import BudgetService


@dataclass(slots=True)
class Foresight:
    """`durations`: what learns how long tasks take; None when nothing is predicted. `sla`: what watches deadlines and
    objectives; None when nothing does."""

    durations: Durations | None = None
    sla: SlaMonitor | None = None
    deliveries: list[AlertDelivery] = field(default_factory=list)
    trails: Trails | None = None  # of workers; None when nothing follows them
    budgets: BudgetService | None = None  # that another service measures; None when it is not asked

    @classmethod
    def of(cls, settings: Settings, store: Store, clock: Clock) -> Foresight:
        ahead, wanted, chosen = settings.predictions, settings.sla, settings.trails
        durations = Durations(store, ahead.drift, ahead.baseline, ahead.past_errors) if ahead.enabled else None
        budgets = budgets_of(settings)
        sla = None
        if wanted.enabled:
            interval = timedelta(seconds=wanted.interval_s)
            sla = SlaMonitor(
                store, clock, near=wanted.near, durations=durations, interval=interval, critical=wanted.critical
            )
            if budgets is not None:
                sla.outside = lambda: budgets.budgets
        trails = Trails(store, clock, timedelta(seconds=chosen.half_life_s)) if chosen.enabled else None
        return cls(durations, sla, trails=trails, budgets=budgets)

    def deliver(self, settings: Settings, store: Store, broker: Broker, notifier: Notifier | None) -> None:
        """Say where alerts go: topics where there is Fluxo C, and a webhook."""
        if self.sla is None:
            return
        if settings.takes_plans:
            there = broker.other if isinstance(broker, RoutingBroker) else broker
            self.deliveries.append(AlertDelivery(store, "sla_topics", SlaTopics(there, topics_of(settings)).send))
        if settings.sla.webhook and notifier is not None:
            send = to_webhook(notifier, settings.sla.webhook)
            self.deliveries.append(AlertDelivery(store, "sla_webhook", send))

    def sinks(self) -> list[Sink]:
        """What reads the journal."""
        return [one for one in (self.durations, self.sla, self.trails) if one is not None]

    def loops(self) -> Iterator[tuple[str, Loop]]:
        """What runs beside the engine."""
        if self.durations is not None:
            yield "durations", self.durations.run
        if self.trails is not None:
            yield "trails", self.trails.run
        if self.sla is not None:
            yield "sla", self.sla.run
        if self.budgets is not None:
            yield "budgets", self.budgets.run
        for number, one in enumerate(self.deliveries):
            yield f"alerts {number}", one.run


def budgets_of(settings: Settings) -> BudgetService | None:
    """What asks another service for error budgets of this one; None when nothing does."""
    asked = settings.sla.management
    if not asked.enabled or not settings.sla.enabled:
        return None
    from oraculo.adapters.sla_management import BudgetService  # brings an HTTP client

    return BudgetService(
        f"http://{asked.host}:{asked.port}",
        settings.traces.service_name,
        timeout_s=asked.timeout_s,
        interval_s=asked.interval_s,
    )


def topics_of(settings: Settings) -> dict[str, str]:
    """Record → its topic."""
    chosen = settings.sla
    return {
        wire.ALERT: chosen.alerts_topic,
        wire.VIOLATION: chosen.violations_topic,
        wire.BUDGET: chosen.budgets_topic,
        wire.FREEZE: chosen.freezes_topic,
    }
