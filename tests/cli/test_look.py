"""`ls`, `show`, `workers`, `task-types`, `dlq`: what there is, and when it cannot be had."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest

from cli.processes import Cli, Server

GOOD = {"coletas": [{"fonte": "eco"}]}
FIRST = {"coletas": [{"fonte": "eco"}, {"fonte": "ausente"}], "fan_in": {"modo": "primeiro"}}
STRANGE = "\x1b]0;roubo\x07[red]x"  # would set the title of a terminal, and be red

pytestmark = pytest.mark.xdist_group("cli-look")


@pytest.fixture(scope="module", autouse=True)
def some(server: Server) -> None:
    cli = Cli(server.folder, server.url)
    cli.submit({**GOOD, "correlation_id": "primeira"}, "--wait", "10")
    cli.submit({"correlation_id": STRANGE, "coletas": [{"fonte": "falha", "max_tentativas": 1}]})
    cli.submit({**GOOD, "correlation_id": "última"}, "--wait", "10")


def test_ls_is_newest_first_and_filters(cli: Cli) -> None:
    found = cli.json("ls")
    names = [one["correlation_id"] for one in found["orchestrations"]]
    assert names.index("última") < names.index(STRANGE) < names.index("primeira")
    assert found["more"] is False
    assert len(cli.json("ls", "--limit", "1")["orchestrations"]) == 1
    assert cli.json("ls", "--limit", "1")["more"] is True
    assert len(cli.json("ls", "--fonte", "falha")["orchestrations"]) == 1
    assert cli.json("ls", "--status", "timeout", "--status", "cancelada")["orchestrations"] == []
    assert cli.json("ls", "--since", "1h")["orchestrations"] == found["orchestrations"]
    assert cli.json("ls", "--since", "2999-01-01T00:00:00Z")["orchestrations"] == []


def test_ls_for_people_cannot_be_made_to_command_the_terminal(cli: Cli) -> None:
    done = cli("ls")
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout
    assert "\\x1b]0;roubo\\x07[red]x" in done.stdout
    assert "correlation_id" in done.stdout.splitlines()[0]


def test_ls_refuses_what_it_does_not_understand(cli: Cli) -> None:
    assert cli("ls", "--since", "ontem").returncode == 2
    assert cli("ls", "--limit", "0").returncode == 2
    assert cli("ls", "--status", "nada").returncode == 2


def test_show(cli: Cli) -> None:
    document = cli.json("show", "última")
    assert document["tickets"][0]["destino"] == "escavador_eco"
    done = cli("show", "última")
    assert "escavador_eco" in done.stdout and "concluida" in done.stdout
    assert cli("show", "nunca").returncode == 3


def test_sentences_of_the_server_are_in_the_language_of_the_terminal(cli: Cli) -> None:
    cli.submit({**FIRST, "correlation_id": "f1"}, "--wait", "20")
    assert "the fan-in (primeiro) is met already" in cli("show", "f1").stdout
    assert "o fan-in (primeiro) já foi atendido" in cli("show", "f1", LANG="pt_BR.UTF-8").stdout
    for command in ("watch", "replay"):
        assert "motivo=the fan-in" in cli(command, "f1").stdout
        assert "motivo=o fan-in" in cli(command, "f1", LANG="pt_BR.UTF-8").stdout


def test_words_are_english_in_an_english_locale(cli: Cli) -> None:
    cli.submit({**GOOD, "correlation_id": "inglesa"}, "--wait", "20")
    english = {"LANG": "en_US.UTF-8"}
    shown = json.loads(cli("show", "inglesa", "--json", **english).stdout)
    assert shown["status"] == "completed" and shown["agregado"]["collects"][0]["status"] == "completed"
    assert "completed" in cli("show", "inglesa", **english).stdout
    assert "inglesa" in cli("ls", "--status", "completed").stdout
    assert json.loads(cli("show", "inglesa", "--json").stdout)["status"] == "concluida"


def test_show_names_tickets_with_conflicting_answers(cli: Cli, server: Server) -> None:
    cli.submit({**GOOD, "correlation_id": "disputada"}, "--wait", "20")
    answer = {
        "correlation_id": "disputada",
        "tipo_evento": "resultado_coleta",
        "timestamp": "2025-10-14T12:00:00Z",
        "payload": {"fonte": "eco", "dados": "outra coisa"},
    }
    httpx2.post(f"{server.url}/api/v1/results", json=answer).raise_for_status()
    assert "escavador_eco: 1 conflicting answers kept" in cli("show", "disputada").stdout
    assert "conflicting" not in cli("show", "última").stdout


def test_events_of_the_system(cli: Cli, server: Server) -> None:
    answer = {"correlation_id": "de-ninguém", "tipo_evento": "resultado_coleta", "timestamp": "2025-10-14T12:00:00Z"}
    httpx2.post(f"{server.url}/api/v1/results", json=[{**answer, "payload": {"fonte": "eco"}}]).raise_for_status()
    letters = cli.json("dlq", "ls", "--motivo", "unknown_correlation")["dead_letters"]
    assert cli("dlq", "discard", str(letters[0]["id"]), "--razao", "engano", "--yes").returncode == 0
    [event] = cli.json("events", "--tipo", "dead_letters_discarded", "--limit", "1")["eventos"]
    assert (event["evento"], event["razao"]) == ("dead_letters_discarded", "engano")
    assert "razao=engano" in cli("events").stdout
    assert cli.json("events", "--tipo", "nunca")["eventos"] == []
    assert cli("events", "--limit", "0").returncode == 2


def test_workers_are_seen(cli: Cli) -> None:
    assert "escavador_eco" in cli.json("workers")["workers"][0]["filas"]
    assert "escavador_eco" in cli("workers").stdout


def test_no_server_is_exit_5_with_a_hint(alone: Cli) -> None:
    done = alone("ls")
    assert done.returncode == 5
    assert "oraculo up" in done.stderr and done.stderr.count("\n") == 1


def test_task_types_come_and_go(cli: Cli) -> None:
    kept = cli.json("task-types", "put", "semanal", "-", input=json.dumps(GOOD))
    assert kept["coletas"][0]["fonte"] == "eco"
    assert cli.json("task-types", "get", "semanal") == kept
    assert cli.json("task-types", "ls")["task_types"] == {"semanal": kept}
    assert "semanal" in cli("task-types", "ls").stdout
    assert cli.submit({"tipo": "semanal"}, "--wait", "10")["status"] == "concluida"
    assert cli("task-types", "put", "a b", "-", input=json.dumps(GOOD)).returncode == 1
    assert cli("task-types", "rm", "semanal").returncode == 0
    assert cli("task-types", "rm", "semanal").returncode == 3
    assert cli("task-types", "get", "semanal").returncode == 3


def spoil(cli: Cli, count: int, name: str = "de ninguém") -> None:
    """Results of orchestrations that nobody knows become dead letters."""
    result = {"correlation_id": name, "tipo_evento": "resultado_coleta", "timestamp": "2025-10-14T12:00:00Z"}
    many = [{**result, "payload": {"fonte": "eco", "n": n}} for n in range(count)]
    httpx2.post(f"{cli.url}/api/v1/results", json=many, trust_env=False).raise_for_status()


def test_dead_letters_are_listed_shown_requeued_and_discarded(cli: Cli) -> None:
    cli.json("dlq", "discard", "--all", "--yes")
    assert cli.json("dlq", "ls") == {"dead_letters": [], "groups": [], "more": False}
    spoil(cli, 5)
    listed = cli.json("dlq", "ls", "--motivo", "unknown_correlation", "--limit", "2")
    assert listed["more"] is True and listed["groups"][0]["total"] == 5
    ids = [str(one["id"]) for one in cli.json("dlq", "ls")["dead_letters"]]
    assert json.loads(cli.json("dlq", "show", ids[0])["corpo"])["correlation_id"] == "de ninguém"
    assert "de ninguém" in cli("dlq", "show", ids[0]).stdout
    assert "unknown_correlation" in cli("dlq", "ls").stdout
    assert cli("dlq", "show", "999").returncode == 3

    refused_again = cli.json("dlq", "requeue", ids[0], code=1)
    assert refused_again["mantidas"] == 1 and refused_again["mensagens"][0]["situacao"] == "quarantined"

    assert cli("dlq", "discard", ids[0]).returncode == 2  # nobody to ask, and no --yes
    assert cli.json("dlq", "discard", ids[0], ids[1], "--yes") == {"descartadas": 2}
    assert cli("dlq", "discard", ids[0], "--yes").returncode == 3
    assert cli("dlq", "discard", "--yes").returncode == 2  # neither ids nor --all
    assert cli.json("dlq", "discard", "--all", "--motivo", "not_json", "--yes") == {"descartadas": 0}
    assert cli.json("dlq", "requeue", "--all", code=1) == {"reenviadas": 0, "mantidas": 3}
    assert cli.json("dlq", "discard", "--all", "--yes") == {"descartadas": 3}


def test_a_dead_letter_that_is_wanted_now_goes_through(cli: Cli) -> None:
    spoil(cli, 1, "de um só")
    cli.submit({"correlation_id": "de um só", "coletas": [{"fonte": "outra"}]})
    id = str(cli.json("dlq", "ls")["dead_letters"][0]["id"])
    told = cli.json("dlq", "requeue", id)  # the only open ticket of its kind
    assert told["reenviadas"] == 1
    assert cli.json("dlq", "ls")["dead_letters"] == []


def test_a_dead_letter_that_cannot_be_told_apart_stays(cli: Cli) -> None:
    spoil(cli, 1, "de dois")
    cli.submit({"correlation_id": "de dois", "coletas": [{"fonte": "outra"}, {"fonte": "mais_uma"}]})
    id = str(cli.json("dlq", "ls")["dead_letters"][0]["id"])
    told = cli.json("dlq", "requeue", id, code=1)
    assert told["mantidas"] == 1
    cli.json("dlq", "discard", id, "--yes")


def test_a_key_is_needed_where_one_is_set(tmp_path: Path) -> None:
    server = Server(tmp_path, ORACULO_API_KEY="segredo-de-teste")
    server.start()
    try:
        cli = Cli(tmp_path, server.url)
        done = cli("ls")
        assert done.returncode == 4 and "ORACULO_API_KEY" in done.stderr
        assert cli("ls", ORACULO_API_KEY="errado").returncode == 4
        assert cli("ls", ORACULO_API_KEY="segredo-de-teste").returncode == 0
        (tmp_path / ".env").write_text("ORACULO_API_KEY=segredo-de-teste\n")
        assert cli("ls").returncode == 0
        assert cli("worker", "trabalho:worker", ORACULO_API_KEY="errado").returncode == 4
        broken = cli.json("doctor", code=1, ORACULO_API_KEY="errado")
        assert [one["name"] for one in broken["checks"] if one["level"] == "broken"] == ["access"]
    finally:
        server.kill()


def test_why_tells_the_decisions_of_a_run_and_of_one_ticket(cli: Cli) -> None:
    document = cli.json("why", STRANGE)
    assert document["decisoes"][-1]["evento"] == "orchestration_closed"
    done = cli("why", STRANGE)
    assert "\x1b" not in done.stdout and "escavador_falha: failed for good with attempt 1" in done.stdout
    assert cli("why", STRANGE, "falha").stdout.startswith("escavador_falha: failed, because ")
    assert cli.json("why", STRANGE, "falha")["ticket_id"] == document["decisoes"][-2]["ticket_id"]
    assert cli("why", STRANGE, "nunca").returncode == 3
    assert cli("why", "nunca").returncode == 3
