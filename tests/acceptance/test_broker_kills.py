"""On every broker: it, the worker and the orchestrator are killed in turn under load. Nothing lost, nothing doubled.

`make test` kills each broker five times, worker and orchestrator twice; on Redis a run of 10,000 tickets is among what
is under way. `make chaos` (ORACULO_CHAOS_KILLS) does it more often.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import servers
from acceptance.chaos import times
from acceptance.fleet import NAMES, QUICK, Fleet

KILLS = times(5)
OTHERS = times(2)  # kills of the worker and of the orchestrator
WIDE = {"redis": 10_000}


@pytest.mark.timeout(300 + 60 * KILLS)
@pytest.mark.parametrize("name", NAMES)
def test_broker_worker_and_orchestrator_killed_in_turn(name: str, tmp_path: Path) -> None:
    service = servers.own(name, tmp_path)
    with Fleet(tmp_path, service.url + QUICK[name], [service]) as fleet:
        fleet.load()
        fleet.some_more()
        for number in range(KILLS):
            fleet.hurt(service.kill, width=200 if number else WIDE.get(name, 1000))
            service.start()
            fleet.some_more()
            if number >= OTHERS:
                continue
            fleet.hurt(fleet.worker.kill)
            fleet.worker.start()
            fleet.some_more()
            fleet.hurt(fleet.server.kill)
            fleet.server.up()
            fleet.some_more()
        fleet.rest()
        seen = fleet.verify()
    kills = f"{KILLS} kills of the broker, {OTHERS} of worker and orchestrator"
    print(f"\n{name}: {kills}, which found {fleet.hit} tickets under way, {dict(seen)}")
