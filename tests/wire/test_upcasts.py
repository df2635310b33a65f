"""Steps of format 1 become steps of today; whole journals of it are in tests/golden_journals."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from core.given import Story, plan
from oraculo.core import events as ev
from oraculo.core.reasons import ReasonCode, because
from oraculo.wire import records, upcasts

CLOSED: dict[str, Any] = {"tickets": [0], "status": "cancelada"}


def read(*events: list[Any]) -> list[ev.Event]:
    return records.decode(orjson.dumps(events), 1)


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("o fan-in (quorum) já foi atendido", because(ReasonCode.FAN_IN_MET, mode="quorum")),
        ("o fan-in (todas_ok) não pode ser atendido", because(ReasonCode.FAN_IN_UNREACHABLE, mode="todas_ok")),
        ("uma dependência falhou", because(ReasonCode.DEPENDENCY_FAILED)),
        ("o prazo da orquestração terminou", because(ReasonCode.DEADLINE_PASSED)),
        ("uma frase que ninguém conhece", because(ReasonCode.TEXT, text="uma frase que ninguém conhece")),
    ],
)
def test_sentences_become_reasons(sentence: str, reason: object) -> None:
    _, closed = read(["Woken", {}], ["TicketsClosed", {**CLOSED, "reason": sentence}])
    assert isinstance(closed, ev.TicketsClosed)
    assert closed.reason == reason


def test_what_a_person_said_is_not_taken_for_a_sentence_of_ours() -> None:
    said = "uma dependência falhou"
    _, closed = read(["CancelRequested", {"reason": said}], ["TicketsClosed", {**CLOSED, "reason": said}])
    assert isinstance(closed, ev.TicketsClosed)
    assert closed.reason == because(ReasonCode.CANCELLED, text=said)


def test_who_refused_is_told_apart_from_why() -> None:
    refused = {"by": "ana: a chefe", "reason": "não: é cedo"}
    sentence = "não foi aprovada por ana: a chefe: não: é cedo"
    _, closed = read(["ApprovalRefused", refused], ["TicketsClosed", {**CLOSED, "reason": sentence}])
    assert isinstance(closed, ev.TicketsClosed)
    assert closed.reason == because(ReasonCode.NOT_APPROVED, by="ana: a chefe", text="não: é cedo")


def test_errors_of_workers_stay_as_they_are() -> None:
    erros = [{"codigo": "timeout", "mensagem": "o site não respondeu", "definitivo": False}]
    fields = {
        "ticket": 0,
        "attempt": 1,
        "status": "erro",
        "erros": erros,
        "dados": None,
        "definitivo": False,
        "digest": 5,
    }
    (failed,) = read(["TicketFailed", fields])
    assert isinstance(failed, ev.TicketFailed)
    assert (failed.erros, failed.reason) == (erros, None)


def test_only_format_1_is_taken_for_it() -> None:
    story = Story(plan(2, 1, timeout=5, webhook="https://example.com"))
    story.confirm(0)
    story.fail(0, when=1)
    story.wake(5)
    for _, events in story.journal:
        values = orjson.loads(records.encode(events))
        assert not upcasts.is_1(values)
        assert records.revive(values) == events
