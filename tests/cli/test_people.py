"""What people meet in their first hour at a terminal: words of their language, sentences, hints, true times."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

import pytest
from tools.servers.server import free_port

from cli.processes import Cli, Server, environment
from cli.test_picture import document, drawn, ticket
from cli.test_terminal import at_terminal
from oraculo.bench.command import _table as bench_table
from oraculo.cli.output import ago
from oraculo.cli.picture import Picture
from oraculo.cli.texts import _TEXTS as TEXTS
from oraculo.core.vocabulary import Kind
from oraculo.demo.command import program
from oraculo.simulation.prove import verdict
from waiting import DEADLINE_S

ROOT = Path(__file__).parents[2]
PORTUGUESE = {"LANG": "pt_BR.UTF-8"}
REQUEST = {"correlation_id": "pessoas", "coletas": [{"fonte": "eco", "parametros": {"n": 1}}]}


def before(**age: float) -> str:
    return (datetime.fromtimestamp(time(), UTC) - timedelta(**age)).isoformat()


def test_tables_have_titles_in_the_language_of_the_person(cli: Cli) -> None:
    cli.submit(REQUEST, "--wait", "30")
    english, portuguese = cli.fresh("ls").stdout, cli.fresh("ls", **PORTUGUESE).stdout
    titles = [text.split("\n")[0].split() for text in (english, portuguese)]
    assert titles[0] == [
        "correlation_id",
        "status",
        "type",
        "labels",
        "tickets",
        "started",
        "took",
    ]
    assert titles[1] == [
        "correlation_id",
        "status",
        "tipo",
        "rótulos",
        "tickets",
        "início",
        "duração",
    ]
    shown = cli("show", "pessoas").stdout
    assert "attempts" in shown and "tentativas" not in shown and "started" in shown
    assert re.search(r"started +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+ s ago\)|\(just now\)", shown)


def test_every_column_has_a_title_in_both_languages() -> None:
    """Names of the contract that are the same everywhere need none."""
    same = {"id", "kid", "tenant", "correlation_id", "ticket_id", "status", "tickets", "broker", "ok", "worker"}
    for module in (ROOT / "src/oraculo/cli").glob("*.py"):
        for columns in re.findall(r"\btable\(\s*\(([^)]*)\)", module.read_text(encoding="utf-8")):
            for name in set(re.findall(r'"([^"]+)"', columns)) - same:
                assert f"column.{name}" in TEXTS, f"{module.name}: {name}"


def test_an_empty_list_is_a_sentence(cli: Cli) -> None:
    assert "no orchestration matches" in cli("ls", "--fonte", "nenhuma").stderr
    assert "no replicas: one process has this store" in cli("replicas").stderr
    assert "inside the server's process" in cli("brokers").stderr
    assert "no dead letters" in cli("dlq", "ls", "--fila", "nenhuma").stderr


def test_a_field_that_does_not_exist_is_named_with_what_was_meant(cli: Cli) -> None:
    told = cli("submit", "-", input='{"coleta": [{"fonte": "eco"}]}').stderr
    assert "coleta: unknown field; did you mean 'coletas'? allowed: coletas, execucoes" in told
    told = cli("submit", "-", input='{"coletas": [{"fonte": "eco", "parametro": {}}]}').stderr
    assert "coletas.0.parametro: unknown field; did you mean 'parametros'? allowed: fonte" in told
    told = cli("submit", "-", input='{"coletas": [{"fonte": "eco"}], "fan_in": {"modo": "todos", "min": 1}}').stderr
    assert "fan_in.min: unknown field; did you mean 'minimo'? allowed: modo, minimo" in told


def test_a_worker_that_is_named_like_a_file(alone: Cli) -> None:
    told = alone("worker", "./jobs/mine.py:worker")
    assert told.returncode == 2
    assert "a module is named without .py; did you mean jobs.mine:worker?" in told.stderr


def test_no_key_and_a_wrong_key_are_told_apart(tmp_path: Path) -> None:
    server = Server(tmp_path, ORACULO_API_KEY="a-long-key-for-this-test")
    server.start()
    try:
        cli = Cli(tmp_path, server.url)
        none, wrong = cli("ls"), cli("ls", ORACULO_API_KEY="another-key-altogether")
        assert none.returncode == wrong.returncode == 4
        assert "set ORACULO_API_KEY" in none.stderr
        assert "the server refused the key that was sent" in wrong.stderr and "set ORACULO_API_KEY" not in wrong.stderr
    finally:
        server.kill()


def test_watching_can_be_left_and_it_says_how_to_come_back(cli: Cli) -> None:
    cli.submit({"correlation_id": "deixada", "coletas": [{"fonte": "ninguem"}]})
    process = subprocess.Popen(
        [sys.executable, "-m", "oraculo", "watch", "deixada"],
        cwd=cli.folder,
        env=environment(cli.folder, ORACULO_URL=cli.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background may ignore it
    )
    assert process.stdout is not None
    assert "orchestration_started" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert "deixada goes on without this window; `oraculo watch deixada` shows it again" in told


def test_the_picture_counts_from_the_beginning_of_the_run() -> None:
    running = {**ticket(0, "escavador_a"), "status": "em_execucao", "despachado_em": before(minutes=14)}
    shown = drawn(Picture({**document(running), "inicio": before(minutes=15)}))
    assert "15 min" in shown and "14 min" in shown


def test_the_picture_names_tickets_of_fluxo_c_by_their_task() -> None:
    flow = {"fluxo_c": {"task_id": "construir", "task_type": "BUILD"}}
    shown = drawn(Picture(document({**ticket(0, "execution.tickets", "execucao"), **flow})))
    assert "construir (BUILD)" in shown and "execution.tickets" not in shown


def test_the_picture_has_a_title_for_every_kind_of_task() -> None:
    shown = drawn(Picture(document(*(ticket(number, f"q{number}", kind) for number, kind in enumerate(Kind)))))
    assert all(f"q{number}" in shown for number in range(len(Kind)))


def test_the_picture_names_waits_and_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oraculo.cli.output.words", lambda: "en")
    wait = {"tarefa": "pagar", "destino": None, "espera": {"tipo": "aprovacao", "pergunta": "Pagar?"}}
    item = {"tarefa": "itens", "indice": 3}
    shown = drawn(
        Picture(document({**ticket(0, "x", "espera"), **wait}, {**ticket(1, "executador_x", "execucao"), **item}))
    )
    assert "pagar (approval: Pagar?)" in shown
    assert "itens (executador_x) #3" in shown
    assert "pending" in shown and "pendente" not in shown


@pytest.mark.parametrize(
    ("age", "text"),
    [
        ({"seconds": 0}, "just now"),
        ({"seconds": 40}, "40 s ago"),
        ({"minutes": 5}, "5 min ago"),
        ({"hours": 30}, "30 h ago"),
        ({"days": 9}, "9 d ago"),
        ({"minutes": -5.5}, "in 5 min"),
    ],
)
def test_ages(age: dict[str, float], text: str) -> None:
    assert ago(before(**age)) == text


def test_help_shows_no_type_beside_a_switch_and_is_of_one_language(alone: Cli) -> None:
    english, portuguese = alone.fresh("submit", "--help").stdout, alone.fresh("submit", "--help", **PORTUGUESE).stdout
    assert "<bool>" not in english and "Show this message and exit." in english
    assert "Opções" in portuguese and "Mostra esta mensagem" in portuguese and "[obrigatório]" in portuguese
    assert not re.search(r"Options ─|Arguments|\[required\]|Show this", portuguese)


def completed(cli: Cli, words: str, **env: str) -> list[str]:
    known = environment(cli.folder, **{"ORACULO_URL": cli.url, **env})
    asked = {"_ORACULO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = subprocess.run(
        [Path(sys.executable).parent / "oraculo"], env={**known, **asked}, capture_output=True, text=True, timeout=60
    )
    return done.stdout.split()


def test_the_shell_completes_ids_and_statuses(cli: Cli, alone: Cli) -> None:
    cli.submit({**REQUEST, "correlation_id": "completa-1"}, "--wait", "30")
    assert completed(cli, "oraculo show completa-") == ["completa-1"]
    assert completed(cli, "oraculo watch completa-") == ["completa-1"]
    assert completed(cli, "oraculo ls --status ") == [
        *("pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada")
    ]
    assert completed(alone, "oraculo show completa-") == []  # no server: nothing, and no error


def test_up_says_what_there_is_and_how_to_stop(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    code, shown = at_terminal(
        cli, "up", "--port", "0", "--worker", "oraculo.collectors.all:worker", typed="", stop_at="Ctrl-C"
    )
    assert code == 0
    for text in (
        r"dashboard +http://127\.0\.0\.1:\d+/",
        r"API +http://127\.0\.0\.1:\d+/docs",
        r"store +sqlite:///.*oraculo\.db",
        r"broker +inside this process \(memory://\)",
        r"workers +escavador_youtube, escavador_blog, escavador_eco, executador_relatorio",
        r"Ctrl-C stops it",
    ):
        assert re.search(text, shown), (text, shown)


def test_up_says_that_requests_wait_for_a_broker_that_is_away(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    away = {"ORACULO_BROKER": f"redis://127.0.0.1:{free_port()}/0"}
    code, shown = at_terminal(cli, "up", "--port", "0", stop_at="does not answer yet", **away)
    assert code == 0
    assert "the broker does not answer yet: requests are accepted, kept, and go out when it does" in shown


def test_a_decision_has_a_name_also_when_none_is_given(cli: Cli) -> None:
    tasks = {"ok": {"espera": {"aprovacao": {"pergunta": "pagar?"}}}}
    cli.submit({"correlation_id": "decidida", "tarefas": tasks})
    assert cli("approve", "decidida", LOGNAME="ana").returncode == 0
    assert "ana" in cli("show", "decidida", "--json").stdout


def test_one_problem_is_one(alone: Cli) -> None:
    told = alone("doctor", ORACULO_PORT="abc")
    assert told.returncode == 1
    assert told.stdout.rstrip().endswith("\n1 problem")


def test_the_proof_ends_with_a_verdict() -> None:
    held = {"worlds": 1200, "violations": []}
    assert verdict(held) == "PASSED: every promise held in all 1,200 worlds"
    assert verdict({**held, "violations": [{}]}).startswith("FAILED: a promise was broken in 1 of 1,200 worlds")


def test_figures_of_a_bench_are_one_below_the_other() -> None:
    table = bench_table([{"workload": "W1", "per_second": 1420.5, "n": 10000}, {"workload": "SEQ", "p50_ms": 8.5}])
    cells = [list(column.cells) for column in table.columns]
    assert [column.header for column in table.columns] == ["", "W1", "SEQ"]
    assert cells == [["per second", "n", "p50 ms"], ["1420.5", "10,000", ""], ["", "", "8.5"]]


def test_the_demo_names_commands_that_can_be_pasted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "oraculo").write_text("#!/bin/sh\n")
    (tmp_path / "oraculo").chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "oraculo"), "demo"])
    assert program() == str(tmp_path / "oraculo")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    assert program() == "oraculo"
    monkeypatch.setattr(sys, "argv", [str(ROOT / "src/oraculo/__main__.py"), "demo"])
    assert program() == f"{sys.executable} -m oraculo"


def make(folder: Path, python: Path) -> subprocess.CompletedProcess[str]:
    (folder / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    for name in ("requirements.lock", "requirements-uv.lock", "pyproject.toml"):
        (folder / name).touch()
    command = ["make", ".venv/.installed", f"PYTHON={python}"]
    return subprocess.run(command, cwd=folder, env={**os.environ, "MAKEFLAGS": ""}, capture_output=True, text=True)


def interpreter(path: Path, version: str) -> Path:
    """Something that calls itself a Python of that version, and makes environments of itself."""
    path.write_text(
        f"#!/bin/sh\necho {version} $1 $2 >> {path.parent}/calls\n"
        f'[ "$1" = -c ] && exec {sys.executable} -c "import sys; sys.version_info = ({version}); $2"\n'
        'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit; fi\n'
        "exit 1\n"
    )
    path.chmod(0o755)
    return path


def test_an_old_python_leaves_nothing_behind_that_a_new_one_would_stumble_over(tmp_path: Path) -> None:
    old, new = interpreter(tmp_path / "old", "3, 10"), interpreter(tmp_path / "new", "3, 11")
    told = make(tmp_path, old)
    assert told.returncode != 0 and "Python 3.11 or newer is needed; make PYTHON=" in told.stderr
    assert not (tmp_path / ".venv").exists()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)  # as an older Makefile left it
    interpreter(tmp_path / ".venv" / "bin" / "python", "3, 10")
    make(tmp_path, new)
    assert "3, 11 -m pip" in (tmp_path / "calls").read_text()  # it went on to the installation


EMBEDDED = """
import asyncio, json, sys
from oraculo import Oraculo, Worker
from oraculo.settings import load

worker = Worker()

@worker.collector("falha")
def fails(params):
    raise RuntimeError("quebrou")

async def main():
    async with Oraculo(load({"ORACULO_STORE": "sqlite:///e.db"}, None), workers=[worker]) as oraculo:
        done = await oraculo.submit({"coletas": [{"fonte": "falha", "max_tentativas": 1}]})
        while (await oraculo.result(done.correlation_id, wait=30)) is None:
            pass

asyncio.run(main())
"""


def test_the_embedded_orchestrator_leaves_standard_output_to_its_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EMBEDDED],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "work failed" in done.stderr and done.stderr.count("RuntimeError: quebrou") == 1
    assert "orchestration started" not in done.stderr  # what is no warning is not shown unless asked for


def test_half_a_character_stops_no_line_of_the_embedded_orchestrator() -> None:
    script = (
        "import structlog\nfrom oraculo import logs\nlogs.leave_to_program()\n"
        "structlog.get_logger('x').warning('work failed', error='half \\ud800 a character')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == "work failed error=half \\ud800 a character\n"


def test_a_log_line_for_people_has_no_python_in_it(tmp_path: Path) -> None:
    script = (
        "from datetime import UTC, datetime\nimport structlog\nfrom oraculo import logs\n"
        "logs.configure('INFO', 'text')\n"
        "structlog.get_logger('x').info('again', retry_at=datetime(2026, 11, 16, 0, 29, tzinfo=UTC))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "TZ": "UTC"}
    )
    assert "2026-11-16T00:29:00+00:00" in done.stderr and "datetime.datetime" not in done.stderr


def test_json_of_an_empty_list_stays_json(cli: Cli) -> None:
    assert json.loads(cli("ls", "--fonte", "nenhuma", "--json").stdout) == {"orchestrations": [], "more": False}
