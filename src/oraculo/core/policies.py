"""What policies were asked and what they said. The core records verdicts and acts on them; it never evaluates."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class _Whole(IntEnum):
    PLAN = -1


THE_PLAN = _Whole.PLAN  # the position of a plan among what is asked: a word of the journal, and no setting


class PolicyPoint(StrEnum):
    """When policies are asked: before anything of a plan starts, before a ticket is released, before a worker gets it,
    and before what a worker answered counts."""

    PLAN = "plano"
    TICKET = "ticket"
    ALLOCATION = "alocacao"
    RESULT = "resultado"


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """One rule that is not kept; a warning has no severity. `expected` and `actual` are texts, maybe empty."""

    policy: str
    rule: str
    message: str
    severity: str = ""
    field: str = ""
    expected: str = ""
    actual: str = ""


@dataclass(slots=True)
class PolicyFinding:
    """What policies say of one ticket besides yes. `error`: why they could not be asked; `allowed` is then what the
    setting says."""

    ticket: int
    allowed: bool
    violations: list[PolicyViolation] = field(default_factory=list)
    warnings: list[PolicyViolation] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True, slots=True)
class PolicySource:
    """Who gave a verdict: the adapter, the version of its policies, and the number of the decision in its log. `input`
    is a digest of what was asked."""

    engine: str
    version: str = ""
    decision_id: str = ""
    input: str = ""


def text_of(finding: PolicyFinding) -> str:
    """What a refusal says, in one line; a rule without a message goes by its name."""
    said = [f"{one.policy}/{one.rule}: {one.message}" if one.message else one.rule for one in finding.violations]
    return "; ".join([*said, *([finding.error] if finding.error else [])])
