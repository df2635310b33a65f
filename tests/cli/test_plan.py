"""`oraculo plan`: files of plans, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.processes import Cli
from oraculo.cli.main import app

GOOD = """\
entrada: {canal: x}
tarefas:
  videos: {fonte: youtube, parametros: {canal: "${{ entrada.canal }}"}}
  top: {executador: ranking, parametros: {itens: "${{ videos.dados }}"}}
"""
BAD = """\
tarefas:
  videos: {fonte: you tube}
  top: {executador: ranking, depende: [video]}
"""


def plan(*arguments: str, given: bytes = b"") -> Any:
    return CliRunner().invoke(app, ["plan", *arguments], input=given, terminal_width=200)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.yml").write_text(BAD, encoding="utf-8")
    return tmp_path


def test_check_says_every_fault_with_its_line_and_ends_with_1(folder: Path) -> None:
    done = plan("check", "bad.yml")
    assert done.exit_code == 1
    first, second = done.stdout.splitlines()
    assert first.startswith("bad.yml:2:19: tarefas.videos.fonte: fonte is a name of letters")
    assert second.startswith("bad.yml:3:40: tarefas.top.depende.0: task 'top' depends on 'video'")
    assert "did you mean 'videos'?" in second
    assert "bad.yml: 2 faults" in done.stderr


def test_check_of_a_plan_in_order_ends_with_0_and_prints_warnings(folder: Path) -> None:
    done = plan("check", "good.yaml")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "good.yaml: in order\n")
    twice = GOOD + "  outros: {fonte: youtube}\n"
    done = plan("check", "-", given=twice.encode())
    assert done.exit_code == 0 and done.stdout.startswith("-:5:3: warning: tarefas.outros: youtube may get several")


def test_check_for_machines(folder: Path) -> None:
    done = plan("check", "bad.yml", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (found["file"], found["format"], found["ok"], found["fault_count"]) == ("bad.yml", "yaml", False, 2)
    one = found["faults"][0]
    assert (one["line"], one["column"], one["code"]) == (2, 19, "wrong_kind")
    assert one["path"] == ["tarefas", "videos", "fonte"] and one["message"]
    assert json.loads(plan("check", "good.yaml", "--json").stdout)["ok"] is True


def test_check_counts_the_faults_that_it_does_not_show(folder: Path) -> None:
    text = json.dumps({"tarefas": {f"t{n}": {} for n in range(130)}})
    done = plan("check", "-", given=text.encode())
    assert len(done.stdout.splitlines()) == 100
    assert "30 more faults are not shown" in done.stderr and "130 faults" in done.stderr


def test_standard_input_is_json_when_it_begins_so(folder: Path) -> None:
    good = json.dumps({"coletas": [{"fonte": "youtube"}]}, indent=1).encode()
    assert json.loads(plan("check", "-", "--json", given=good).stdout)["format"] == "json"
    assert json.loads(plan("check", "-", "--json", given=GOOD.encode()).stdout)["format"] == "yaml"


def test_a_file_that_is_not_there_ends_with_2(alone: Cli) -> None:
    done = alone("plan", "check", "nada.yaml")
    assert (done.returncode, done.stdout) == (2, "") and "nada.yaml: No such file" in done.stderr


def test_yaml_without_its_extra_names_it(alone: Cli) -> None:
    (alone.folder / "yaml.py").write_text("raise ModuleNotFoundError('yaml')")
    (alone.folder / "p.yaml").write_text(GOOD, encoding="utf-8")
    (alone.folder / "p.json").write_text('{"coletas": [{"fonte": "a"}]}', encoding="utf-8")
    done = alone.fresh("plan", "check", "p.yaml", PYTHONPATH=str(alone.folder))
    assert done.returncode == 2 and "pip install 'oraculo[yaml]'" in done.stderr
    assert alone.fresh("plan", "check", "p.json", PYTHONPATH=str(alone.folder)).returncode == 0


def test_show_draws_the_tasks_in_the_words_of_the_file(folder: Path) -> None:
    done = plan("show", "good.yaml")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "entrada: canal",
        "●  videos  fonte youtube",
        "●  top     executador ranking",
    ]
    english = plan("convert", "good.yaml", "--words", "en").stdout
    assert "●  top     executor ranking" in plan("show", "-", given=english.encode()).stdout


def test_show_as_mermaid_and_for_machines(folder: Path) -> None:
    assert plan("show", "good.yaml", "--mermaid").stdout.splitlines() == [
        "flowchart TD",
        '  t0(["videos<br>fonte youtube"])',
        '  t1["top<br>executador ranking"]',
        "  t0 --> t1",
    ]
    found = json.loads(plan("show", "good.yaml", "--json").stdout)
    assert [(task["name"], task["needs"], task["level"]) for task in found["tasks"]] == [
        ("videos", [], 0),
        ("top", ["videos"], 1),
    ]


@pytest.mark.parametrize("command", ["show", "convert"])
def test_a_plan_with_faults_is_neither_drawn_nor_converted(alone: Cli, command: str) -> None:
    (alone.folder / "bad.yml").write_text(BAD, encoding="utf-8")
    done = alone("plan", command, "bad.yml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.yml:2:19: tarefas.videos.fonte" in done.stderr and "bad.yml: 2 faults" in done.stderr


def test_convert_keeps_format_and_words_unless_told(folder: Path) -> None:
    same = plan("convert", "good.yaml").stdout
    assert same.startswith("entrada:\n  canal: x\ntarefas:\n  videos:\n    fonte: youtube\n")
    english = json.loads(plan("convert", "good.yaml", "--to", "json", "--words", "en").stdout)
    assert english["tasks"]["top"] == {"executor": "ranking", "params": {"itens": "${{ videos.data }}"}}
    back = plan("convert", "-", "--to", "yaml", "--words", "pt", given=json.dumps(english).encode())
    assert back.stdout == same
    kept = json.loads(plan("convert", "-", given=json.dumps(english).encode()).stdout)
    assert kept == english


def test_convert_writes_a_file_in_the_format_of_its_name(folder: Path) -> None:
    assert plan("convert", "good.yaml", "-o", "plano.json").stdout == "plano.json\n"
    assert json.loads((folder / "plano.json").read_text(encoding="utf-8"))["entrada"] == {"canal": "x"}
    told = json.loads(plan("convert", "good.yaml", "--to", "json", "--json").stdout)
    assert (told["format"], told["words"]) == ("json", "pt") and json.loads(told["text"])["entrada"] == {"canal": "x"}
    assert plan("convert", "good.yaml", "-o", "no/where.json").exit_code == 1


PYTHON = """\
from oraculo import Plan
from ajuda import CANAL

plan = Plan(input={"canal": CANAL})
videos = plan.collect("videos", "youtube", {"canal": plan.input.canal})
plan.execute("top", "ranking", {"itens": videos.data})
other = Plan()
other.collect("a", "you tube")
other.execute(
    "b", "x", needs=["c"]
)
"""


def test_python_files_are_run_and_checked_at_the_lines_of_their_tasks(folder: Path) -> None:
    (folder / "p.py").write_text(PYTHON, encoding="utf-8")
    (folder / "ajuda.py").write_text("CANAL = 'x'\n", encoding="utf-8")
    assert plan("check", "p.py").exit_code == 0
    done = plan("check", "p.py:other")
    assert [line.partition(" ")[0] for line in done.stdout.splitlines()] == ["p.py:8:1:", "p.py:9:1:"]
    assert plan("convert", "p.py", "--to", "yaml").stdout == plan("convert", "good.yaml").stdout
    source = plan("convert", "good.yaml", "--to", "python").stdout
    (folder / "again.py").write_text(source, encoding="utf-8")
    assert plan("convert", "again.py", "--to", "yaml").stdout == plan("convert", "good.yaml").stdout


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("x = 1", "p.py", "p.py: there is no Plan 'plan'"),
        ("1 / 0", "p.py", "p.py: ZeroDivisionError: division by zero"),
        ("raise SystemExit(0)", "p.py", "p.py: SystemExit: 0"),
        ("from oraculo import Plan\na, b = Plan(), Plan()", "p.py", "there are a, b: say p.py:name"),
        ("from oraculo import Plan\na = Plan()", "p.py:b", "p.py: there is no Plan 'b'"),
        ("", "q.py", "q.py: No such file"),
    ],
)
def test_a_python_file_without_a_plan_ends_with_2(alone: Cli, source: str, target: str, wanted: str) -> None:
    (alone.folder / "p.py").write_text(source, encoding="utf-8")
    done = alone("plan", "check", target)
    assert (done.returncode, done.stdout) == (2, "") and wanted in done.stderr
