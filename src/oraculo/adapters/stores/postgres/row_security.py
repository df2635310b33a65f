"""Row-level security: which rows a session of PostgreSQL sees, whatever its statements ask for.

A session says for whom it reads in the setting `oraculo.tenant`. It is switched on when no process of an older version,
whose sessions say nothing, can be running any more.
"""

from __future__ import annotations

from oraculo.adapters.stores.postgres.connections import FLEET, TENANT_SETTING, Connection, fetch

_READ_AS_FLEET = f"SELECT set_config('{TENANT_SETTING}', '{FLEET}', true)"
SESSION_OF_FLEET = f"SELECT set_config('{TENANT_SETTING}', '{FLEET}', false)"
_GUARDED = """
FROM pg_class AS c JOIN pg_policy AS p ON p.polrelid = c.oid
WHERE p.polname = 'oraculo_fleet' AND pg_table_is_visible(c.oid)"""
_IS_ON = "c.relrowsecurity AND c.relforcerowsecurity"
BOUND_TABLES = f"SELECT c.oid::regclass::text {_GUARDED} AND {_IS_ON} ORDER BY 1"
_PASSED = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_OLDER = "SELECT 1 FROM members WHERE lease_until > oraculo_now() AND NOT names_tenant LIMIT 1"


async def is_on(connection: Connection) -> bool:
    """True if every table that has policies is bound by them, for its owner too."""
    ((on,),) = await fetch(connection, f"SELECT coalesce(bool_and({_IS_ON}), false) {_GUARDED}")
    return bool(on)


async def is_passed(connection: Connection) -> bool:
    """True if the user of the database is one that no policy binds."""
    return bool((await fetch(connection, _PASSED))[0][0])


async def older_run(connection: Connection) -> bool:
    """True if a process of a version that says nothing works on the store."""
    return bool(await fetch(connection, _OLDER))


async def switch_on(connection: Connection) -> None:
    """Bind every table that has policies by them, its owner too; in the transaction of the caller."""
    for (table,) in await fetch(connection, f"SELECT c.oid::regclass::text {_GUARDED} AND NOT ({_IS_ON}) ORDER BY 1"):
        change = f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        await connection.execute(change.encode())


async def read_as_fleet(connection: Connection) -> None:
    """Let what follows in this transaction see everything."""
    await connection.execute(_READ_AS_FLEET.encode())
