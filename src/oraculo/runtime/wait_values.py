"""What a wait is evaluated to: its seconds, its instant or its question."""

from __future__ import annotations

from typing import Any

from oraculo.core.waits import WAIT_MAX, Wait, WaitKind, instant_of
from oraculo.expressions.output import as_text
from oraculo.plans.faults import shown
from oraculo.runtime.evaluator import EXPRESSION_SHOWN_CHARS, Evaluator, FaultError
from oraculo.wire import strict_json


def awaited(evaluator: Evaluator, wait: Wait, template: bytes) -> bytes:
    """The seconds, the instant or the question of a wait, as JSON text."""
    word = f"espera.{wait.kind.value}{'.pergunta' if wait.kind is WaitKind.APPROVAL else ''}"
    said = strict_json.loads_trusted(template)
    value = evaluator.text(said, word) if isinstance(said, str) else said
    wrong = _wrong(wait.kind, value)
    if wrong:
        raise FaultError(word, str(said)[:EXPRESSION_SHOWN_CHARS], f"{wrong}, not {shown(value)}")
    if wait.kind is WaitKind.APPROVAL and not isinstance(value, str | None):
        value = as_text(value)
    return strict_json.compact(value)


def _wrong(kind: WaitKind, value: Any) -> str:
    """What a wait needs and this value is not; empty when it is."""
    if kind is WaitKind.SECONDS:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        most = round(WAIT_MAX.total_seconds())
        return "" if number and 0 <= value <= most else f"a wait takes 0 to {most} seconds"
    if kind is WaitKind.UNTIL:
        try:
            instant_of(value if isinstance(value, str) else "")
        except ValueError:
            return "a wait ends at an instant with its zone, as in 2026-12-24T18:00:00-03:00"
    return ""
