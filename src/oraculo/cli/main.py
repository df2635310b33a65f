"""The `oraculo` command: every subcommand, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from oraculo import __version__
from oraculo.cli import extras
from oraculo.cli.exits import Exit, code_of, line_of
from oraculo.cli.helping import HelpfulCommand
from oraculo.cli.lazy import HELP_OPTIONS, LazyCommand, lazy_group
from oraculo.cli.output import AsJson, emit, fail, say
from oraculo.cli.texts import t
from oraculo.core.access import Scope
from oraculo.errors import MissingExtraError, OraculoError

BROKEN_PIPE = 141  # 128 + SIGPIPE, as other tools
SERVER_MODULES = ("apsw", "fastapi", "jinja2", "prometheus_client", "pydantic", "starlette", "uvicorn")


# Group → its commands: name, module and function below `oraculo.cli`, the scope that it needs of the server (None: it
# asks no server), an example. The help is a text of `texts`.
COMMANDS: dict[str, list[tuple[str, str, Scope | None, str]]] = {
    "": [
        ("up", "serve:up", None, "oraculo up --port 8080 --worker oraculo.collectors.all:worker"),
        ("dev", "dev:dev", None, "oraculo dev app.py --port 8080"),
        ("worker", "work:worker", Scope.LEASE_TAKE, "oraculo worker oraculo.collectors.all:worker --concurrency 8"),
        (
            "submit",
            "follow:submit",
            Scope.RUN_SUBMIT,
            """echo '{"coletas": \\[{"fonte": "youtube"}]}' | oraculo submit - --watch""",
        ),
        ("watch", "follow:watch", Scope.RUN_READ, "oraculo watch abc123"),
        ("ls", "look:ls", Scope.RUN_READ, "oraculo ls --status erro --since 24h"),
        ("show", "look:show", Scope.RUN_READ, "oraculo show abc123 --json"),
        ("why", "why:why", Scope.RUN_READ, "oraculo why abc123 pagar"),
        ("cancel", "follow:cancel", Scope.RUN_CANCEL, "oraculo cancel abc123 --motivo 'pedido errado'"),
        ("pause", "pauses:pause", Scope.RUN_CANCEL, "oraculo pause abc123 --motivo 'a fonte está fora'"),
        ("resume", "pauses:resume", Scope.RUN_CANCEL, "oraculo resume --queue escavador_youtube"),
        ("prioritise", "pauses:prioritise", Scope.RUN_CANCEL, "oraculo prioritise abc123 9 --motivo 'cliente espera'"),
        ("pauses", "pauses:pauses", Scope.SYSTEM_READ, "oraculo pauses"),
        ("breakers", "breakers:breakers", Scope.SYSTEM_READ, "oraculo breakers --probe escavador_youtube"),
        ("retry", "follow:retry", Scope.RUN_SUBMIT, "oraculo retry abc123 --from falhas --watch"),
        ("bulk", "bulk:bulk", Scope.RUN_CANCEL, "oraculo bulk retry --status erro --since 24h --dry-run"),
        ("signal", "human_input:signal", Scope.RUN_SIGNAL, """oraculo signal abc123 revisao --data '{"nota": 7}'"""),
        ("approve", "human_input:approve", Scope.PLAN_APPROVE, "oraculo approve abc123 --por ana --task pagar"),
        ("reject", "human_input:reject", Scope.PLAN_APPROVE, "oraculo reject abc123 --by ana --reason 'too risky'"),
        ("workers", "workers:workers", Scope.SYSTEM_READ, "oraculo workers --capability python"),
        ("drain", "workers:drain", Scope.QUEUE_PAUSE, "oraculo drain youtube-1 --motivo 'vai reiniciar'"),
        ("undrain", "workers:undrain", Scope.QUEUE_PAUSE, "oraculo undrain youtube-1"),
        ("brokers", "look:brokers", Scope.INSTALLATION_READ, "oraculo brokers"),
        ("events", "look:events", Scope.SYSTEM_READ, "oraculo events --tipo plan_refused"),
        ("replicas", "look:replicas", Scope.INSTALLATION_READ, "oraculo replicas"),
        ("top", "top:top", Scope.METRICS_READ, "oraculo top --every 5"),
        ("replay", "replay:replay", Scope.RUN_READ, "oraculo replay abc123 --until 12"),
        ("rehearse", "rehearse:rehearse_run", None, "oraculo rehearse abc123"),
        ("export-test", "rehearse:export_test", None, "oraculo export-test abc123 --to tests/"),
        ("mcp", "mcp:mcp", Scope.RUN_READ, "oraculo mcp --read-only"),
        ("doctor", "doctor:doctor", Scope.SYSTEM_READ, "oraculo doctor"),
        ("prune", "prune:prune", None, "oraculo prune --older-than 30d --yes"),
        ("migrate", "migrate:migrate", None, "oraculo migrate --check"),
        (
            "migrate-store",
            "migrate_store:migrate_store",
            None,
            "oraculo migrate-store sqlite:///oraculo.db postgresql://oraculo@db/oraculo",
        ),
    ],
    "dlq": [
        ("ls", "dead_letters:ls", Scope.DLQ_READ, "oraculo dlq ls --motivo ambiguous"),
        ("show", "dead_letters:show", Scope.DLQ_READ, "oraculo dlq show 7"),
        ("requeue", "dead_letters:requeue", Scope.DLQ_REQUEUE, "oraculo dlq requeue 7 8"),
        ("discard", "dead_letters:discard", Scope.DLQ_DISCARD, "oraculo dlq discard --all --motivo not_json --yes"),
    ],
    "plan": [
        ("check", "plan:check", None, "oraculo plan check plan.yaml"),
        ("show", "plan:show", None, "oraculo plan show plan.yaml --mermaid"),
        ("convert", "plan_convert:convert", None, "oraculo plan convert plan.json --to yaml --words en"),
    ],
    "retention": [
        ("status", "retention:status", None, "oraculo retention status --json"),
        ("run", "retention:run", None, "oraculo retention run --dry-run"),
    ],
    "tickets": [
        ("ls", "tickets:ls", Scope.RUN_READ, "oraculo tickets ls --plan plan-001 --status FAILED"),
        ("submit", "tickets:submit", Scope.RUN_SUBMIT, "oraculo tickets submit ticket.json"),
        ("status", "tickets:status", Scope.RESULT_WRITE, "oraculo tickets status TICKET_ID COMPLETED"),
        (
            "compensate",
            "tickets:compensate",
            Scope.RUN_SUBMIT,
            "oraculo tickets compensate TICKET_ID --motivo 'imagem retirada'",
        ),
        ("token", "tickets:token", Scope.KEY_ADMIN, "oraculo tickets token TICKET_ID"),
    ],
    "policy": [
        ("status", "policy:status", Scope.INSTALLATION_READ, "oraculo policy status"),
        ("check", "policy:check", None, "oraculo policy check /etc/oraculo/rego"),
        ("eval", "policy:evaluate", None, "oraculo policy eval input.json --package resource_limits"),
        ("test", "policy:test", None, "oraculo policy test plan.yaml"),
    ],
    "task-types": [
        ("ls", "task_types:ls", Scope.RUN_READ, "oraculo task-types ls"),
        ("get", "task_types:get", Scope.RUN_READ, "oraculo task-types get relatorio_semanal"),
        ("put", "task_types:put", Scope.TYPE_WRITE, "oraculo task-types put relatorio_semanal tipo.json"),
        ("rm", "task_types:rm", Scope.TYPE_WRITE, "oraculo task-types rm relatorio_semanal"),
    ],
    "schedules": [
        ("ls", "schedules:ls", Scope.RUN_READ, "oraculo schedules ls"),
        ("show", "schedules:show", Scope.RUN_READ, "oraculo schedules show diario --json"),
        ("put", "schedules:put", Scope.SCHEDULE_WRITE, "oraculo schedules put diario agenda.json"),
        ("rm", "schedules:rm", Scope.SCHEDULE_WRITE, "oraculo schedules rm diario"),
        ("pause", "schedules:pause", Scope.SCHEDULE_WRITE, "oraculo schedules pause diario --motivo 'fonte fora'"),
        ("resume", "schedules:resume", Scope.SCHEDULE_WRITE, "oraculo schedules resume diario"),
        ("trigger", "schedules:trigger", Scope.SCHEDULE_WRITE, "oraculo schedules trigger diario"),
        (
            "backfill",
            "schedules:backfill",
            Scope.SCHEDULE_WRITE,
            "oraculo schedules backfill diario --de 2026-01-31T00:00:00Z --ate 2026-01-31T06:00:00Z",
        ),
        ("upcoming", "schedules:upcoming", Scope.RUN_READ, "oraculo schedules upcoming diario -n 20"),
    ],
    "predictions": [
        ("ls", "predictions:ls", Scope.RUN_READ, "oraculo predictions ls --json"),
        ("rebuild", "predictions:rebuild", None, "oraculo predictions rebuild"),
    ],
    "trails": [
        ("ls", "trails:ls", Scope.SYSTEM_READ, "oraculo trails ls"),
        ("rebuild", "trails:rebuild", None, "oraculo trails rebuild"),
    ],
    "slos": [
        ("ls", "slos:ls", Scope.RUN_READ, "oraculo slos ls"),
        ("show", "slos:show", Scope.RUN_READ, "oraculo slos show relatorios --json"),
        ("put", "slos:put", Scope.SLO_WRITE, "oraculo slos put relatorios objetivo.json"),
        ("rm", "slos:rm", Scope.SLO_WRITE, "oraculo slos rm relatorios"),
        ("alerts", "slos:alerts", Scope.RUN_READ, "oraculo slos alerts -n 20"),
    ],
    "keys": [
        ("create", "keys:create", Scope.KEY_ADMIN, "oraculo keys create --role operador --expires 90d"),
        ("ls", "keys:ls", Scope.KEY_ADMIN, "oraculo keys ls --json"),
        ("rotate", "keys:rotate", Scope.KEY_ADMIN, "oraculo keys rotate k7qmz2c4tb5x --overlap 1h"),
        ("revoke", "keys:revoke", Scope.KEY_ADMIN, "oraculo keys revoke k7qmz2c4tb5x"),
    ],
    "tenants": [
        ("ls", "tenants:ls", None, "oraculo tenants ls --json"),
        ("put", "tenants:put", None, "oraculo tenants put acme --max-open 1000 --per-second 50"),
        ("rm", "tenants:rm", None, "oraculo tenants rm acme"),
    ],
    "data-keys": [
        ("ls", "data_keys:ls", None, "oraculo data-keys ls --json"),
        ("seal", "data_keys:seal", None, "oraculo data-keys seal acme"),
        ("rotate", "data_keys:rotate", None, "oraculo data-keys rotate acme"),
        ("rewrap", "data_keys:rewrap", None, "oraculo data-keys rewrap"),
        ("forget", "data_keys:forget", None, "oraculo data-keys forget acme --yes"),
    ],
    "users": [
        ("add", "users:add", None, "oraculo users add ana --role operador"),
        ("ls", "users:ls", None, "oraculo users ls --json"),
        ("passwd", "users:passwd", None, "oraculo users passwd ana"),
        ("disable", "users:disable", None, "oraculo users disable ana"),
        ("enable", "users:enable", None, "oraculo users enable ana"),
        ("rm", "users:rm", None, "oraculo users rm ana"),
    ],
    "acl": [("export", "acl:export", None, "oraculo acl export redis --queue escavador_youtube > users.acl")],
    "token-keys": [
        ("ls", "token_keys:ls", None, "oraculo token-keys ls --json"),
        ("rotate", "token_keys:rotate", None, "oraculo token-keys rotate --overlap 7d"),
    ],
    "audit": [
        ("verify", "audit:verify", None, "oraculo audit verify"),
        ("anchor", "anchors:anchor", None, "oraculo audit anchor --to /elsewhere/anchor.jsonl"),
        ("export", "audit:export", None, "oraculo audit export --to audit.jsonl"),
        ("archive", "audit_archive:archive", None, "oraculo audit archive /var/lib/oraculo/archive"),
    ],
    "topics": [
        ("check", "topics:check", None, "oraculo topics check --json"),
        ("ensure", "topics:ensure", None, "oraculo topics ensure --replication 3"),
    ],
    "schema": [("export", "schema:export", None, "oraculo schema export openapi --to schemas/")],
}

# Title of `oraculo --help` → the commands and groups below it.
PANELS: dict[str, str] = {
    "begin": "demo up dev worker submit watch plan version",
    "runs": "ls show why cancel pause resume prioritise retry bulk signal approve reject task-types schedules tickets",
    "operate": "workers drain undrain brokers pauses breakers events replicas top dlq slos predictions trails policy "
    "doctor mcp",
    "prove": "replay rehearse export-test prove bench audit",
    "administer": "prune retention migrate migrate-store keys tenants users data-keys token-keys acl topics schema",
}
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}


def panel_of(name: str) -> str | None:
    """The title above a command or a group in `oraculo --help`."""
    return t(f"panel.{_PANEL_OF[name]}") if name in _PANEL_OF else None


def group(name: str) -> typer.Typer:
    """Return the group of that name with its commands; the empty name is `oraculo` itself."""
    commands = [
        LazyCommand(
            command,
            target,
            t(f"{name}.{command}" if name else command),
            epilog(example),
            None if name else panel_of(command),
        )
        for command, target, _scope, example in COMMANDS[name]
    ]
    made = typer.Typer(
        cls=lazy_group(commands),
        name=name or "oraculo",
        help=t(name or "app"),
        no_args_is_help=True,
        add_completion=not name,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings=HELP_OPTIONS,
    )
    made.callback()(_no_options)
    return made


def epilog(example: str) -> str:
    return f"{t('example')}: [bold]{example}[/bold]"


def _no_options() -> None:
    """A group has no options of its own."""


def version(json: AsJson = False) -> None:
    if json:
        emit({"version": __version__})
    else:
        say(f"oraculo {__version__}")


app = group("")
app.command(
    "version",
    cls=HelpfulCommand,
    help=t("version"),
    epilog=epilog("oraculo version --json"),
    rich_help_panel=panel_of("version"),
)(version)
extras.register(app, panel_of)
for _name in COMMANDS:
    if _name:
        app.add_typer(group(_name), rich_help_panel=panel_of(_name))


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
        fail(line_of(error))
        sys.exit(code_of(error))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SERVER_MODULES:
            raise
        fail(str(MissingExtraError(" ".join(["oraculo", *sys.argv[1:2]]), "server")))
        sys.exit(Exit.USAGE)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _forget_stdout()
        sys.exit(BROKEN_PIPE)
    except TimeoutError as error:
        fail(str(error))
        sys.exit(Exit.TIMEOUT)


def _forget_stdout() -> None:
    """Point stdout to nowhere after its reader has left; the interpreter would complain when it flushes at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
