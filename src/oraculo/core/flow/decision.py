"""C0 of Fluxo C: what a consolidated decision says about a plan, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from oraculo.core.flow.cognitive import CognitivePlan


class FinalDecision(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    REVIEW_REQUIRED = "review_required"
    CONDITIONAL = "conditional"


class Course(StrEnum):
    """What becomes of a decision that can be read."""

    RUN = "run"
    ASK = "ask"  # a human has to agree first
    REJECT = "reject"  # nothing runs


@dataclass(frozen=True, slots=True)
class Decision:
    """`decision_id` is empty when a plan came by itself, without a decision about it."""

    plan: CognitivePlan | None
    plan_id: str
    intent_id: str = ""
    decision_id: str = ""
    final_decision: FinalDecision = FinalDecision.APPROVE
    requires_human_review: bool = False
    correlation_id: str | None = None
    valid_until: datetime | None = None
    reasoning: str = ""

    def course(self) -> Course:
        if self.final_decision is FinalDecision.REJECT:
            return Course.REJECT
        asked = self.final_decision is FinalDecision.REVIEW_REQUIRED or self.requires_human_review
        waiting = self.plan is not None and self.plan.requires_approval and not self.plan.says_approved
        return Course.ASK if asked or waiting else Course.RUN
