"""A priority score in words: what it is made of, in the reader's language."""

from __future__ import annotations

from oraculo.core.priority import PRIORITY_SHARE, QOS_SHARE, RISK_SHARE, URGENCY_SHARE, PriorityScore
from oraculo.core.sentences import DEFAULT_LANGUAGE, Language
from oraculo.core.vocabulary import Priority, RiskBand

_WORDS: dict[Language, tuple[str, str, str, str]] = {
    "pt": ("risco {band}", "qualidade de serviço", "urgência", "prioridade {priority}"),
    "en": ("risk {band}", "quality of service", "urgency", "priority {priority}"),
}


def explain(score: PriorityScore, band: RiskBand, priority: Priority, language: Language = DEFAULT_LANGUAGE) -> str:
    """The sum that makes the score, part by part: share × weight of each, and what it stands for."""
    names = [words.format(band=band.value, priority=priority.value) for words in _WORDS[language]]
    weights = (score.risk, score.qos, score.urgency, score.lift)
    shares = (RISK_SHARE, QOS_SHARE, URGENCY_SHARE, PRIORITY_SHARE)
    parts = [f"{share:g} × {weight:g} ({name})" for share, weight, name in zip(shares, weights, names, strict=True)]
    return f"{score.value:g} = {' + '.join(parts)}".replace("+ 0.2 × -", "− 0.2 × ")
