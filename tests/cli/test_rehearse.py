"""`oraculo rehearse` and `oraculo export-test`: a recorded run ends the same, and a changed one does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.given import Story
from golden_journals import core_stories
from oraculo.cli import rehearse as command
from oraculo.core.events import Resolved
from oraculo.ports.journal import Recorded
from oraculo.runtime.rehearsal import read, rehearse, written


def steps_of(story: Story) -> list[Recorded]:
    found, first = [], 1
    for at, events in story.journal:
        found.append(Recorded(story.run, first, at, events))
        first += len(events)
    return read(written(found))


@pytest.mark.parametrize("tell", core_stories.STORIES, ids=lambda tell: tell.__name__)
def test_every_story_ends_as_it_did(tell: Any) -> None:
    played = rehearse(steps_of(tell()))
    assert (played.differences, played.unused) == ([], [])


def test_what_expressions_gave_is_evaluated_and_not_read() -> None:
    steps = steps_of(core_stories.named_tasks_with_expressions())
    resolved = [one for step in steps for one in step.events if isinstance(one, Resolved) and one.output is not None]
    resolved[0].output.value = b'"forjada"'
    played = rehearse(steps)
    assert played.recorded["saida"] == "forjada"
    assert played.differences == ["saida"]


def test_the_exported_test_passes_and_fails_when_the_record_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = steps_of(core_stories.a_retry_takes_over_tasks_items_and_signals())
    monkeypatch.setattr(command, "recorded", lambda _store, _name: steps)
    monkeypatch.chdir(tmp_path)
    command.export_test("Minha execução 'é \"boa\"'", str(tmp_path))
    (made,) = tmp_path.glob("test_*.py")
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(made)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made.write_text(made.read_text().replace("'concluida'", "'erro'"))
    assert subprocess.run(run, capture_output=True, cwd=tmp_path, check=False).returncode == 1
