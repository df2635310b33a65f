"""On every broker: it, the worker and the orchestrator are killed in turn under load. Nothing lost, nothing doubled.

`make test` kills each 5 times; `make chaos` (ORACULO_CHAOS_KILLS) more often.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import servers
from acceptance.fleet import NAMES, Fleet

# What a dead process held comes back after this time; the default of 10 s would be most of the test.
LEASE = {"rabbitmq": "", "redis": "?lease=2", "nats": "?lease=2", "kafka": "?lease=2"}
KILLS = int(os.environ.get("ORACULO_CHAOS_KILLS", "5"))


@pytest.mark.timeout(120 + 60 * KILLS)
@pytest.mark.parametrize("name", NAMES)
def test_broker_worker_and_orchestrator_killed_in_turn(name: str, tmp_path: Path) -> None:
    service = servers.own(name, tmp_path)
    with Fleet(tmp_path, service.url + LEASE[name], [service]) as fleet:
        wide = fleet.submit(1_000_000, width=1000)
        fleet.load()
        fleet.some_more()
        for _ in range(KILLS):
            service.kill()
            service.start()
            fleet.some_more()
            fleet.worker.kill()
            fleet.worker.start()
            fleet.some_more()
            fleet.server.kill()
            fleet.server.up()
            fleet.some_more()
        fleet.rest()
        seen = fleet.verify()
    assert wide in fleet.accepted
    print(f"\n{name}: {KILLS} kills of each, {dict(seen)}")
