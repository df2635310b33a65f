"""Sentences about what happened, made from reasons where they are shown, in the reader's language.

Nothing that decides or folds reads this module: a sentence may be reworded at any time, and no journal changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from oraculo.core.events import (
    AttemptFailed,
    ConflictingAnswerKept,
    Event,
    LateAnswerKept,
    TicketConcluded,
    TicketFailed,
)
from oraculo.core.reasons import Reason, ReasonCode, because
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Status

Language = Literal["pt", "en"]
Params = dict[str, str]
DEFAULT_LANGUAGE: Language = "pt"


def language_named(tag: str) -> Language:
    """The language of a tag such as `pt-BR`; English when there are no sentences in it."""
    return "pt" if tag.lower().partition("-")[0] == "pt" else "en"


def _because(text: str) -> str:
    return f": {text}" if text else ""


def _seen(text: str) -> str:
    return f" ({text})" if text else ""


_PLACED = (  # say where, and what is wrong there
    ReasonCode.EXPRESSION_FAILED,
    ReasonCode.TOO_MANY_ITEMS,
    ReasonCode.TOO_MUCH_DATA,
    ReasonCode.TOO_FEW_ITEMS,
)


def _placed(skipped: str) -> Callable[[Params], str]:
    """`skipped` says of a task that it was skipped, where the detail names those that gave nothing."""

    def placed(params: Params) -> str:
        detail, opening, gone = params["detail"].rpartition(" [")
        if opening and gone.endswith("]"):
            detail += opening + gone.replace(f": {Status.IGNORADA.value}", skipped)
        else:
            detail = params["detail"]
        return ": ".join(part for part in (params["word"], params["expression"], detail) if part)

    return placed


def _awaited_pt(params: Params) -> str:
    return f"o sinal {params['signal']}" if params["signal"] else "a decisão"


def _awaited_en(params: Params) -> str:
    return f"the signal {params['signal']}" if params["signal"] else "the decision"


_PT: dict[ReasonCode, Callable[[Params], str]] = {
    ReasonCode.FAN_IN_MET: lambda p: f"o fan-in ({p['mode']}) já foi atendido",
    ReasonCode.FAN_IN_UNREACHABLE: lambda p: f"o fan-in ({p['mode']}) não pode ser atendido",
    ReasonCode.DEPENDENCY_FAILED: lambda _: "uma dependência falhou",
    ReasonCode.DEPENDENCIES_SKIPPED: lambda _: "tudo de que depende foi ignorado",
    ReasonCode.CONDITION_FALSE: lambda p: f"a condição {p['expression']} é falsa{_seen(p['detail'])}",
    **dict.fromkeys(_PLACED, _placed(" foi ignorada")),
    ReasonCode.ROUND_FAILED: lambda p: f"a rodada {p['index']} terminou como {p['status']}{_because(p['text'])}",
    ReasonCode.LOOP_SPENT: lambda p: f"{p['rounds']} rodadas, e a condição pare_quando não ficou verdadeira",
    ReasonCode.ITEMS_FAILED: lambda p: f"{p['failed']} de {p['total']} itens falharam: os outros não bastam ao fan_in",
    ReasonCode.NOT_IN_TIME: lambda p: f"não terminou em {p['seconds']} s",
    ReasonCode.DEADLINE_PASSED: lambda _: "o prazo da orquestração terminou",
    ReasonCode.CANCELLED: lambda p: p["text"] or "cancelada a pedido",
    ReasonCode.NOT_APPROVED: lambda p: f"não foi aprovada por {p['by'] or 'quem decide'}{_because(p['text'])}",
    ReasonCode.WAIT_EXPIRED: lambda p: f"{_awaited_pt(p)} não veio em {p['seconds']} s",
    ReasonCode.WAIT_TOO_LONG: lambda p: f"espera.ate: {p['until']} fica a mais de {p['days']} dias",
    ReasonCode.NO_ANSWER: lambda p: f"sem resposta de {p['queue']} em {p['seconds']} s (tentativa {p['attempt']})",
    ReasonCode.NO_DETAIL: lambda _: "o worker respondeu erro sem dizer qual",
    ReasonCode.NO_MESSAGE: lambda _: "o worker respondeu FAILED sem dizer por quê",
    ReasonCode.POLICY_REFUSED: lambda p: f"recusado pelas políticas{_because(p['text'])}",
    ReasonCode.POLICY_UNDECIDED: lambda p: f"as políticas não puderam ser consultadas{_because(p['text'])}",
    ReasonCode.TEXT: lambda p: p["text"],
}
_EN: dict[ReasonCode, Callable[[Params], str]] = {
    ReasonCode.FAN_IN_MET: lambda p: f"the fan-in ({p['mode']}) is met already",
    ReasonCode.FAN_IN_UNREACHABLE: lambda p: f"the fan-in ({p['mode']}) cannot be met",
    ReasonCode.DEPENDENCY_FAILED: lambda _: "a dependency failed",
    ReasonCode.DEPENDENCIES_SKIPPED: lambda _: "everything it depends on was skipped",
    ReasonCode.CONDITION_FALSE: lambda p: f"the condition {p['expression']} is false{_seen(p['detail'])}",
    **dict.fromkeys(_PLACED, _placed(" was skipped")),
    ReasonCode.ROUND_FAILED: lambda p: f"round {p['index']} ended as {p['status']}{_because(p['text'])}",
    ReasonCode.LOOP_SPENT: lambda p: f"{p['rounds']} rounds, and the condition stop_when did not become true",
    ReasonCode.ITEMS_FAILED: lambda p: f"{p['failed']} of {p['total']} items failed: too few are left for its fan_in",
    ReasonCode.NOT_IN_TIME: lambda p: f"not done in {p['seconds']} s",
    ReasonCode.DEADLINE_PASSED: lambda _: "the deadline of the orchestration passed",
    ReasonCode.CANCELLED: lambda p: p["text"] or "cancelled on request",
    ReasonCode.NOT_APPROVED: lambda p: f"not approved by {p['by'] or 'the approver'}{_because(p['text'])}",
    ReasonCode.WAIT_EXPIRED: lambda p: f"{_awaited_en(p)} did not come in {p['seconds']} s",
    ReasonCode.WAIT_TOO_LONG: lambda p: f"espera.ate: {p['until']} is more than {p['days']} days away",
    ReasonCode.NO_ANSWER: lambda p: f"no answer from {p['queue']} in {p['seconds']} s (attempt {p['attempt']})",
    ReasonCode.NO_DETAIL: lambda _: "the worker answered erro without saying which",
    ReasonCode.NO_MESSAGE: lambda _: "the worker answered FAILED without saying why",
    ReasonCode.POLICY_REFUSED: lambda p: f"refused by the policies{_because(p['text'])}",
    ReasonCode.POLICY_UNDECIDED: lambda p: f"the policies could not be asked{_because(p['text'])}",
    ReasonCode.TEXT: lambda p: p["text"],
}
_TABLES: dict[Language, dict[ReasonCode, Callable[[Params], str]]] = {"pt": _PT, "en": _EN}
_ERROR_CODES = {
    ReasonCode.NO_DETAIL: "erro",
    ReasonCode.EXPRESSION_FAILED: "expressao",
    ReasonCode.TOO_MANY_ITEMS: "itens_demais",
    ReasonCode.TOO_MUCH_DATA: "dados_demais",
    ReasonCode.TOO_FEW_ITEMS: "itens_de_menos",
    ReasonCode.ROUND_FAILED: "rodada_com_falha",
    ReasonCode.LOOP_SPENT: "no_maximo",
    ReasonCode.ITEMS_FAILED: "itens_com_falha",
    ReasonCode.WAIT_TOO_LONG: "expressao",
    ReasonCode.POLICY_REFUSED: "politica",
    ReasonCode.POLICY_UNDECIDED: "politica",
}
_FINAL = (
    ReasonCode.DEADLINE_PASSED,
    *_PLACED,
    ReasonCode.ROUND_FAILED,
    ReasonCode.LOOP_SPENT,
    ReasonCode.ITEMS_FAILED,
    ReasonCode.WAIT_EXPIRED,
    ReasonCode.WAIT_TOO_LONG,
    ReasonCode.POLICY_REFUSED,
    ReasonCode.POLICY_UNDECIDED,
)


def say(reason: Reason, language: Language = DEFAULT_LANGUAGE) -> str:
    """The sentence of a reason."""
    return _TABLES[language][reason.code](reason.params)


def say_optional(reason: Reason | None, language: Language = DEFAULT_LANGUAGE) -> str | None:
    return None if reason is None else say(reason, language)


def errors(
    erros: list[dict[str, object]] | None, fault: Reason | None, language: Language = DEFAULT_LANGUAGE
) -> list[dict[str, Any]]:
    """The errors of an attempt in the form of the contract: what the worker said, or what is said in its place."""
    if fault is None:
        return [_worded(erro, language) for erro in erros or ()]
    code = _ERROR_CODES.get(fault.code, "timeout")
    final = fault.code in _FINAL
    return [{"codigo": code, "mensagem": say(fault, language), "definitivo": final}]


def _worded(erro: dict[str, object], language: Language) -> dict[str, Any]:
    """An error that came without a message, with one."""
    if "mensagem" in erro:
        return erro
    return {"codigo": erro.get("codigo"), "mensagem": say(because(ReasonCode.NO_MESSAGE), language), **erro}


def errors_of(ticket: Ticket, language: Language = DEFAULT_LANGUAGE) -> list[dict[str, Any]]:
    """The errors of the last attempt of a ticket that failed; empty when there are none."""
    return errors(ticket.erros, ticket.fault, language)


def errors_said(event: Event, language: Language = DEFAULT_LANGUAGE) -> list[dict[str, Any]]:
    """The errors that an event tells of; empty when it tells of none."""
    match event:
        case AttemptFailed() | TicketFailed():
            return errors(event.erros, event.reason, language)
        case LateAnswerKept() | ConflictingAnswerKept():
            silent = not event.ok and not event.erros
            return errors(event.erros, because(ReasonCode.NO_DETAIL) if silent else None, language)
        case TicketConcluded():
            return errors(event.erros, None, language)
        case _:
            return []


def message(erros: list[dict[str, Any]]) -> str:
    """Errors in one line: the message of each, or its code when it has none."""
    return "; ".join(str(erro.get("mensagem") or erro.get("codigo")) for erro in erros)
