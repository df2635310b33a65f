"""A thousand plans survive every way of writing them."""

from __future__ import annotations

import pytest

from oraculo.plans.reader import load, read
from oraculo.plans.writer import write
from plans.generated import PlanMaker

SEEDS = range(1000)


@pytest.mark.parametrize("hundred", range(10))
def test_generated_plans_survive_json_in_both_vocabularies(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        plan = PlanMaker(seed).plan()
        reading = read(plan)
        assert reading.faults == (), (seed, plan)
        assert reading.request is not None
        portuguese = write(reading.request, "pt")
        assert portuguese == plan, seed
        english = write(reading.request, "en")
        back = load(english)
        assert write(back, "pt") == plan, seed
        assert write(back, "en") == english, seed
        assert load(portuguese) == reading.request
