"""Reasons become sentences where they are shown, in two languages."""

from __future__ import annotations

import pytest

from core.given import Story, coleta, plan
from oraculo.core.events import LateAnswerKept
from oraculo.core.reasons import Reason, ReasonCode, because
from oraculo.core.sentences import Language, errors_of, errors_said, language_named, say

CASES = [
    (
        because(
            ReasonCode.EXPRESSION_FAILED,
            word="tarefas.j.quando",
            expression="${{ b.resultado.x }}",
            detail="a null has no field 'x' (column 17) [b: ignorada, c: erro]",
        ),
        "tarefas.j.quando: ${{ b.resultado.x }}: a null has no field 'x' (column 17) [b foi ignorada, c: erro]",
        "tarefas.j.quando: ${{ b.resultado.x }}: a null has no field 'x' (column 17) [b was skipped, c: erro]",
    ),
    (
        because(ReasonCode.FAN_IN_MET, mode="quorum"),
        "o fan-in (quorum) já foi atendido",
        "the fan-in (quorum) is met already",
    ),
    (
        because(ReasonCode.FAN_IN_UNREACHABLE, mode="todos"),
        "o fan-in (todos) não pode ser atendido",
        "the fan-in (todos) cannot be met",
    ),
    (because(ReasonCode.DEPENDENCY_FAILED), "uma dependência falhou", "a dependency failed"),
    (
        because(ReasonCode.DEPENDENCIES_SKIPPED),
        "tudo de que depende foi ignorado",
        "everything it depends on was skipped",
    ),
    (
        because(ReasonCode.CONDITION_FALSE, expression="${{ a.ok }}", detail="a: erro"),
        "a condição ${{ a.ok }} é falsa (a: erro)",
        "the condition ${{ a.ok }} is false (a: erro)",
    ),
    (
        because(ReasonCode.EXPRESSION_FAILED, word="quando", expression="${{ 1 }}", detail="no bool"),
        "quando: ${{ 1 }}: no bool",
        "quando: ${{ 1 }}: no bool",
    ),
    *(
        (because(code, word="fan_in", expression="", detail="5 and 2"), "fan_in: 5 and 2", "fan_in: 5 and 2")
        for code in (ReasonCode.TOO_MANY_ITEMS, ReasonCode.TOO_MUCH_DATA, ReasonCode.TOO_FEW_ITEMS)
    ),
    (
        because(ReasonCode.ITEMS_FAILED, failed="2", total="3"),
        "2 de 3 itens falharam: os outros não bastam ao fan_in",
        "2 of 3 items failed: too few are left for its fan_in",
    ),
    (
        because(ReasonCode.ROUND_FAILED, index="2", status="erro", text="fora do ar"),
        "a rodada 2 terminou como erro: fora do ar",
        "round 2 ended as erro: fora do ar",
    ),
    (
        because(ReasonCode.LOOP_SPENT, rounds="3"),
        "3 rodadas, e a condição pare_quando não ficou verdadeira",
        "3 rounds, and the condition stop_when did not become true",
    ),
    (because(ReasonCode.NOT_IN_TIME, seconds="5"), "não terminou em 5 s", "not done in 5 s"),
    (
        because(ReasonCode.DEADLINE_PASSED),
        "o prazo da orquestração terminou",
        "the deadline of the orchestration passed",
    ),
    (because(ReasonCode.CANCELLED, text=""), "cancelada a pedido", "cancelled on request"),
    (because(ReasonCode.CANCELLED, text="basta"), "basta", "basta"),
    (
        because(ReasonCode.NOT_APPROVED, by="", text=""),
        "não foi aprovada por quem decide",
        "not approved by the approver",
    ),
    (
        because(ReasonCode.NOT_APPROVED, by="ana", text="cedo"),
        "não foi aprovada por ana: cedo",
        "not approved by ana: cedo",
    ),
    (
        because(ReasonCode.WAIT_EXPIRED, wait="sinal", signal="ok", seconds="60"),
        "o sinal ok não veio em 60 s",
        "the signal ok did not come in 60 s",
    ),
    (
        because(ReasonCode.WAIT_EXPIRED, wait="aprovacao", signal="", seconds="60"),
        "a decisão não veio em 60 s",
        "the decision did not come in 60 s",
    ),
    (
        because(ReasonCode.WAIT_TOO_LONG, until="2030-01-01T00:00:00+00:00", days="366"),
        "espera.ate: 2030-01-01T00:00:00+00:00 fica a mais de 366 dias",
        "espera.ate: 2030-01-01T00:00:00+00:00 is more than 366 days away",
    ),
    (
        because(ReasonCode.NO_ANSWER, queue="escavador_x", seconds="0.5", attempt="2"),
        "sem resposta de escavador_x em 0.5 s (tentativa 2)",
        "no answer from escavador_x in 0.5 s (attempt 2)",
    ),
    (
        because(ReasonCode.NO_DETAIL),
        "o worker respondeu erro sem dizer qual",
        "the worker answered erro without saying which",
    ),
    (
        because(ReasonCode.NO_MESSAGE),
        "o worker respondeu FAILED sem dizer por quê",
        "the worker answered FAILED without saying why",
    ),
    (
        because(ReasonCode.POLICY_REFUSED, point="ticket", text="limites/prazo: longo"),
        "recusado pelas políticas: limites/prazo: longo",
        "refused by the policies: limites/prazo: longo",
    ),
    (
        because(ReasonCode.POLICY_UNDECIDED, point="plano", text="OPA não responde"),
        "as políticas não puderam ser consultadas: OPA não responde",
        "the policies could not be asked: OPA não responde",
    ),
    (because(ReasonCode.TEXT, text="como era"), "como era", "como era"),
]


@pytest.mark.parametrize(("reason", "pt", "en"), CASES)
def test_a_reason_is_said_in_both_languages(reason: Reason, pt: str, en: str) -> None:
    assert (say(reason), say(reason, "en")) == (pt, en)


def test_every_code_has_a_sentence() -> None:
    assert {reason.code for reason, _, _ in CASES} == set(ReasonCode)


@pytest.mark.parametrize(("tag", "language"), [("pt-BR", "pt"), ("PT", "pt"), ("en", "en"), ("de", "en"), ("", "en")])
def test_the_language_of_a_tag(tag: str, language: Language) -> None:
    assert language_named(tag) == language


def test_silence_is_shown_as_an_error_of_the_contract() -> None:
    story = Story(plan([coleta("x", timeout=1, attempts=2)]))
    story.confirm()
    story.wake(1)
    said = "sem resposta de escavador_x em 1 s (tentativa 1)"
    assert errors_of(story.ticket(0)) == [{"codigo": "timeout", "mensagem": said, "definitivo": False}]
    story.wake(10)
    story.ok(0, when=11)
    assert errors_of(story.ticket(0)) == []


def test_the_end_of_all_time_is_definitive() -> None:
    story = Story(plan(1, timeout=5))
    story.wake(5)
    said = "the deadline of the orchestration passed"
    assert errors_of(story.ticket(0), "en") == [{"codigo": "timeout", "mensagem": said, "definitivo": True}]


def test_an_error_without_a_message_gets_one() -> None:
    late = LateAnswerKept(0, 1, False, b"null", [{"codigo": "x", "definitivo": True}], True, 1)
    said = "o worker respondeu FAILED sem dizer por quê"
    assert list(errors_said(late)[0].items()) == [("codigo", "x"), ("mensagem", said), ("definitivo", True)]


def test_a_late_failure_without_a_word() -> None:
    late = LateAnswerKept(0, 1, False, b"null", [], False, 1)
    assert [one["codigo"] for one in errors_said(late)] == ["erro"]
    assert errors_said(LateAnswerKept(0, 1, True, b"null", [], False, 1)) == []
