"""The tables of docs/settings.md, made from the declarations in `oraculo.settings`. The prose around them is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from oraculo.settings.declare import Variable, variable_of, variables_of
from oraculo.settings.settings import Settings
from oraculo.settings.telling_groups import CollectorsSettings

HEADER = "| variable | default | allowed | what it is for |\n|---|---|---|---|"


def server() -> str:
    """One table for the settings that stand alone, and one for each group under its title."""
    alone = [variable for one in fields(Settings) if (variable := variable_of(one)) is not None]
    groups = [(one.metadata["title"], one.metadata["group"]) for one in fields(Settings) if "group" in one.metadata]
    return "\n\n".join([_table(alone), *(f"### {title}\n\n{_table(variables_of(kind))}" for title, kind in groups)])


def collectors() -> str:
    return _table(variables_of(CollectorsSettings))


def references() -> str:
    """The names of the settings whose value may stand elsewhere."""
    return ", ".join(f"`{one.name}`" for one in variables_of(Settings) if one.by_reference)


TABLES = {"server": server, "collectors": collectors, "references": references}


def _table(variables: Iterator[Variable] | list[Variable]) -> str:
    return "\n".join([HEADER, *(_row(one) for one in variables)])


def _row(one: Variable) -> str:
    cells = (f"`{one.name}`", f"`{one.default}`" if one.default else "", one.reader.allowed, one.help)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
