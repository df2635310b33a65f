"""Each fan-in policy: how many successes it needs, and what a count decides."""

from __future__ import annotations

import pytest

from oraculo.core.fan_in import POLICIES, REQUEST_MODES, GateCount, decide, needed
from oraculo.core.vocabulary import FanIn
from oraculo.errors import PlanError

Y, N, W = True, False, None  # it passes, it cannot pass any more, it waits


@pytest.mark.parametrize(
    ("mode", "minimum", "successes"),
    [
        (FanIn.TODOS, None, 1),
        (FanIn.QUORUM, 2, 2),
        (FanIn.PRIMEIRO, None, 1),
        (FanIn.TODAS_OK, None, 3),
        (FanIn.FECHADAS, None, 0),
    ],
)
def test_successes_needed_of_three_inputs(mode: FanIn, minimum: int | None, successes: int) -> None:
    assert needed(mode, minimum, 3) == successes


@pytest.mark.parametrize(
    ("mode", "required", "decisions"),
    [  # for (closed, of which ok) = (0,0) (1,0) (1,1) (2,0) (2,1) (2,2) (3,0) (3,1) (3,2) (3,3)
        (FanIn.TODOS, 1, [W, W, W, W, W, W, N, Y, Y, Y]),
        (FanIn.TODOS, 0, [W, W, W, W, W, W, Y, Y, Y, Y]),
        (FanIn.QUORUM, 2, [W, W, W, N, W, Y, N, N, Y, Y]),
        (FanIn.PRIMEIRO, 1, [W, W, Y, W, Y, Y, N, Y, Y, Y]),
        (FanIn.TODAS_OK, 3, [W, N, W, N, N, W, N, N, N, Y]),
        (FanIn.FECHADAS, 0, [W, W, W, W, W, W, Y, Y, Y, Y]),
    ],
)
def test_what_a_count_of_three_inputs_decides(mode: FanIn, required: int, decisions: list[bool | None]) -> None:
    counts = [GateCount(ok, closed) for closed in range(4) for ok in range(closed + 1)]
    assert [decide(mode, required, 3, count) for count in counts] == decisions


@pytest.mark.parametrize(
    ("mode", "required", "decisions"),
    [  # two of three inputs were skipped; the third is open, concluded, failed, skipped
        (FanIn.TODOS, 1, [W, Y, N, N]),
        (FanIn.QUORUM, 2, [W, N, N, N]),
        (FanIn.PRIMEIRO, 1, [W, Y, N, N]),
        (FanIn.TODAS_OK, 3, [W, Y, N, N]),
        (FanIn.FECHADAS, 0, [W, Y, Y, N]),
    ],
)
def test_skipped_inputs_count_neither_way(mode: FanIn, required: int, decisions: list[bool | None]) -> None:
    counts = [
        GateCount(0, 2, skipped=2),
        GateCount(1, 3, skipped=2),
        GateCount(0, 3, skipped=2),
        GateCount(0, 3, skipped=3),
    ]
    assert [decide(mode, required, 3, count) for count in counts] == decisions


@pytest.mark.parametrize(
    ("mode", "minimum", "said"),
    [
        (FanIn.QUORUM, None, "fan_in.modo quorum needs fan_in.minimo"),
        (FanIn.QUORUM, 0, "fan_in.minimo is 0; allowed: 1 to 3"),
        (FanIn.QUORUM, 4, "fan_in.minimo is 4; allowed: 1 to 3"),
        (FanIn.TODOS, 1, "fan_in.minimo goes with modo quorum, not with todos"),
    ],
)
def test_a_minimum_that_does_not_fit_is_refused(mode: FanIn, minimum: int | None, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        needed(mode, minimum, 3)


def test_every_word_has_a_policy() -> None:
    assert set(POLICIES) == set(FanIn)
    assert REQUEST_MODES == ("todos", "quorum", "primeiro")
