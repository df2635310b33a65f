"""Why a ticket was closed or an attempt failed, as a code with parameters.

Journals keep reasons, never sentences: a sentence is made from a reason where it is shown, in the reader's language
(core/sentences.py). A code is never renamed and never given another meaning; journals live longer than releases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from oraculo.core.resolution import Obstacle, Resolution

MESSAGE_REFUSED = "mensagem_recusada"  # the code of an error: no broker will ever take this order


class ReasonCode(StrEnum):
    """The codes, with the parameters of each."""

    FAN_IN_MET = "fan_in_met"  # mode: the fan-in needs no more answers
    FAN_IN_UNREACHABLE = "fan_in_unreachable"  # mode: the fan-in cannot be met any more
    DEPENDENCY_FAILED = "dependency_failed"
    DEPENDENCIES_SKIPPED = "dependencies_skipped"  # all that it depends on was skipped
    CONDITION_FALSE = "condition_false"  # expression, and detail: what it saw
    EXPRESSION_FAILED = "expression_failed"  # word: where it stands; expression, and detail: what is wrong with it
    TOO_MANY_ITEMS = "too_many_items"  # word, expression and detail: more than a run may have tickets
    TOO_MUCH_DATA = "too_much_data"  # word, expression and detail: the rows of a map are too large
    TOO_FEW_ITEMS = "too_few_items"  # word, expression and detail: fewer than the fan-in of a map needs
    ROUND_FAILED = "round_failed"  # index, status and text: how a round of a loop ended, and what its worker said
    LOOP_SPENT = "loop_spent"  # rounds: a loop made all that it may, and its condition is not true
    ITEMS_FAILED = "items_failed"  # failed and total: items of a map, so many that its fan-in cannot be met
    NOT_IN_TIME = "not_in_time"  # seconds: the whole of a map or a loop took longer
    DEADLINE_PASSED = "deadline_passed"  # of the orchestration
    CANCELLED = "cancelled"  # text: what the caller said, maybe nothing
    NOT_APPROVED = "not_approved"  # by and text: who refused and why, maybe nothing
    WAIT_EXPIRED = "wait_expired"  # wait, signal and seconds: nothing came in time; signal is empty for an approval
    WAIT_TOO_LONG = "wait_too_long"  # until and days: the instant is more than so many days away
    NO_ANSWER = "no_answer"  # queue, seconds and attempt: nothing came before the deadline of an attempt
    NO_DETAIL = "no_detail"  # a worker answered that it failed, and not how
    NO_MESSAGE = "no_message"  # a ticket of Fluxo C came back FAILED, and not why
    POLICY_REFUSED = "policy_refused"  # point and text: which rules were not kept
    POLICY_UNDECIDED = "policy_undecided"  # point and text: the policies could not be asked, and closed is closed
    TEXT = "text"  # text: a sentence of an older journal that has no code


@dataclass(frozen=True, slots=True)
class Reason:
    code: ReasonCode
    params: dict[str, str] = field(default_factory=dict)


_OBSTACLES = {
    Obstacle.EXPRESSION: ReasonCode.EXPRESSION_FAILED,
    Obstacle.ITEMS: ReasonCode.TOO_MANY_ITEMS,
    Obstacle.DATA: ReasonCode.TOO_MUCH_DATA,
    Obstacle.FAN_IN: ReasonCode.TOO_FEW_ITEMS,
}


def expression_fault(one: Resolution) -> Reason:
    """Why a task or an output failed that was evaluated."""
    return because(_OBSTACLES[one.obstacle], word=one.word, expression=one.expression, detail=one.detail)


def because(code: ReasonCode, **params: str) -> Reason:
    return Reason(code, params)
