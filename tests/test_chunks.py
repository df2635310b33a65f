from __future__ import annotations

from oraculo.chunks import chunks_by_count, chunks_by_size


def test_by_count_keeps_the_order_and_the_rest() -> None:
    assert list(chunks_by_count([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]


def test_by_count_of_nothing_is_nothing() -> None:
    assert list(chunks_by_count([], 2)) == []


def test_by_size_fills_each_chunk_up_to_the_limit() -> None:
    assert list(chunks_by_size([b"ab", b"c", b"d", b"efg"], 3, len)) == [[b"ab", b"c"], [b"d"], [b"efg"]]


def test_by_size_gives_an_item_that_is_too_large_a_chunk_of_its_own() -> None:
    assert list(chunks_by_size([b"a", b"bcdef", b"g"], 3, len)) == [[b"a"], [b"bcdef"], [b"g"]]


def test_by_size_of_nothing_is_nothing() -> None:
    assert list(chunks_by_size([], 3, len)) == []
