"""The parts of an affinity, as Fluxo C has them."""

from __future__ import annotations

import pytest

from oraculo.core.affinity import NO_TIES, AffinityWeights, TicketTies, affinity
from oraculo.core.candidates import WorkerFacts, scored

USUAL = AffinityWeights()
CRITICAL = TicketTies(critical=True)
INTENT = TicketTies("i")


def test_nothing_in_common_says_nothing() -> None:
    assert affinity(USUAL, 0, NO_TIES, ()) == 0.5
    assert affinity(USUAL, 0, NO_TIES, (CRITICAL, INTENT)) == 0.5


@pytest.mark.parametrize(("tickets", "found"), [(1, 0.6), (2, 0.7), (3, 0.8), (50, 0.8)])
def test_the_tickets_of_a_plan_count_up_to_the_threshold(tickets: int, found: float) -> None:
    assert affinity(USUAL, tickets, NO_TIES, ()) == pytest.approx(found)


def test_critical_tickets_keep_away_from_each_other() -> None:
    assert affinity(USUAL, 0, CRITICAL, ()) == pytest.approx(0.65)
    assert affinity(USUAL, 0, CRITICAL, (INTENT,)) == pytest.approx(0.65)
    assert affinity(USUAL, 0, CRITICAL, (INTENT, CRITICAL)) == pytest.approx(0.35)


def test_tickets_of_the_same_intent_count_while_the_worker_has_them() -> None:
    assert affinity(USUAL, 0, INTENT, (INTENT, TicketTies("other"))) == pytest.approx(0.5 + 0.1 / 6, abs=1e-4)
    assert affinity(USUAL, 0, INTENT, (INTENT,) * 3) == pytest.approx(0.55)


def test_a_score_is_multiplied_by_it_and_the_candidate_shows_both() -> None:
    worker = WorkerFacts("w", "w")
    off, on = scored(worker, None), scored(worker, None, affinity=0.8)
    assert off.affinity is None
    assert on.affinity == 0.8
    assert on.score == pytest.approx(1.3 * off.score, abs=1e-4)
