"""How close a worker is to a ticket: it did others of the same plan, has others of the same intent, or has critical
work in hand already, which is better spread. The three parts are those of Fluxo C."""

from __future__ import annotations

from dataclasses import dataclass

NEUTRAL = 0.5  # of what says nothing for or against a worker
LEAST_FACTOR = 0.5  # a score is multiplied by this and the affinity: 0.5 to 1.5


@dataclass(frozen=True, slots=True)
class AffinityWeights:
    """What each part counts, together 1; `full_at`: so many tickets of a plan or an intent are as close as can be."""

    plan: float = 0.6
    anti: float = 0.3
    intent: float = 0.1
    full_at: int = 3


@dataclass(frozen=True, slots=True)
class TicketTies:
    """What a ticket has in common with others: its intent (empty: it has none), and whether it is critical."""

    intent: str = ""
    critical: bool = False


NO_TIES = TicketTies()


def affinity(weights: AffinityWeights, of_plan: int, ties: TicketTies, held: tuple[TicketTies, ...]) -> float:
    """0 to 1, where 0.5 says nothing. `of_plan`: tickets of the plan that went to the worker; `held`: what it has."""
    of_intent = sum(bool(ties.intent) and one.intent == ties.intent for one in held)
    apart = NEUTRAL if not ties.critical else 0.0 if any(one.critical for one in held) else 1.0
    parts = weights.plan * _close(of_plan, weights), weights.anti * apart, weights.intent * _close(of_intent, weights)
    return round(sum(parts), 4)


def _close(tickets: int, weights: AffinityWeights) -> float:
    return NEUTRAL + (1.0 - NEUTRAL) * min(1.0, tickets / weights.full_at)
