"""A command that runs in a folder of a stranger, with the user's own key in the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.processes import WORK, environment
from waiting import DEADLINE_S


@pytest.mark.parametrize("command", ["ls", "worker trabalho:worker"])
def test_the_key_is_not_sent_to_the_server_that_the_folder_names(tmp_path: Path, command: str) -> None:
    (tmp_path / ".env").write_text("ORACULO_URL=http://attacker.example:1\n")
    (tmp_path / "trabalho.py").write_text(WORK)
    done = subprocess.run(
        [sys.executable, "-m", "oraculo", *command.split()],
        cwd=tmp_path,
        env=environment(tmp_path, ORACULO_API_KEY="orc_live_mine"),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 2
    assert "not to one that only .env names" in done.stderr
    assert "orc_live_mine" not in done.stderr + done.stdout
