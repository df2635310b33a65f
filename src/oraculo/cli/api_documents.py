"""What commands about documents of the API have in common: one call, a document in a file, a name that is gone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import emit, note, say
from oraculo.cli.plan_files import format_of, read_bytes
from oraculo.cli.texts import t
from oraculo.client.calls import API, HttpCall
from oraculo.plans.source.source_reader import read_source

Nome = Annotated[str, typer.Argument(metavar="NOME")]


def call(url: str | None, method: str, path: str, **more: Any) -> Any:
    """The body of the answer to one call; `path` is below the API."""
    with inputs.client(url) as client:
        return client.call(HttpCall(method, f"{API}{path}", **more)).body


def object_in(file: str) -> dict[str, Any]:
    """The object in a file of JSON or YAML, or on standard input. CommandError: there is none; its faults are told."""
    raw = read_bytes(file)
    reading = read_source(raw, format_of(file, raw))
    if reading.fault_count or not isinstance(reading.data, dict):
        for one in reading.faults:
            note(f"{file}:{one}")
        raise CommandError(f"{file}: a JSON or YAML object is needed", Exit.USAGE)
    return reading.data


def remove(url: str | None, path: str, nome: str, word: str, *, json: bool) -> None:
    """Remove a document and say so; `word` is what JSON calls it."""
    call(url, "DELETE", path)
    if json:
        emit({"nome": nome, word: True})
    else:
        say(f"{nome} {t('removed')}")
