"""C3: how urgent the tickets of a plan are (core/priority.py), and which class of workers can do them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oraculo.core.flow import service_levels
from oraculo.core.flow.service_levels import Qos
from oraculo.core.priority import PriorityScore, fresh_score
from oraculo.core.vocabulary import Priority, RiskBand

_RISK_WEIGHTS = {"critical": 1.0, "high": 0.7, "normal": 0.5, "medium": 0.5, "low": 0.3}
_PRIORITY_WEIGHTS = {Priority.CRITICAL: 1.0, Priority.HIGH: 0.7, Priority.NORMAL: 0.5, Priority.LOW: 0.3}
_DELIVERY_WEIGHTS = {"EXACTLY_ONCE": 1.0, "AT_LEAST_ONCE": 0.7, "AT_MOST_ONCE": 0.5}
_CONSISTENCY_WEIGHTS = {"STRONG": 1.0, "EVENTUAL": 0.85}
_DURABILITY_WEIGHTS = {"PERSISTENT": 1.0, "TRANSIENT": 0.9, "EPHEMERAL": 0.8}
Offers = Mapping[str, frozenset[str]]  # class of workers → what it can do


def risk_weight(band: RiskBand | str) -> float:
    return _RISK_WEIGHTS.get(str(band), 0.5)


def qos_weight(qos: Qos) -> float:
    return (
        _DELIVERY_WEIGHTS[qos.delivery_mode]
        * _CONSISTENCY_WEIGHTS[qos.consistency]
        * _DURABILITY_WEIGHTS[qos.durability]
    )


def priority_lift(band: RiskBand, priority: Priority) -> float:
    """How far a priority is above what a plan of this band has that asks for none; below zero when it is lower."""
    return round(_PRIORITY_WEIGHTS[priority] - _PRIORITY_WEIGHTS[service_levels.priority(band, None)], 6)


def score_of_plan(band: RiskBand, priority: Priority | None) -> PriorityScore:
    """The score of a fresh ticket; without a priority, as before priorities counted."""
    risk, qos = risk_weight(band), round(qos_weight(service_levels.qos(band)), 6)
    lift = 0.0 if priority is None else priority_lift(band, priority)
    return fresh_score(risk, qos, lift)


def suited(required: Iterable[str], offers: Offers) -> str | None:
    """The class that can do all of it; of several, the one that can do least besides. None when there is none."""
    wanted = frozenset(required)
    able = [(len(can), name) for name, can in offers.items() if wanted <= can]
    return min(able)[1] if able else None
