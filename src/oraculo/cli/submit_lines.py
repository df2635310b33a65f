"""`submit` of a file with one request on each line: each is accepted or refused on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit, line_of
from oraculo.cli.output import emit, note, say
from oraculo.cli.plan_files import BYTE_ORDER_MARK, read_bytes
from oraculo.cli.texts import t
from oraculo.client.results import Submitted
from oraculo.errors import ApiError, BatchRefusedError, OraculoError, WireError
from oraculo.wire import strict_json

SUFFIXES = (".ndjson", ".jsonl")

Told = Submitted | OraculoError


def is_lines(file: str) -> bool:
    return Path(file).suffix.lower() in SUFFIXES


def labelled(request: dict[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """The request with these labels beside its own; the word is that of the request."""
    if not labels:
        return request
    word = "labels" if "labels" in request else "rotulos"
    given = request.get(word) or []
    return {**request, word: [*given, *labels]} if isinstance(given, list) else request


def submit_lines(
    file: str, idempotency_key: str | None, url: str | None, json: bool, labels: Sequence[str] = ()
) -> None:
    """Hand in every line, with these labels too; exit status 1 when some were refused."""
    lines = _lines(file)
    wanted = {number: labelled(one, labels) for number, one in lines.items() if isinstance(one, dict)}
    told: dict[int, Told] = {number: one for number, one in lines.items() if isinstance(one, OraculoError)}
    if wanted:
        with inputs.client(url) as client:
            try:
                found: list[Any] = list(client.submit_many(wanted.values(), idempotency_key))
            except BatchRefusedError as error:
                found = error.items
        told |= zip(wanted, found, strict=True)
    _show(file, {number: told[number] for number in lines}, json)
    if any(isinstance(one, OraculoError) for one in told.values()):
        raise typer.Exit(Exit.FAILED)


def _lines(file: str) -> dict[int, dict[str, Any] | OraculoError]:
    """Number of a line → its request, or why it is none."""
    found: dict[int, dict[str, Any] | OraculoError] = {}
    for number, line in enumerate(read_bytes(file).removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = strict_json.loads(line)
        except WireError as error:
            found[number] = error
        else:
            found[number] = value if isinstance(value, dict) else CommandError("a JSON object is needed", Exit.USAGE)
    if not found:
        raise CommandError(f"{file}: {t('none')}", Exit.USAGE)
    return found


def _show(file: str, told: Mapping[int, Told], json: bool) -> None:
    """The ids on standard output, a refusal on standard error with its line; all of it in order as JSON."""
    if json:
        emit({"itens": [_document(one) for one in told.values()]})
        return
    for number, one in told.items():
        if isinstance(one, Submitted):
            say(one.correlation_id)
        else:
            note(f"{file}:{number}: {line_of(one)}")


def _document(one: Told) -> dict[str, Any]:
    if isinstance(one, Submitted):
        merged = {"juntada": True} if one.merged else {}
        return {"status": 202, "correlation_id": one.correlation_id, **merged}
    if isinstance(one, ApiError):
        return one.problem
    return {"status": 400, "title": t("not-sent"), "detail": str(one)}
