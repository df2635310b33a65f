"""`rehearse` and `export-test`: a run played again with the answers that it got, now or in a test of one's own."""

from __future__ import annotations

import re
from pathlib import Path
from pprint import pformat
from typing import Annotated, Any

import typer

from oraculo.cli.completing import Id
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import recorded
from oraculo.cli.output import AsJson, emit, note, say
from oraculo.cli.texts import t
from oraculo.core.events import OrchestrationClosed
from oraculo.ports.journal import Recorded
from oraculo.runtime.rehearsal import Rehearsal, rehearse, written
from oraculo.settings import settings

DIFFERENCES_SHOWN = 20
_TEST = '''"""The run {name} as it was recorded: it must end the same. Written by `oraculo export-test`."""

from oraculo.runtime.rehearsal import read, rehearse

RECORDED = r"""
{lines}"""


def test_{slug}() -> None:
    played = rehearse(read(RECORDED))
    assert played.differences == []
    assert played.result["status"] == {status!r}
{more}    assert played.digest == "{digest}", "an answer is not the one that was recorded"
'''


def _ended(correlation_id: str) -> list[Recorded]:
    steps = recorded(settings.load().store, correlation_id)
    if not any(isinstance(event, OrchestrationClosed) for one in steps for event in one.events):
        raise CommandError(t("rehearse-open", id=correlation_id), Exit.FAILED)
    return steps


def rehearse_run(correlation_id: Id, json: AsJson = False) -> None:
    played = rehearse(_ended(correlation_id))
    if json:
        emit(_document(correlation_id, played))
    else:
        say(t("rehearsed", id=correlation_id, status=played.result["status"], recorded=played.recorded["status"]))
        for where in played.differences[:DIFFERENCES_SHOWN]:
            say(f"  ≠ {where}", "red")
        for number, name in played.unused[:DIFFERENCES_SHOWN]:
            note(t("rehearse-unused", number=number, name=name))
    if played.differences:
        raise typer.Exit(Exit.FAILED)


def _document(correlation_id: str, played: Rehearsal) -> dict[str, Any]:
    return {
        "correlation_id": correlation_id,
        "status": played.result["status"],
        "gravado": played.recorded["status"],
        "diferencas": played.differences,
        "sem_efeito": [{"seq": number, "causa": name} for number, name in played.unused],
        "agregado": played.result,
    }


def export_test(
    correlation_id: Id,
    to: Annotated[str, typer.Option("--to", help=t("o.export-to"), show_default=False)] = "",
    json: AsJson = False,
) -> None:
    steps = _ended(correlation_id)
    played = rehearse(steps)
    if played.differences:
        raise CommandError(t("export-differs", where=", ".join(played.differences[:3])), Exit.FAILED)
    slug = re.sub(r"[^a-z0-9]+", "_", correlation_id.lower()).strip("_") or "run"
    path = Path(to or f"test_{slug}.py")
    if path.is_dir():
        path /= f"test_{slug}.py"
    path.write_text(_source(correlation_id, slug, steps, played), encoding="utf-8")
    emit({"arquivo": str(path)}) if json else say(t("exported-test", path=path))


def _source(name: str, slug: str, steps: list[Recorded], played: Rehearsal) -> str:
    """The text of the test. JSON has no three quotation marks in a row, so nothing in it ends the raw text."""
    lines = written(steps)
    tasks = {task: one["status"] for task, one in played.result.get("tarefas", {}).items()}
    more = ""
    if tasks:
        found = '{name: one["status"] for name, one in played.result["tarefas"].items()}'
        more += f"    assert {found} == {pformat(tasks)}\n"
    if played.result.get("saida") is not None:
        more += f'    assert played.result["saida"] == {pformat(played.result["saida"], width=110)}\n'
    shown = repr(name)[1:-1].replace('"', "'")
    return _TEST.format(
        name=shown, slug=slug, lines=lines, status=played.result["status"], more=more, digest=played.digest
    )
