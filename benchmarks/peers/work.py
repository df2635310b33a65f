"""The work itself, the same for every peer: tiny tasks, and a fan-in that proves it got every result."""

from __future__ import annotations

from typing import Any

COLLECTS = 3
"""Collects in one W1 or SEQ orchestration; one execute follows them."""


def collected(index: int) -> dict[str, Any]:
    """What one collect returns."""
    return {"source": f"source-{index}", "value": index}


def executed(results: list[dict[str, Any]]) -> dict[str, int]:
    """What the fan-in returns, made from the results of all collects."""
    return {"received": len(results), "total": sum(result["value"] for result in results)}


def verify(outcome: dict[str, Any], width: int) -> None:
    """Refuse an outcome whose fan-in did not see `width` different collects."""
    expected = {"received": width, "total": width * (width - 1) // 2}
    if outcome != expected:
        raise RuntimeError(f"fan-in returned {outcome}, expected {expected}")
