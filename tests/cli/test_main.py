"""Every command alike: help with an example, --json, one language or the other, pipes that break, schemas."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from cli.processes import Cli, Server, environment
from oraculo import __version__
from oraculo.cli import texts
from oraculo.cli.exits import Exit, code_of, code_of_status
from oraculo.cli.extras import COMMAND_MODULES
from oraculo.cli.main import PANELS, app
from oraculo.errors import ApiError, BusyError, SettingsError, StoreUnavailableError, UnknownIdError
from wire.flow.samples import SAMPLES


def commands(group: Any = None, prefix: str = "") -> dict[str, Any]:
    """Path → command, of all groups."""
    group = group or typer.main.get_command(app)
    context = typer.Context(group)
    found: dict[str, Any] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found |= commands(command, f"{name} ") if isinstance(command, TyperGroup) else {prefix + name: command}
    return found


OURS = [name for name in commands() if name not in COMMAND_MODULES]


def test_the_commands_of_the_contract_are_there() -> None:
    wanted = {"up", "demo", "worker", "submit", "ls", "show", "watch", "cancel", "replay", "doctor", "bench", "prove"}
    wanted |= {"dlq ls", "dlq show", "dlq requeue", "dlq discard", "schema export"}
    assert wanted <= set(commands())


@pytest.mark.parametrize("name", OURS)
def test_help_has_an_example_and_json(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=200)
    assert shown.exit_code == 0
    assert re.search(rf"Example: .*oraculo {name}", shown.output), shown.output
    assert "json" in [one.name for one in commands()[name].params]


@pytest.mark.parametrize("name", OURS)
def test_examples_are_real(name: str) -> None:
    """Every option that an example uses exists."""
    shown = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=200).output
    example = shown[shown.index("Example:") :]
    for option in re.findall(r"(?<!\S)--[a-z-]+", example):
        assert shown.count(option) >= 2, option


def test_version(alone: Cli) -> None:
    assert alone.fresh("version").stdout == f"oraculo {__version__}\n"
    assert alone("--version").stdout == f"oraculo {__version__}\n"
    assert alone.json("version") == {"version": __version__}


def test_no_command_shows_the_commands(alone: Cli) -> None:
    done = alone()
    assert "submit" in done.stdout + done.stderr
    assert alone("nada").returncode == 2


def test_a_misspelt_command_is_told_with_the_nearest_one(alone: Cli) -> None:
    for asked, meant in ((["submti"], "submit"), (["dlq", "requeu", "7"], "requeue"), (["pln"], "plan")):
        done = alone(*asked, LANG="en_US.UTF-8")
        assert done.returncode == 2
        assert f"did you mean {meant}?" in " ".join(done.stderr.split())


def test_every_command_stands_below_a_title_of_the_help() -> None:
    placed = [name for names in PANELS.values() for name in names.split()]
    assert sorted(placed) == sorted({name.split()[0] for name in commands()})


def test_it_speaks_portuguese_when_asked(alone: Cli) -> None:
    assert "Lista as orquestrações" in alone.fresh("--help", LANG="pt_BR.UTF-8").stdout
    assert "está no ar?" in alone.fresh("ls", LC_ALL="pt_BR.UTF-8").stderr
    assert "Exemplo" in alone.fresh("ls", "--help", LANG="pt_BR.UTF-8").stdout


def test_every_text_has_both_languages_and_the_same_places() -> None:
    for key, (english, portuguese) in texts._TEXTS.items():
        assert english and portuguese, key
        assert set(re.findall(r"{(\w+)", english)) == set(re.findall(r"{(\w+)", portuguese)), key


@pytest.mark.parametrize(
    ("given", "language"),
    [({}, "en"), ({"LANG": "pt_BR.UTF-8"}, "pt"), ({"LANG": "pt_BR", "LC_ALL": "C"}, "en"), ({"LC_ALL": "pt"}, "pt")],
)
def test_language(given: dict[str, str], language: str) -> None:
    assert texts.language(given) == language


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "pt"),
        ({"LANG": "C.UTF-8"}, "pt"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_GB", "LC_ALL": "pt"}, "pt"),
    ],
)
def test_words_of_answers(given: dict[str, str], words: str) -> None:
    assert texts.words(given) == words


def test_a_reader_that_leaves_is_no_error(server: Server) -> None:
    command = f"{sys.executable} -m oraculo replay many --json | head -n 1"
    cli = Cli(server.folder, server.url)
    many = [{"fonte": "eco", "parametros": {"x": "y" * 1000}} for _ in range(500)]
    cli.submit({"correlation_id": "many", "coletas": many}, "--wait", "30")
    done = subprocess.run(
        ["bash", "-c", command + "; exit ${PIPESTATUS[0]}"],
        cwd=server.folder,
        env=environment(server.folder),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_extras_that_are_missing_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from oraculo.cli import extras
    from oraculo.cli.exits import CommandError

    monkeypatch.setitem(extras.COMMAND_MODULES, "demo", "oraculo.no_such_package")
    with pytest.raises(CommandError, match="demo") as error:
        extras.run("demo", [])
    assert error.value.code is Exit.UNAVAILABLE


def test_extras_get_their_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fita.py").write_text(
        "import typer\n"
        "def command(seeds: int = 1, json: bool = False):\n"
        "    print(seeds, json)\n"
        "    raise typer.Exit(3)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    from oraculo.cli import extras

    monkeypatch.setitem(extras.COMMAND_MODULES, "prove", "fita")
    shown = CliRunner().invoke(app, ["prove", "--seeds", "7", "--json"])
    assert (shown.exit_code, shown.output) == (3, "7 True\n")
    assert "--seeds" in CliRunner().invoke(app, ["prove", "--help"]).output


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ApiError(404, "x"), 3),
        (ApiError(401, "x"), 4),
        (ApiError(403, "x"), 4),
        (ApiError(503, "x"), 5),
        (ApiError(422, "x"), 1),
        (UnknownIdError("x", "y"), 3),
        (SettingsError("A", "b", "c"), 2),
        (StoreUnavailableError("x"), 5),
        (BusyError("x"), 5),
    ],
)
def test_errors_have_an_exit_status(error: Any, code: int) -> None:
    assert code_of(error) == code


@pytest.mark.parametrize(
    ("status", "code"), [("concluida", 0), ("parcial", 0), ("erro", 1), ("timeout", 1), ("cancelada", 1)]
)
def test_endings_have_an_exit_status(status: str, code: int) -> None:
    assert code_of_status(status) == code


def test_schemas_are_written(alone: Cli) -> None:
    from jsonschema import Draft202012Validator

    files = alone.json("schema", "export", "json-schema", "--to", "out")["files"]
    assert [Path(file).name for file in files] == [
        "mensagem_schema.json", "requisicao_schema.json", "plano_schema.json", "cognitive_plan_schema.json",
        "consolidated_decision_schema.json", "execution_ticket_schema.json", "execution_result_schema.json",
        "flow_c_telemetry_event_schema.json", "orchestration_incident_schema.json", "telemetry_frame_schema.json",
            "approval_response_schema.json",
    ]  # fmt: skip
    both = json.loads(alone("schema", "export", "json-schema").stdout)
    message = {
        "correlation_id": "abc123",
        "tipo_evento": "iniciar_coleta",
        "payload": {"fonte": "youtube", "parametros": {}},
        "timestamp": "2025-10-14T12:00:00Z",
    }
    for schema in (both, json.loads((alone.folder / files[0]).read_text())):
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(message)
    request = json.loads((alone.folder / files[1]).read_text())
    Draft202012Validator(request).validate({"coletas": [{"fonte": "youtube"}]})
    assert both["$defs"]["requisicao"]["properties"].keys() == request["properties"].keys()
    plan = json.loads((alone.folder / files[2]).read_text())
    tasks = {"tasks": {"a": {"source": "x"}, "b": {"child": {"type": "y"}}}}
    for schema in (plan, {"$defs": both["$defs"], "$ref": "#/$defs/plano"}):
        assert Draft202012Validator(schema).is_valid(tasks)
        assert not Draft202012Validator(schema).is_valid({"tasks": {"b": {"child": {"tipo": 1}}}})
    for file, sample in zip(files[3:], SAMPLES.values(), strict=True):
        schema = json.loads((alone.folder / file).read_text())
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(sample)
        assert not Draft202012Validator(schema).is_valid({})


def test_openapi_and_asyncapi(alone: Cli) -> None:
    openapi = json.loads(alone("schema", "export", "openapi").stdout)
    assert "/api/v1/orchestrations" in openapi["paths"]
    asyncapi = json.loads(alone("schema", "export", "asyncapi").stdout)
    assert asyncapi["asyncapi"].startswith("3.")
    addresses = {one["address"] for one in asyncapi["channels"].values()}
    assert {
        "escavador_{fonte}",
        "executador_{nome}",
        "orquestrador_resultados",
        "orquestrador_requisicoes",
        "plans.consensus",
        "execution.tickets",
        "execution.results",
    } <= addresses
    for reference in set(re.findall(r'"\$ref":\s*"#/([^"]+)"', json.dumps(asyncapi))):
        found: Any = asyncapi
        for part in reference.split("/"):
            found = found[part]


def test_avro_as_files_and_as_one_document(alone: Cli) -> None:
    import fastavro

    *files, ids = alone.json("schema", "export", "avro", "--to", "avro")["files"]
    numbers = json.loads((alone.folder / ids).read_text())
    records = [json.loads((alone.folder / file).read_text()) for file in files]
    assert {record["name"] for record in records} == set(numbers) and sorted(numbers.values()) == list(range(1, 9))
    union = json.loads(alone("schema", "export", "avro").stdout)
    assert union == records
    fastavro.parse_schema(union)
    assert alone("schema", "export", "xml").returncode == 2


def test_completion_is_there(alone: Cli) -> None:
    done = alone.fresh(_ORACULO_COMPLETE="complete_bash", COMP_WORDS="oraculo re", COMP_CWORD="1")
    assert "replay" in done.stdout


def test_help_imports_no_command_and_none_of_the_server() -> None:
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from oraculo.cli.main import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([name for name in sys.modules if name.startswith(('oraculo.', 'fastapi', 'pydantic', 'structlog'))])\n"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = set(ast.literal_eval(shown))
    small = (
        "main",
        "exits",
        "extras",
        "lazy",
        "output",
        "texts",
        "texts_dev",
        "texts_keys",
        "texts_operation",
        "texts_plan",
        "texts_policy",
        "texts_terminal",
        "texts_tickets",
        "texts_waits",
        "texts_workers",
        "helping",
    )
    tables = [
        "oraculo.core",
        "oraculo.core.access",
        "oraculo.core.tenants",
        "oraculo.errors",
        "oraculo.wire",
        "oraculo.wire.strict_json",
    ]
    assert loaded <= {"oraculo.cli", *tables, *(f"oraculo.cli.{name}" for name in small)}
