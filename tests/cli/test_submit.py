"""`submit`, `watch` and `cancel`, and the exit status of how it went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.processes import Cli
from waiting import eventually

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


def test_watch_ends_with_what_the_plan_gave(cli: Cli) -> None:
    tasks = {"lista": {"fonte": "eco", "parametros": {"n": [1, 2]}}}
    plan = {"tarefas": tasks, "saida": {"total": "${{ size(lista.dados.n) }}", "sim": True}}
    lines = cli("submit", "-", "--watch", input=json.dumps(plan)).stdout.splitlines()
    assert json.loads(lines[-1]) == {"total": 2, "sim": True}
    assert "orchestration_closed" in lines[-2]
    assert not any("{'" in line for line in lines), "an event shows Python's repr"


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


def test_signals_and_decisions_of_tasks(cli: Cli) -> None:
    tasks = {
        "ok": {"espera": {"aprovacao": {"pergunta": "pagar?"}}},
        "b": {"espera": {"aprovacao": {}}},
        "fim": {"espera": {"sinal": "revisao"}, "depende": ["ok"]},
    }
    cli.submit({"tarefas": tasks, "saida": "${{ fim.dados.nota }}", "correlation_id": "espera-1"})
    shown = cli("show", "espera-1")
    assert "waits for a decision (task ok) since" in shown.stdout and "ok (aprovacao: pagar?)" in shown.stdout
    refused = cli("approve", "espera-1")
    assert refused.returncode == 1 and "ok, b" in refused.stderr
    assert cli.json("signal", "espera-1", "revisao", "--data", '{"nota": 7}') == {"tarefa": None}
    assert cli("signal", "espera-1", "revisao", "--data", "{").returncode == 2
    unknown = cli("signal", "espera-1", "outro")
    assert unknown.returncode == 1 and "revisao" in unknown.stderr
    assert (
        cli("approve", "espera-1", "--task", "b", "--by", "ana", "--reason", "checked").stdout == "espera-1 approved\n"
    )
    assert cli("approve", "espera-1", "--task", "ok").returncode == 0
    eventually(lambda: cli.json("show", "espera-1")["agregado"]["saida"] == 7)


PLAN = """\
# uma coleta, uma soma
tasks:
  a: {source: eco, params: {n: 1}}
  b: {executor: soma, needs: [a]}
"""


def test_takes_yaml_and_python_and_answers_the_same(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "plan.py").write_text(
        "from oraculo import Plan\n"
        "plan = Plan()\n"
        "a = plan.collect('a', 'eco', {'n': 1})\n"
        "plan.execute('b', 'soma', needs=[a])\n"
    )
    for name in ("plan.yaml", "plan.py"):
        told = cli.json("submit", str(tmp_path / name), "--wait", "60")
        assert told["status"] == "concluida"
        assert told["tarefas"]["a"]["dados"] == {"n": 1} and told["tarefas"]["b"]["resultado"] == {"soma": 1}
    done = cli("submit", "-", "--wait", "60", input="coletas:\n- fonte: eco\n  parametros: {a: 1}\n")
    assert done.returncode == 0 and json.loads(done.stdout)["coletas"][0]["dados"] == {"a": 1}


def test_faults_of_a_plan_are_told_with_line_and_column_before_it_is_sent(alone: Cli) -> None:
    (alone.folder / "plan.yaml").write_text(PLAN.replace("needs: [a]", "needs: [c]").replace("source:", "sourc:"))
    done = alone("submit", "plan.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "plan.yaml:3:7: tasks.a.sourc: a task has no field 'sourc'; did you mean 'source'?" in done.stderr
    assert "plan.yaml:4:31: tasks.b.needs.0: task 'b' depends on 'c'" in done.stderr
    done = alone("submit", "-", input=json.dumps({"tarefas": {"a": {"fonte": 1}}}))
    assert done.returncode == 1 and "-:1:29: tarefas.a.fonte" in done.stderr


def test_yaml_that_cannot_be_read_is_told_with_its_place(alone: Cli) -> None:
    for text, wanted, code in (
        ("coletas: [", "not YAML", 2),
        ("coletas:\n- fonte: no\n", "-:2:10: coletas.0.fonte: no is true or false to some", 1),
        ("- a\n", "an object is needed", 2),
    ):
        done = alone("submit", "-", input=text)
        assert (done.returncode, done.stdout) == (code, "") and wanted in done.stderr, done.stderr


def test_a_task_type_may_be_kept_from_yaml(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tipo.yaml").write_text(PLAN)
    assert cli("task-types", "put", "do_yaml", str(tmp_path / "tipo.yaml")).returncode == 0
    assert cli.submit({"tipo": "do_yaml"}, "--wait", "60")["tarefas"]["b"]["resultado"] == {"soma": 1}


def test_many_requests_one_on_each_line(cli: Cli, tmp_path: Path) -> None:
    lines = [json.dumps({**GOOD, "correlation_id": "l1"}), "", '{"coletas": []}', "{", "7", json.dumps(GOOD)]
    file = tmp_path / "muitas.ndjson"
    file.write_text("\n".join(lines))
    done = cli("submit", str(file))
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "l1" and len(done.stdout.splitlines()) == 2
    assert [line.split(":")[1] for line in done.stderr.splitlines()] == ["3", "4", "5"]
    told = json.loads(cli("submit", "-", "--ndjson", "--json", input="\n".join(lines)).stdout)
    assert [one["status"] for one in told["itens"]] == [202, 422, 400, 400, 202]


def test_many_good_requests_exit_0(cli: Cli) -> None:
    lines = "\n".join(json.dumps({**GOOD, "correlation_id": f"g{number}"}) for number in range(30))
    done = cli("submit", "-", "--ndjson", input=lines)
    assert (done.returncode, done.stdout.split()) == (0, [f"g{number}" for number in range(30)])
    assert cli("submit", "-", "--ndjson", "--watch", input=lines).returncode == 2
    assert cli("submit", "-", "--ndjson", input="\n").returncode == 2


def test_labels(cli: Cli) -> None:
    request = {**GOOD, "correlation_id": "rot1", "labels": ["a"]}
    cli("submit", "-", "--label", "b c", "--wait", "20", input=json.dumps(request))
    cli("submit", "-", "--ndjson", "--label", "b c", input=json.dumps({**GOOD, "correlation_id": "rot2"}))
    shown = cli("ls", "--label", "b c")
    assert "rot1" in shown.stdout and "rot2" in shown.stdout and "a, b c" in shown.stdout
    assert "rot2" not in cli("ls", "--label", "a").stdout
    assert "a, b c" in cli("show", "rot1").stdout
