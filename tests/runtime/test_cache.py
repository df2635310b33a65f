from __future__ import annotations

from core.given import Story, plan
from oraculo.runtime.kernel.cache import StateCache


def story(run: int, width: int = 1) -> Story:
    return Story(plan(width), run=run, correlation_id=f"c{run}", check=False)


def test_by_run_and_by_correlation_id() -> None:
    cache = StateCache()
    one = story(1)
    cache.put(one.state)
    assert cache.get(1) is one.state and cache.run_of("c1") == 1
    assert cache.get(2) is None and cache.run_of("c2") is None


def test_dropped_is_gone_by_both_names() -> None:
    cache = StateCache()
    cache.put(story(1).state)
    cache.drop(1)
    cache.drop(1)
    assert (cache.get(1), cache.run_of("c1"), len(cache)) == (None, None, 0)


def test_it_is_bounded_by_tickets_and_the_least_recently_used_goes_first() -> None:
    cache = StateCache(max_tickets=30)
    for run in (1, 2, 3):
        cache.put(story(run, 10).state)
    cache.get(1)
    cache.put(story(4, 10).state)
    cache.trim()
    assert [run for run in range(1, 5) if cache.get(run)] == [1, 3, 4]


def test_putting_the_same_again_counts_once() -> None:
    cache = StateCache(max_tickets=15)
    one = story(1, 10)
    for _ in range(5):
        cache.put(one.state)
    cache.trim()
    assert len(cache) == 1


def test_one_that_is_wider_than_the_bound_is_kept_all_the_same() -> None:
    cache = StateCache(max_tickets=5)
    cache.put(story(1, 50).state)
    cache.trim()
    assert len(cache) == 1


def test_a_run_that_grew_counts_as_what_it_is_now_and_leaves_nothing_behind() -> None:
    cache = StateCache(max_tickets=30)
    grown, other = story(1), story(2, 10)
    cache.put(grown.state)
    grown.state.tickets += [type(grown.state.tickets[0])() for _ in range(25)]
    cache.weigh(grown.state)
    cache.put(other.state)
    cache.trim()
    assert (cache.get(1), len(cache)) == (None, 1)
    for run in range(3, 8):
        cache.put(story(run, 10).state)
    cache.trim()
    assert len(cache) == 3


def test_data_counts_too() -> None:
    cache = StateCache(max_tickets=30)
    one, other = story(1), story(2)
    cache.put(one.state)
    cache.put(other.state)
    one.ok(0, b'"' + b"x" * 40_000 + b'"')
    cache.weigh(one.state)
    cache.trim()
    assert (cache.get(1), len(cache)) == (None, 1)
