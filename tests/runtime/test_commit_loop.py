"""The commit loop: whoever reads a state gets a turn, however much is being submitted."""

from __future__ import annotations

import asyncio

from core.given import RUN, plan
from oraculo.core.commands import Start
from oraculo.ports.journal import Batch
from oraculo.ports.work import Work
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.commit_loop import CommitLoop
from oraculo.runtime.kernel.handler import Handler
from oraculo.runtime.kernel.states import States
from oraculo.runtime.kernel.transaction import Transaction
from runtime.doubles import FailingStore, ManualClock

COMMITS = 50


class WritingStore(FailingStore):
    """A commit takes a few turns of the event loop, as one that a disk has to confirm."""

    async def append(self, batch: Batch) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await super().append(batch)


async def test_readers_get_a_turn_between_commits_while_submissions_never_pause(clock: ManualClock) -> None:
    """Each reader begins to wait in the middle of a commit, as a worker does that asks for an order; the queue is never
    empty. A reader that has to wait for a second commit would wait for as long as submissions go on."""
    queue = CommandQueue()
    commits = 0
    waited: list[int] = []
    readers: set[asyncio.Task[None]] = set()

    async def read(states: States) -> None:
        before = commits
        await states.state(RUN)
        waited.append(commits - before)

    def submit_the_next(_transaction: Transaction) -> None:
        nonlocal commits
        commits += 1
        name = str(commits)
        if commits < COMMITS:
            queue.enqueue([Work(Start(RUN + commits, name, plan(1), "f"), name)])

    async def nothing_uncertain(_runs: dict[int, int]) -> None:
        pass

    async with WritingStore() as store:
        states = States(store)
        loop = CommitLoop(queue, Handler(store, clock, states), clock, nothing_uncertain, [submit_the_next])
        running = asyncio.create_task(loop.run())
        queue.enqueue([Work(Start(RUN, "0", plan(1), "f"), "0")])
        while commits < COMMITS:
            if not states.committed.is_set():
                readers.add(asyncio.create_task(read(states)))
            await asyncio.sleep(0)
        await asyncio.gather(*readers)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert waited and max(waited) == 1
