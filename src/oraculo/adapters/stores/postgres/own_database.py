"""Which database of a server is Oráculo's: never Temporal's own.

The settings of Fluxo C name the server on which Temporal keeps its state, and Temporal's database there. Oráculo's
tables go into a database beside it, unless they are in the named one since an earlier release, or a schema is named.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import structlog
from psycopg import AsyncConnection, sql

from oraculo.errors import StoreUnavailableError

log = structlog.get_logger("oraculo.store")

TEMPORAL_DATABASES = frozenset(("temporal", "temporal_visibility"))
OWN_DATABASE = "oraculo"
MAINTENANCE_DATABASE = "postgres"
OURS_IS_THERE = """
SELECT 1 FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relname = 'schema_version' AND attname = 'version' AND pg_table_is_visible(pg_class.oid)"""


def is_temporals(options: Mapping[str, str]) -> bool:
    """Whether a connection with these options would be to a database of Temporal's, in no schema of its own."""
    return options.get("dbname") in TEMPORAL_DATABASES and "search_path" not in options.get("options", "")


async def own_database(options: Mapping[str, str]) -> str:
    """The database to use in the place of one that has the name of Temporal's. psycopg.Error when that one cannot be
    looked at."""
    named = options["dbname"]
    try:
        async with await AsyncConnection.connect(autocommit=True, **options) as connection:  # type: ignore[arg-type]
            if await (await connection.execute(OURS_IS_THERE)).fetchone() is not None:
                return named
    except psycopg.OperationalError as error:
        if "does not exist" not in str(error):
            raise
    log.info("database is left to Temporal", database=named, used=OWN_DATABASE)
    return OWN_DATABASE


async def make_own_database(options: Mapping[str, str]) -> None:
    """Make the database beside Temporal's, unless it is there. StoreUnavailableError says what to do where the user may
    not."""
    elsewhere = {**options, "dbname": MAINTENANCE_DATABASE}
    try:
        async with await AsyncConnection.connect(autocommit=True, **elsewhere) as connection:  # type: ignore[arg-type]
            known = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (OWN_DATABASE,))
            if await known.fetchone() is None:
                await connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(OWN_DATABASE)))
                log.info("database made", database=OWN_DATABASE)
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        return  # another process made it just now
    except psycopg.Error as error:
        said = next(iter(str(error).splitlines()), "")
        raise StoreUnavailableError(
            f"Oráculo's tables do not go into Temporal's own database, and {OWN_DATABASE!r} cannot be made beside it"
            f" ({said}): CREATE DATABASE {OWN_DATABASE} OWNER {options.get('user', '…')}; or name another in"
            " POSTGRES_DATABASE or ORACULO_STORE"
        ) from error
