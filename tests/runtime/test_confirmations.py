"""When confirmations of brokers are recorded: soon, later under load, and not at all when the answer came first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from oraculo.core.commands import ConfirmDispatch
from oraculo.ports.work import Work
from oraculo.runtime.effects.confirmations import LOAD_DELAYS, LOAD_MIN_RUNS, Confirmations
from waiting import until

DELAY_S = 0.02


def confirmed(runs: Sequence[int]) -> list[Any]:
    return [SimpleNamespace(run=run, position=0, attempt=1, pair=(0, 1)) for run in runs]


class Recorder:
    """Notes what was reported; `settled` are the orchestrations that need no confirmation any more."""

    def __init__(self) -> None:
        self.works: list[Work] = []
        self.settled: set[int] = set()
        self.confirmations = Confirmations(self.works.extend, self._still_owed, DELAY_S)

    def _still_owed(self, run: int, tickets: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        return [] if run in self.settled else tickets


async def test_few_are_recorded_after_one_delay_and_together() -> None:
    recorder = Recorder()
    recorder.confirmations.add(confirmed([1, 2]))
    await until(lambda: bool(recorder.works))
    assert [(work.run, work.command) for work in recorder.works] == [
        (1, ConfirmDispatch([(0, 1)])),
        (2, ConfirmDispatch([(0, 1)])),
    ]


async def test_under_load_answers_that_come_within_the_longer_delay_make_them_unnecessary() -> None:
    recorder = Recorder()
    runs = range(LOAD_MIN_RUNS)
    began = asyncio.get_running_loop().time()
    recorder.confirmations.add(confirmed(runs))
    await asyncio.sleep(DELAY_S * 2)  # longer than without load; how much longer the machine takes does not matter
    recorder.settled.update(runs[1:])
    await until(lambda: bool(recorder.works))
    assert [work.run for work in recorder.works] == [0]
    assert asyncio.get_running_loop().time() - began >= DELAY_S * LOAD_DELAYS * 0.9


async def test_orchestrations_that_end_are_forgotten_and_what_is_left_is_no_load() -> None:
    recorder = Recorder()
    recorder.confirmations.add(confirmed(range(LOAD_MIN_RUNS)))
    for run in range(1, LOAD_MIN_RUNS):
        recorder.confirmations.forget(run)
    await until(lambda: bool(recorder.works))
    assert [work.run for work in recorder.works] == [0]


async def test_what_was_reported_is_awaited_until_it_is_recorded() -> None:
    recorder = Recorder()
    recorder.confirmations.add(confirmed([1, 2]))
    assert (recorder.confirmations.unrecorded(1), recorder.confirmations.unrecorded(3)) == ([(0, 1)], None)
    await until(lambda: bool(recorder.works))
    assert recorder.confirmations.unrecorded(1) == [], "it was handed in, and nobody has committed it"
    recorder.settled.add(1)
    assert (recorder.confirmations.unrecorded(1), recorder.confirmations.unrecorded(2)) == (None, [])


async def test_under_load_only_those_that_have_waited_long_enough_are_recorded() -> None:
    recorder = Recorder()
    recorder.confirmations.add(confirmed(range(LOAD_MIN_RUNS)))
    await asyncio.sleep(DELAY_S * 2)
    later = range(LOAD_MIN_RUNS, 3 * LOAD_MIN_RUNS)
    recorder.confirmations.add(confirmed(later))
    await until(lambda: bool(recorder.works))
    assert [work.run for work in recorder.works] == list(range(LOAD_MIN_RUNS))
    assert recorder.confirmations.of(later[0]) == [(0, 1)] and len(recorder.confirmations) == len(later)
    recorder.confirmations.forget(later[0])
    await until(lambda: not len(recorder.confirmations))
    assert [work.run for work in recorder.works] == [*range(LOAD_MIN_RUNS), *later[1:]]


async def test_what_is_confirmed_again_is_recorded_once_more_and_nothing_waits_for_ever() -> None:
    recorder = Recorder()
    for _ in range(2):
        recorder.confirmations.add(confirmed([1]))
        await until(lambda: not len(recorder.confirmations))
    assert [work.command for work in recorder.works] == [ConfirmDispatch([(0, 1)])] * 2
