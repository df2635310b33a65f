"""The `oraculo` command: every subcommand, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from oraculo import __version__
from oraculo.cli import (
    audit,
    dead_letters,
    doctor,
    extras,
    follow,
    look,
    migrate_store,
    prune,
    replay,
    schema,
    serve,
    task_types,
    top,
    work,
)
from oraculo.cli.exits import Exit, code_of, line_of
from oraculo.cli.output import AsJson, emit, note, say
from oraculo.cli.texts import t
from oraculo.errors import OraculoError

BROKEN_PIPE = 141  # 128 + SIGPIPE, as other tools


def group(name: str, parent: typer.Typer | None = None) -> typer.Typer:
    made = typer.Typer(
        name=name,
        help=t("app") if parent is None else t(name),
        no_args_is_help=True,
        add_completion=parent is None,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    if parent is not None:
        parent.add_typer(made)
    return made


def add(parent: typer.Typer, name: str, function: Callable[..., Any], example: str, key: str | None = None) -> None:
    text = ("Exemplo" if t("none") == "nada" else "Example") + f": [bold]{example}[/bold]"
    parent.command(name, help=t(key or name), epilog=text)(function)


def version(json: AsJson = False) -> None:
    if json:
        emit({"version": __version__})
    else:
        say(f"oraculo {__version__}")


app = group("oraculo")
add(app, "up", serve.up, "oraculo up --port 8080 --worker oraculo.workers.all:worker")
add(app, "worker", work.worker, "oraculo worker oraculo.workers.all:worker --concurrency 8")
add(app, "submit", follow.submit, """echo '{"coletas": \\[{"fonte": "youtube"}]}' | oraculo submit - --watch""")
add(app, "watch", follow.watch, "oraculo watch abc123")
add(app, "ls", look.ls, "oraculo ls --status erro --since 24h")
add(app, "show", look.show, "oraculo show abc123 --json")
add(app, "cancel", follow.cancel, "oraculo cancel abc123 --motivo 'pedido errado'")
add(app, "approve", follow.approve, "oraculo approve abc123 --por ana")
add(app, "reject", follow.reject, "oraculo reject abc123 --por ana --motivo 'risco alto'")
add(app, "workers", look.workers, "oraculo workers")
add(app, "brokers", look.brokers, "oraculo brokers")
add(app, "replicas", look.replicas, "oraculo replicas")
add(app, "top", top.top, "oraculo top --every 5")
add(app, "replay", replay.replay, "oraculo replay abc123 --until 12")
add(app, "doctor", doctor.doctor, "oraculo doctor")
add(app, "prune", prune.prune, "oraculo prune --older-than 30d --yes")
add(
    app,
    "migrate-store",
    migrate_store.migrate_store,
    "oraculo migrate-store sqlite:///oraculo.db postgresql://oraculo@db/oraculo",
)
add(app, "version", version, "oraculo version --json")
extras.register(app)

_dlq = group("dlq", app)
add(_dlq, "ls", dead_letters.ls, "oraculo dlq ls --motivo ambiguous", "dlq.ls")
add(_dlq, "show", dead_letters.show, "oraculo dlq show 7", "dlq.show")
add(_dlq, "requeue", dead_letters.requeue, "oraculo dlq requeue 7 8", "dlq.requeue")
add(_dlq, "discard", dead_letters.discard, "oraculo dlq discard --all --motivo not_json --yes", "dlq.discard")

_types = group("task-types", app)
add(_types, "ls", task_types.ls, "oraculo task-types ls", "task-types.ls")
add(_types, "get", task_types.get, "oraculo task-types get relatorio_semanal", "task-types.get")
add(_types, "put", task_types.put, "oraculo task-types put relatorio_semanal tipo.json", "task-types.put")
add(_types, "rm", task_types.rm, "oraculo task-types rm relatorio_semanal", "task-types.rm")

_audit = group("audit", app)
add(_audit, "verify", audit.verify, "oraculo audit verify", "audit.verify")
add(_audit, "export", audit.export, "oraculo audit export --to audit.jsonl", "audit.export")

_schema = group("schema", app)
add(_schema, "export", schema.export, "oraculo schema export openapi --to schemas/", "schema.export")


@_schema.callback()
def _schemas() -> None:
    """A group, although it has one command."""


@app.callback(invoke_without_command=True)
def _before(
    context: typer.Context,
    asked: Annotated[bool, typer.Option("--version", help=t("version"), is_eager=True)] = False,
) -> None:
    if asked:
        version()
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())


def run() -> None:
    """The console entry point. Errors are one line on standard error and an exit status (see `exits`)."""
    try:
        app(prog_name="oraculo")
    except OraculoError as error:
        note(f"oraculo: {line_of(error)}")
        sys.exit(code_of(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _forget_stdout()
        sys.exit(BROKEN_PIPE)
    except TimeoutError as error:
        note(f"oraculo: {error}")
        sys.exit(Exit.TIMEOUT)


def _forget_stdout() -> None:
    """Nobody reads it any more; without this the interpreter would complain when it flushes at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
