"""Plans in files: which format a file has, and what stands in it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import note
from oraculo.cli.plan_python import python_target, read_python
from oraculo.cli.texts import t
from oraculo.client.calls import is_plan
from oraculo.errors import WireError
from oraculo.plans.source.source_reader import SourceFormat, SourceReading, read_source, read_text
from oraculo.plans.words import FIELDS_TO_PORTUGUESE, Words, field_in
from oraculo.wire import strict_json

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SUFFIXES = {
    ".py": SourceFormat.PYTHON,
    ".json": SourceFormat.JSON,
    ".yaml": SourceFormat.YAML,
    ".yml": SourceFormat.YAML,
}


@dataclass(frozen=True, slots=True)
class PlanFile:
    name: str
    format: SourceFormat
    reading: SourceReading


def read_file(file: str) -> PlanFile:
    """Read a file, or standard input for `-`. CommandError when it cannot be opened; faults are in the reading."""
    if target := python_target(file):
        return PlanFile(target[0], SourceFormat.PYTHON, read_python(*target))
    raw = read_bytes(file)
    format = format_of(file, raw)
    return PlanFile(file, format, read_text(raw, format))


def plan_request(file: str) -> dict[str, Any]:
    """The request in a file as it is sent. CommandError when there is none; with its faults on standard error when it
    is a plan of any shape that has some."""
    if python_target(file):
        found = read_file(file)
    else:
        raw = read_bytes(file)
        format = format_of(file, raw)
        if format is SourceFormat.JSON:
            value = _json(file, raw)
            if not is_named_plan(value):
                return value
        reading = read_source(raw, format)
        found = PlanFile(file, format, read_text(raw, format) if is_named_plan(reading.data) else reading)
    data = found.reading.data
    if found.reading.fault_count:
        show_faults(found)
        code = Exit.FAILED if isinstance(data, dict) else Exit.USAGE
        raise CommandError(fault_count_of(found), code)
    if not isinstance(data, dict):
        raise CommandError(f"{file}: an object is needed", Exit.USAGE)
    return data


def is_named_plan(value: Any) -> bool:
    """Whether the request has `tarefas`, in either vocabulary; a plan of Fluxo C has `tasks` of its own."""
    named = isinstance(value, dict) and any(word in value for word in ("tarefas", field_in("en", "tarefas")))
    return named and not is_plan(value)


def fault_count_of(found: PlanFile) -> str:
    """How many faults a file has, in a sentence."""
    count = found.reading.fault_count
    return t("plan-fault" if count == 1 else "plan-faults", file=found.name, count=count)


def show_faults(found: PlanFile) -> None:
    """Every fault on standard error, as `file:line:column: …`."""
    for one in found.reading.faults:
        note(f"{found.name}:{one}")


def _json(file: str, raw: bytes) -> dict[str, Any]:
    try:
        value = strict_json.loads(raw.removeprefix(BYTE_ORDER_MARK))
    except WireError as error:
        raise CommandError(f"{file}: {error.detail}", Exit.USAGE) from None
    if not isinstance(value, dict):
        raise CommandError(f"{file}: a JSON object is needed", Exit.USAGE)
    return value


def read_bytes(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}", Exit.USAGE) from None


def format_named(file: str) -> SourceFormat | None:
    """The format that the end of a name stands for."""
    return _SUFFIXES.get(Path(file).suffix.lower())


def words_of(found: PlanFile) -> Words:
    """The vocabulary of the words that stand at the top of the file; Portuguese for Python, which has no such words."""
    data = found.reading.data if found.format is not SourceFormat.PYTHON else None
    english = isinstance(data, dict) and any(word in FIELDS_TO_PORTUGUESE for word in data)
    return "en" if english else "pt"


def format_of(file: str, raw: bytes) -> SourceFormat:
    """By the end of the name; otherwise JSON when it begins as JSON does."""
    known = format_named(file)
    if known is not None:
        return known
    begins = raw.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
    return SourceFormat.JSON if begins in (b"{", b"[", b"") else SourceFormat.YAML
