"""Soak: very many messages through one orchestrator with retention on. Does anything grow, is anything lost?

    .venv/bin/python -m benchmarks.soak --broker memory --messages 10000000 --folder soak-memory
    .venv/bin/python -m benchmarks.soak --broker redis  --messages 10000000 --folder soak-redis

Orchestrations of three collects and one execute (eight messages each) are submitted in chunks; every result is checked.
What ended longer ago than `--keep` seconds is pruned all the time. Every 20,000 messages a line goes to the file
`progress.jsonl` in the folder: memory, descriptors, size of the database. Run again on the same folder it goes on where
it stopped, on the same database. At the end: the slope of each measure over the second half, with its 95 % confidence.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
from tools.servers.redis import Redis

from oraculo import logs
from oraculo.bench.processes import worker_processes
from oraculo.bench.work import COLLECTORS, REQUEST, make_worker
from oraculo.bench.workloads import MESSAGES_PER_RUN
from oraculo.runtime.tuning import tune
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire import requests

CHUNK_RUNS = 500
SAMPLE_MESSAGES = 20_000
PRUNE_RUNS = 500
MEASURES = ("rss_mib", "worker_rss_mib", "descriptors", "database_mib")


@asynccontextmanager
async def opened(broker: str, folder: Path) -> AsyncIterator[tuple[Oraculo, list[int]]]:
    """The orchestrator on the database of this folder, and the process ids of workers of their own."""
    async with AsyncExitStack() as stack:
        url = "memory://"
        if broker == "redis":
            url = stack.enter_context(Redis(folder / "redis")).url
        settings = load({"ORACULO_STORE": f"sqlite:///{folder / 'soak.db'}", "ORACULO_BROKER": url}, None)
        inside = [make_worker()] if broker == "memory" else []
        oraculo = await stack.enter_async_context(Oraculo(settings, workers=inside))
        outside = [] if inside else await stack.enter_async_context(worker_processes(url, 1, None))
        yield oraculo, [one.process.pid for one in outside]


async def soak(broker: str, messages: int, keep_s: float, folder: Path) -> list[dict[str, Any]]:
    """Go on until so many messages went through; return all samples."""
    samples = read_progress(folder)
    done: int = samples[-1]["messages"] if samples else 0
    spent: float = samples[-1]["seconds"] if samples else 0.0
    request, expected = requests.parse(REQUEST), {"recebidos": len(COLLECTORS), "soma": len(COLLECTORS)}
    async with opened(broker, folder) as (oraculo, workers):
        began, sampled = time.perf_counter(), done
        with (folder / "progress.jsonl").open("a") as progress:
            while done < messages:
                accepted = await oraculo.submit_many([request] * CHUNK_RUNS)
                bodies = await asyncio.gather(*(oraculo.result_json(one.run, wait=None) for one in accepted))
                for body in bodies:
                    assert body is not None
                    result = orjson.loads(body)
                    if result["status"] != "concluida" or result["execucoes"][0]["resultado"] != expected:
                        raise SystemExit(f"an orchestration ended wrong: {body[:300]!r}")
                done += CHUNK_RUNS * MESSAGES_PER_RUN
                await _prune(oraculo, keep_s)
                if done - sampled >= SAMPLE_MESSAGES or done >= messages:
                    sampled = done
                    seconds = spent + time.perf_counter() - began
                    samples.append(_sample(workers, folder, done, seconds))
                    progress.write(json.dumps(samples[-1]) + "\n")
                    progress.flush()
                    _show(samples[-1], messages)
        await _nothing_left(oraculo)
    return samples


async def _prune(oraculo: Oraculo, keep_s: float) -> None:
    while await oraculo.store.prune(oraculo.now() - timedelta(seconds=keep_s), PRUNE_RUNS) == PRUNE_RUNS:
        pass


async def _nothing_left(oraculo: Oraculo) -> None:
    """Nothing is owed, open, quarantined or waiting in a queue; every message was counted once."""
    await oraculo.engine.drained()
    problems: dict[str, Any] = {"live": len(await oraculo.store.live()), "open": oraculo.status().open}
    problems["dead"] = sum(count for _, _, count in await oraculo.store.dead_letter_groups())
    counts = await oraculo.store.counts()
    problems |= {f"{q} {verdict}": n for (q, verdict), n in counts.items() if verdict not in ("applied", "duplicate")}
    for queue in oraculo.queues():
        problems[queue] = (await oraculo.broker.backlog(queue)).waiting
    if any(problems.values()):
        raise SystemExit(f"not everything is as it should be at the end: {problems}")


def _sample(workers: list[int], folder: Path, done: int, seconds: float) -> dict[str, Any]:
    size = sum(file.stat().st_size for file in folder.glob("soak.db*"))
    return {
        "messages": done,
        "seconds": round(seconds, 1),
        "per_second": round(done / seconds),
        "rss_mib": rss_mib("self"),
        "worker_rss_mib": round(sum(rss_mib(str(pid)) for pid in workers), 1),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "database_mib": round(size / 2**20, 2),
    }


def rss_mib(process: str) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 2)


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """The samples of earlier runs on this folder; a last line that was cut off is left out."""
    file, samples = folder / "progress.jsonl", []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            samples.append(json.loads(line))
        except ValueError:
            break
    if samples:
        file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return samples


def slope(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """The slope by least squares, and half of its interval of 95 % confidence (normal; nan below three points)."""
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    spread = sum((x - mean_x) ** 2 for x in xs)
    if not spread:
        return 0.0, math.nan
    found = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    if n < 3:
        return found, math.nan
    rest = sum((y - mean_y - found * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    return found, 1.96 * math.sqrt(rest / (n - 2) / spread)


def report(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """For each measure: first, last, and the slope over the second half for a million messages."""
    half = samples[len(samples) // 2 :]
    millions = [sample["messages"] / 1e6 for sample in half]
    found: dict[str, Any] = {name: samples[-1][name] for name in ("messages", "seconds", "per_second")}
    for name in MEASURES:
        per_million, bound = slope(millions, [sample[name] for sample in half])
        found[name] = {
            "first": samples[0][name],
            "last": samples[-1][name],
            "per_million": round(per_million, 3),
            "plus_minus": None if math.isnan(bound) else round(bound, 3),
        }
    return found


def _show(sample: dict[str, Any], messages: int) -> None:
    told = ", ".join(f"{name} {sample[name]}" for name in ("per_second", *MEASURES))
    sys.stderr.write(f"{sample['messages']:>12,} of {messages:,}: {told}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broker", choices=("memory", "redis"), default="memory")
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--keep", type=float, default=60.0, help="seconds for which what has ended is kept")
    parser.add_argument(
        "--folder", type=Path, required=True, help="of the database and the progress; given again, it goes on"
    )
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    logs.configure("WARNING", "text")
    tune()
    found = report(asyncio.run(soak(asked.broker, asked.messages, asked.keep, asked.folder)))
    if asked.json:
        sys.stdout.write(json.dumps({"broker": asked.broker, **found}) + "\n")
        return
    sys.stdout.write(f"{asked.broker}: {found['messages']:,} messages, {found['per_second']:,}/s, nothing lost\n")
    for name in MEASURES:
        one = found[name]
        grows = f"{one['per_million']:+} ± {one['plus_minus']}"
        sys.stdout.write(f"  {name}: {one['first']} → {one['last']}, in the second half {grows} a million messages\n")


if __name__ == "__main__":
    main()
