from __future__ import annotations

import uuid

from core.given import at
from oraculo.runtime.ids import RunNumbers, new_correlation_id, oldest_run_at


def test_numbers_grow_also_within_a_millisecond_and_when_the_clock_goes_back() -> None:
    numbers = RunNumbers()
    made = [numbers.next(at(when)) for when in (0, 0, 0, 1, 0.5, 2)]
    assert made == sorted(set(made))
    assert made[-1] < 2**63


def test_numbers_hold_the_time() -> None:
    assert oldest_run_at(at(1)) <= RunNumbers().next(at(1)) < oldest_run_at(at(1.001))


def test_numbers_of_several_processes_never_meet() -> None:
    made = [RunNumbers(node) for node in (0, 1, 1023)]
    numbers = [one.next(at(0)) for one in made for _ in range(3000)]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < oldest_run_at(at(0.003))


def test_correlation_ids_are_random_uuids() -> None:
    made = {new_correlation_id() for _ in range(1000)}
    assert len(made) == 1000
    for text in made:
        assert (str(uuid.UUID(text)), uuid.UUID(text).version, uuid.UUID(text).variant) == (text, 4, uuid.RFC_4122)
