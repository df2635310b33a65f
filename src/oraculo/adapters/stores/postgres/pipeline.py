"""Several statements, one exchange with the server: all are sent, then all answers are read.

psycopg's own pipeline ends with a request that comes after the last answer, and a server that got it forgets that the
session is idle in a transaction: `idle_in_transaction_session_timeout` never strikes. It also wakes up the event loop
for every statement. So this speaks to libpq itself, through psycopg.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence
from typing import Any

from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready, Wait

from oraculo.adapters.stores.postgres.arrays import Array
from oraculo.adapters.stores.postgres.connections import Connection

Statement = tuple[str, Sequence[Array | int]]
Rows = list[tuple[Any, ...]]

_BIGINT = 20
_bigint = struct.Struct(">q").pack


class Pipeline:
    """Statements over one connection. Each is prepared when it is first used; after an error it is not known which of
    them were, so the connection has to be given up."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._names: dict[str, bytes] = {}

    async def run(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run the statements in one exchange and return the rows of each. The first error is raised; statements after
        it were not done."""
        pgconn = self.connection.pgconn
        pgconn.enter_pipeline_mode()
        preparing = [self._send(sql, values) for sql, values in statements]
        pgconn.pipeline_sync()
        answers = await self.connection.wait(_answers(pgconn))
        pgconn.exit_pipeline_mode()
        for answer in answers:
            if answer.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(answer, self.connection.info.encoding)
        found = iter(answers)
        rows = []
        for prepared in preparing:
            if prepared:
                next(found)
            rows.append(self._rows(next(found)))
        return rows

    def _send(self, sql: str, values: Sequence[Array | int]) -> bool:
        """Send a statement; return whether it had to be prepared first."""
        pgconn = self.connection.pgconn
        name = self._names.get(sql)
        if name is None:
            types = [_BIGINT if isinstance(value, int) else value.oid for value in values]
            name = self._names[sql] = b"o%d" % len(self._names)
            pgconn.send_prepare(name, _numbered(sql), types)
            prepared = True
        else:
            prepared = False
        data = [_bigint(value) if isinstance(value, int) else value.data for value in values]
        pgconn.send_query_prepared(name, data, [Format.BINARY] * len(data))
        return prepared

    def _rows(self, answer: PGresult) -> Rows:
        if not answer.ntuples:
            return []
        transformer = Transformer(self.connection)
        transformer.set_pgresult(answer)
        return transformer.load_rows(0, answer.ntuples, tuple)


def _answers(pgconn: Any) -> Generator[Wait, Ready | int, list[PGresult]]:
    while True:
        ready = yield Wait.RW
        if ready & Ready.R:  # else a server that waits until we read would never read what we send
            pgconn.consume_input()
        if ready & Ready.W and pgconn.flush() == 0:
            break
    found: list[PGresult] = []
    while True:
        while pgconn.is_busy():
            yield Wait.R
            pgconn.consume_input()
        answer = pgconn.get_result()
        if answer is None:  # the end of what one statement gives
            continue
        if answer.status == ExecStatus.PIPELINE_SYNC:
            return found
        found.append(answer)


def _numbered(sql: str) -> bytes:
    """The statement with $1, $2 … in place of psycopg's %s."""
    first, *others = sql.split("%s")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))).encode()
