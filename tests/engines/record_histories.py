"""Writes the histories that `test_temporal_histories.py` replays.

In `tests/`: `PYTHONPATH=.:.. python -m engines.record_histories`

A history that is there already is left as it is: it stands for what a release wrote, and what comes later must be able
to go on with it. Give a new story a new name, and delete none.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from tools.servers.temporal import Temporal

from engines.temporal_world import World, closed, connected, marked, opened
from oraculo.core.commands import Approve
from oraculo.core.flow.cognitive import TaskNode
from oraculo.ports.work import Work
from waiting import until

FOLDER = Path(__file__).parent / "histories"
LONG = ("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=20")
FAULT = [{"codigo": "quebrou", "mensagem": "não deu", "definitivo": False}]


async def collects_then_executes(world: World) -> str:
    name, (first, second) = await world.submit(2, execucoes=[{"executador": "soma"}], notificar={"fila": "avisos"})
    await world.answer(await world.order(first), await world.order(second))
    await world.answer(await world.order("soma", "executador"))
    await world.result(name)
    return name


async def fails_and_is_tried_again(world: World) -> str:
    name, (first, _) = await world.submit(2, timeout_s=60)
    order = await world.order(first)
    await world.answer(order, errors=FAULT)
    await world.answer(await world.order(first))
    await world.answer(order)  # a duplicate
    await until(lambda: closed(world, name, 1))
    await world.oraculo.cancel(name, "chega")
    await world.result(name)
    return name


async def runs_out_of_time(world: World) -> str:
    coletas = [{"fonte": "surdo", "timeout_s": 0.3, "max_tentativas": 2}, {"fonte": "mudo", "timeout_s": 30}]
    name = (await world.oraculo.submit({"coletas": coletas, "timeout_s": 2})).correlation_id
    await world.result(name)
    return name


async def is_approved_fails_and_is_undone(world: World) -> str:
    tasks = (TaskNode("a", "BUILD"), TaskNode("b", "DEPLOY", dependencies=("a",), max_retries=0))
    name = await world.plan(*tasks, approval=True)
    await world.engine.submit([Work(Approve(True, "ana"), name)])
    await world.answer(await world.order(name, "executador"))
    await world.answer(await world.order(name, "executador"), errors=FAULT)
    await until(lambda: undone(world, name))
    for _ in range(2, len((await world.oraculo.state(name)).tickets)):
        await world.answer(await world.order(name, "executador"))
    await world.result(name)
    return name


async def undone(world: World, name: str) -> bool:
    return (await world.oraculo.state(name)).undoes > 0


async def continues_as_new(world: World) -> str:
    name, sources = await world.submit(12)
    for number, source in enumerate(sources, 1):
        await world.answer(await world.order(source))
        await until(partial(closed, world, name, number))
    await world.result(name)
    return name


async def a_failure_by_hand_that_counted_as_done(world: World) -> str:
    """As releases before `answer-by-hand` took it: whatever the signal said, the ticket had completed."""
    name, (first, second) = await world.submit(2)
    orders = [await world.order(first), await world.order(second)]
    handle = world.temporal.get_workflow_handle(f"orch-{name}")
    for order in orders:
        await handle.signal("ticket_completed", args=[order["ticket_id"], {"status": "FAILED", "error_message": "não"}])
    await world.result(name)
    return name


STORIES: tuple[Callable[[World], Awaitable[str]], ...] = (
    collects_then_executes,
    fails_and_is_tried_again,
    runs_out_of_time,
    is_approved_fails_and_is_undone,
    continues_as_new,
    a_failure_by_hand_that_counted_as_done,
)


async def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for story in STORIES:
        path = FOLDER / f"{story.__name__}.json"
        if path.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            server = Temporal(Path(folder) / "temporal")
            server.options = LONG if story is continues_as_new else ()
            with server:
                async with opened(Path(folder), server.url, ORACULO_REPLICA_NAME="oraculo") as world:
                    await connected(world)
                    await until(lambda: marked(world))
                    handle = world.temporal.get_workflow_handle(f"orch-{await story(world)}")
                    await handle.result(follow_runs=False)
                    history = json.loads((await handle.fetch_history()).to_json())
        path.write_text(json.dumps(history, indent=1, ensure_ascii=False) + "\n")
        sys.stdout.write(f"{path.name}: {len(history['events'])} events\n")


if __name__ == "__main__":
    asyncio.run(main())
