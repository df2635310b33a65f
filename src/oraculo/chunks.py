"""Cutting sequences into pieces that fit: by number, or by size in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def chunks_by_count(items: Sequence[T], max_count: int) -> Iterator[Sequence[T]]:
    """Yield consecutive slices of at most `max_count` items; nothing when there are no items."""
    for start in range(0, len(items), max_count):
        yield items[start : start + max_count]


def chunks_by_size(items: Iterable[T], max_bytes: int, size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield consecutive lists whose sizes add up to at most `max_bytes`; nothing when there are no items.

    An item that is larger than `max_bytes` by itself gets a list of its own: whether it can travel is the caller's
    question."""
    chunk: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if chunk and total + size > max_bytes:
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += size
    if chunk:
        yield chunk
