"""What the outside sees: the fields that the contract promises, and that all of it can be written as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.given import RUN, Story, at, plan
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import FanIn
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Recorded
from oraculo.wire import event_views, strict_json, views


def seen(document: Any) -> Any:
    return json.loads(strict_json.dumps(document))


@pytest.fixture
def story() -> Story:
    story = Story(plan(3, 1, attempts=2, fila="avisos", modo=FanIn.QUORUM, minimo=2))
    story.confirm(0, 1, when=1)
    story.fail(0, when=2)
    story.ok(1, b'{"a":1}', when=3)
    return story


def test_an_orchestration(story: Story) -> None:
    shown = seen(views.orchestration(story.state))
    assert (shown["correlation_id"], shown["status"]) == ("abc123", "em_execucao")
    assert [t["destino"] for t in shown["tickets"]] == [
        "escavador_fonte0", "escavador_fonte1", "escavador_fonte2", "executador_exec0",
    ]  # fmt: skip
    assert [t["status"] for t in shown["tickets"]] == ["pendente", "concluida", "pendente", "pendente"]
    assert shown["agregado"]["coletas"][1]["dados"] == {"a": 1}
    assert shown["fan_in"] == {"modo": "quorum", "minimo": 2}
    assert shown["versao"] == story.state.version


def test_it_says_what_it_waits_for(story: Story) -> None:
    assert views.waiting_for(story.state) == (
        "aguarda nova tentativa de escavador_fonte0 (1); publicação para escavador_fonte2 (1)"
    )
    story.cancel()
    assert views.waiting_for(story.state) is None


def test_a_ticket(story: Story) -> None:
    shown = seen(views.ticket(story.state, 0))
    assert shown["ticket_id"] == ticket_id(RUN, 0)
    assert (shown["fonte"], shown["tentativas"], shown["max_tentativas"], shown["causas"]) == ("fonte0", 1, 2, ["erro"])
    assert shown["erro"] == "fora do ar" and shown["proxima_tentativa_em"] and shown["prazo"] is None
    assert shown["despachado_em"] == "2025-10-14T12:00:00Z"
    assert seen(views.ticket(story.state, 3))["executador"] == "exec0"


def test_late_answers_are_shown(story: Story) -> None:
    story.cancel()
    story.ok(2, b'"tarde"')
    shown = seen(views.ticket(story.state, 2))
    assert shown["respostas_tardias"] == [{"tentativa": 1, "ok": True, "dados": "tarde", "erros": []}]
    assert (shown["status"], shown["motivo"]) == ("cancelada", "cancelada a pedido")


def test_conflicting_answers_are_shown(story: Story) -> None:
    story.ok(2, b'"forjada"')
    story.ok(2, b'"honesta"')
    shown = seen(views.ticket(story.state, 2))
    assert shown["respostas_conflitantes"] == [{"tentativa": 1, "ok": True, "dados": "honesta", "erros": []}]
    assert (shown["status"], shown["respostas_tardias"]) == ("concluida", [])


def test_events_are_numbered_and_can_be_resumed_anywhere(story: Story) -> None:
    story.cancel()
    recorded, first = [], 1
    for instant, events in story.journal:
        recorded.append(Recorded(RUN, first, instant, events))
        first += len(events)

    def numbers(after: int) -> list[int]:
        return [event["seq"] for one in recorded for event in event_views.events(RUN, story.state.plan, one, after)]

    for after in range(first + 1):
        assert numbers(after) == list(range(after + 1, first))


def test_every_event_can_be_written(story: Story) -> None:
    story.ok(2)
    story.ok(3)
    story.ok(0, attempt=1)
    shown = [
        seen(event)
        for instant, events in story.journal
        for event in event_views.events(RUN, story.state.plan, Recorded(RUN, 1, instant, events))
    ]
    assert shown[0]["evento"] == "orchestration_started" and shown[0]["tickets_total"] == 4
    assert {"evento", "em", "seq"} <= set(shown[-1])
    assert not any("digest" in event or "run" in event for event in shown)


@pytest.mark.parametrize(("body", "coding"), [("olá".encode(), "utf-8"), (b"\xff\x00", "hex"), (b"", "utf-8")])
def test_a_dead_letter_shows_its_bytes_whatever_they_are(body: bytes, coding: str) -> None:
    letter = DeadLetter("q", "not_json", "…", body, None, {"h": "1"}, 7, at(0))
    shown = seen(views.dead_letter(letter, body=True))
    assert (shown["codificacao"], shown["tamanho"]) == (coding, len(body))
    assert (bytes.fromhex(shown["corpo"]) if coding == "hex" else shown["corpo"].encode()) == body
    assert "corpo" not in views.dead_letter(letter)


def test_instants() -> None:
    assert views.instant(at(0)) == "2025-10-14T12:00:00Z" and views.instant(None) is None
