"""JSON Schema of a request of any shape, for editors: made from the table of words and from the tables of the reader.

What the reader accepts the schema accepts. It knows words, kinds and limits; names, expressions and dependencies
need the reader (`oraculo plan check`). `plano_schema.json` beside this module is what `plan_schema` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oraculo.core.uniqueness import UniqueMode
from oraculo.plans import limits
from oraculo.plans.model import JoinMode
from oraculo.plans.node_reader import (
    BODY_KINDS,
    BODY_OPTIONS,
    CALLS,
    KINDS,
    LOOP_FIELDS,
    MAP_MODES,
    OPTIONS,
    UNDO_FIELDS,
    WAIT_FIELDS,
    WAIT_KINDS,
)
from oraculo.plans.reader import COMMON_FIELDS, NOT_OF_CHILDREN, SHAPES, STAGE_MODES
from oraculo.plans.schema_file import PLANO_SCHEMA_FILE
from oraculo.plans.schema_texts import DESCRIPTIONS
from oraculo.plans.words import FIELDS, VALUES

SCHEMA_ID = f"urn:oraculo:{PLANO_SCHEMA_FILE}"

Schema = dict[str, Any]

_EXPRESSION: Schema = {"type": "string", "pattern": r"\$\{\{"}
_OBJECT: Schema = {"type": "object"}
_ANYTHING: Schema = {}


def plan_schema() -> Schema:
    """The schema, JSON Schema 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Oráculo: requisição de qualquer forma · request of any shape",
        **_request(child=False),
        "$defs": {
            "child": _request(child=True),
            "plan_task": _task(),
            "map_body": _body(BODY_OPTIONS),
            "loop_body": _body(tuple(word for word in BODY_OPTIONS if word != "quando")),
            "wait": _wait(),
            "loop": _loop(),
            "undo": _undo(),
            "retry": _retry(),
        },
    }


# -- objects whose words are in two languages ------------------------------------------------------------------------


def _spellings(field: str) -> list[str]:
    return [field, FIELDS[field]] if field in FIELDS else [field]


def _object(fields: Mapping[str, Schema], needed: Iterable[str] = (), **more: Any) -> Schema:
    """An object that has these fields and no others, each in one of its spellings."""
    properties: Schema = {}
    twice: Schema = {}
    for field, schema in fields.items():
        described = {"description": DESCRIPTIONS[field], **schema} if field in DESCRIPTIONS else schema
        for word in _spellings(field):
            properties[word] = described
        if field in FIELDS:
            twice[FIELDS[field]] = _without([field])
    given = [_has(field) for field in needed]
    rules = [*given, *more.pop("rules", ())]
    schema = {"type": "object", "additionalProperties": False, "properties": properties, **more}
    if twice or "dependentSchemas" in more:
        schema["dependentSchemas"] = _merged(twice, more.get("dependentSchemas", {}))
    return {**schema, "allOf": rules} if rules else schema


def _merged(first: Schema, second: Mapping[str, Schema]) -> Schema:
    """Both rules for each word."""
    merged = dict(first)
    for word, rule in second.items():
        known = merged.get(word, {}).get("properties", {})
        merged[word] = {**rule, "properties": {**known, **rule.get("properties", {})}}
    return merged


def _has(field: str, schema: Schema | None = None) -> Schema:
    """That the field is there, in either spelling."""
    choices = [
        {"required": [word], **({} if schema is None else {"properties": {word: schema}})} for word in _spellings(field)
    ]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _without(words: Iterable[str]) -> Schema:
    return {"properties": {word: False for word in words}}


def _one_of(kinds: Iterable[str]) -> Schema:
    return {"oneOf": [_has(kind) for kind in kinds]}


def _alone(kinds: Mapping[str, Iterable[str]], words: Iterable[str]) -> dict[str, Schema]:
    """Kind, in each spelling → the words that do not go with it."""
    every = list(words)
    return {
        spelling: _without([other for word in every if word not in own for other in _spellings(word)])
        for kind, own in ((kind, (kind, *allowed)) for kind, allowed in kinds.items())
        for spelling in _spellings(kind)
    }


# -- values ----------------------------------------------------------------------------------------------------------


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]} if isinstance(schema.get("type"), str) else schema


def _number(most: float, least: float = 0, *, above: bool = True) -> Schema:
    return {"type": ["number", "null"], "exclusiveMinimum" if above else "minimum": least, "maximum": most}


def _integer(least: int, most: int) -> Schema:
    return {"type": ["integer", "null"], "minimum": least, "maximum": most}


def _text(most: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _texts(item: Schema, most: int) -> Schema:
    return {"type": ["array", "null"], "items": item, "maxItems": most, "uniqueItems": True}


def _name(pattern: str) -> Schema:
    return {"type": "string", "pattern": f"^(?:{pattern.removeprefix('^')})$"}


def _choice(field: str, values: Iterable[str]) -> Schema:
    english = VALUES.get(field, {})
    words = [word for value in values for word in dict.fromkeys((value, english.get(value, value)))]
    return {"enum": [*words, None]}


_DESTINATION = _name(limits.DESTINATION.pattern)
_IDENTIFIER = _name(limits.IDENTIFIER.pattern)
_WAIT_SECONDS = _number(limits.WAIT_MAX_SECONDS)
_OTHERWISE = ("falha", "segue")


def _join(modes: Iterable[JoinMode]) -> Schema:
    fields = {"modo": _choice("modo", [mode.value for mode in modes]), "minimo": _integer(1, limits.MAX_TASKS)}
    quorum = {"anyOf": [_has(word, {"const": "quorum"}) for word in ("modo",)]}
    rule = {"if": quorum, "then": _has("minimo", {"type": "integer"})}
    schema = _object(fields, rules=[rule])
    return {**schema, "type": ["object", "null"]}


def _unique() -> Schema:
    modes = {"enum": _choice("modo", [mode.value for mode in UniqueMode])["enum"][:-1]}
    fields = {"modo": modes, "janela_s": _WAIT_SECONDS, "chave": _or_null(_text(100))}
    window = {"anyOf": [_has("modo", {"enum": ["janela", "window"]})]}
    needed, none = _has("janela_s", {"type": "number"}), _without(_spellings("janela_s"))
    return _or_null(_object(fields, needed=["modo"], rules=[{"if": window, "then": needed, "else": none}]))


def _retry() -> Schema:
    seconds = _number(limits.ATTEMPT_MAX_SECONDS, above=False)
    codes = _texts(_text(100), limits.MAX_CODES)
    return _or_null(_object({"base_s": seconds, "teto_s": seconds, "nao_em": codes}))


def _option(field: str) -> Schema:
    return {
        "depende": _texts(_IDENTIFIER, limits.MAX_DEPENDENCIES),
        "quando": {"anyOf": [{"type": ["boolean", "null"]}, _EXPRESSION]},
        "timeout_s": _WAIT_SECONDS,
        "max_tentativas": _integer(1, limits.MAX_ATTEMPTS),
        "retentativa": {"$ref": "#/$defs/retry"},
        "desfaz": {"$ref": "#/$defs/undo"},
        "opcional": {"type": ["boolean", "null"]},
        "prioridade": _integer(1, 9),
        "fan_in": _join(JoinMode),
    }[field]


_CALL_FIELDS: Mapping[str, Schema] = {"fonte": _DESTINATION, "executador": _DESTINATION, "parametros": _OBJECT}


# -- tasks -----------------------------------------------------------------------------------------------------------


def _task() -> Schema:
    fields = {
        **_CALL_FIELDS,
        "para_cada": {"anyOf": [{"type": "array", "maxItems": limits.MAX_MAP_ITEMS}, _EXPRESSION]},
        "como": _or_null(_IDENTIFIER),
        "ao_mesmo_tempo": _integer(1, limits.MAX_MAP_ITEMS),
        "faz": {"$ref": "#/$defs/map_body"},
        "espera": {"$ref": "#/$defs/wait"},
        "filha": {"$ref": "#/$defs/child"},
        "repete": {"$ref": "#/$defs/loop"},
        **{field: _option(field) for field in OPTIONS},
    }
    own = dict.fromkeys(word for words in KINDS.values() for word in words)
    alone = _alone(KINDS, own)
    for word in _spellings("para_cada"):
        alone[word] = {
            "properties": {**alone[word]["properties"], "fan_in": _join(MAP_MODES)},
            "allOf": [_has("faz")],
        }
    return _object(fields, dependentSchemas=alone, rules=[_one_of(KINDS)])


def _body(options: Iterable[str]) -> Schema:
    fields = {
        **_CALL_FIELDS,
        "filha": {"$ref": "#/$defs/child"},
        **{field: _option(field) for field in options},
    }
    child = {word: _without(_spellings("parametros")) for word in _spellings("filha")}
    return _object(fields, dependentSchemas=child, rules=[_one_of(BODY_KINDS)])


def _undo() -> Schema:
    known = {**_CALL_FIELDS, **{field: _option(field) for field in OPTIONS}}
    schema = _object({field: known[field] for field in UNDO_FIELDS})
    return {**schema, "type": ["object", "null"], "if": _OBJECT, "then": _one_of(CALLS)}


def _wait() -> Schema:
    approval = _object(
        {
            "pergunta": {"type": ["string", "null"]},
            "papeis": _texts(_text(100), limits.MAX_ROLES),
        }
    )
    seconds = {key: value for key, value in _number(limits.WAIT_MAX_SECONDS, above=False).items() if key != "type"}
    known = {
        "sinal": _DESTINATION,
        "aprovacao": approval,
        "segundos": {"anyOf": [{"type": "number", **seconds}, _EXPRESSION]},
        "ate": {"type": "string"},
        "timeout_s": _WAIT_SECONDS,
        "ao_expirar": _choice("ao_expirar", _OTHERWISE),
        "ao_recusar": _choice("ao_recusar", _OTHERWISE),
    }
    bounded = ("timeout_s", "ao_expirar")
    kinds = {"sinal": bounded, "aprovacao": (*bounded, "ao_recusar"), "segundos": (), "ate": ()}
    alone = _alone(kinds, (*bounded, "ao_recusar"))
    return _object({field: known[field] for field in WAIT_FIELDS}, dependentSchemas=alone, rules=[_one_of(WAIT_KINDS)])


def _loop() -> Schema:
    known = {
        "faz": {"$ref": "#/$defs/loop_body"},
        "pare_quando": _EXPRESSION,
        "no_maximo": {"type": "integer", "minimum": 1, "maximum": limits.MAX_LOOP_ROUNDS},
        "pausa_s": _number(limits.WAIT_MAX_SECONDS, above=False),
        "ao_esgotar": _choice("ao_esgotar", _OTHERWISE),
    }
    return _object({field: known[field] for field in LOOP_FIELDS}, ("faz", "pare_quando", "no_maximo"))


# -- requests --------------------------------------------------------------------------------------------------------


def _entries(kind: str) -> Schema:
    call = {
        kind: _DESTINATION,
        "parametros": _OBJECT,
        "timeout_s": _number(limits.ATTEMPT_MAX_SECONDS),
        "max_tentativas": _integer(1, limits.MAX_ATTEMPTS),
    }
    return {"type": "array", "maxItems": limits.MAX_TASKS, "items": _object(call, (kind,))}


def _request(*, child: bool) -> Schema:
    names = {"allOf": [_IDENTIFIER, {"not": {"enum": sorted(limits.RESERVED_NAMES)}}]}
    notify = _object({"webhook": _or_null(_text(2048)), "fila": _or_null(_name(limits.QUEUE.pattern))})
    known: dict[str, Schema] = {
        "tarefas": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": limits.MAX_TASKS,
            "propertyNames": names,
            "additionalProperties": {"$ref": "#/$defs/plan_task"},
        },
        "entrada": _OBJECT,
        "saida": _ANYTHING,
        "tipo": _DESTINATION,
        "parametros": _OBJECT,
        "coletas": _entries("fonte"),
        "execucoes": _entries("executador"),
        "fan_in": _join(STAGE_MODES),
        "timeout_s": _WAIT_SECONDS,
        "correlation_id": _or_null(_text(limits.CORRELATION_ID_MAX_CHARS)),
        "notificar": _or_null(notify),
        "rotulos": _texts(_text(100), limits.MAX_LABELS),
        "unica": _unique(),
    }
    shaped = [word for words in SHAPES.values() for word in words]
    fields = [*shaped, *(field for field in COMMON_FIELDS if not child or field not in NOT_OF_CHILDREN)]
    kinds = {"tarefas": SHAPES["tarefas"], "tipo": SHAPES["tipo"]}
    stages = SHAPES["coletas"]
    alone = _alone({**kinds, "coletas": stages, "execucoes": stages}, shaped)
    some = {"minItems": 1}
    given = {"anyOf": [_has("tarefas"), _has("tipo"), _has("coletas", some), _has("execucoes", some)]}
    return _object({field: known[field] for field in fields}, dependentSchemas=alone, rules=[given])
