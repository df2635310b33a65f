"""The result of an orchestration: the aggregate, with what its kind of plan adds to it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from oraculo.core.consolidation import aggregate
from oraculo.core.state import Orchestration
from oraculo.wire.flow import sections


def document(state: Orchestration, now: datetime) -> dict[str, Any]:
    """The document of contracts §4, complete when the orchestration has ended."""
    return {**aggregate(state), **sections.of_result(state, now)}
