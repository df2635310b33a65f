"""`oraculo schema export`: what others can generate code, mocks and documentation from."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from oraculo.api.app import create_app
from oraculo.cli.asyncapi import document
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, say
from oraculo.cli.texts import t
from oraculo.plans.schema_file import PLANO_SCHEMA_FILE, schema_text
from oraculo.service import Oraculo
from oraculo.settings import settings
from oraculo.wire.flow import schemas
from oraculo.wire.flow.json_schema import json_schema
from oraculo.wire.requests import Requisicao

MENSAGEM_FILE = "mensagem_schema.json"
REQUISICAO_FILE = "requisicao_schema.json"
SCHEMA_IDS_FILE = "ids.json"
JSON_SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Format(StrEnum):
    JSON_SCHEMA = "json-schema"
    OPENAPI = "openapi"
    ASYNCAPI = "asyncapi"
    AVRO = "avro"


def export(
    format: Annotated[Format, typer.Argument(show_default=False)],
    to: Annotated[Path | None, typer.Option(help=t("o.to"), metavar="DIR", show_default=False)] = None,
    json: AsJson = False,
) -> None:
    if to is None:
        sys.stdout.buffer.write(_together(format))
        sys.stdout.buffer.flush()
        return
    documents = _documents(format)
    written = []
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name, document in documents.items():
            (to / name).write_bytes(document)
            written.append(str(to / name))
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}", Exit.USAGE) from None
    if json:
        emit({"files": written})
    else:
        for path in written:
            say(path)


def _documents(format: Format) -> dict[str, bytes]:
    """By the name of the file that each is written to."""
    match format:
        case Format.JSON_SCHEMA:
            return {name: _pretty(document) for name, document in _json_schemas().items()}
        case Format.OPENAPI:
            return {"openapi.json": _pretty(openapi())}
        case Format.ASYNCAPI:
            return {"asyncapi.json": _pretty(document(mensagem(), requisicao()))}
        case Format.AVRO:
            avro = {schemas.FILES[record]: schemas.text(record).encode() for record in schemas.NUMBERS}
            return {**avro, SCHEMA_IDS_FILE: _pretty(schemas.NUMBERS)}


def _together(format: Format) -> bytes:
    """All of them in one document: a union of Avro records, a JSON Schema with the others in its `$defs`."""
    if format is Format.AVRO:
        return _pretty([schemas.schema(record) for record in schemas.NUMBERS])
    if format is Format.JSON_SCHEMA:
        (_, first), *others = _json_schemas().items()
        for name, other in others:
            _embed(first, name.removesuffix("_schema.json"), other)
        return _pretty(first)
    (only,) = _documents(format).values()
    return only


def _json_schemas() -> dict[str, dict[str, Any]]:
    flow = {file.removesuffix(".avsc").replace("-", "_"): record for record, file in schemas.FILES.items()}
    return {
        MENSAGEM_FILE: mensagem(),
        REQUISICAO_FILE: requisicao(),
        PLANO_SCHEMA_FILE: orjson.loads(schema_text()),
        **{f"{name}_schema.json": json_schema(record) for name, record in flow.items()},
    }


def mensagem() -> dict[str, Any]:
    file = files("oraculo.wire").joinpath("schemas", MENSAGEM_FILE)
    if not file.is_file():
        raise CommandError(f"{MENSAGEM_FILE} is missing from this installation", Exit.UNAVAILABLE)
    document: dict[str, Any] = orjson.loads(file.read_bytes())
    return document


def requisicao() -> dict[str, Any]:
    return {"$schema": JSON_SCHEMA_DRAFT, **Requisicao.model_json_schema()}


def openapi() -> dict[str, Any]:
    return create_app(Oraculo(settings.load({}, None))).openapi()


def _embed(document: dict[str, Any], name: str, other: dict[str, Any]) -> None:
    """Two schemas in one document: the second, and what it refers to, under `$defs` of the first."""
    other = dict(other)
    other.pop("$schema", None)
    other.pop("$id", None)  # its references are to be looked for in the whole document
    inner = other.pop("$defs", {})
    document["$defs"] = {**document.get("$defs", {}), **inner, name: other}


def _pretty(document: Any) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
