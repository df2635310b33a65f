"""DBOS on SQLite (`dbos_workflows.py` has the rest). In its favour: WAL mode with NORMAL flushes."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import driver

if sqlite3.sqlite_version_info < (3, 42):  # no unixepoch('subsec')
    import pysqlite3

    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

import dbos_workflows
import sqlalchemy


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def tune(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[dbos_workflows.DbosClient]:
    with dbos_workflows.launched(f"sqlite:///{directory / 'dbos.sqlite'}") as client:
        yield client


if __name__ == "__main__":
    driver.run(open_client, ["dbos", "SQLAlchemy"])
