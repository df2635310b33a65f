"""When an orchestration will end, as the outside sees it: a range, whether that is in time, and a sentence."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from oraculo.core.durations.ending import Risk, RunForecast, Unforeseen
from oraculo.core.sentences import Language

_RISKS: dict[Language, dict[Risk, str]] = {
    "pt": {
        Risk.NONE: "deve terminar no prazo",
        Risk.POSSIBLE: "pode perder o prazo",
        Risk.LIKELY: "vai perder o prazo, pelo que se viu",
        Risk.MISSED: "o prazo passou",
    },
    "en": {
        Risk.NONE: "should end in time",
        Risk.POSSIBLE: "may miss its deadline",
        Risk.LIKELY: "will miss its deadline, by what was seen",
        Risk.MISSED: "the deadline has passed",
    },
}
_UNFORESEEN: dict[Language, dict[Unforeseen, str]] = {
    "pt": {
        Unforeseen.NO_HISTORY: "ainda não se viu quanto demora uma de suas tarefas",
        Unforeseen.HUMAN: "espera por um sinal ou uma decisão, que pode vir a qualquer momento",
        Unforeseen.PAUSED: "está pausada",
    },
    "en": {
        Unforeseen.NO_HISTORY: "it was not seen yet how long one of its tasks takes",
        Unforeseen.HUMAN: "it waits for a signal or a decision, which may come at any time",
        Unforeseen.PAUSED: "it is paused",
    },
}


def shown(
    found: RunForecast | Unforeseen | None, deadline: datetime | None, now: datetime, language: Language
) -> dict[str, Any] | None:
    """None when it has ended. `motivo` says why nothing can be said; then there are no instants."""
    if found is None:
        return None
    if isinstance(found, Unforeseen):
        sentence = _UNFORESEEN[language][found]
        return {"fim_p50": None, "fim_p90": None, "risco": None, "motivo": found.value, "frase": sentence}
    risk = found.risk(deadline, now)
    sentence = _RISKS[language][risk]
    return {"fim_p50": found.p50, "fim_p90": found.p90, "risco": risk.value, "motivo": None, "frase": sentence}
