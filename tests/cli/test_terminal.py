"""At a terminal: a picture that moves, questions before what cannot be undone, and no colours when unwanted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

from cli.processes import Cli, environment
from waiting import DEADLINE_S

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR = re.compile(r"\x1b\[(?:3[0-7]|9[0-7]|38;5)")


def at_terminal(cli: Cli, *arguments: str, typed: str = "", stop_at: str = "", **env: str) -> tuple[int, str]:
    """(exit status, all that the terminal showed). What goes on for ever is stopped when it shows `stop_at`."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "oraculo", *arguments],
        cwd=cli.folder,
        env=environment(cli.folder, ORACULO_URL=cli.url, COLUMNS="100", LINES="30", **env),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    while True:
        try:
            shown += (more := os.read(ours, 65536))
        except OSError:  # the other end is closed
            break
        if not more:
            break
        if stop_at and stop_at.encode() in shown:
            stop_at = ""
            process.terminate()
    os.close(ours)
    return process.wait(DEADLINE_S), shown.decode()


def test_the_picture_moves_and_ends_with_the_truth(cli: Cli) -> None:
    (cli.folder / "p.json").write_text(
        '{"correlation_id": "tela", "coletas": [{"fonte": "eco"}, {"fonte": "falha", "max_tentativas": 1}],'
        ' "execucoes": [{"executador": "soma"}]}'
    )
    code, shown = at_terminal(cli, "submit", "p.json", "--watch")
    assert code == 0
    assert _COLOUR.search(shown)
    plain = _CONTROL.sub("", shown)
    last = plain[plain.rindex("◐ tela") :]
    assert "✔ escavador_eco  concluida" in last and "✖ escavador_falha  erro" in last and "3/3" in last
    assert "tela ended parcial" in last


def test_no_colour_when_it_is_not_wanted(cli: Cli) -> None:
    cli.submit({"correlation_id": "cores", "coletas": [{"fonte": "eco"}]}, "--wait", "10")
    _, shown = at_terminal(cli, "watch", "cores", NO_COLOR="1")
    assert "✔ escavador_eco  concluida" in _CONTROL.sub("", shown) and not _COLOUR.search(shown)
    _, shown = at_terminal(cli, "watch", "cores", TERM="dumb")
    assert "orchestration_closed status=concluida" in shown and "\x1b" not in shown


def test_it_asks_before_it_forgets(cli: Cli) -> None:
    code, shown = at_terminal(cli, "prune", "--older-than", "9w", typed="n\n")
    assert code == 1 and "[y/N]" in shown
    code, shown = at_terminal(cli, "prune", "--older-than", "9w", typed="y\n")
    assert code == 0 and "0 orchestrations forgotten" in shown
