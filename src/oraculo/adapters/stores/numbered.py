"""Migrations are numbered files, one series for each kind of database; docs/adr/0005 tells why."""

from __future__ import annotations

from importlib import resources

from oraculo.errors import StoreTooNewError


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
