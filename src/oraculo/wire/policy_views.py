"""What the outside sees of policies: verdicts as events, and what they said of a run beyond yes."""

from __future__ import annotations

from typing import Any

from oraculo.core import events as ev
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyViolation
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id


def asked(run: int, event: ev.PolicyAsked) -> dict[str, Any]:
    return {"ponto": event.point, "tickets": _tickets(run, event.tickets)}


def evaluated(run: int, event: ev.PolicyEvaluated) -> dict[str, Any]:
    """One verdict: what was asked, what was said beyond yes, and by whom."""
    return {
        "ponto": event.point,
        "tickets": _tickets(run, event.tickets),
        "pareceres": [_finding(run, one) for one in event.findings],
        "motor": event.source.engine,
        "politicas": event.source.version or None,
        "decisao": event.source.decision_id or None,
        "entrada": event.source.input or None,
    }


def of_run(state: Orchestration) -> list[dict[str, Any]]:
    """What policies said of a run beyond yes, in the order in which it was said."""
    found = [] if state.policy is None else state.policy.findings
    return [
        {
            "ponto": event.point,
            **_finding(state.run, one),
            "motor": event.source.engine,
            "politicas": event.source.version or None,
            "decisao": event.source.decision_id or None,
        }
        for event in found
        for one in event.findings
    ]


def _tickets(run: int, tickets: list[tuple[int, int]]) -> list[str]:
    return [ticket_id(run, position) for position, _ in tickets if position != THE_PLAN]


def _finding(run: int, one: PolicyFinding) -> dict[str, Any]:
    return {
        "ticket_id": None if one.ticket == THE_PLAN else ticket_id(run, one.ticket),
        "permitido": one.allowed,
        "violacoes": [_violation(each) for each in one.violations],
        "avisos": [_violation(each) for each in one.warnings],
        "erro": one.error or None,
    }


def _violation(one: PolicyViolation) -> dict[str, str]:
    return {
        "politica": one.policy,
        "regra": one.rule,
        "gravidade": one.severity,
        "campo": one.field,
        "mensagem": one.message,
        "esperado": one.expected,
        "encontrado": one.actual,
    }
