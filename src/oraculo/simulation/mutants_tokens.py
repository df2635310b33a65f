"""Mutants of how answers are judged by their tokens."""

from __future__ import annotations

from contextlib import AbstractContextManager

from oraculo.core.commands import RecordResult
from oraculo.runtime.token_ring import TokenRing
from oraculo.simulation.mutants import Mutant, patched

_KINDS = ("tokens-masked", "tokens-unmasked")
_judge = TokenRing.judge


def token_not_checked() -> AbstractContextManager[None]:
    def judge(self: TokenRing, answer: RecordResult, correlation_id: str | None, token: str | None) -> bool:
        return False

    return patched((TokenRing, "judge", judge))


def token_of_another_attempt() -> AbstractContextManager[None]:
    def judge(self: TokenRing, answer: RecordResult, correlation_id: str | None, token: str | None) -> bool:
        said, answer.attempt = answer.attempt, None
        fixed = _judge(self, answer, correlation_id, token)
        answer.attempt = said if said is not None else answer.attempt
        return fixed

    return patched((TokenRing, "judge", judge))


def token_of_another_ticket() -> AbstractContextManager[None]:
    def judge(self: TokenRing, answer: RecordResult, correlation_id: str | None, token: str | None) -> bool:
        said, answer.ticket, answer.attempt = (answer.ticket, answer.attempt), None, None
        fixed = _judge(self, answer, None, token)
        answer.ticket, answer.attempt = said if said[0] is not None else (answer.ticket, answer.attempt)
        return fixed

    return patched((TokenRing, "judge", judge))


def no_token_needed() -> AbstractContextManager[None]:
    def judge(self: TokenRing, answer: RecordResult, correlation_id: str | None, token: str | None) -> bool:
        return token is not None and _judge(self, answer, correlation_id, token)

    return patched((TokenRing, "judge", judge))


MUTANTS = [
    Mutant("tokens are not checked", token_not_checked, _KINDS, 20),
    Mutant("a token of another attempt is taken", token_of_another_attempt, _KINDS, 100),
    Mutant("a token of another ticket is taken", token_of_another_ticket, _KINDS, 50),
    Mutant("an answer without a token is taken", no_token_needed, _KINDS, 20),
]
