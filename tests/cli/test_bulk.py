"""`oraculo bulk`: counts before it asks, asks before it does, and says what became of them."""

from __future__ import annotations

from cli.processes import Cli

CHOSEN = ("--label", "lote:cli")


def _open(cli: Cli, count: int) -> list[str]:
    request = {"coletas": [{"fonte": "ninguem"}], "rotulos": ["lote:cli"]}
    return [cli.submit(request)["correlation_id"] for _ in range(count)]


def test_many_runs_are_counted_paused_resumed_and_cancelled(cli: Cli) -> None:
    names = _open(cli, 3)
    assert cli.json("bulk", "cancel", *CHOSEN, "--dry-run")["total"] == 3
    unasked = cli("bulk", "cancel", *CHOSEN)
    assert (unasked.returncode, "--yes" in unasked.stderr) == (2, True)
    for action in ("pause", "resume"):
        assert cli.json("bulk", action, *CHOSEN, "--yes")["feitas"] == 3
    said = cli("bulk", "cancel", *CHOSEN, "--yes", "--motivo", "engano", LANG="en_US.UTF-8")
    assert (said.returncode, said.stdout) == (0, "3 done, 0 as before, 0 refused, 0 not reached\n")
    assert {cli.json("show", name)["status"] for name in names} <= {"cancelada", "cancelled"}


def test_what_cannot_be_done_is_said_in_one_line(cli: Cli) -> None:
    unknown = cli("bulk", "delete", *CHOSEN)
    assert unknown.returncode == 2
    assert "cancel, retry, pause, resume" in unknown.stderr
    everything = cli("bulk", "cancel", "--yes")
    assert everything.returncode == 1
    assert "filtro" in everything.stderr
