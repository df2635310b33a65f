"""The work of the benchmark, and a collector that takes its time: whoever is killed meanwhile is hit in the middle."""

from __future__ import annotations

import asyncio
from typing import Any

from oraculo.bench.work import make_worker

worker = make_worker()


@worker.escavador("bench_lento")
async def slowly(parametros: dict[str, Any]) -> dict[str, int]:
    await asyncio.sleep(0.3)
    return {"n": parametros["n"]}
