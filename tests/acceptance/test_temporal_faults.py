"""Under load, with the engine `temporal`: the processes that run the workflows and Temporal's server are killed, and
everything ends once and right.

`make test` does each once; `make chaos` (ORACULO_CHAOS_KILLS) more often, and at every point where a process can die.
"""

from __future__ import annotations

import asyncio
import os
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tools.servers.temporal import settings_of

import servers
from acceptance.fleet import Fleet
from acceptance.replicas import Replica
from databases import database, unbound

KILLS = int(os.environ.get("ORACULO_CHAOS_KILLS", "2"))
MANY = KILLS > 2
POINTS = ("after_commit:5", "before_publish:3", "after_publish:3", "before_commit:4", "before_ack:3")
AWAY = 5.0 if MANY else 0.2  # seconds that the server is away


class TemporalFleet(Fleet):
    """One process takes requests, another one messages; both run the workflows, or `apart`, only the other one does.
    PostgreSQL, Redis and Temporal beside them."""

    def __init__(self, folder: Path, *, apart: bool) -> None:
        self.temporal, redis = servers.own("temporal", folder), servers.own("redis", folder)
        store = asyncio.run(database())
        env = {"ORACULO_STORE": store, "ORACULO_REPLICA_LEASE_S": "2", **settings_of(self.temporal.url)}
        super().__init__(folder, redis.url, [self.temporal, redis], **env)
        if apart:
            self.server.arguments.append("--api-only")
        self.server.store = store
        self.engine = Replica(
            folder / "engine", "engine", store, redis.url, "--engine-only", **settings_of(self.temporal.url)
        )
        self._connection = psycopg.connect(unbound(store), autocommit=True)

    def __enter__(self) -> TemporalFleet:
        super().__enter__()
        self.engine.up()
        return self

    def __exit__(self, *_: object) -> None:
        if self.engine.running:
            self.engine.kill()
        super().__exit__()
        self._connection.close()

    def crash_engine(self, at: str) -> None:
        """Another one takes its place, and one that dies at this point was there in between."""
        self.engine.kill()
        self.engine.up(ORACULO_CRASH_AT=at)
        self.until(lambda: not self.engine.running, f"it dies at {at}")
        self.engine.wait()
        self.engine.up()

    def ready(self) -> bool:
        answer = self.server.call("GET", "/ready")
        return answer is not None and answer.status_code == 200

    def completed(self) -> float:
        return float(self._count("closed_at IS NOT NULL"))

    def _count(self, which: str) -> Any:
        row = self._connection.execute(f"SELECT count(*) FROM runs WHERE {which}".encode()).fetchone()
        return row[0] if row else 0

    def _received_adds_up(self) -> None:
        """Nothing to add up in one process. Whatever was taken is in the database before the last one ends."""
        self.until(lambda: self._count("closed_at IS NULL OR owes > 0") == 0, "nothing is owed")


@pytest.mark.timeout(300 + 30 * KILLS)
def test_whatever_dies_everything_ends_once_and_right(tmp_path: Path) -> None:
    points = cycle(POINTS)
    with TemporalFleet(tmp_path, apart=MANY) as fleet:
        fleet.until(fleet.ready, "Temporal answers")
        wide = fleet.submit(1_000_000, width=60)
        fleet.load(pace=0.1)
        for kill in range(KILLS):
            fleet.some_more()
            if kill % 2:
                if MANY:
                    fleet.crash_engine(next(points))
                else:
                    fleet.engine.kill()
                continue
            fleet.temporal.kill()
            fleet.until(lambda: not fleet.ready(), "it is missed")
            refused = fleet.server.call("POST", "/api/v1/orchestrations", json={"coletas": [{"fonte": "bench_a"}]})
            assert refused is not None
            assert (refused.status_code, refused.json()["code"]) == (503, "engine_unavailable"), refused.text
            time.sleep(AWAY)
            fleet.temporal.start()
            fleet.until(fleet.ready, "it is back")
        fleet.some_more()
        fleet.rest()
        seen = fleet.verify()
    assert wide in fleet.accepted
    answers = 4 * (len(fleet.accepted) - 1) + 60
    assert seen["answers applied"] == answers
    assert seen["attempts"] == answers + 1, "nothing was asked twice; the wide one is a map, which nobody answers"
    print(f"\nengine temporal: {KILLS} kills, {dict(seen)}")
