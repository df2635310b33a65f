"""Sealing rows that are in clear, or under an older key, with the newest key of their tenant. The same in every SQL
store, which reads a page, has it sealed here and writes it back in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from oraculo.adapters.sealing.codec import TEXT_MARK, Sealing, is_sealed
from oraculo.adapters.stores.sealed_rows import letter_place, result_place, schedule_place, step_place

RESEAL_PAGE_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table with sealed columns. `select` gives the key of a row, what its place is made of and the columns; it takes
    a tenant, the beginning of a text under the newest key, the key of the last row that was read, and a limit."""

    name: str
    key: str
    columns: tuple[str, ...]
    select: str
    first: int | str = 0  # below the key of every row


TABLES = (
    SealedTable(
        "journal",
        "position",
        ("events",),
        "SELECT j.position, j.run, j.first, j.events FROM journal AS j JOIN runs ON runs.run = j.run"
        " WHERE runs.tenant = {mark} AND substr(j.events, 1, 22) <> {mark} AND j.position > {mark}"
        " ORDER BY j.position LIMIT {mark}",
    ),
    SealedTable(
        "results",
        "run",
        ("body",),
        "SELECT r.run, r.body FROM results AS r JOIN runs ON runs.run = r.run"
        " WHERE runs.tenant = {mark} AND substr(r.body, 1, 22) <> {mark} AND r.run > {mark}"
        " ORDER BY r.run LIMIT {mark}",
    ),
    SealedTable(
        "dead_letters",
        "id",
        ("detail", "headers", "body"),
        "SELECT id, tenant, detail, headers, body FROM dead_letters"
        " WHERE tenant = {mark} AND substr(headers, 1, 22) <> {mark} AND id > {mark} ORDER BY id LIMIT {mark}",
    ),
    SealedTable(
        "schedules",
        "nome",
        ("body", "state"),
        "SELECT nome, body, state FROM schedules"
        " WHERE tenant = {mark} AND substr(body, 1, 22) <> {mark} AND nome > {mark} ORDER BY nome LIMIT {mark}",
        first="",
    ),
)


def selection(table: SealedTable, mark: str, lock: str = "") -> str:
    """SQL for a page of rows. `lock` is for rows that others may change meanwhile; those of the journal never do."""
    return table.select.format(mark=mark) + (lock if table.name == "schedules" else "")


def update(table: SealedTable, mark: str) -> str:
    """SQL that takes the sealed columns and the key of a row."""
    columns = ", ".join(f"{column} = {mark}" for column in table.columns)
    return f"UPDATE {table.name} SET {columns} WHERE {table.key} = {mark}"


def newest_beginning(sealing: Sealing, tenant: str) -> str:
    """How texts begin that the newest key of a tenant sealed."""
    return f"{TEXT_MARK}{sealing.key_id(tenant)}."


def resealed(table: SealedTable, row: Sequence[Any], tenant: str, sealing: Sealing) -> tuple[Any, ...] | None:
    """The columns under the newest key, and the key of the row; None when it cannot be opened any more."""
    if table.name == "dead_letters":
        return _letter(row, tenant, sealing)
    if table.name == "journal":
        places, texts = [step_place(row[1], row[2])], row[3:]
    elif table.name == "results":
        places, texts = [result_place(row[0])], row[1:]
    else:
        places, texts = [schedule_place(row[0], column) for column in table.columns], row[1:]
    plain = [sealing.open_text(place, text) for place, text in zip(places, texts, strict=True)]
    sealed = [
        None if text is None else sealing.seal_text(tenant, place, text.encode())
        for place, text in zip(places, plain, strict=True)
    ]
    return None if None in sealed else (*sealed, row[0])


def _letter(row: Sequence[Any], tenant: str, sealing: Sealing) -> tuple[Any, ...] | None:
    id, _, detail, headers, body = row
    if is_sealed(headers):
        plain_headers = sealing.open_text(letter_place(tenant, "headers"), headers)
        plain_detail = sealing.open_text(letter_place(tenant, "detail"), detail)
        plain_body = sealing.open_bytes(letter_place(tenant, "body"), bytes(body))
        if plain_headers is None or plain_detail is None or plain_body is None:
            return None
        headers, detail, body = plain_headers, plain_detail, plain_body
    return (
        sealing.seal_text(tenant, letter_place(tenant, "detail"), detail.encode()),
        sealing.seal_text(tenant, letter_place(tenant, "headers"), headers.encode()),
        sealing.seal_bytes(tenant, letter_place(tenant, "body"), bytes(body)),
        id,
    )
