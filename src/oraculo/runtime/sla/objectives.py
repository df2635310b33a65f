"""Objectives as they stand: what was counted of each, its budget, and what is told when that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson

from oraculo.core.sla.budget import (
    CRITICAL_SHARE,
    LOW_STATUSES,
    PAIRS,
    Budget,
    BudgetStatus,
    Count,
    Minutes,
    OutsideBudget,
    budget_of,
)
from oraculo.core.sla.slo import End, Indicator, Slo
from oraculo.core.sla.watch import AlertKind, alert_id
from oraculo.core.tenants import local_name
from oraculo.ports.sla import Freeze, StoredSlo, ToldAlert
from oraculo.wire import sla as wire

_HOUR, _STANDING = "h/", "s/"  # keys of documents: counts of an hour, what was told


@dataclass(slots=True)
class SloStanding:
    """What was told of an objective: its status, which pairs of windows fire and since when, since when it is frozen,
    and since when its budget is nearly used up."""

    status: str = BudgetStatus.UNKNOWN.value
    firing: dict[str, str] = field(default_factory=dict)
    frozen: str | None = None
    critical: str | None = None

    def as_json(self) -> bytes:
        body = {"status": self.status, "firing": self.firing, "frozen": self.frozen, "critical": self.critical}
        return orjson.dumps(body)


class Objectives:
    """`changed` are keys of documents that have to be written or removed; `critical` is the share of a budget with
    which it is critical."""

    def __init__(self, critical: float = CRITICAL_SHARE) -> None:
        self.critical = critical
        self.slos: dict[str, Slo] = {}
        self.minutes: dict[str, Minutes] = {}
        self.standings: dict[str, SloStanding] = {}
        self.changed: set[str] = set()

    # -- documents -----------------------------------------------------------------------------------------------------

    def define(self, found: Iterable[StoredSlo]) -> None:
        """Take these as the objectives that there are; what was counted of others is forgotten."""
        self.slos = {one.name: wire.read(one.body).slo(one.name) for one in found}
        for name in self.minutes.keys() - self.slos.keys():
            self.changed.update(f"{_HOUR}{name}/{hour}" for hour in self.minutes.pop(name).hours)
        for name in self.standings.keys() - self.slos.keys():
            del self.standings[name]
            self.changed.add(_STANDING + name)

    def load(self, documents: Mapping[str, bytes]) -> None:
        for key, body in documents.items():
            found: Any = orjson.loads(body)
            if key.startswith(_HOUR):
                name, _, hour = key[len(_HOUR) :].rpartition("/")
                hours = self.minutes.setdefault(name, Minutes()).hours
                hours[int(hour)] = {int(minute): counts for minute, counts in found.items()}
            elif key.startswith(_STANDING):
                self.standings[key[len(_STANDING) :]] = SloStanding(**found)

    def take_documents(self) -> dict[str, bytes | None]:
        """What has to be written; it is not said again."""
        keys = set(self.changed)
        for name, minutes in self.minutes.items():
            keys.update(f"{_HOUR}{name}/{hour}" for hour in minutes.changed)
            minutes.changed.clear()
        self.changed.clear()
        return {key: self._document(key) for key in keys}

    def _document(self, key: str) -> bytes | None:
        if key.startswith(_STANDING):
            standing = self.standings.get(key[len(_STANDING) :])
            return None if standing is None else standing.as_json()
        name, _, hour = key[len(_HOUR) :].rpartition("/")
        minutes = self.minutes.get(name)
        counts = None if minutes is None else minutes.hours.get(int(hour))
        return None if counts is None else orjson.dumps({str(minute): pair for minute, pair in counts.items()})

    # -- counting ------------------------------------------------------------------------------------------------------

    def count(self, ends: Iterable[End], at: datetime) -> None:
        if not self.slos:
            return
        for end in ends:
            for name, slo in self.slos.items():
                good = slo.judge(end)
                if good is not None:
                    self.minutes.setdefault(name, Minutes()).add(at, good)

    def budget(self, name: str, now: datetime) -> Budget:
        return budget_of(self.slos[name], self.minutes.get(name) or Minutes(), now, self.critical)

    def frozen(self, tenant: str) -> tuple[Freeze, ...]:
        found = []
        for name, slo in self.slos.items():
            standing = self.standings.get(name)
            if slo.tenant == tenant and slo.freeze is not None and standing is not None and standing.frozen is not None:
                reason = f"the error budget of {local_name(name)} is used up to {slo.freeze.below:.0%} or less"
                since = datetime.fromisoformat(standing.frozen)
                found.append(Freeze(local_name(name), slo.service, slo.freeze.actions, since, reason))
        return tuple(found)

    # -- telling -------------------------------------------------------------------------------------------------------

    def evaluate(self, now: datetime) -> list[ToldAlert]:
        """What has changed since it was told; every change has an id of its own."""
        told: list[ToldAlert] = []
        for name, slo in self.slos.items():
            minutes = self.minutes.get(name)
            if minutes is None:
                continue
            gone = minutes.forget(now - slo.window)
            self.changed.update(f"{_HOUR}{name}/{hour}" for hour in gone)
            budget = budget_of(slo, minutes, now, self.critical)
            standing = self.standings.setdefault(name, SloStanding())
            before = standing.as_json()
            told += self._burns(slo, budget, standing, now)
            told += self._status(slo, budget, standing, now)
            told += self._freeze(slo, budget, standing, now)
            if standing.as_json() != before:
                self.changed.add(_STANDING + name)
        return told

    def _burns(self, slo: Slo, budget: Budget, standing: SloStanding, now: datetime) -> Iterable[ToldAlert]:
        for pair in PAIRS:
            fires, since = pair.name in budget.firing, standing.firing.get(pair.name)
            if fires and since is None:
                standing.firing[pair.name] = now.isoformat()
                kind, id = AlertKind.BURN_RATE, alert_id(slo.name, "burn", pair.name, now.isoformat())
                record = wire.slo_alert_record(slo, kind, id, budget, pair.severity, now)
                yield _told(slo, kind, id, now, record)
            elif not fires and since is not None:
                del standing.firing[pair.name]

    def _status(self, slo: Slo, budget: Budget, standing: SloStanding, now: datetime) -> Iterable[ToldAlert]:
        low = budget.status in LOW_STATUSES
        if budget.status.value != standing.status:
            id = alert_id(slo.name, "budget", standing.status, budget.status.value, now.isoformat())
            standing.status = budget.status.value
            yield _told(slo, AlertKind.BUDGET_CHANGED, id, now, wire.budget_record(slo, budget, id, now))
        if low and standing.critical is None:
            standing.critical = now.isoformat()
            id = alert_id(slo.name, "critical", standing.critical)
            record = wire.slo_alert_record(slo, AlertKind.BUDGET, id, budget, "CRITICAL", now)
            yield _told(slo, AlertKind.BUDGET, id, now, record)
        elif not low:
            standing.critical = None

    def _freeze(self, slo: Slo, budget: Budget, standing: SloStanding, now: datetime) -> Iterable[ToldAlert]:
        rule, left = slo.freeze, budget.remaining
        if rule is None:
            standing.frozen = None
            return
        if standing.frozen is None and left is not None and left <= rule.below:
            standing.frozen = now.isoformat()
            kind = AlertKind.FROZEN
        elif standing.frozen is not None and (left is None or left >= rule.above):
            kind = AlertKind.THAWED
        else:
            return
        since, id = datetime.fromisoformat(standing.frozen), alert_id(slo.name, kind.value, now.isoformat())
        if kind is AlertKind.THAWED:
            standing.frozen = None
        yield _told(slo, kind, id, now, wire.freeze_record(slo, kind, id, since, budget, now))


def outside_alert(one: OutsideBudget, now: datetime) -> ToldAlert:
    """A budget of another service that is critical; the same all day long."""
    slo = Slo(one.slo, Indicator.RUNS_DONE, 0.0, timedelta(), one.service)
    kind, id = AlertKind.BUDGET, alert_id(one.slo, "outside", now.date().isoformat())
    budget = Budget(Count(), one.remaining, (), ())
    return _told(slo, kind, id, now, wire.slo_alert_record(slo, kind, id, budget, "CRITICAL", now))


def _told(slo: Slo, kind: AlertKind, id: str, now: datetime, record: dict[str, Any]) -> ToldAlert:
    return ToldAlert(id, slo.tenant, None, kind.value, now, orjson.dumps(record))
