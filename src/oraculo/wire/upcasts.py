"""Journals of earlier formats, made into today's before they are read. They are kept for ever, and never change.

Format 1 wrote Portuguese sentences where there are codes now, and left to the code of its time what a plan records
since: the pauses between notices, how a task is undone and how an orchestration ends. All that format 1 took from its
code stands here as it was, because the code goes on without it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Step = Sequence[Sequence[Any]]  # [name of the event, its fields] of each event, as JSON has it
Fields = dict[str, Any]

_NOTICE_WAITS = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
_QUICK_NOTICE_WAITS = (2, 4, 8)  # of Fluxo C, since rules 2
_UNDO_SECONDS = 120.0
_UNDO_ACTIONS = {
    "BUILD": "delete_artifacts",
    "DEPLOY": "rollback_deployment",
    "TEST": "cleanup_test_env",
    "VALIDATE": "revert_approval",
    "EXECUTE": "rollback_execution",
}
_GENERIC_UNDO_ACTION = "generic_cleanup"

_NO_DETAIL = "o worker respondeu erro sem dizer qual"
_NO_ANSWER = re.compile(r"sem resposta de (.+) em (\S+) s \(tentativa (\d+)\)", re.DOTALL)
_FAN_IN = re.compile(r"o fan-in \((\w+)\) (já foi atendido|não pode ser atendido)")
_FAN_IN_CODES = {"já foi atendido": "fan_in_met", "não pode ser atendido": "fan_in_unreachable"}
_FIXED = {
    "uma dependência falhou": "dependency_failed",
    "o prazo da orquestração terminou": "deadline_passed",
}


def is_1(step: Step) -> bool:
    """Whether a step is of format 1, told by what its events lack."""
    return any(_lacks(name, fields) for name, fields in step)


def _lacks(name: str, fields: Fields) -> bool:
    match name:
        case "OrchestrationStarted":
            return "ending" not in fields["plan"]
        case "AttemptFailed" | "TicketFailed":
            return "reason" not in fields
        case "TicketsClosed":
            return isinstance(fields["reason"], str)
        case "CompensationStarted":
            return "added" not in fields
        case _:
            return False


def from_1(step: Step) -> None:
    """Make a step of format 1 one of format 2, in place."""
    for name, fields in step:
        match name:
            case "OrchestrationStarted":
                _plan(fields["plan"])
            case "AttemptFailed" | "TicketFailed":
                _failure(fields)
            case "LateAnswerKept":
                if not fields["ok"] and _is_no_detail(fields["erros"]):
                    fields["erros"] = []
            case "TicketsClosed":
                fields["reason"] = _closing(fields["reason"], step[0])


def _plan(plan: Fields) -> None:
    flow, notify = plan.pop("flow", None), plan["notify"]
    asked = notify["webhook"] is not None or notify["queue"] is not None
    quick = _QUICK_NOTICE_WAITS if flow is not None and plan["rules"] >= 2 else ()
    notify["waits"] = [*quick, *_NOTICE_WAITS] if asked else []
    plan["approval"], plan["undo"], plan["ending"], plan["profile"] = False, None, "essential", flow
    if flow is not None:
        plan["ending"] = "majority"
        plan["approval"] = flow.pop("approval", False)
        plan["undo"] = _UNDO_SECONDS if flow.pop("compensate", True) else None
        for spec in flow["specs"]:
            spec["undo"] = _UNDO_ACTIONS.get(spec["task_type"], _GENERIC_UNDO_ACTION)


def _failure(fields: Fields) -> None:
    fields["reason"] = None
    erros = fields["erros"]
    if _is_no_detail(erros):
        fields["erros"], fields["reason"] = [], _reason("no_detail")
    elif "timeout" in (fields.get("cause"), fields.get("status")) and len(erros) == 1:
        said = _NO_ANSWER.fullmatch(str(erros[0].get("mensagem")))
        if said is not None:
            queue, seconds, attempt = said.groups()
            fields["erros"], fields["reason"] = [], _reason("no_answer", queue=queue, seconds=seconds, attempt=attempt)


def _is_no_detail(erros: list[Fields]) -> bool:
    return erros == [{"codigo": "erro", "mensagem": _NO_DETAIL, "definitivo": False}]


def _closing(sentence: str, first: Sequence[Any]) -> Fields:
    """The reason of a sentence; what a person said is in the first event of the step."""
    name, fields = first
    if name == "CancelRequested":
        return _reason("cancelled", text=fields["reason"])
    if name == "ApprovalRefused":
        return _reason("not_approved", by=fields["by"], text=fields["reason"])
    if sentence in _FIXED:
        return _reason(_FIXED[sentence])
    fan_in = _FAN_IN.fullmatch(sentence)
    if fan_in is not None:
        return _reason(_FAN_IN_CODES[fan_in[2]], mode=fan_in[1])
    return _reason("text", text=sentence)


def _reason(code: str, **params: str) -> Fields:
    return {"code": code, "params": params}
