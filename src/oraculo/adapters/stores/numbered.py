"""Migrations are numbered files, one series for each kind of database; docs/adr/0005 tells why."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from oraculo.errors import StoreTooNewError, StoreTooOldError


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The schema that a database has (0: none yet), the one that this version needs, and the numbers between them."""

    current: int
    newest: int
    pending: tuple[int, ...]

    @property
    def up_to_date(self) -> bool:
        return not self.pending


def migrations(flavour: str) -> list[tuple[int, str]]:
    """(number, SQL) of every migration for one kind of database, in order."""
    folder = resources.files("oraculo.adapters.stores") / "migrations"
    found = [
        (int(entry.name[:4]), entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(f"_{flavour}.sql")
    ]
    return sorted(found)


def missing(flavour: str, current: int) -> list[tuple[int, str]]:
    """What a database with schema `current` lacks; one from a newer version is refused."""
    known = migrations(flavour)
    newest = known[-1][0]
    if current > newest:
        raise StoreTooNewError(
            f"the database has schema {current}, this Oráculo knows up to {newest}: use the newer version that wrote it"
        )
    return [one for one in known if one[0] > current]


def schema_state(flavour: str, current: int) -> SchemaState:
    """The state of a database with schema `current`; one from a newer version is refused."""
    pending = tuple(number for number, _ in missing(flavour, current))
    return SchemaState(current, pending[-1] if pending else current, pending)


def refuse_outdated(flavour: str, current: int) -> None:
    """Raise unless a database with schema `current` can be used as it is."""
    state = schema_state(flavour, current)
    if not state.up_to_date:
        raise StoreTooOldError(
            f"the database has schema {state.current}, this Oráculo needs {state.newest}, and"
            " ORACULO_MIGRATE_AT_START is false: run `oraculo migrate`"
        )
