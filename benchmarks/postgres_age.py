"""How PostgreSQL ages: the plans of what is read often, and the cost of writing, at 0 and at 1,000,000 orchestrations.

    python benchmarks/postgres_age.py                  a server of its own, 1,000,000 orchestrations, a Markdown report
    python benchmarks/postgres_age.py -n 100000 --json

The stored ones are copies of one that went through the store, made inside the database. The load is W1's shape without
workers: every orchestration is started, confirmed, answered four times and closed, 100 of them in each transaction.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from tools.servers.postgres import Postgres

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.postgres import catalogue, journal, members
from oraculo.adapters.stores.postgres import statistics as figures
from oraculo.adapters.stores.postgres.connections import fetch
from oraculo.adapters.stores.postgres.store import PostgresStore
from oraculo.bench.work import REQUEST
from oraculo.core.commands import Command, ConfirmDispatch, RecordResult, Start
from oraculo.core.consolidation import aggregate
from oraculo.core.state import Orchestration
from oraculo.core.step import step
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Status
from oraculo.ports.catalogue import Query
from oraculo.ports.journal import Batch, LockRequest
from oraculo.runtime.ids import RunNumbers, new_correlation_id
from oraculo.wire import requests, strict_json
from oraculo.wire.requests import Defaults

AT_ONCE = 100
CHUNK = 20_000
NUMBERS = RunNumbers()
CLOCK = MonotonicClock()
PLAN = requests.plan_of(requests.parse(REQUEST), Defaults())


def now() -> datetime:
    return CLOCK.now()


# -- the load ----------------------------------------------------------------------------------------------------------


async def work(store: PostgresStore, count: int) -> float:
    """Milliseconds per orchestration, from its start to its end."""
    began = time.perf_counter()
    for _ in range(count // AT_ONCE):
        await _hundred(store)
    return (time.perf_counter() - began) * 1000 / count


async def _hundred(store: PostgresStore) -> None:
    states: list[Orchestration | None] = [None] * AT_ONCE
    names = [new_correlation_id() for _ in states]
    commands: list[Command] = [Start(NUMBERS.next(now()), name, PLAN, "f") for name in names]
    await _transaction(store, states, commands, LockRequest(names=names))
    await _transaction(store, states, [_confirm(state) for state in states])
    for position in range(3):
        await _transaction(store, states, [_answer(state, position) for state in states])
    await _transaction(store, states, [_confirm(state) for state in states])
    await _transaction(store, states, [_answer(state, 3) for state in states])


async def _transaction(
    store: PostgresStore, states: list[Orchestration | None], commands: list[Command], asked: LockRequest | None = None
) -> None:
    known = asked or LockRequest({state.run: state.version for state in states if state is not None})
    at = (await store.begin(known)).at or now()
    batch = Batch(at)
    for number, command in enumerate(commands):
        done = step(states[number], command, at)
        states[number] = done.state
        batch.steps.append(done)
        batch.counts["orquestrador_resultados", "applied"] += 1
        if done.state.closed_at is not None:
            batch.results[done.state.run] = strict_json.dumps(aggregate(done.state))
    await store.append(batch)


def _confirm(state: Orchestration | None) -> ConfirmDispatch:
    assert state is not None
    return ConfirmDispatch([(position, state.tickets[position].attempt) for position in sorted(state.owed)])


def _answer(state: Orchestration | None, position: int) -> RecordResult:
    assert state is not None
    return RecordResult(True, b'{"n":1}', [], False, ticket_id(state.run, position), 1, digest=position + 1)


# -- the stored ones ---------------------------------------------------------------------------------------------------

SHIFT = "((m.run >> 20) - 1 - %(n)s::bigint + i) << 20"  # one a millisecond, all before the one that is copied
AGO = "(%(n)s::bigint - i) * 1000"
FILL = (
    f"""
    INSERT INTO runs
    SELECT {SHIFT}, md5(i::text), fingerprint, tipo, CASE WHEN i %% 200 = 0 THEN 'erro' ELSE status END, version,
      created_at - {AGO}, closed_at - {AGO}, wake_at, owes, total, open, failed, hands
    FROM generate_series(%(from)s::bigint, %(to)s::bigint) AS i, runs AS m WHERE m.run = %(model)s""",
    f"""
    INSERT INTO run_destinos SELECT destino, {SHIFT}
    FROM generate_series(%(from)s::bigint, %(to)s::bigint) AS i, run_destinos AS m WHERE m.run = %(model)s""",
    f"""
    INSERT INTO journal (run, first, at, format, events)
    SELECT {SHIFT}, first, at - {AGO}, format, events
    FROM generate_series(%(from)s::bigint, %(to)s::bigint) AS i, journal AS m WHERE m.run = %(model)s""",
    f"""
    INSERT INTO results SELECT {SHIFT}, body
    FROM generate_series(%(from)s::bigint, %(to)s::bigint) AS i, results AS m WHERE m.run = %(model)s""",
)
OPEN = """
UPDATE runs SET closed_at = NULL, status = 'em_execucao', open = 1, wake_at = created_at + 60000000
WHERE run IN (SELECT run FROM runs ORDER BY run DESC LIMIT 1000)"""


async def fill(url: str, count: int, say: Callable[[str], None]) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        row = await (await connection.execute("SELECT run FROM runs ORDER BY run LIMIT 1")).fetchone()
        assert row is not None
        for first in range(1, count + 1, CHUNK):
            values = {"from": first, "to": min(count, first + CHUNK - 1), "n": count, "model": row[0]}
            for sql in FILL:
                await connection.execute(sql.encode(), values)
            say(f"{values['to']:,} stored")
        await connection.execute(OPEN)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")


# -- plans -------------------------------------------------------------------------------------------------------------


async def plans(store: PostgresStore) -> dict[str, str]:
    """What the server does for each of these, asked through the store's own functions."""
    newest = (await store.find(Query(limit=1)))[0]
    old = (await store.find(Query(limit=30_000)))[-1]
    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "list, newest first": lambda: store.find(Query()),
        "list, a page far back": lambda: store.find(Query(before_run=old.run)),
        "list by status": lambda: store.find(Query(status=[Status.ERRO])),
        "list by several statuses": lambda: store.find(Query(status=[Status.ERRO, Status.TIMEOUT])),
        "list by queue": lambda: store.find(Query(destino="executador_bench_soma")),
        "list by the beginning of the id": lambda: store.find(Query(text=newest.correlation_id[:6])),
        "summary": lambda: store.summary(newest.correlation_id),
        "events of one": lambda: store.events(old.run, 3, 100),
        "tail": lambda: store.tail(1_000, 500),
        "live": lambda: store.live(),
        "how many are open": lambda: store.open_runs(),
        "overdue": lambda: store.overdue(timedelta(0), 100),
        "how many in each status": lambda: store.count_by_status(),
    }
    found: dict[str, str] = {}
    plan: list[str] = []

    async def explained(connection: Any, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        rows = await fetch(connection, f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}", values)
        plan[:] = [row[0] for row in rows]
        return await fetch(connection, sql, values)

    asking = (catalogue, journal, members, figures)
    for module in asking:
        module.fetch = explained  # type: ignore[attr-defined]
    try:
        for name, question in questions.items():
            await question()
            found[name] = "\n".join(plan)
    finally:
        for module in asking:
            module.fetch = fetch  # type: ignore[attr-defined]
    return found


# -- the report --------------------------------------------------------------------------------------------------------


async def measure(url: str, stored: int, load: int, say: Callable[[str], None]) -> dict[str, Any]:
    async with PostgresStore(url) as store:
        await work(store, AT_ONCE)
        young = [await work(store, load) for _ in range(3)]
        say(f"{statistics.median(young):.2f} ms per orchestration when young")
        await fill(url, stored, say)
        await work(store, AT_ONCE)
        old = [await work(store, load) for _ in range(3)]
        return {
            "stored": stored,
            "load": load,
            "ms_at_0": round(statistics.median(young), 3),
            "ms_at_stored": round(statistics.median(old), 3),
            "growth": round(statistics.median(old) / statistics.median(young), 2),
            "plans": await plans(store),
        }


def shown(report: dict[str, Any]) -> str:
    lines = [
        f"{report['ms_at_0']} ms per orchestration at 0, {report['ms_at_stored']} ms at {report['stored']:,}"
        f" (×{report['growth']})",
        "",
    ]
    for name, plan in report["plans"].items():
        lines += [f"**{name}**", "", "```text", plan, "```", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-n", type=int, default=1_000_000, help="orchestrations that are stored")
    parser.add_argument("--load", type=int, default=2_000, help="orchestrations that are measured, three times")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Postgres(Path(folder) / "postgres")
        server.config |= {"shared_buffers": "512MB", "max_wal_size": "8GB", "maintenance_work_mem": "256MB"}
        with server:
            report = asyncio.run(
                measure(server.url, options.n, options.load, lambda text: print(text, file=sys.stderr, flush=True))
            )
    print(json.dumps(report, indent=1) if options.json else shown(report))


if __name__ == "__main__":
    main()
