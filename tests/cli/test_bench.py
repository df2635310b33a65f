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
from oraculo.bench import cost, offered, processes
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


@pytest.mark.usefixtures("as_before")
async def test_latencies_at_offered_rates_count_from_when_a_request_was_due() -> None:
    found = await offered.rates(40, lambda _: None, Place())
    assert found["offered_80"] == pytest.approx(found["highest_per_second"] * 0.8, rel=0.01)
    for share in offered.SHARES:
        assert 0 < found[f"p50_ms_{share}"] <= found[f"p95_ms_{share}"] <= found[f"p99_ms_{share}"]
        assert found[f"done_{share}"] > 0


@pytest.mark.usefixtures("as_before")
async def test_the_first_step_and_the_gaps_between_steps() -> None:
    found = await offered.steps(2, lambda _: None, Place())
    assert (found["runs"], found["steps"]) == (2, 10)
    assert 0 < found["ttfs_p50_ms"] <= found["ttfs_max_ms"] and 0 < found["stso_p50_ms"] <= found["stso_max_ms"]


@pytest.mark.usefixtures("as_before")
async def test_what_an_orchestration_costs_each_part() -> None:
    found = await cost.cost(30, lambda _: None, Place())
    assert found["cpu_ms_each"] > 0 and found["stored_bytes_each"] > 0
    assert found["steps_each"] >= 3  # the start, the collects, the execute
    assert 0 < found["transactions_each"] <= found["steps_each"]


def test_the_processor_time_of_a_process_and_of_its_ended_children() -> None:
    own = processes.processor_seconds(os.getpid())
    assert own is not None and own > 0
    assert (processes.processor_seconds(os.getpid(), ended_children=True) or 0) >= own
    assert processes.processor_seconds(2**22 + 1) is None


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
