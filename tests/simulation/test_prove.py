"""`oraculo prove`, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from oraculo.simulation import prove
from oraculo.simulation.mutants import patched
from oraculo.simulation.mutants_core import gate_counts_twice
from oraculo.simulation.prove import Worlds
from oraculo.simulation.run import KINDS

app = typer.Typer()
app.command()(prove.command)


def test_the_report() -> None:
    done = CliRunner().invoke(app, ["--seeds", "5", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    for words in (
        str(5 * len(KINDS)),
        "worlds",
        "virtual hours",
        "crashes",
        "worlds with a violation",
        "oraculo",
        "sqlite",
        "trace",
    ):
        assert words in done.output


def test_json_is_the_same_on_every_run() -> None:
    reports = [json.loads(CliRunner().invoke(app, ["--seeds", "4", "--json", "--jobs", "1"]).stdout) for _ in range(2)]
    assert reports[0]["trace"] == reports[1]["trace"]
    assert reports[0]["tally"] == reports[1]["tally"]
    assert reports[0]["worlds"] == 4 * len(KINDS)
    assert reports[0]["violations"] == []
    assert set(reports[0]["versions"]) == {"oraculo", "python", "sqlite", "platform"}


def test_a_violation_is_told_with_the_command_that_replays_it() -> None:
    with gate_counts_twice():
        done = CliRunner().invoke(app, ["--seeds", "10", "--worlds", "core", "--jobs", "1", "--json"])
        assert done.exit_code == 1
        first = json.loads(done.stdout)["violations"][0]
        assert first["replay"].startswith(f"oraculo prove --seed {first['seed']} --")
        again = CliRunner().invoke(app, first["replay"].split()[2:])
        assert again.exit_code == 1
        assert "VIOLATION gates count right" in again.output
        shown = CliRunner().invoke(app, ["--seeds", "10", "--worlds", "core", "--jobs", "1"])
        assert first["replay"] in shown.output


def test_a_state_file_is_gone_on_with(tmp_path: Path) -> None:
    """Whatever was run is in the report once: parts that overlap, one whose line was cut off, and one of other code."""
    state = tmp_path / "deeper" / "worlds.jsonl"
    given = ["--worlds", "core", "--masked", "--jobs", "1", "--json", "--state", str(state)]

    def run(*more: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, [*given, *more])
        assert done.exit_code == 0, done.output
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    assert run("--seeds", "3")["ranges"] == [[0, 2]]
    first = state.read_bytes()
    state.write_bytes(first + first.replace(b'"code":"', b'"code":"x') + first[:40])
    assert run("--first", "5", "--seeds", "2")["ranges"] == [[0, 2], [5, 6]]
    whole = run("--first", "1", "--seeds", "6")
    kinds = len(CORE_KINDS) // 2
    assert (whole["ranges"], whole["seeds"], whole["worlds"]) == ([[0, 6]], 7, 7 * kinds)
    at_once = json.loads(CliRunner().invoke(app, [*given[:-2], "--seeds", "7"]).stdout)
    assert (whole["tally"], whole["virtual_hours"]) == (at_once["tally"], at_once["virtual_hours"])
    written = state.read_bytes()
    assert run("--seeds", "7") == whole and state.read_bytes() == written


def test_a_violation_stays_in_a_state_file(tmp_path: Path) -> None:
    given = ["--seeds", "10", "--worlds", "core", "--jobs", "1", "--json", "--state", str(tmp_path / "worlds.jsonl")]
    with gate_counts_twice():
        assert CliRunner().invoke(app, given).exit_code == 1
    again = CliRunner().invoke(app, given)
    assert again.exit_code == 1 and json.loads(again.stdout)["violations"][0]["replay"].startswith("oraculo prove")


def test_replay_shows_everything() -> None:
    done = CliRunner().invoke(app, ["--seed", "3", "--unmasked", "--worlds", "engine"])
    assert done.exit_code == 0
    for words in ("== unmasked 3", "dials", "commit", "publish", "no violation", "trace"):
        assert words in done.output
    as_json = CliRunner().invoke(app, ["--seed", "3", "--unmasked", "--worlds", "engine", "--json"])
    for line in as_json.stdout.splitlines():
        assert json.loads(line)["trace"] in done.output


def test_mutants_are_shown() -> None:
    from oraculo.simulation import mutants

    some = mutants.zoo()[:2]
    with patched((mutants, "zoo", lambda: some)):
        done = CliRunner().invoke(app, ["--mutants"])
        assert done.exit_code == 0
        assert some[0].name in done.output
        assert json.loads(CliRunner().invoke(app, ["--mutants", "--json"]).stdout)["survivors"] == []


CORES = ("core", "flow", "tasks", "maps", "loops", "children", "waits", "undo", "retries")
CORE_KINDS = [f"{what}-{how}" for what in CORES for how in ("masked", "unmasked")]
PECULIAR = [
    f"{what}-{how}"
    for what in ("ceiling", "brokers", "tokens", "replicas", "breaker", "plans", "chosen", "fleet", "unique")
    for how in ("masked", "unmasked")
]


@pytest.mark.parametrize(
    ("masked", "worlds", "kinds"),
    [
        (None, Worlds.ALL, [*CORE_KINDS, "masked", "unmasked", *PECULIAR]),
        (
            True,
            Worlds.ALL,
            [
                "core-masked",
                "flow-masked",
                "tasks-masked",
                "maps-masked",
                "loops-masked",
                "children-masked",
                "waits-masked",
                "undo-masked",
                "retries-masked",
                "masked",
                "ceiling-masked",
                "brokers-masked",
                "tokens-masked",
                "replicas-masked",
                "breaker-masked",
                "plans-masked",
                "chosen-masked",
                "fleet-masked",
                "unique-masked",
            ],
        ),
        (
            False,
            Worlds.ALL,
            [
                "core-unmasked",
                "flow-unmasked",
                "tasks-unmasked",
                "maps-unmasked",
                "loops-unmasked",
                "children-unmasked",
                "waits-unmasked",
                "undo-unmasked",
                "retries-unmasked",
                "unmasked",
                "ceiling-unmasked",
                "brokers-unmasked",
                "tokens-unmasked",
                "replicas-unmasked",
                "breaker-unmasked",
                "plans-unmasked",
                "chosen-unmasked",
                "fleet-unmasked",
                "unique-unmasked",
            ],
        ),
        (None, Worlds.CORE, CORE_KINDS),
        (False, Worlds.ENGINE, ["unmasked", *(one for one in PECULIAR if one.endswith("-unmasked"))]),
    ],
)
def test_which_worlds(masked: bool | None, worlds: Worlds, kinds: list[str]) -> None:
    assert prove.chosen(masked, worlds) == kinds
