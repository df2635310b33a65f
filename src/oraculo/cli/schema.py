"""`oraculo schema export`: what others can generate code, mocks and documentation from."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, say
from oraculo.cli.texts import t

MENSAGEM = "mensagem_schema.json"
REQUISICAO = "requisicao_schema.json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


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
    documents = _documents(format)
    if to is None:
        first = dict(next(iter(documents.values())))
        for name, other in list(documents.items())[1:]:
            _embed(first, name.removesuffix("_schema.json"), other)
        sys.stdout.buffer.write(_pretty(first))
        sys.stdout.buffer.flush()
        return
    written = []
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name, document in documents.items():
            (to / name).write_bytes(_pretty(document))
            written.append(str(to / name))
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}", Exit.USAGE) from None
    if json:
        emit({"files": written})
    else:
        for path in written:
            say(path)


def _documents(format: Format) -> dict[str, dict[str, Any]]:
    match format:
        case Format.JSON_SCHEMA:
            return {MENSAGEM: mensagem(), REQUISICAO: requisicao()}
        case Format.OPENAPI:
            return {"openapi.json": openapi()}
        case Format.ASYNCAPI:
            from oraculo.cli.asyncapi import document

            return {"asyncapi.json": document(mensagem(), requisicao())}
        case Format.AVRO:
            raise CommandError(
                "avro: Avro schemas come with Fluxo C (execution tickets); not in this version", Exit.USAGE
            )


def mensagem() -> dict[str, Any]:
    file = files("oraculo.wire").joinpath("schemas", MENSAGEM)
    if not file.is_file():
        raise CommandError(f"{MENSAGEM} is missing from this installation", Exit.UNAVAILABLE)
    document: dict[str, Any] = orjson.loads(file.read_bytes())
    return document


def requisicao() -> dict[str, Any]:
    from oraculo.wire.requests import Requisicao

    return {"$schema": DRAFT, **Requisicao.model_json_schema()}


def openapi() -> dict[str, Any]:
    from oraculo import settings
    from oraculo.api.app import create_app
    from oraculo.bootstrap import Oraculo

    return create_app(Oraculo(settings.load({}, None))).openapi()


def _embed(document: dict[str, Any], name: str, other: dict[str, Any]) -> None:
    """Two schemas in one document: the second, and what it refers to, under `$defs` of the first."""
    other = dict(other)
    other.pop("$schema", None)
    inner = other.pop("$defs", {})
    document["$defs"] = {**document.get("$defs", {}), **inner, name: other}


def _pretty(document: dict[str, Any]) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
