"""mensagem_schema.json says in JSON Schema exactly what the code does."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from core.given import Story, at, coleta, execucao, plan
from oraculo.core.vocabulary import TipoEvento
from oraculo.errors import WireError
from oraculo.wire import mensagem, payloads, strict_json
from wire.strategies import ANYTHING_LIKE_AN_ENVELOPE, ENVELOPES
from wire.test_mensagem import GOLDEN, IDS, NOT_TIMES, TIMES, VALID

SCHEMA = json.loads(files("oraculo.wire").joinpath("schemas", "mensagem_schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)
many = settings(deadline=None, derandomize=True, max_examples=300)


def by_schema(value: Any) -> bool:
    return VALIDATOR.is_valid(value)


def by_code(value: Any) -> bool:
    """What intake accepts: the envelope, and of results also the payload."""
    text = strict_json.dumps(value)
    try:
        message = mensagem.parse(text)
        if message.tipo_evento.value.startswith("resultado_"):
            payloads.answer(message, text)
    except WireError:
        return False
    return True


def part(name: str) -> Draft202012Validator:
    return Draft202012Validator({**SCHEMA["$defs"][name], "$defs": SCHEMA["$defs"]})


def test_it_is_a_schema_of_2020_12() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)


def test_it_names_the_fields_of_the_contract_and_nothing_else() -> None:
    assert SCHEMA["required"] == list(mensagem.REQUIRED)
    fields = {name for name in mensagem.Mensagem.__slots__ if name != "extra"}
    assert set(SCHEMA["properties"]) == fields
    assert SCHEMA["additionalProperties"] is True
    assert all("description" in one for one in SCHEMA["properties"].values())


def test_it_describes_the_four_payloads() -> None:
    for event in TipoEvento:
        assert SCHEMA["$defs"][event.value]["description"]
        for example in SCHEMA["$defs"][event.value]["examples"]:
            part(event.value).validate(example)


def test_its_examples_are_those_of_the_seeds() -> None:
    golden = [json.loads(path.read_bytes()) for path in GOLDEN if path.stem.startswith("seed_")]
    for example in SCHEMA["examples"]:
        VALIDATOR.validate(example)
        assert example in golden


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_messages_are_valid(path: Path) -> None:
    VALIDATOR.validate(json.loads(path.read_bytes()))


@pytest.mark.parametrize("identity", IDS)
def test_ids(identity: str) -> None:
    assert by_schema({**VALID, "correlation_id": identity})


@pytest.mark.parametrize("time", TIMES)
def test_times(time: str) -> None:
    assert by_schema({**VALID, "timestamp": time, "prazo": time})


@pytest.mark.parametrize("time", NOT_TIMES)
def test_what_is_no_time(time: Any) -> None:
    assert not by_schema({**VALID, "timestamp": time})


def test_every_day_of_the_calendar_and_no_other() -> None:
    for year in (1, 4, 100, 400, 1900, 2000, 2023, 2024, 2100, 9996, 9999):
        for month in range(14):
            for day in range(33):
                time = f"{year:04}-{month:02}-{day:02}T00:00:00Z"
                assert by_schema({**VALID, "timestamp": time}) == by_code({**VALID, "timestamp": time}), time


RESULT = {**VALID, "tipo_evento": "resultado_coleta"}
HAND_WRITTEN: list[Any] = [
    {}, [], None, "x", VALID, RESULT, {**VALID, "payload": []}, {**VALID, "payload": None}, {**VALID, "tentativa": 0},
    {**VALID, "tentativa": 1.0}, {**VALID, "tentativa": True}, {**VALID, "tentativa": "1"},
    {**VALID, "tentativa": None},
    {**VALID, "ticket_id": 5}, {**VALID, "token": {}}, {**VALID, "correlation_id": ""},
    {**VALID, "correlation_id": "😀" * 129}, {**VALID, "tipo_evento": "outro"}, {**VALID, "novo": {"a": [1]}},
    *(
        {**RESULT, "payload": payload}
        for payload in (
            {"fonte": 5}, {"fonte": None}, {"executador": 5}, {"ticket_id": 5}, {"ticket_id": None}, {"tentativa": 0},
            {"tentativa": 2.0}, {"tentativa": True}, {"erros": []}, {"erros": ""}, {"erros": "x"}, {"erros": {}},
            {"erros": [1]}, {"erros": ["x", {}]}, {"erros": [None]}, {"erros": 0}, {"erros": False}, {"erros": [[]]},
            {"status": 5}, {"status": "erro"}, {"dados": None},
        )
    ),
    {**RESULT, "ticket_id": "x", "payload": {"ticket_id": 5}},
    {**RESULT, "ticket_id": None, "payload": {"ticket_id": 5}},
    {**RESULT, "tentativa": 1, "payload": {"tentativa": "um"}}, {**RESULT, "payload": {"tentativa": "um"}},
    {**RESULT, "tipo_evento": "resultado_execucao", "payload": {"executador": 5}},
    {**RESULT, "tipo_evento": "resultado_execucao", "payload": {"fonte": 5}},
    {**VALID, "payload": {"fonte": 5, "ticket_id": 5, "erros": 5, "tentativa": 0}},
]  # fmt: skip


@pytest.mark.parametrize("value", HAND_WRITTEN, ids=lambda value: json.dumps(value)[-60:])
def test_schema_and_code_agree_by_hand(value: Any) -> None:
    assert by_schema(value) == by_code(value)


@given(ANYTHING_LIKE_AN_ENVELOPE)
@many
def test_schema_and_code_agree_by_chance(value: Any) -> None:
    assert by_schema(value) == by_code(value)


@given(ENVELOPES)
@settings(deadline=None, derandomize=True, max_examples=150)
def test_good_envelopes_are_valid(value: Any) -> None:
    if not value["tipo_evento"].startswith("resultado_"):
        VALIDATOR.validate(value)


def test_the_orders_that_we_write_are_valid_and_readable() -> None:
    story = Story(plan([coleta("youtube", parametros=b'{"canal":"x"}'), coleta("blog")], [execucao("relatorio")]))
    story.ok(0, b'[{"titulo":"v\\u00eddeo"}]')
    story.fail(1, definitivo=True)
    written = list(payloads.orders(story.state, [(0, 1), (1, 1), (2, 1)], at(5)))
    assert [queue for queue, _, _ in written] == ["escavador_youtube", "escavador_blog", "executador_relatorio"]
    for _, _, body in written:
        order = json.loads(body)
        VALIDATOR.validate(order)
        part(order["tipo_evento"]).validate(order["payload"])
        message = mensagem.parse(body)
        assert {name: getattr(message, name) for name in order} == order
