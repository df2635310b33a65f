"""DBOS on PostgreSQL (`dbos_workflows.py` has the rest), with the server's defaults: every commit is flushed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import dbos_workflows
import driver


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[dbos_workflows.DbosClient]:
    with (
        brokers.running("postgres", directory) as server,
        dbos_workflows.launched(server.database("dbos")) as client,  # it makes that database
    ):
        yield client


if __name__ == "__main__":
    driver.run(open_client, ["dbos", "SQLAlchemy", "psycopg"], ["postgres"])
