"""`oraculo plan`: plans in files. Nothing here asks a server."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, note, out, safe, say
from oraculo.cli.plan_files import PlanFile, fault_count_of, read_file, show_faults, words_of
from oraculo.cli.texts import t
from oraculo.plans.drawing.mermaid import mermaid as as_mermaid
from oraculo.plans.drawing.outline import PlanOutline, outline
from oraculo.plans.drawing.rails import lines_of
from oraculo.plans.model import RequestDocument
from oraculo.plans.source.events import PlacedFault
from oraculo.plans.words import Words, field_in

File = Annotated[str, typer.Argument(help=t("o.plan-file"), metavar="FILE|-", show_default=False)]


def check(file: File, json: AsJson = False) -> None:
    found = read_file(file)
    if json:
        emit(_document(found))
    else:
        _show(found)
    if found.reading.fault_count:
        raise typer.Exit(Exit.FAILED)


def show(
    file: File,
    mermaid: Annotated[bool, typer.Option("--mermaid", help=t("o.mermaid"))] = False,
    json: AsJson = False,
) -> None:
    found = read_file(file)
    words = words_of(found)
    drawn = outline(request_of(found), words)
    if json:
        emit({"file": found.name, **_outline(drawn)})
    elif mermaid:
        sys.stdout.buffer.write(as_mermaid(drawn).encode())
        sys.stdout.buffer.flush()
    else:
        _draw(drawn, words)


def request_of(found: PlanFile) -> RequestDocument:
    """The request in the file; its faults on standard error and exit status 1 when it has any."""
    if found.reading.request is None:
        show_faults(found)
        raise CommandError(fault_count_of(found))
    return found.reading.request


def _draw(drawn: PlanOutline, words: Words) -> None:
    if drawn.input:
        say(f"{field_in(words, 'entrada')}: {', '.join(drawn.input)}", style="bright_black")
    for line in lines_of(drawn, ascii_only=not out().encoding.lower().startswith("utf")):
        out().print(Text(safe(line)), overflow="ellipsis", no_wrap=True)
    if drawn.output is not None:
        say(f"{field_in(words, 'saida')}: {drawn.output}", style="bright_black")


def _outline(drawn: PlanOutline) -> dict[str, Any]:
    tasks = [
        {
            "name": task.name,
            "id": task.id,
            "kind": task.kind,
            "detail": task.detail,
            "notes": list(task.notes),
            "needs": list(task.needs),
            "level": task.level,
            "child": None if task.child is None else _outline(task.child),
        }
        for task in drawn.tasks
    ]
    return {"input": list(drawn.input), "tasks": tasks, "output": drawn.output}


def _document(found: PlanFile) -> dict[str, Any]:
    reading = found.reading
    return {
        "file": found.name,
        "format": found.format,
        "ok": not reading.fault_count,
        "fault_count": reading.fault_count,
        "faults": [_fault(one) for one in reading.faults],
        "warnings": [_fault(one) for one in reading.warnings],
    }


def _fault(placed: PlacedFault) -> dict[str, Any]:
    fault = placed.fault
    return {
        "line": placed.line,
        "column": placed.column,
        "path": list(fault.path),
        "code": fault.code,
        "message": fault.message,
    }


def _show(found: PlanFile) -> None:
    """Faults and warnings as `file:line:column: …`, the form that editors understand."""
    reading = found.reading
    for one in reading.faults:
        say(f"{found.name}:{one}")
    for one in reading.warnings:
        say(f"{found.name}:{one.line}:{one.column}: {t('warning')}: {one.fault}")
    if not reading.fault_count:
        note(t("plan-ok", file=found.name))
        return
    if reading.fault_count > len(reading.faults):
        note(t("plan-more", count=reading.fault_count - len(reading.faults)))
    note(fault_count_of(found))
