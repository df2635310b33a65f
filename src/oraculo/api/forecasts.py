"""When an orchestration will end, as the API and the dashboard say it."""

from __future__ import annotations

from typing import Any

from oraculo.core.sentences import Language
from oraculo.service import Oraculo
from oraculo.wire.forecasts import shown


async def forecast_of(oraculo: Oraculo, correlation_id: str, language: Language) -> dict[str, Any] | None:
    """The forecast of an open orchestration; None when it has ended, or nothing is predicted."""
    if oraculo.durations is None:
        return None
    state = await oraculo.state(correlation_id)
    now = oraculo.now()
    return shown(oraculo.durations.foresee(state, now), state.deadline, now, language)
