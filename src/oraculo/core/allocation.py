"""C3: how urgent a ticket is beside all the others, and which class of workers can do it.

The score orders what is published when not all of it may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from oraculo.core.ticket import Qos
from oraculo.core.vocabulary import RiskBand

RISK, QOS, URGENCY = 0.4, 0.3, 0.3  # what each part counts

_RISK = {"critical": 1.0, "high": 0.7, "normal": 0.5, "medium": 0.5, "low": 0.3}
_DELIVERY = {"EXACTLY_ONCE": 1.0, "AT_LEAST_ONCE": 0.7, "AT_MOST_ONCE": 0.5}
_CONSISTENCY = {"STRONG": 1.0, "EVENTUAL": 0.85}
_DURABILITY = {"PERSISTENT": 1.0, "TRANSIENT": 0.9, "EPHEMERAL": 0.8}
Offers = Mapping[str, frozenset[str]]  # class of workers → what it can do
_SLOWER_THAN_ESTIMATED = 1.5
_BOOST = 1.2


def risk_weight(band: RiskBand | str) -> float:
    return _RISK.get(str(band), 0.5)


def qos_weight(qos: Qos) -> float:
    return _DELIVERY[qos.delivery_mode] * _CONSISTENCY[qos.consistency] * _DURABILITY[qos.durability]


def urgency(created: datetime, deadline: datetime, now: datetime) -> float:
    """By the share of its time that is used up."""
    whole = deadline - created
    if whole <= timedelta() or now >= deadline:
        return 1.0
    used = (now - created) / whole
    return 0.3 if used < 0.5 else 0.7 if used < 0.8 else 1.0


def priority_score(
    band: RiskBand,
    qos: Qos,
    created: datetime,
    deadline: datetime,
    now: datetime,
    *,
    predicted_ms: float | None = None,
    estimated_ms: float | None = None,
    anomaly: bool = False,
) -> float:
    score = RISK * risk_weight(band) + QOS * qos_weight(qos) + URGENCY * urgency(created, deadline, now)
    if predicted_ms is not None and estimated_ms and predicted_ms / estimated_ms > _SLOWER_THAN_ESTIMATED:
        score = min(1.0, score * _BOOST)
    if anomaly:
        score = min(1.0, score * _BOOST)
    return min(1.0, max(0.0, score))


def suited(required: Iterable[str], offers: Offers) -> str | None:
    """The class that can do all of it; of several, the one that can do least besides. None when there is none."""
    wanted = frozenset(required)
    able = [(len(can), name) for name, can in offers.items() if wanted <= can]
    return min(able)[1] if able else None
