"""The JSON Schema for editors beside the reader: what the reader accepts the schema accepts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tools.docs.generate import plan_schema_text

from oraculo.plans.faults import FaultCode
from oraculo.plans.reader import load, read
from oraculo.plans.schema_file import schema_text
from oraculo.plans.schema_texts import DESCRIPTIONS
from oraculo.plans.words import FIELDS
from oraculo.plans.writer import write
from plans.generated import PlanMaker

SCHEMA = json.loads(schema_text())
VALIDATOR = Draft202012Validator(SCHEMA)
CALL: dict[str, Any] = {"fonte": "a"}
LOOP: dict[str, Any] = {"faz": CALL, "pare_quando": "${{ indice > 1 }}", "no_maximo": 2}


def test_the_schema_that_is_shipped_is_the_one_that_is_made() -> None:
    assert schema_text().decode() == plan_schema_text(), "run make docs"
    Draft202012Validator.check_schema(SCHEMA)


def test_generated_plans_fit_in_both_vocabularies() -> None:
    for seed in range(120):
        plan = PlanMaker(seed).plan()
        for written in (plan, write(load(plan), "en")):
            assert [error.message for error in VALIDATOR.iter_errors(written)] == [], seed


@pytest.mark.parametrize(
    "task",
    [
        3,
        {},
        {"fonte": "a", "espera": {"sinal": "s"}},
        {"source": "a b"},
        {"fonte": None},
        {"executor": "a", "paramz": {}},
        {"fonte": "a", "parametros": [1]},
        {"fonte": "a", "parametros": None},
        {"fonte": "a", "parametros": {}, "params": {}},
        {"fonte": "a", "source": "b"},
        {"fonte": "a", "faz": CALL},
        {"fonte": "a", "timeout_s": 0},
        {"fonte": "a", "timeout_s": "1"},
        {"fonte": "a", "max_attempts": 101},
        {"fonte": "a", "prioridade": 10},
        {"fonte": "a", "opcional": 1},
        {"fonte": "a", "quando": "u.ok"},
        {"fonte": "a", "needs": ["u", "u"]},
        {"fonte": "a", "depende": "u"},
        {"fonte": "a", "depende": ["u"], "fan_in": {"mode": "al"}},
        {"fonte": "a", "depende": ["u"], "fan_in": {"modo": "quorum"}},
        {"fonte": "a", "depende": ["u"], "fan_in": {"modo": "quorum", "minimo": None}},
        {"para_cada": "${{ u.dados }}"},
        {"para_cada": 7, "faz": CALL},
        {"para_cada": "x", "faz": CALL},
        {"para_cada": [1], "faz": {"espera": {}}},
        {"para_cada": [1], "faz": {"fonte": "a", "depende": ["u"]}},
        {"para_cada": [1], "faz": CALL, "fan_in": {"modo": "fechadas"}},
        {"for_each": [1], "do": {"child": {"type": "x"}, "params": {}}},
        {"espera": {}},
        {"espera": {"sinal": "a/b"}},
        {"espera": {"segundos": -1}},
        {"espera": {"segundos": 1, "timeout_s": 2}},
        {"espera": {"sinal": "s", "ao_recusar": "segue"}},
        {"wait": {"approval": {"ao_recusar": "segue"}}},
        {"espera": {"aprovacao": None}},
        {"espera": {"sinal": "s", "ao_expirar": "segu"}},
        {"repete": {"faz": CALL}},
        {"repete": {**LOOP, "no_maximo": 10_001}},
        {"repete": {**LOOP, "no_maximo": None}},
        {"repete": {**LOOP, "faz": {**CALL, "quando": True}}},
        {"repeat": {"do": CALL, "until": "x"}},
        {"filha": {}},
        {"filha": {"tipo": "x", "correlation_id": "y"}},
        {"filha": {"coletas": []}},
        {"filha": 1},
        {"fonte": "a", "desfaz": {}},
        {"fonte": "a", "undo": {"fonte": "a", "executor": "b"}},
        {"fonte": "a", "retry": {"max": 1}},
    ],
)
def test_what_the_reader_refuses_for_its_words_and_kinds_the_schema_refuses(task: Any) -> None:
    plan = {"tarefas": {"t": task, "u": CALL}}
    assert read(plan).faults
    assert not VALIDATOR.is_valid(plan)


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"tarefas": {}},
        {"tarefas": {"1a": CALL}},
        {"tasks": {"in": CALL}},
        {"tarefas": {"a": CALL}, "tipo": "x"},
        {"tarefas": {"a": CALL}, "parametros": {}},
        {"tipo": "x", "entrada": {}},
        {"coletas": [CALL], "saida": 1},
        {"type": None},
        {"coletas": [CALL], "collects": [CALL]},
        {"coletas": []},
        {"coletas": None},
        {"collects": [{"executor": "x"}]},
        {"coletas": [CALL], "fan_in": {"modo": "todas_ok"}},
        {"tipo": "x", "rotulos": ["a", "a"]},
        {"tipo": "x", "notify": {"url": ""}},
        {"tipo": "x", "nada": 1},
        {"entrada": {}},
        [],
        None,
        1,
    ],
)
def test_requests_that_the_reader_refuses_the_schema_refuses(request_: Any) -> None:
    assert read(request_).faults
    assert not VALIDATOR.is_valid(request_)


def _places(value: Any) -> list[Any]:
    """Every object and list inside of the value."""
    found, stack = [], [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict | list) and one:
            found.append(one)
            stack.extend(one.values() if isinstance(one, dict) else one)
    return found


def _changed(plan: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    for _ in range(chance.randint(1, 2)):
        place = chance.choice(_places(plan))
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        junk = chance.choice([None, True, 0, 1, 7, 0.5, -1, "x", "${{ 1 }}", [], {}, ["a"], {"fonte": "a"}, "quorum"])
        match chance.choice(["set", "drop", "rename", "add"]):
            case "drop" if isinstance(place, dict):
                del place[key]
            case "rename" if isinstance(place, dict):
                place[chance.choice([*FIELDS, *FIELDS.values()])] = place.pop(key)
            case "add" if isinstance(place, dict):
                place[chance.choice([*FIELDS, *FIELDS.values(), "timeout_s", "fan_in"])] = junk
            case _:
                place[key] = junk
        if not _places(plan):
            break
    return plan


def test_what_the_reader_accepts_the_schema_accepts_also_of_plans_that_were_spoilt() -> None:
    chance = random.Random(5)
    accepted = refused_by_both = refused = 0
    structural = {FaultCode.UNKNOWN_FIELD, FaultCode.MISSING, FaultCode.WRONG_KIND, FaultCode.TWICE}
    for seed in range(700):
        plan = _changed(PlanMaker(seed).plan(), chance)
        reading = read(plan)
        valid = VALIDATOR.is_valid(plan)
        if not reading.faults:
            accepted += 1
            assert valid, (seed, plan, [error.message for error in VALIDATOR.iter_errors(plan)])
        elif structural & {fault.code for fault in reading.faults}:
            refused += 1
            refused_by_both += not valid
    assert accepted > 100 and refused > 100
    assert refused_by_both >= 0.9 * refused


def test_every_description_is_of_a_word_that_there_is() -> None:
    known = json.dumps(SCHEMA)
    assert all(json.dumps(text)[1:-1] in known for text in DESCRIPTIONS.values())
