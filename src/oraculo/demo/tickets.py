"""A worker for tickets of Fluxo C that does nothing and says so: `oraculo up --worker oraculo.demo.tickets:worker`.

It is for trying plans (examples/plano.json) before there are real workers. It takes every ticket that it can get, so
it has no place beside them.
"""

from __future__ import annotations

import asyncio
from typing import Any

from oraculo.worker.worker import Worker

PRETENDED_WORK_S = 0.3  # long enough to be seen while one watches

worker = Worker()


@worker.ticket()
async def pretend(task_id: str, task_type: str, description: str) -> dict[str, Any]:
    """Wait a moment and tell what would have been done."""
    await asyncio.sleep(PRETENDED_WORK_S)
    return {"task_id": task_id, "task_type": task_type, "feito": f"{description or task_type} (demo)"}
