"""Workloads of plans in which one task follows another: how the gap between steps grows, and the suite that Windmill
publishes of itself and others (light tasks that compute fibo(10), long ones that compute fibo(33))."""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from typing import Any

import orjson

from oraculo.bench import work
from oraculo.bench.place import Place, Stage, opened
from oraculo.bench.workloads import Figures, Progress
from oraculo.errors import OraculoError
from oraculo.service import Oraculo
from oraculo.wire import requests

LIGHT_N, LONG_N = 10, 33
NUMBERS = {LIGHT_N: 55, LONG_N: 3_524_578}
LIGHT_TASKS, LONG_TASKS, WIDE_TASKS, WIDE_WORKERS = 40, 10, 400, 10
CHAIN_REPEATS, FIBO_REPEATS = 5, 3
GAPS_COMPARED = 50  # behind the tenth step, and before the last


async def chain(n: int, progress: Progress, place: Place) -> Figures:
    """The gap between two steps near the beginning of a chain of N tasks, and near its end."""
    early: list[tuple[float, float]] = []
    late: list[tuple[float, float]] = []
    seconds: list[float] = []
    async with opened(place) as stage:
        await run_plan(stage.oraculo, work.chained(10, "bench_passo", {}))
        for _ in range(CHAIN_REPEATS):
            progress(f"CHAIN: {n} tasks, one after the other")
            work.STEPS.clear()
            seconds.append(await run_plan(stage.oraculo, work.chained(n, "bench_passo", {})))
            steps = work.STEPS
            gaps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(steps)]
            early += gaps[9 : 9 + GAPS_COMPARED]
            late += gaps[-GAPS_COMPARED:]
    (first, first_cpu), (last, last_cpu) = (
        tuple(statistics.median(gap[at] for gap in gaps) * 1e6 for at in (0, 1)) for gaps in (early, late)
    )
    return {"workload": "CHAIN", "tasks": n, "seconds": round(statistics.median(seconds), 4),
            "us_gap_10": round(first, 1), "us_gap_n": round(last, 1), "ratio": round(last / first, 3),
            "cpu_us_gap_10": round(first_cpu, 1), "cpu_us_gap_n": round(last_cpu, 1),
            "cpu_ratio": round(last_cpu / first_cpu, 3)}  # fmt: skip


async def fibo(n: int, progress: Progress, place: Place) -> Figures:
    """Forty light tasks in a chain, ten long ones in a chain, and `n` light ones at once on ten workers."""
    found: dict[str, list[float]] = {"light_40_s": [], "long_10_s": [], "light_wide_s": []}
    async with opened(place) as stage:
        oraculo = stage.oraculo
        await _fibonacci(oraculo, work.chained(3, "bench_fibo", {"n": LIGHT_N}), LIGHT_N)
        await _fibonacci(oraculo, _wide(2 * WIDE_WORKERS), LIGHT_N)
        for _ in range(FIBO_REPEATS):
            progress(f"FIBO: {LIGHT_TASKS} light tasks in a chain")
            light = work.chained(LIGHT_TASKS, "bench_fibo", {"n": LIGHT_N})
            found["light_40_s"].append(await _fibonacci(oraculo, light, LIGHT_N))
            progress(f"FIBO: {LONG_TASKS} long tasks in a chain")
            long = work.chained(LONG_TASKS, "bench_fibo", {"n": LONG_N})
            found["long_10_s"].append(await _fibonacci(oraculo, long, LONG_N))
            progress(f"FIBO: {n} light tasks on {WIDE_WORKERS} workers")
            found["light_wide_s"].append(await _fibonacci(oraculo, _wide(n), LIGHT_N))
        computed = _computed(LONG_N)
        return {"workload": "FIBO", "width": n, **_facts(stage), **{name: round(statistics.median(times), 4)
                for name, times in found.items()}, "long_computing_s": round(computed * LONG_TASKS, 4)}  # fmt: skip


def _wide(width: int) -> dict[str, Any]:
    """A map of so many light tasks, at most ten at once."""
    return work.mapped(width, {"executador": "bench_fibo", "parametros": {"n": LIGHT_N}}, WIDE_WORKERS)


def _facts(stage: Stage) -> dict[str, Any]:
    return {**stage.facts, "workers": WIDE_WORKERS}


def _computed(n: int) -> float:
    """The seconds that one long task takes by itself."""
    started = time.perf_counter()
    work.fibonacci(n)
    return time.perf_counter() - started


async def _fibonacci(oraculo: Oraculo, request: dict[str, Any], n: int) -> float:
    """The seconds of a plan whose tasks all compute the same number, every one of which is looked at."""
    seconds, result = await _timed(oraculo, request)
    wanted = {"fibo": NUMBERS[n]}
    for task in result["tarefas"].values():
        if task.get("resultado", wanted) != wanted or any(one != wanted for one in task.get("resultados", ())):
            raise OraculoError(f"a benchmark plan computed something else: {str(task)[:300]}")
    return seconds


async def run_plan(oraculo: Oraculo, request: dict[str, Any]) -> float:
    """The seconds from handing in a plan to having its result."""
    return (await _timed(oraculo, request))[0]


async def _timed(oraculo: Oraculo, request: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    parsed = requests.parse(request)
    started = time.perf_counter()
    accepted = await oraculo.submit(parsed)
    body = await oraculo.result_json(accepted.run, wait=None)
    seconds = time.perf_counter() - started
    assert body is not None
    result: dict[str, Any] = orjson.loads(body)
    if result["status"] != "concluida":
        raise OraculoError(f"a benchmark plan ended wrong: {body[:300]!r}")
    return seconds, result
