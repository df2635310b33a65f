"""Commands that are imported when they are called.

`oraculo --help` lists every command with its help and imports none of them: the modules of a server cost seconds on a
small machine. So modules of commands import what they need at their top, as everywhere else.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

import typer
from typer.core import TyperCommand

from oraculo.cli.helping import HelpfulCommand, HelpfulGroup
from oraculo.cli.texts import t

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


def import_logging() -> None:
    """Import structlog without rich, which it takes for tracebacks in colour when it is there. Lines of Oráculo have
    none, and rich with its lexers is a tenth of what a server loads."""
    modules = cast(dict[str, Any], sys.modules)
    if "structlog" in modules or "rich" in modules:
        return
    modules["rich"] = None  # as if it were not installed
    try:
        importlib.import_module("structlog")
    finally:
        del modules["rich"]


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """One command: `target` is the module below `oraculo.cli` and the function there, as `look:show`."""

    name: str
    target: str
    help: str
    epilog: str
    panel: str | None = None  # the title above it in a list

    def listed(self) -> TyperCommand:
        """The command as a list shows it: with its name and help, without its parameters."""
        return TyperCommand(self.name, help=self.help, rich_help_panel=self.panel)

    def load(self) -> Any:
        """Import the module and build the command."""
        module, _, function = self.target.partition(":")
        import_logging()
        single = typer.Typer(
            add_completion=False,
            pretty_exceptions_enable=False,
            rich_markup_mode="rich",
            context_settings=HELP_OPTIONS,
        )
        found = getattr(importlib.import_module(f"oraculo.cli.{module}"), function)
        single.command(self.name, cls=HelpfulCommand, help=self.help, epilog=self.epilog)(found)
        return typer.main.get_command(single)


class LazyGroup(HelpfulGroup):
    """A group of commands that are loaded one by one; `lazy_group` makes the class for a list of them."""

    lazy: dict[str, LazyCommand]
    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = self.lazy.get(cmd_name)
        if found is None:
            return super().get_command(ctx, cmd_name)
        return found.listed() if self._listing else found.load()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was named; of one that does not exist, the nearest names are said."""
        known = self.list_commands(ctx)
        if args[0] not in known and (near := get_close_matches(args[0], known)):
            ctx.fail(t("no-command", name=args[0], near=", ".join(near)))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._listing = False


def lazy_group(commands: Iterable[LazyCommand]) -> type[LazyGroup]:
    """Return the class of a group with these commands, for `typer.Typer(cls=…)`."""
    return type("Commands", (LazyGroup,), {"lazy": {one.name: one for one in commands}})
