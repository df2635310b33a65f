"""`oraculo rehearse` and `oraculo export-test`: a recorded run ends the same, and a changed one does not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.processes import environment
from core.given import Story
from golden_journals import core_stories
from oraculo import Worker
from oraculo.cli import rehearse as command
from oraculo.core.events import Resolved, TicketConcluded
from oraculo.core.replay import rebuild, replay_step
from oraculo.core.state import Orchestration
from oraculo.ports.journal import Recorded
from oraculo.runtime.rehearsal import read, rehearse, written
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.simulation.core_world import CoreWorld
from waiting import until


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


KINDS = ("core", "flow", "tasks", "maps", "loops", "children", "waits", "undo")
JOURNALS = 1000
EXPORTED_EVERY = 5


@pytest.mark.parametrize("kind", KINDS)
def test_random_journals_replay_and_rehearse_the_same_and_an_edited_answer_is_noticed(kind: str) -> None:
    """A thousand of them over all kinds: commands in any order, twice, late, for tickets that there are not."""
    edited = 0
    for seed in range(JOURNALS // len(KINDS)):
        world = CoreWorld(seed, masked=bool(seed % 2), what=kind)
        world.run()
        steps = read(written(world.records))
        assert _replayed(steps) == rebuild(steps) == world.state, (kind, seed)
        played = rehearse(steps)
        assert (played.differences, played.unused) == ([], []), (kind, seed)
        concluded = [one for step in steps for one in step.events if isinstance(one, TicketConcluded)]
        if seed % EXPORTED_EVERY or not concluded:
            continue
        _exported(f"{kind} {seed}", steps)()
        edited += 1
        concluded[seed % len(concluded)].dados = b'{"edited":true}'
        source = command._source(f"{kind} {seed}", "run", world.records, played)
        with pytest.raises(AssertionError):
            _test_of(source, written(steps))()
    assert edited > JOURNALS // len(KINDS) // EXPORTED_EVERY / 4


def _replayed(steps: list[Recorded]) -> Orchestration | None:
    """The state that the recorded commands make again; each has to give the recorded events."""
    state: Orchestration | None = None
    for one in steps:
        again = replay_step(state, one)
        assert again.events == one.events
        state = again.state
    return state


def _exported(name: str, steps: list[Recorded]) -> Callable[[], None]:
    return _test_of(command._source(name, "run", steps, rehearse(steps)))


def _test_of(source: str, lines: str | None = None) -> Callable[[], None]:
    """The test in the text of an exported file, with other recorded lines if need be."""
    names: dict[str, Any] = {}
    exec(compile(source, "exported", "exec"), names)
    if lines is not None:
        names["RECORDED"] = lines
    found: Callable[[], None] = names["test_run"]
    return found


async def test_a_rehearsal_reaches_neither_broker_nor_webhook(tmp_path: Path) -> None:
    """A run that told a webhook is rehearsed with its address and that of a broker at hand; both count who comes."""
    came = {"broker": 0, "webhook": 0}

    def counting(what: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came[what] += 1
            if await reader.read(65536):
                writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            writer.close()

        return accept

    listening = {what: await asyncio.start_server(counting(what), "127.0.0.1", 0) for what in came}
    ports = {what: one.sockets[0].getsockname()[1] for what, one in listening.items()}
    worker = Worker()
    worker.escavador("a")(lambda parametros: parametros)
    store = {
        "ORACULO_STORE": f"sqlite:///{tmp_path}/oraculo.db",
        "ORACULO_WEBHOOK_ALLOW": f"127.0.0.1:{ports['webhook']}",
    }
    try:
        async with Oraculo(load(store, None), workers=[worker]) as oraculo:
            asked: dict[str, Any] = {
                "tarefas": {"a": {"fonte": "a", "parametros": {"n": "${{ entrada.n }}"}}},
                "entrada": {"n": 1},
                "saida": "${{ a.dados }}",
                "correlation_id": "r1",
                "notificar": {"webhook": f"http://127.0.0.1:{ports['webhook']}/"},
            }
            await oraculo.submit(asked)
            result = await oraculo.result("r1", wait=30)
            assert result is not None and result["saida"] == {"n": 1}
            await until(lambda: came["webhook"] == 1)
        env = environment(tmp_path, **store, ORACULO_BROKER=f"amqp://127.0.0.1:{ports['broker']}")
        for arguments in (["rehearse", "r1", "--json"], ["export-test", "r1", "--to", str(tmp_path)]):
            said = await asyncio.to_thread(
                subprocess.run, [sys.executable, "-m", "oraculo", *arguments], env=env, capture_output=True, text=True
            )
            assert said.returncode == 0, said.stderr
        assert came == {"broker": 0, "webhook": 1}
    finally:
        for one in listening.values():
            one.close()
