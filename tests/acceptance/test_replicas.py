"""Three orchestrators on PostgreSQL and RabbitMQ: killed, frozen, restarted, without their database. Nothing lost.

`make test` is quick about it; `make chaos` (ORACULO_CHAOS_KILLS) hurts them longer, with 2,000 orchestrations.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import httpx2
import pytest

import servers
from acceptance.chaos import LONG, times
from acceptance.replicas import LEASE, Replica, Replicas
from databases import database

FAULTS = times(2)
MANY = 2000


@pytest.fixture
async def store() -> str:
    return await database()


@pytest.mark.timeout(300 + 30 * FAULTS)
def test_one_after_the_other_is_killed_or_frozen(store: str, tmp_path: Path) -> None:
    luck = random.Random(2)
    taken_over: list[float] = []
    with servers.own("rabbitmq", tmp_path / "rabbitmq") as broker, Replicas(tmp_path, store, broker.url) as fleet:
        fleet.load(MANY if LONG else 1_000_000, pace=0.05 if LONG else 0.02)
        for number in range(FAULTS):
            time.sleep(luck.uniform(0.3, 1.0))
            taken_over.append(_hurt(fleet, luck.choice(fleet.all), freeze=number % 2 == 1))
        fleet.rest(now=not LONG)
        seen = fleet.verify()
    print(
        f"\n{seen['orchestrations']} orchestrations, {FAULTS} kills and freezes in turn, which found "
        f"{fleet.hit} tickets under way: {dict(seen)}"
    )
    print(f"taken over after {min(taken_over):.1f} to {max(taken_over):.1f} s with a lease of {LEASE:g} s")


def test_the_database_is_away(tmp_path: Path) -> None:
    """In the middle of the work, and again while a replica that was killed recovers."""
    away = 20.0 if LONG else 2.0
    with (
        servers.own("postgres", tmp_path / "pg") as postgres,
        servers.own("redis", tmp_path / "redis") as redis,
        Replicas(tmp_path, postgres.url, redis.url, 2) as fleet,
    ):
        one, other = fleet.all
        fleet.load(pace=0.1)
        fleet.some_more()
        for dead in (False, True):
            if dead:
                one.kill()
            postgres.kill()
            began = time.monotonic()
            fleet.until(lambda: _refuses(other.url), "it says that it is not ready")
            if dead:
                assert one.start() == "" and one.wait() == 5  # it says that there is no database, and ends
            time.sleep(max(0.0, away - (time.monotonic() - began)))
            postgres.start()
            if dead:
                one.up()
            fleet.until(lambda: _ready(other.url), "it is ready again")
            fleet.some_more()
        fleet.rest(now=True)
        seen = fleet.verify()
    print(f"\nPostgreSQL away twice for {away:.0f} s: {dict(seen)}, refused meanwhile {dict(fleet.refused)}")


def test_a_rolling_restart_costs_no_attempt(store: str, tmp_path: Path) -> None:
    with servers.own("redis", tmp_path / "redis") as redis, Replicas(tmp_path, store, redis.url, 2) as fleet:
        fleet.load(pace=0.1)
        for one in fleet.all:
            fleet.some_more()
            assert one.terminate() == 0
            one.up()
        fleet.some_more()
        fleet.rest(now=True)
        seen = fleet.verify()
    assert seen["attempts"] == 4 * seen["orchestrations"], seen


def test_api_and_engine_apart(store: str, tmp_path: Path) -> None:
    with servers.own("redis", tmp_path / "redis") as redis, Replicas(tmp_path, store, redis.url, 0) as fleet:
        api = Replica(tmp_path / "api", "api", store, redis.url, "--api-only")
        engine = Replica(tmp_path / "engine", "engine", store, redis.url, "--engine-only")
        fleet.all = [api]
        api.up()
        fleet.load(30)
        fleet.rest()
        answer = api.call("GET", "/api/v1/orchestrations/pedido-1/result?wait=1")
        assert answer is not None and answer.status_code == 202  # nobody takes the answers
        engine.up()
        assert api.result("pedido-1")["status"] == "concluida"
        refused = engine.call("GET", "/api/v1/orchestrations")
        assert refused is not None and refused.status_code == 404
        ready = engine.call("GET", "/ready")
        assert ready is not None and ready.json()["checks"]["replica"]["nome"] == "engine"
        for name in fleet.accepted:
            assert api.result(name)["status"] == "concluida"
        assert engine.terminate() == 0
        seen = fleet.verify()
    assert seen["orchestrations"] == 30


def _hurt(fleet: Replicas, victim: Replica, freeze: bool) -> float:
    """Seconds until the others have taken over. A frozen one that wakes up is told so."""
    witness = next(one for one in fleet.all if one is not victim)
    if freeze:
        victim.freeze()
    else:
        victim.kill()
    fleet.hit.append(fleet.unfinished())
    took = fleet.until(lambda: victim.name not in fleet.members(witness), "it is taken over")
    if freeze:
        victim.thaw()
        fleet.until(lambda: fleet.fences(victim) > 0, "it is told that it was taken over")
    else:
        victim.up()
    return took


def _ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/ready", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


def _refuses(url: str) -> bool:
    """Not ready, and nothing is accepted."""
    try:
        ready = httpx2.get(f"{url}/ready", timeout=10)
        body = {"coletas": [{"fonte": "x"}]}
        posted = httpx2.post(f"{url}/api/v1/orchestrations", json=body, timeout=30)
    except httpx2.TransportError:
        return False
    assert posted.status_code != 202
    return ready.status_code == 503 and posted.status_code == 503
