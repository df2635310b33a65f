"""What the outside sees of waits: what is waited for, since when and until when, as a document and as a sentence."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from oraculo.core.sentences import Language
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Phase
from oraculo.core.waits import Wait, WaitKind

WAITS_SHOWN = 3
_WORDS: dict[Language, dict[str, str]] = {
    "pt": {
        WaitKind.SIGNAL: "o sinal {signal}", WaitKind.APPROVAL: "uma decisão", WaitKind.SECONDS: "{until}",
        WaitKind.UNTIL: "{until}", "one": "{what} (tarefa {task}) desde {since}", "more": "e mais {n}",
    },
    "en": {
        WaitKind.SIGNAL: "the signal {signal}", WaitKind.APPROVAL: "a decision", WaitKind.SECONDS: "{until}",
        WaitKind.UNTIL: "{until}", "one": "{what} (task {task}) since {since}", "more": "and {n} more",
    },
}  # fmt: skip


def document(state: Orchestration, position: int) -> dict[str, Any] | None:
    """What one task waits for; None of a task that is no wait."""
    wait = state.plan.profile.wait(position)
    if wait is None:
        return None
    ticket = state.tickets[position]
    about: dict[str, Any] = {"tipo": wait.kind}
    if wait.kind is WaitKind.SIGNAL:
        about["sinal"] = wait.signal
    elif wait.kind is WaitKind.APPROVAL:
        about |= {"pergunta": state.parameters(position), "papeis": wait.roles}
    return {**about, "desde": ticket.started_at, "prazo": ticket.due_at}


def held(state: Orchestration) -> list[int]:
    """The tasks that wait now, in the order of the plan."""
    return [position for position, ticket in enumerate(state.tickets) if ticket.phase is Phase.HELD]


def sentences(state: Orchestration, language: Language) -> list[str]:
    """What is waited for and since when, a few of many."""
    positions, words = held(state), _WORDS[language]
    said = [sentence(state, position, language) for position in positions[:WAITS_SHOWN]]
    return [*said, words["more"].format(n=len(positions) - WAITS_SHOWN)] if len(positions) > WAITS_SHOWN else said


def sentence(state: Orchestration, position: int, language: Language) -> str:
    """What one task that waits waits for, and since when."""
    words = _WORDS[language]
    wait, ticket = state.plan.profile.wait(position), state.tickets[position]
    assert isinstance(wait, Wait)
    what = words[wait.kind].format(signal=wait.signal, until=_instant(ticket.due_at))
    return words["one"].format(what=what, task=state.plan.profile.name_of(position), since=_instant(ticket.started_at))


def _instant(at: datetime | None) -> str:
    return "" if at is None else at.isoformat(timespec="seconds").replace("+00:00", "Z")
