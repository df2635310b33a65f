"""`submit`, `watch` and `cancel`, and the exit status of how it went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.processes import Cli, eventually

GOOD = {"coletas": [{"fonte": "eco", "parametros": {"a": 1}}], "execucoes": [{"executador": "soma"}]}
BAD = {"coletas": [{"fonte": "falha", "max_tentativas": 1}]}
PARTLY = {"coletas": [*GOOD["coletas"], *BAD["coletas"]]}

pytestmark = pytest.mark.xdist_group("cli-submit")


def test_prints_the_id_and_nothing_else(cli: Cli) -> None:
    done = cli("submit", "-", input=json.dumps({**GOOD, "correlation_id": "meu pedido/1"}))
    assert (done.returncode, done.stdout) == (0, "meu pedido/1\n")


def test_takes_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(GOOD))
    done = cli("submit", str(tmp_path / "r.json"), "--wait", "10")
    assert done.returncode == 0
    assert json.loads(done.stdout)["execucoes"][0]["resultado"] == {"soma": 1}


def test_json_says_where_to_look(cli: Cli) -> None:
    document = cli.submit({**GOOD, "correlation_id": "j1"})
    assert document["correlation_id"] == "j1"
    assert document["links"]["result"] == "/api/v1/orchestrations/j1/result"


@pytest.mark.parametrize(
    ("request_", "arguments", "code", "status"),
    [
        (GOOD, [], 0, "concluida"),
        (BAD, [], 1, "erro"),
        (PARTLY, [], 0, "parcial"),
        (PARTLY, ["--strict"], 1, "parcial"),
        ({"coletas": [{"fonte": "ninguem"}], "timeout_s": 0.2}, [], 1, "timeout"),
    ],
)
@pytest.mark.parametrize("how", [["--wait", "20"], ["--watch"]])
def test_the_exit_status_tells_how_it_ended(
    cli: Cli, request_: dict[str, Any], arguments: list[str], code: int, status: str, how: list[str]
) -> None:
    told = cli.submit(request_, *how, *arguments, code=code)
    last = told[-1] if isinstance(told, list) else told
    assert last["status"] == status


def test_exit_6_when_it_takes_longer_than_wait(cli: Cli) -> None:
    done = cli("submit", "-", "--wait", "0.3", input='{"coletas": [{"fonte": "ninguem"}]}')
    assert done.returncode == 6
    assert "0.3 s" in done.stderr and len(done.stdout.split()) == 1


def test_watch_is_one_line_per_event_without_a_terminal(cli: Cli) -> None:
    done = cli("submit", "-", "--watch", input=json.dumps({**GOOD, "correlation_id": "w1"}))
    lines = done.stdout.splitlines()
    assert "orchestration_started" in lines[0] and "orchestration_closed status=concluida" in lines[-1]
    assert [int(line.split()[1]) for line in lines] == list(range(1, len(lines) + 1))
    assert "\x1b" not in done.stdout + done.stderr
    assert "w1 ended concluida" in done.stderr


def test_watch_json_is_the_journal(cli: Cli) -> None:
    cli.submit({**GOOD, "correlation_id": "w2"}, "--wait", "10")
    events = cli.json("watch", "w2")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert cli.json("watch", "w2", "--after", str(len(events) - 1)) == events[-1]


def test_the_same_key_is_the_same_orchestration(cli: Cli) -> None:
    first = cli.submit(GOOD, "--idempotency-key", "k1")
    assert cli.submit(GOOD, "--idempotency-key", "k1")["correlation_id"] == first["correlation_id"]
    assert cli("submit", "-", "--idempotency-key", "k1", input=json.dumps(BAD)).returncode == 1


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("{", 2, "not JSON"),
        ("[]", 2, "a JSON object is needed"),
        ('{"coletas": [], "coletas": []}', 2, "duplicate"),
        ('{"coletas": [{"fonte": "a b"}]}', 1, "coletas.0.fonte"),
        ("{}", 1, ""),
        ('{"tipo": "nunca_visto"}', 1, "nunca_visto"),
    ],
)
def test_a_bad_request_is_one_clear_line(cli: Cli, text: str, code: int, says: str) -> None:
    done = cli("submit", "-", input=text)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr and done.stderr.count("\n") == 1


def test_a_file_that_is_not_there_and_two_ways_at_once(cli: Cli) -> None:
    assert cli("submit", "/no/such/file").returncode == 2
    assert cli("submit", "-", "--watch", "--wait", "1", input="{}").returncode == 2
    assert cli("submit").returncode == 2


def test_cancel_reaches_the_work(cli: Cli, tmp_path: Path) -> None:
    began = tmp_path / "began"
    parameters = {"comecou": str(began), "pode": str(tmp_path / "never")}
    cli.submit({"correlation_id": "c1", "coletas": [{"fonte": "lento", "parametros": parameters}]})
    eventually(began.exists)
    assert cli.json("cancel", "c1", "--motivo", "engano")["cancelada"] is True
    assert cli.json("show", "c1")["motivo_cancelamento"] == "engano"
    again = cli("cancel", "c1")
    assert again.returncode == 0 and "already ended cancelada" in again.stdout
    assert cli("watch", "c1").returncode == 1
    assert cli("cancel", "nunca").returncode == 3


def a_plan(name: str, **more: Any) -> dict[str, Any]:
    """Of Fluxo C, for the worker of these tests."""
    task = {"task_id": "somar", "task_type": "EXECUTE", "description": "somar", "worker": "soma"}
    return {
        "plan_id": name, "intent_id": "i", "correlation_id": name, "risk_band": "low", "tasks": [task],
        "execution_order": ["somar"], **more,
    }  # fmt: skip


def test_a_plan_of_fluxo_c(cli: Cli) -> None:
    told = cli.submit(a_plan("plano-1"), "--wait", "20")
    assert (told["status"], told["fluxo_c"]["status"]) == ("concluida", "SUCCESS")
    shown = cli("show", "plano-1")
    assert "somar (EXECUTE)" in shown.stdout and "plano-1" in shown.stdout


def test_a_plan_that_a_human_approves_and_one_that_is_refused(cli: Cli) -> None:
    for name, command, status in (("plano-2", "approve", "concluida"), ("plano-3", "reject", "cancelada")):
        assert cli.submit(a_plan(name, requires_approval=True))["status"] == "awaiting_approval"
        done = cli(command, name, "--por", "ana", "--json")
        assert (done.returncode, json.loads(done.stdout)["aplicada"]) == (0, True)
        eventually(lambda name=name, status=status: f'"status":"{status}"' in cli("show", name, "--json").stdout)
        again = cli(command, name)
        assert again.returncode == 0 and name in again.stdout


def test_a_plan_that_cannot_run_and_a_decision_against_one(cli: Cli) -> None:
    wrong = a_plan("plano-4", execution_order=["outra"])
    done = cli("submit", "-", input=json.dumps(wrong))
    assert done.returncode == 1 and "'outra', which is no task" in done.stderr
    decision = {
        "decision_id": "d", "plan_id": "plano-5", "final_decision": "reject", "reasoning_summary": "risco",
        "cognitive_plan": a_plan("plano-5"),
    }  # fmt: skip
    done = cli("submit", "-", "--json", input=json.dumps(decision))
    assert done.returncode == 1 and json.loads(done.stdout)["status"] == "rejected"
