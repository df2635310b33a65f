"""`demo`, `bench` and `prove` live in packages of their own, imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import typer

from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.helping import HelpfulCommand
from oraculo.cli.lazy import import_logging
from oraculo.cli.texts import t

COMMAND_MODULES = {"demo": "oraculo.demo", "bench": "oraculo.bench", "prove": "oraculo.simulation.prove"}


def register(app: typer.Typer, panel_of: Callable[[str], str | None]) -> None:
    for name in COMMAND_MODULES:
        _register(app, name, panel_of(name))


def _register(app: typer.Typer, name: str, panel: str | None) -> None:
    # Arguments and --help are passed on as they are: only the command itself knows them.
    passed_on = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

    def command(context: typer.Context) -> None:
        run(name, context.args)

    listed = app.command(name, help=t(name), context_settings=passed_on, add_help_option=False, rich_help_panel=panel)
    listed(command)


def run(name: str, arguments: list[str]) -> None:
    import_logging()
    try:
        function = importlib.import_module(COMMAND_MODULES[name]).command
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("oraculo"):
            raise
        raise CommandError(t("missing", name=name), Exit.UNAVAILABLE) from None
    except AttributeError:
        raise CommandError(t("missing", name=name), Exit.UNAVAILABLE) from None
    single = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    single.command(cls=HelpfulCommand)(function)
    single(arguments, prog_name=f"oraculo {name}")
