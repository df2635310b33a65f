"""The workloads, each a coroutine that returns its figures. Every result is checked, so the speed is of real work."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from oraculo.bench.place import Place, opened
from oraculo.bench.work import COLLECTORS, REQUEST, mapped, wide
from oraculo.errors import OraculoError
from oraculo.service import Oraculo
from oraculo.wire import requests

Progress = Callable[[str], None]
Figures = dict[str, Any]

LOAD_IN_FLIGHT = 64
MESSAGES_PER_RUN = 2 * (len(COLLECTORS) + 1)  # of one W1 orchestration: an order and an answer for each task


def _check(body: bytes, received: int, total: int) -> None:
    """The execute must have seen so many collects, whose numbers have this sum."""
    result, expected = orjson.loads(body), {"recebidos": received, "soma": total}
    if result["status"] != "concluida" or result["execucoes"][0]["resultado"] != expected:
        raise OraculoError(f"a benchmark orchestration ended wrong: {body[:300]!r}")


async def run_one(oraculo: Oraculo) -> bytes:
    """One W1 orchestration, its result checked."""
    accepted = await oraculo.submit(REQUEST)
    body = await _ended(oraculo, accepted.run)
    _check(body, len(COLLECTORS), len(COLLECTORS))
    return body


async def _ended(oraculo: Oraculo, run: int) -> bytes:
    """Return the final document, as soon as there is one."""
    body = await oraculo.result_json(run, wait=None)
    assert body is not None
    return body


async def w1(n: int, progress: Progress, place: Place) -> Figures:
    async with opened(place) as stage:
        oraculo = stage.oraculo
        await asyncio.gather(*(run_one(oraculo) for _ in range(50)))  # warm up
        progress(f"W1: {n} orchestrations at once")
        cpu, worker_cpu = time.process_time(), stage.worker_cpu()
        started = time.perf_counter()
        with stage.profiled():
            await asyncio.gather(*(run_one(oraculo) for _ in range(n)))
        seconds = time.perf_counter() - started
        figures = {
            "workload": "W1",
            **stage.facts,
            "orchestrations": n,
            "seconds": round(seconds, 4),
            "per_second": round(n / seconds, 1),
            "messages_per_second": round(n * MESSAGES_PER_RUN / seconds),
            "cpu_ms_each": round((time.process_time() - cpu) / n * 1000, 4),
            "rss_mib": peak_rss_mib(),
        }
        worker_cpu_now = stage.worker_cpu()
        if worker_cpu is not None and worker_cpu_now is not None:
            figures["worker_cpu_ms_each"] = round((worker_cpu_now - worker_cpu) / n * 1000, 4)
        return figures


async def seq(n: int, progress: Progress, place: Place) -> Figures:
    async with opened(place) as stage:
        for _ in range(10):
            await run_one(stage.oraculo)
        progress(f"SEQ: {n} orchestrations, one after another")
        times = []
        with stage.profiled():
            for _ in range(n):
                started = time.perf_counter()
                await run_one(stage.oraculo)
                times.append((time.perf_counter() - started) * 1000)
        return {"workload": "SEQ", **stage.facts, "orchestrations": n, **percentiles(times)}


async def load(n: int, progress: Progress, place: Place) -> Figures:
    """So many in flight at all times, each begun when another one ended: latency while there is work to do."""
    async with opened(place) as stage:
        await asyncio.gather(*(run_one(stage.oraculo) for _ in range(50)))  # warm up
        progress(f"LOAD: {n} orchestrations, {LOAD_IN_FLIGHT} in flight")
        times: list[float] = []
        left = iter(range(n))

        async def client() -> None:
            for _ in left:
                began = time.perf_counter()
                await run_one(stage.oraculo)
                times.append((time.perf_counter() - began) * 1000)

        started = time.perf_counter()
        with stage.profiled():
            await asyncio.gather(*(client() for _ in range(LOAD_IN_FLIGHT)))
        per_second = round(n / (time.perf_counter() - started), 1)
        about = {"orchestrations": n, "in_flight": LOAD_IN_FLIGHT, "per_second": per_second}
        return {"workload": "LOAD", **stage.facts, **about, **percentiles(times)}


async def w2(n: int, progress: Progress, place: Place) -> Figures:
    async with opened(place) as stage:
        await asyncio.gather(*(run_one(stage.oraculo) for _ in range(20)))  # warm up
        progress(f"W2: one orchestration {n} wide, and its fan-in")
        with stage.profiled():
            seconds = await _wide(stage.oraculo, n)
        return {
            "workload": "W2",
            **stage.facts,
            "width": n,
            "seconds": round(seconds, 4),
            "results_per_second": round(n / seconds),
        }


async def _wide(oraculo: Oraculo, width: int, *, fan_in: bool = True) -> float:
    request = requests.parse(wide(width, fan_in=fan_in))
    started = time.perf_counter()
    accepted = await oraculo.submit(request)
    body = await _ended(oraculo, accepted.run)
    seconds = time.perf_counter() - started
    if fan_in:
        _check(body, width, width * (width - 1) // 2)
    elif len(orjson.loads(body)["coletas"]) != width:
        raise OraculoError(f"a benchmark orchestration ended wrong: {body[:300]!r}")
    return seconds


async def width(n: int, progress: Progress, place: Place) -> Figures:
    """The same number of results, once in orchestrations 10 wide and once in one orchestration N wide."""
    narrow: list[float] = []
    broad: list[float] = []
    for _ in range(3):
        async with opened(place) as stage:
            oraculo = stage.oraculo
            await run_one(oraculo)
            progress(f"WIDTH: {n // 10} orchestrations 10 wide")
            request = requests.parse(wide(10, fan_in=False))
            started = time.perf_counter()
            accepted = await asyncio.gather(*(oraculo.submit(request) for _ in range(n // 10)))
            await asyncio.gather(*(_ended(oraculo, one.run) for one in accepted))
            narrow.append((time.perf_counter() - started) / n * 1e6)
            progress(f"WIDTH: one orchestration {n} wide")
            broad.append(await _wide(oraculo, n, fan_in=False) / n * 1e6)
    ten, all_ = statistics.median(narrow), statistics.median(broad)
    return {"workload": "WIDTH", "width": n, "us_per_result_10": round(ten, 1), "us_per_result_n": round(all_, 1),
            "ratio": round(all_ / ten, 3)}  # fmt: skip


async def map(n: int, progress: Progress, place: Place) -> Figures:
    """The same number of items, once in maps 10 wide and once in one map N wide; in seconds of clock and processor."""
    narrow: list[tuple[float, float]] = []
    broad: list[tuple[float, float]] = []
    for _ in range(3):
        async with opened(place) as stage:
            await run_one(stage.oraculo)
            progress(f"MAP: {n // 10} maps of 10 items")
            narrow.append(await _mapped(stage.oraculo, 10, n // 10))
            progress(f"MAP: one map of {n} items")
            broad.append(await _mapped(stage.oraculo, n, 1))
    ten, ten_cpu = (statistics.median(one[at] for one in narrow) / n * 1e6 for at in (0, 1))
    all_, all_cpu = (statistics.median(one[at] for one in broad) / n * 1e6 for at in (0, 1))
    return {"workload": "MAP", "width": n, "us_per_item_10": round(ten, 1), "us_per_item_n": round(all_, 1),
            "ratio": round(all_ / ten, 3), "cpu_us_per_item_10": round(ten_cpu, 1),
            "cpu_us_per_item_n": round(all_cpu, 1), "cpu_ratio": round(all_cpu / ten_cpu, 3)}  # fmt: skip


async def _mapped(oraculo: Oraculo, width: int, count: int) -> tuple[float, float]:
    request = requests.parse(mapped(width))
    started, cpu = time.perf_counter(), time.process_time()
    accepted = await asyncio.gather(*(oraculo.submit(request) for _ in range(count)))
    bodies = await asyncio.gather(*(_ended(oraculo, one.run) for one in accepted))
    spent = time.perf_counter() - started, time.process_time() - cpu
    expected = [{"n": number} for number in range(width)]
    if any(orjson.loads(body)["tarefas"]["m"]["resultados"] != expected for body in bodies):
        raise OraculoError(f"a benchmark map ended wrong: {bodies[0][:300]!r}")
    return spent


async def inflight(n: int, progress: Progress, place: Place) -> Figures:
    """Measure the memory of open orchestrations: no worker runs, so none of them ends."""
    async with opened(place, workers=False) as stage:
        oraculo = stage.oraculo
        before = _rss_now()
        progress(f"INFLIGHT: {n} orchestrations open")
        request = requests.parse(REQUEST)
        for start in range(0, n, 500):
            await oraculo.submit_many([request] * min(500, n - start))
        await oraculo.engine.drained()
        return {"workload": "INFLIGHT", "orchestrations": n, "open": oraculo.status().open, "rss_mib": _rss_now(),
                "rss_mib_before": before}  # fmt: skip


async def age(n: int, progress: Progress, place: Place) -> Figures:
    """Listing, showing and submitting: empty, then with N finished orchestrations."""
    async with opened(place) as stage:
        oraculo = stage.oraculo
        await asyncio.gather(*(run_one(oraculo) for _ in range(200)))
        young = await _everyday(oraculo)
        done = 200
        while done < n:
            chunk = min(5000, n - done)
            accepted = await oraculo.submit_many([requests.parse(REQUEST)] * chunk)
            await asyncio.gather(*(_ended(oraculo, one.run) for one in accepted))
            done += chunk
            progress(f"AGE: {done} of {n} finished")
        old = await _everyday(oraculo)
        ratios = {f"{name}_ratio": round(old[name] / young[name], 3) for name in young}
        return {"workload": "AGE", "finished": n, "young_ms": young, "old_ms": old, **ratios}


async def _everyday(oraculo: Oraculo) -> dict[str, float]:
    from oraculo.core.vocabulary import Status
    from oraculo.ports.catalogue import Query

    store = oraculo.store
    newest = (await store.find(Query(limit=1)))[0].correlation_id
    queries = (
        Query(limit=50),
        Query(limit=50, status=[Status.CONCLUIDA]),
        Query(limit=50, destino="escavador_bench_a"),
    )

    async def listing() -> None:
        for query in queries:
            await store.find(query)

    async def showing() -> None:
        await oraculo.show(newest)

    async def submitting() -> None:
        await run_one(oraculo)

    figures = {}
    for name, action in (("list", listing), ("show", showing), ("submit", submitting)):
        times = []
        for _ in range(60):
            started = time.perf_counter()
            await action()
            times.append((time.perf_counter() - started) * 1000)
        figures[name] = round(statistics.median(times), 4)
    return figures


def percentiles(times: Sequence[float]) -> Figures:
    """By nearest rank: the smallest value that so many of all values do not exceed."""
    ordered = sorted(times)
    ranks = {f"p{percent}_ms": math.ceil(len(ordered) * percent / 100) - 1 for percent in (50, 95, 99)}
    return {**{name: round(ordered[rank], 3) for name, rank in ranks.items()}, "max_ms": round(ordered[-1], 3)}


def peak_rss_mib() -> float:
    """The most memory that this process has had."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _rss_now() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_rss_mib()
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024, 1)
