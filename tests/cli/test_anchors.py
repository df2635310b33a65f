"""Signed anchors: a journal that was changed after one is found out, without a copy of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from typer import Exit as Left

from contracts.test_store import begin, finished, plan, write
from oraculo.adapters.signing.ed25519 import key_of
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.cli import anchors, audit
from oraculo.cli.exits import CommandError
from oraculo.wire.signatures import encoded, signing_key_text

SECRET = bytes(range(32))
PUBLIC = encoded(key_of(SECRET).public)


@pytest.fixture
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal with orchestrations that ended and one that goes on, and its anchor."""
    monkeypatch.setenv("ORACULO_STORE", f"sqlite:///{tmp_path}/o.db")
    monkeypatch.setenv("ORACULO_SIGNING_KEY", signing_key_text("kaaaaaaaaaaa", SECRET))
    async with SqliteStore(str(tmp_path / "o.db")) as store:
        for name in ("a", "b"):
            await finished(store, name)
        running = begin("c", plan(2))
        await write(store, running.started, running.confirm())
    return tmp_path


def verified(folder: Path, capsys: pytest.CaptureFixture[str], public: str | None = PUBLIC) -> tuple[int, str]:
    try:
        audit.verify(None, None, folder / "anchor", public, False)
    except (Left, CommandError) as error:
        return getattr(error, "exit_code", 1), f"{error}{capsys.readouterr().out}"
    return 0, capsys.readouterr().out


def test_a_journal_agrees_with_its_anchor_and_may_grow(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    anchors.anchor(folder / "anchor", False)
    assert (folder / "anchor").stat().st_mode & 0o77 == 0
    status, told = verified(folder, capsys)
    assert status == 0 and "anchor" in told


CHANGES: dict[str, Any] = {
    "altered": "UPDATE journal SET events = replace(events, 'fonte0', 'fonte9')",
    "unreadable": "UPDATE journal SET events = replace(events, 'Started', 'Begun')",
    "later": "UPDATE journal SET at = at + 1 WHERE position = 2",
    "deleted": "DELETE FROM runs WHERE correlation_id = 'a'",
}


@pytest.mark.parametrize("how", CHANGES)
def test_what_was_changed_after_an_anchor_is_found(folder: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    anchors.anchor(folder / "anchor", False)
    with apsw.Connection(str(folder / "o.db")) as database:
        run = database.execute("SELECT run FROM runs WHERE correlation_id = 'a'").fetchall()[0][0]
        database.execute(CHANGES[how])
        if how == "deleted":
            database.execute("DELETE FROM journal WHERE run = ?", (run,))
            database.execute("DELETE FROM results WHERE run = ?", (run,))
    status, told = verified(folder, capsys)
    assert status != 0 and ("deleted" if how == "deleted" else "altered") in told


def test_an_anchor_that_was_changed_or_is_of_another_key_is_not_believed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    anchors.anchor(folder / "anchor", False)
    right = (folder / "anchor").read_bytes()
    lines = right.splitlines(keepends=True)
    for wrong in (b"", right[:-1], right.replace(b'"a"', b'"z"'), b"".join(lines[1:]), b"".join(lines[:-1]), b"{}\n"):
        (folder / "anchor").write_bytes(wrong)
        assert verified(folder, capsys)[0] != 0
    (folder / "anchor").write_bytes(right)
    assert verified(folder, capsys)[0] == 0
    assert verified(folder, capsys, encoded(bytes(32)))[0] != 0
    assert verified(folder, capsys, None)[0] != 0


def test_without_a_key_nothing_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORACULO_SIGNING_KEY")
    with pytest.raises(CommandError, match="ORACULO_SIGNING_KEY"):
        anchors.anchor(folder / "anchor", False)
    assert not (folder / "anchor").exists()
