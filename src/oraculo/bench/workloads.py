"""The workloads, each a coroutine that returns its figures. Every result is checked, so the speed is of real work."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from oraculo.bench.work import COLLECTORS, REQUEST, make_worker, wide
from oraculo.bootstrap import Oraculo
from oraculo.errors import OraculoError
from oraculo.runtime.tuning import tune
from oraculo.settings import load
from oraculo.wire import requests

Progress = Callable[[str], None]
Figures = dict[str, Any]


@asynccontextmanager
async def embedded(directory: str | None = None, *, workers: bool = True) -> AsyncIterator[Oraculo]:
    """Oráculo with a SQLite file (synchronous=FULL), the in-process broker and the bench's workers."""
    tune()
    with TemporaryDirectory(prefix="oraculo-bench-", dir=directory) as folder:
        settings = load({"ORACULO_STORE": f"sqlite:///{Path(folder) / 'bench.db'}", "LOG_LEVEL": "WARNING"}, None)
        async with Oraculo(settings, workers=[make_worker()] if workers else []) as oraculo:
            yield oraculo


def _check(body: bytes, width: int = 0) -> None:
    result = orjson.loads(body)
    expected = result["status"] == "concluida" and (
        len(result["coletas"]) == width if width else result["execucoes"][0]["resultado"]["soma"] == len(COLLECTORS)
    )
    if not expected:
        raise OraculoError(f"a benchmark orchestration ended wrong: {body[:300]!r}")


async def _one(oraculo: Oraculo) -> bytes:
    accepted = await oraculo.submit(REQUEST)
    body = await oraculo.ended(accepted.run)
    _check(body)
    return body


async def w1(n: int, progress: Progress) -> Figures:
    async with embedded() as oraculo:
        await asyncio.gather(*(_one(oraculo) for _ in range(50)))  # warm up
        progress(f"W1: {n} orchestrations at once")
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(_one(oraculo) for _ in range(n)))
        seconds = time.perf_counter() - started
        return {
            "workload": "W1",
            "orchestrations": n,
            "seconds": round(seconds, 4),
            "per_second": round(n / seconds, 1),
            "cpu_ms_each": round((time.process_time() - cpu) / n * 1000, 4),
            "rss_mib": _rss(),
        }


async def seq(n: int, progress: Progress) -> Figures:
    async with embedded() as oraculo:
        for _ in range(10):
            await _one(oraculo)
        progress(f"SEQ: {n} orchestrations, one after another")
        times = []
        for _ in range(n):
            started = time.perf_counter()
            await _one(oraculo)
            times.append((time.perf_counter() - started) * 1000)
        return {"workload": "SEQ", "orchestrations": n, **_percentiles(times)}


async def w2(n: int, progress: Progress) -> Figures:
    async with embedded() as oraculo:
        await _one(oraculo)
        progress(f"W2: one orchestration {n} wide")
        seconds = await _wide(oraculo, n)
        return {"workload": "W2", "width": n, "seconds": round(seconds, 4), "results_per_second": round(n / seconds)}


async def _wide(oraculo: Oraculo, width: int) -> float:
    request = requests.parse(wide(width))
    started = time.perf_counter()
    accepted = await oraculo.submit(request)
    body = await oraculo.ended(accepted.run)
    seconds = time.perf_counter() - started
    _check(body, width)
    return seconds


async def width(n: int, progress: Progress) -> Figures:
    """The same number of results, once in orchestrations 10 wide and once in one orchestration N wide."""
    narrow: list[float] = []
    broad: list[float] = []
    for _ in range(3):
        async with embedded() as oraculo:
            await _one(oraculo)
            progress(f"WIDTH: {n // 10} orchestrations 10 wide")
            request = requests.parse(wide(10))
            started = time.perf_counter()
            accepted = await asyncio.gather(*(oraculo.submit(request) for _ in range(n // 10)))
            await asyncio.gather(*(oraculo.ended(one.run) for one in accepted))
            narrow.append((time.perf_counter() - started) / n * 1e6)
            progress(f"WIDTH: one orchestration {n} wide")
            broad.append(await _wide(oraculo, n) / n * 1e6)
    ten, all_ = statistics.median(narrow), statistics.median(broad)
    return {"workload": "WIDTH", "width": n, "us_per_result_10": round(ten, 1), "us_per_result_n": round(all_, 1),
            "ratio": round(all_ / ten, 3)}  # fmt: skip


async def inflight(n: int, progress: Progress) -> Figures:
    """Nobody works, so everything stays open."""
    async with embedded(workers=False) as oraculo:
        before = _rss_now()
        progress(f"INFLIGHT: {n} orchestrations open")
        request = requests.parse(REQUEST)
        for start in range(0, n, 500):
            await oraculo.submit_many([request] * min(500, n - start))
        await oraculo.engine.drained()
        return {"workload": "INFLIGHT", "orchestrations": n, "open": oraculo.engine.open, "rss_mib": _rss_now(),
                "rss_mib_before": before}  # fmt: skip


async def age(n: int, progress: Progress) -> Figures:
    """Listing, showing and submitting: empty, then with N finished orchestrations."""
    async with embedded() as oraculo:
        await asyncio.gather(*(_one(oraculo) for _ in range(200)))
        young = await _everyday(oraculo)
        done = 200
        while done < n:
            chunk = min(5000, n - done)
            accepted = await oraculo.submit_many([requests.parse(REQUEST)] * chunk)
            await asyncio.gather(*(oraculo.ended(one.run) for one in accepted))
            done += chunk
            progress(f"AGE: {done} of {n} finished")
        old = await _everyday(oraculo)
        ratios = {f"{name}_ratio": round(old[name] / young[name], 3) for name in young}
        return {"workload": "AGE", "finished": n, "young_ms": young, "old_ms": old, **ratios}


async def _everyday(oraculo: Oraculo) -> dict[str, float]:
    from oraculo.core.vocabulary import Status
    from oraculo.ports.store import Query

    store = oraculo.engine.store
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
        await _one(oraculo)

    figures = {}
    for name, action in (("list", listing), ("show", showing), ("submit", submitting)):
        times = []
        for _ in range(60):
            started = time.perf_counter()
            await action()
            times.append((time.perf_counter() - started) * 1000)
        figures[name] = round(statistics.median(times), 4)
    return figures


def _percentiles(times: list[float]) -> Figures:
    ordered = sorted(times)
    return {
        "p50_ms": round(statistics.median(ordered), 3),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 3),
        "max_ms": round(ordered[-1], 3),
    }


def _rss() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _rss_now() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return _rss()
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024, 1)
