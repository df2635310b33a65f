"""The proof of the proof: every mutant is noticed, and the correct code never is."""

from __future__ import annotations

import pytest

from oraculo.simulation.mutants import Mutant, hunt, patched, zoo


@pytest.mark.parametrize("mutant", zoo(), ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_every_mutant_is_noticed(mutant: Mutant) -> None:
    assert hunt(mutant) is not None, f"{mutant.name} survived {mutant.seeds} seeds of {mutant.kinds}"


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in zoo()]
    assert len(names) == len(set(names)) >= 40


def test_a_mutant_leaves_nothing_behind() -> None:
    from oraculo.core import results

    before = results.record
    with patched((results, "record", None)):
        assert results.record is None
    assert results.record is before
