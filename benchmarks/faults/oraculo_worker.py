"""The worker of Oráculo's rows, started with `oraculo worker oraculo_worker:worker`."""

from __future__ import annotations

import asyncio
from typing import Any

import task_work

from oraculo import Worker

worker = Worker()


async def collect(params: dict[str, Any]) -> dict[str, Any]:
    return await asyncio.to_thread(task_work.collect, params["name"], params["index"])


for index in range(task_work.COLLECTS):
    worker.collector(f"source-{index}")(collect)


@worker.executor("sum")
async def execute(params: dict[str, Any], data: list[dict[str, Any]]) -> dict[str, int]:
    results = [one["dados"] for one in data if one["status"] == "concluida"]
    return await asyncio.to_thread(task_work.execute, params["name"], results)
