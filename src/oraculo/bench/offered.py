"""What a user feels: latency while requests come at a rate of their own, the time to a first step and between steps.

RATES offers 10, 50 and 80 % of the highest rate that was just measured. Requests come at fixed instants, whether the
ones before are done or not, and a latency counts from the instant at which its request was due: a stall is felt by all
that were due meanwhile, not by one of them.
"""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from oraculo.bench import work
from oraculo.bench.chains import run_plan
from oraculo.bench.place import Place, Stage, opened
from oraculo.bench.workloads import LOAD_IN_FLIGHT, Figures, Progress, percentiles, run_one
from oraculo.errors import OraculoError

SHARES = (10, 50, 80)  # percent of the highest rate
RATE_MAX_S = 30.0  # how long a rate is offered at most
STEPS_OF_A_RUN = 10


async def rates(n: int, progress: Progress, place: Place) -> Figures:
    """The highest rate over N orchestrations, and the latencies at shares of it."""
    async with opened(place) as stage:
        await asyncio.gather(*(run_one(stage.oraculo) for _ in range(50)))  # warm up
        progress(f"RATES: {n} orchestrations, as fast as they go")
        highest = await _highest(stage, n)
        found: Figures = {"workload": "RATES", **stage.facts, "highest_per_second": round(highest, 1)}
        for share in SHARES:
            rate = highest * share / 100
            count = max(20, min(n, int(rate * RATE_MAX_S)))
            progress(f"RATES: {share} % of it, {count} orchestrations")
            times, seconds = await _offered(stage, rate, count)
            found |= {f"offered_{share}": round(rate, 1), f"done_{share}": round(count / seconds, 1)}
            found |= {f"{name}_{share}": value for name, value in percentiles(times).items()}
        return found


async def _highest(stage: Stage, n: int) -> float:
    """Orchestrations a second with as many in flight as LOAD has."""
    left = iter(range(n))

    async def client() -> None:
        for _ in left:
            await run_one(stage.oraculo)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(LOAD_IN_FLIGHT)))
    return n / (time.perf_counter() - started)


async def _offered(stage: Stage, rate: float, count: int) -> tuple[list[float], float]:
    """(milliseconds from when each was due until its result was here, seconds of all)."""
    times: list[float] = []

    async def one(due: float) -> None:
        await run_one(stage.oraculo)
        times.append((time.perf_counter() - due) * 1000)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            due = started + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(due))
    return times, time.perf_counter() - started


async def steps(n: int, progress: Progress, place: Place) -> Figures:
    """Time to first step (`ttfs`: from handing in a plan until its first task is called) and step-to-step overhead
    (`stso`: from one task's call to that of the next, which does nothing) over N runs of ten tasks in a row."""
    if not place.embedded:
        raise OraculoError("STEPS looks into the worker, which has to be in this process")
    first: list[float] = []
    between: list[float] = []
    async with opened(place) as stage:
        plan = work.chained(STEPS_OF_A_RUN, "bench_passo", {})
        await run_plan(stage.oraculo, plan)
        progress(f"STEPS: {n} plans of {STEPS_OF_A_RUN} tasks, one after another")
        for _ in range(n):
            work.STEPS.clear()
            began = time.perf_counter()
            await run_plan(stage.oraculo, plan)
            calls = [at for at, _ in work.STEPS]
            first.append((calls[0] - began) * 1000)
            between += [(after - before) * 1000 for before, after in pairwise(calls)]
        figures: Figures = {"workload": "STEPS", **stage.facts, "runs": n, "steps": STEPS_OF_A_RUN}
        for name, times in (("ttfs", first), ("stso", between)):
            figures |= {f"{name}_{rank}": value for rank, value in percentiles(times).items()}
        return figures
