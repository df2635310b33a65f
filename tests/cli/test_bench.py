"""`oraculo bench`: small runs whose figures mean nothing, but whose work is checked."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.processes import Cli
from oraculo.adapters.brokers.connect import broker_of
from oraculo.bench.place import Place, opened
from oraculo.bench.workloads import percentiles
from oraculo.errors import OraculoError
from oraculo.ports.broker import Outgoing, publish_confirmed
from oraculo.wire import names
from servers import own


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with own("redis", tmp_path_factory.mktemp("bench")) as server:
        yield server.url


@pytest.fixture
def as_before() -> Iterator[None]:
    """A run sets the garbage collector of its process to its own needs."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_embedded(alone: Cli) -> None:
    figures = alone.json("bench", "-n", "20")
    assert [one["workload"] for one in figures] == ["W1", "W2", "SEQ", "LOAD"]
    assert all(one["broker"] == "memory" for one in figures)
    assert figures[0]["messages_per_second"] > figures[0]["per_second"]
    load = figures[3]
    assert load["orchestrations"] == 20
    assert 0 < load["p50_ms"] <= load["p95_ms"] <= load["p99_ms"] <= load["max_ms"]


def test_on_a_broker_with_workers_in_other_processes(alone: Cli, redis: str) -> None:
    figures = alone.json("bench", "-n", "20", "--workload", "W1", "--broker", redis, "--worker-processes", "2")
    assert (figures["broker"], figures["worker_processes"]) == ("redis", 2)
    assert figures["durability"] in ("crash-safe", "power-safe")
    assert figures["versions"]["redis"]


def test_profiles_of_both_sides(alone: Cli, redis: str, tmp_path: Path) -> None:
    done = alone("bench", "-n", "5", "--workload", "SEQ", "--broker", redis, "--profile", str(tmp_path / "profiles"))
    assert "orchestrator: own time" in done.stderr and "worker-1: own time" in done.stderr


@pytest.mark.usefixtures("as_before")
async def test_a_broker_that_others_use_is_refused(redis: str) -> None:
    broker = broker_of(redis.replace("/0", "/1"))
    try:
        await publish_confirmed(broker, [Outgoing(names.RESULTS, b"{}", "")])
    finally:
        await broker.close()
    with pytest.raises(OraculoError, match="that nobody else uses"):
        async with opened(Place(redis.replace("/0", "/1"))):
            pass


@pytest.mark.usefixtures("as_before")
async def test_a_worker_that_dies_ends_the_run(redis: str) -> None:
    with pytest.raises(OraculoError, match="ended with status -9"):
        async with opened(Place(redis)) as stage:
            os.kill(stage.workers[0].process.pid, signal.SIGKILL)
            await asyncio.Event().wait()


def test_what_needs_the_in_process_broker_says_so(alone: Cli) -> None:
    refused = alone("bench", "--workload", "AGE", "--broker", "redis://127.0.0.1:1/0")
    assert refused.returncode == 2 and "memory:// only" in refused.stderr


def test_percentiles_are_of_the_nearest_rank() -> None:
    assert percentiles(range(1, 101)) == {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99, "max_ms": 100}
    assert percentiles([7.0]) == {"p50_ms": 7.0, "p95_ms": 7.0, "p99_ms": 7.0, "max_ms": 7.0}
