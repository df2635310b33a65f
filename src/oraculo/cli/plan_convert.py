"""`oraculo plan convert`: the same plan in another format or in the other vocabulary."""

from __future__ import annotations

import json as json_module
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, say
from oraculo.cli.plan import File, request_of
from oraculo.cli.plan_files import format_named, read_file, words_of
from oraculo.cli.texts import t
from oraculo.plans.model import RequestDocument
from oraculo.plans.python.writer import to_python
from oraculo.plans.source.source_reader import SourceFormat
from oraculo.plans.source.yaml_writer import to_yaml
from oraculo.plans.words import Words
from oraculo.plans.writer import write


class Vocabulary(StrEnum):
    PT = "pt"
    EN = "en"


def convert(
    file: File,
    to: Annotated[SourceFormat | None, typer.Option(help=t("o.plan-to"), show_default=False)] = None,
    words: Annotated[Vocabulary | None, typer.Option(help=t("o.plan-words"), show_default=False)] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=t("o.plan-output"), metavar="FILE", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    found = read_file(file)
    request = request_of(found)
    target = to or (format_named(str(output)) if output else None) or found.format
    vocabulary: Words = words_of(found) if words is None else words.value
    text = text_of(request, target, vocabulary)
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{output}: {error.strerror or error}", Exit.USAGE) from None
    if json:
        emit({"format": target, "words": vocabulary, **({"file": str(output)} if output else {"text": text})})
    elif output is not None:
        say(output)
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def text_of(request: RequestDocument, format: SourceFormat, words: Words) -> str:
    """The request as the text of a file."""
    data = write(request, words)
    match format:
        case SourceFormat.JSON:
            return json_module.dumps(data, ensure_ascii=False, indent=2) + "\n"
        case SourceFormat.YAML:
            return to_yaml(data)
        case SourceFormat.PYTHON:
            return to_python(request, words)
