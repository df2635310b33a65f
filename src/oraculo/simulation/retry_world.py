"""Worlds of two runs for the pure core: one to its end, and a retry of it, to which the same may happen."""

from __future__ import annotations

from random import Random

from oraculo.core import retrying
from oraculo.core.commands import Start
from oraculo.core.events import OrchestrationStarted
from oraculo.core.reuse import Origin, RetryFrom
from oraculo.core.vocabulary import Verdict
from oraculo.simulation.core_world import CoreWorld
from oraculo.simulation.trace import Report, Trace

PLANS = ("core", "flow", "tasks", "maps", "loops", "waits", "undo")
MODES = (RetryFrom.FAILURES, RetryFrom.FAILURES, RetryFrom.FAILURES, RetryFrom.TASK, RetryFrom.START)


class RetryWorld(CoreWorld):
    """The retry of what happened in another world. What is told of the two is told as one."""

    def __init__(self, first: CoreWorld, rng: Random, trace: Trace) -> None:
        super().__init__(0, masked=first.masked, what=first.what)
        self.rng, self.now, self.trace = rng, first.now, trace
        self.journal = type(first.journal)(self, trace.violate)
        self._of = first

    def begin(self) -> None:
        old, rng = self._of.state, self.rng
        mode = rng.choice(MODES)
        names = retrying.task_names(old)
        task = rng.choice(names) if mode is RetryFrom.TASK else None
        wanted = set() if task is None else retrying.positions_of(old, task)
        what = retrying.reused(old, mode, wanted)
        chunks = retrying.commands(old, what) if what.tasks or what.maps else []
        if mode is not RetryFrom.START:
            self.journal.retry.earlier, self.journal.retry.wanted = self._of.journal, wanted
        started = self._of.records[0].events[0]
        assert isinstance(started, OrchestrationStarted)
        origin = Origin(old.run, old.correlation_id, mode, task, bool(chunks))
        self.trace.tally["retries"] += 1
        self.trace.tally["results reused"] += sum(len(chunk.results) for chunk in chunks)
        self.do(Start(old.run + 1, "core~1", started.plan, "r", origin=origin), Verdict.APPLIED)
        for chunk in chunks:
            self.do(chunk, Verdict.APPLIED)
        if chunks:
            self.do(chunks[-1], Verdict.IDLE)


def run_retry(seed: int, *, masked: bool, keep: bool = False) -> Report:
    rng = Random(f"retry {seed} {masked}")
    first = CoreWorld(seed, masked=masked, what=rng.choice(PLANS), keep=keep)
    first.trace.tally["worlds"] += 1
    first.run()
    if not first.trace.violations:
        RetryWorld(first, rng, first.trace).run()
    return first.trace.report(f"retries-{'masked' if masked else 'unmasked'}", seed)
