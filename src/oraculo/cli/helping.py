"""Help pages of commands: in the language of the person, and without a type beside options that take no value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

from oraculo.cli.texts import language, t

if TYPE_CHECKING:
    from typer.core import TyperOption


def _in_portuguese() -> None:
    """Give the panels of a help page their titles; they are looked at whenever a page is drawn."""
    from typer import rich_utils

    rich_utils.ARGUMENTS_PANEL_TITLE = "Argumentos"
    rich_utils.OPTIONS_PANEL_TITLE = "Opções"
    rich_utils.COMMANDS_PANEL_TITLE = "Comandos"
    rich_utils.DEFAULT_STRING = "[padrão: {}]"
    rich_utils.REQUIRED_LONG_STRING = "[obrigatório]"


class _Helpful:
    """What a command and a group of commands have in common."""

    params: list[Any]

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        found: TyperOption | None = super().get_help_option(ctx)  # type: ignore[misc]
        if found is not None:
            found.help = t("o.help")
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if language() == "pt":
            _in_portuguese()
        for param in (*self.params, self.get_help_option(ctx)):
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        super().format_help(ctx, formatter)  # type: ignore[misc]


class HelpfulCommand(_Helpful, TyperCommand):
    """A command, for `typer.Typer.command(cls=…)`."""


class HelpfulGroup(_Helpful, TyperGroup):
    """A group of commands, for `typer.Typer(cls=…)`."""
