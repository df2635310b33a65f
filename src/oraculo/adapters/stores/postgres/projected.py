"""Documents of projections in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.postgres.sla import PostgresSla
from oraculo.adapters.stores.sla_rows import alert_row
from oraculo.ports.projected import ProjectedChange, ProjectedMark
from oraculo.ports.sla import ToldAlert


async def mark(connection: Connection, projection: str) -> ProjectedMark:
    rows = await fetch(connection, "SELECT versao, posicao FROM projected_marks WHERE projecao = %s", (projection,))
    return ProjectedMark(*rows[0]) if rows else ProjectedMark()


async def _projected(connection: Connection, projection: str, after: int) -> Mapping[str, bytes]:
    sql = "SELECT chave, corpo FROM projected WHERE projecao = %s AND versao > %s"
    return {key: body.encode() for key, body in await fetch(connection, sql, (projection, after))}


async def _save(
    connection: Connection, projection: str, expected: int, change: ProjectedChange
) -> frozenset[str] | None:
    """The row of the mark is locked first, so alerts are committed in the order of their numbers."""
    if expected == 0:
        done = await connection.execute(
            "INSERT INTO projected_marks VALUES (%s, 1, %s) ON CONFLICT DO NOTHING", (projection, change.position)
        )
    else:
        done = await connection.execute(
            "UPDATE projected_marks SET versao = versao + 1, posicao = %s WHERE projecao = %s AND versao = %s",
            (change.position, projection, expected),
        )
    if done.rowcount != 1:
        return None
    kept = {key: body.decode() for key, body in change.documents.items() if body is not None}
    if kept:
        await connection.execute(
            "INSERT INTO projected (projecao, chave, corpo, versao)"
            " SELECT %s, chave, corpo, %s FROM unnest(%s::text[], %s::text[]) AS _ (chave, corpo)"
            " ON CONFLICT (projecao, chave) DO UPDATE SET corpo = excluded.corpo, versao = excluded.versao",
            (projection, expected + 1, list(kept), list(kept.values())),
        )
    gone = [key for key, body in change.documents.items() if body is None]
    if gone:
        await connection.execute("DELETE FROM projected WHERE projecao = %s AND chave = ANY(%s)", (projection, gone))
    return frozenset([one.id for one in change.told if await _tell(connection, one)])


async def _tell(connection: Connection, one: ToldAlert) -> bool:
    done = await connection.execute(
        "INSERT INTO sla_alerts (id, tenant, run, tipo, at, corpo) VALUES (%s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (id) DO NOTHING",
        alert_row(one),
    )
    return done.rowcount == 1


async def _forget(connection: Connection, projection: str) -> None:
    await connection.execute("DELETE FROM projected WHERE projecao = %s", (projection,))
    await connection.execute("DELETE FROM projected_marks WHERE projecao = %s", (projection,))
    await connection.execute("UPDATE cursors SET position = 0 WHERE name = %s", (projection,))


class PostgresProjected(PostgresSla):
    """The part of the store that keeps documents of projections, and what they tell."""

    async def projected_mark(self, projection: str) -> ProjectedMark:
        return await self._pool.read(lambda c: mark(c, projection))

    async def projected(self, projection: str, after_version: int = 0) -> Mapping[str, bytes]:
        return await self._pool.read(lambda c: _projected(c, projection, after_version))

    async def save_projected(self, projection: str, expected: int, change: ProjectedChange) -> frozenset[str] | None:
        return await self._pool.write(lambda c: _save(c, projection, expected, change))

    async def forget_projected(self, projection: str) -> None:
        await self._pool.write(lambda c: _forget(c, projection))
