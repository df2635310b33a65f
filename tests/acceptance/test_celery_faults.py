"""Under load, with the engine `celery`: whatever can die does, and everything ends once and right.

`make test` does each once; `make chaos` (ORACULO_CHAOS_KILLS) more often.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from acceptance.celery_fleet import CeleryFleet
from acceptance.chaos import LONG, times

ROUNDS = times(5) // 5
AWAY = 20.0 if LONG else 1.0  # seconds that the database is away
POINTS = ("after_publish:2", "after_commit:3", "before_publish:2", "before_commit:3")


@pytest.mark.timeout(300 + 90 * ROUNDS)
def test_whatever_dies_everything_ends_once_and_right(tmp_path: Path) -> None:
    with CeleryFleet(tmp_path) as fleet:
        wide = fleet.submit(1_000_000, width=200)
        fleet.load(pace=0.25)
        for round in range(ROUNDS):
            fleet.restart_celery(ORACULO_CRASH_AT=POINTS[round % len(POINTS)])
            fleet.until(
                lambda: fleet.celery.said().count("Task handler raised error: WorkerLost") > 1, "killed in tasks"
            )
            fleet.restart_celery()
            fleet.beat.kill()
            fleet.some_more()
            fleet.beat.start()
            fleet.celery.kill_child(round)
            fleet.some_more()
            fleet.rabbitmq.stop()
            fleet.rabbitmq.start()
            fleet.some_more()
            fleet.postgres.stop()
            time.sleep(AWAY)
            fleet.postgres.start()
            fleet.some_more()
        fleet.rest()
        seen = fleet.verify()
        fleet.beat.kill()  # Celery may wait for ever for a task that reaches it while it shuts down
        assert fleet.celery.terminate() == 0
    assert wide in fleet.accepted
    print(f"\nengine celery: {ROUNDS} rounds of faults, {dict(seen)}")
