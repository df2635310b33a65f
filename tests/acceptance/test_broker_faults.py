"""On every broker, through a proxy that spoils the network between it and the orchestrator: nothing lost or doubled.

`make test` does it once; `make chaos` (ORACULO_CHAOS_KILLS) more often and longer, with the settings that users have.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tools.servers.kafka import Kafka
from tools.servers.proxy import Proxy
from tools.servers.server import free_port

import servers
from acceptance.chaos import LONG, times
from acceptance.fleet import NAMES, QUICK, Fleet, through

ROUNDS = times(5) // 5
AWAY = 4.0 if LONG else 1.5  # seconds; longer than a confirmation may take


@pytest.mark.timeout(300 + 60 * ROUNDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_network_that_cannot_be_trusted(name: str, tmp_path: Path) -> None:
    port = free_port()
    service = servers.own(name, tmp_path)
    if isinstance(service, Kafka):  # it tells its clients by which address to come
        service.settings["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
    luck = random.Random(name)
    broker = through(service.url, port) + ("" if LONG else QUICK[name])
    with service, Proxy(service.port, port) as proxy, Fleet(tmp_path, broker, []) as fleet:
        fleet.load()
        fleet.some_more()
        for _ in range(ROUNDS):
            for _ in range(2):
                proxy.reset()
                fleet.some_more(1)
            for _ in range(2):
                proxy.cut_after(luck.randint(1, 4000))  # a confirmation is lost, perhaps in the middle
                time.sleep(luck.uniform(0.3, 1.0))
                proxy.heal()
                fleet.some_more(1)
            for fault in (proxy.half_open, proxy.black_hole, proxy.refuse):
                fleet.hurt(fault)
                time.sleep(AWAY)
                proxy.heal()
                fleet.some_more()
            proxy.delay(0.05)
            fleet.some_more(1)
            proxy.heal()
        fleet.rest()
        seen = fleet.verify()
    print(f"\n{name}: {ROUNDS} rounds of faults, which found {fleet.hit} tickets under way, {dict(seen)}")
