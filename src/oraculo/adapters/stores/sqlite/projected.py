"""Documents of projections in SQLite."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from oraculo.adapters.stores.sla_rows import alert_row
from oraculo.adapters.stores.sqlite.connections import fetch, json_list
from oraculo.adapters.stores.sqlite.sla import SqliteSla
from oraculo.ports.projected import ProjectedChange, ProjectedMark
from oraculo.ports.sla import ToldAlert


def mark(connection: apsw.Connection, projection: str) -> ProjectedMark:
    rows = fetch(connection, "SELECT versao, posicao FROM projected_marks WHERE projecao = ?", (projection,))
    return ProjectedMark(*rows[0]) if rows else ProjectedMark()


def _projected(connection: apsw.Connection, projection: str, after: int) -> Mapping[str, bytes]:
    sql = "SELECT chave, corpo FROM projected WHERE projecao = ? AND versao > ?"
    return {key: body.encode() for key, body in fetch(connection, sql, (projection, after))}


def _write(
    connection: apsw.Connection, projection: str, expected: int, change: ProjectedChange
) -> frozenset[str] | None:
    if expected == 0:
        connection.execute(
            "INSERT INTO projected_marks VALUES (?, 1, ?) ON CONFLICT DO NOTHING", (projection, change.position)
        )
    else:
        connection.execute(
            "UPDATE projected_marks SET versao = versao + 1, posicao = ? WHERE projecao = ? AND versao = ?",
            (change.position, projection, expected),
        )
    if connection.changes() != 1:
        return None
    kept = [[key, body.decode()] for key, body in change.documents.items() if body is not None]
    if kept:
        connection.execute(
            "INSERT INTO projected (projecao, chave, corpo, versao)"
            " SELECT ?, value ->> 0, value ->> 1, ? FROM json_each(?) WHERE true"
            " ON CONFLICT (projecao, chave) DO UPDATE SET corpo = excluded.corpo, versao = excluded.versao",
            (projection, expected + 1, json_list(kept)),
        )
    gone = [key for key, body in change.documents.items() if body is None]
    if gone:
        connection.execute(
            "DELETE FROM projected WHERE projecao = ? AND chave IN (SELECT value FROM json_each(?))",
            (projection, json_list(gone)),
        )
    return frozenset(one.id for one in change.told if _tell(connection, one))


def _tell(connection: apsw.Connection, one: ToldAlert) -> bool:
    connection.execute(
        "INSERT INTO sla_alerts (id, tenant, run, tipo, at, corpo) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        alert_row(one),
    )
    return connection.changes() == 1


def _save(
    connection: apsw.Connection, projection: str, expected: int, change: ProjectedChange
) -> frozenset[str] | None:
    with connection:
        saved = _write(connection, projection, expected, change)
    return saved


def _forget(connection: apsw.Connection, projection: str) -> None:
    with connection:
        connection.execute("DELETE FROM projected WHERE projecao = ?", (projection,))
        connection.execute("DELETE FROM projected_marks WHERE projecao = ?", (projection,))
        connection.execute("UPDATE cursors SET position = 0 WHERE name = ?", (projection,))


class SqliteProjected(SqliteSla):
    """The part of the store that keeps documents of projections, and what they tell."""

    async def projected_mark(self, projection: str) -> ProjectedMark:
        return await self.connections.read(lambda c: mark(c, projection))

    async def projected(self, projection: str, after_version: int = 0) -> Mapping[str, bytes]:
        return await self.connections.read(lambda c: _projected(c, projection, after_version))

    async def save_projected(self, projection: str, expected: int, change: ProjectedChange) -> frozenset[str] | None:
        return await self.connections.write(lambda c: _save(c, projection, expected, change))

    async def forget_projected(self, projection: str) -> None:
        await self.connections.write(lambda c: _forget(c, projection))
