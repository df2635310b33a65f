"""What is proposed for a dead letter, and what is not made up."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from oraculo.client.results import DeadLetterDetails, RunDetails
from oraculo.mcp.corrections import PROPOSALS_MAX, proposals

ANSWER = {
    "correlation_id": "r1",
    "tipo_evento": "resultado_coleta",
    "payload": {"fonte": "eco", "status": "ok"},
    "timestamp": "2026-01-02T03:04:05Z",
}


def letter(motivo: str, corpo: str | None, codificacao: str | None = "utf-8") -> DeadLetterDetails:
    known = {"id": 7, "fila": "orquestrador_resultados", "motivo": motivo, "detalhe": "", "tentativas": 1}
    return cast(
        DeadLetterDetails,
        {**known, "correlation_id": "r1", "recebida_em": "2026-02-03T04:05:06+00:00", "tamanho": 1}
        | {"corpo": corpo, "codificacao": codificacao},
    )


def run(*tickets: tuple[str, str, str]) -> RunDetails:
    found = [
        {"ticket_id": id, "fonte": fonte, "status": status, "criado_em": "2026-01-01T00:00:00Z"}
        for id, fonte, status in tickets
    ]
    return cast(RunDetails, {"correlation_id": "r1", "tickets": found})


def bodies(motivo: str, corpo: str | None, about: RunDetails | None = None) -> list[Any]:
    found, by_hand = proposals(letter(motivo, corpo), about)
    assert bool(found) != bool(by_hand), "one or the other"
    return [None if one.body is None else json.loads(one.body) for one in found]


def test_an_ambiguous_answer_is_proposed_for_each_open_ticket_of_its_source() -> None:
    about = run(
        ("t1", "eco", "em_execucao"), ("t2", "eco", "concluida"), ("t3", "eco", "pendente"), ("t4", "x", "pendente")
    )
    assert bodies("ambiguous", json.dumps(ANSWER), about) == [{**ANSWER, "ticket_id": one} for one in ("t1", "t3")]
    assert bodies("ambiguous", json.dumps(ANSWER), run(("t2", "eco", "concluida"))) == []
    assert bodies("ambiguous", json.dumps(ANSWER), None) == []


def test_a_wide_run_gives_no_endless_list() -> None:
    about = run(*((f"t{number}", "eco", "pendente") for number in range(500)))
    assert len(bodies("ambiguous", json.dumps(ANSWER), about)) == PROPOSALS_MAX


@pytest.mark.parametrize(
    ("corpo", "proposed"),
    [
        ("\ufeff" + json.dumps(ANSWER), [ANSWER]),
        (json.dumps(ANSWER) + "\x00", [ANSWER]),
        (str({**ANSWER, "token": None}), [{**ANSWER, "token": None}]),
        ("{broken", []),
        ("[1, 2]", []),
        ("('a', 1)", []),
        ("{'a': {1, 2}}", []),
        ("__import__('os').getcwd()", []),
        ("[" * 100_000, []),
    ],
)
def test_text_that_is_nearly_json(corpo: str, proposed: list[Any]) -> None:
    assert bodies("not_json", corpo) == proposed


def test_only_the_instant_of_an_envelope_is_filled_in() -> None:
    without = {key: value for key, value in ANSWER.items() if key != "timestamp"}
    assert bodies("missing_field", json.dumps(without)) == [{**without, "timestamp": "2026-02-03T04:05:06+00:00"}]
    for missing in ("correlation_id", "tipo_evento", "payload"):
        assert bodies("missing_field", json.dumps({k: v for k, v in without.items() if k != missing})) == []


@pytest.mark.parametrize(
    "motivo", ["unauthenticated", "wrong_attempt", "unknown_correlation", "invalid_field", "new_one"]
)
def test_what_only_the_sender_knows_is_left_to_a_person(motivo: str) -> None:
    assert bodies(motivo, json.dumps(ANSWER), run(("t1", "eco", "em_execucao"))) == []


def test_an_order_without_attempts_is_proposed_as_it_is_and_bytes_are_left_alone() -> None:
    assert bodies("attempts_used_up", None) == [None]
    assert proposals(letter("not_json", "00ff", "hex"), None) == ([], "its bytes are no text")
