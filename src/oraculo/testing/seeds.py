"""One seed, or many: `run` and `check`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oraculo.simulation import loop
from oraculo.simulation.loop import VirtualLoop
from oraculo.simulation.trace import Trace
from oraculo.simulation.world import silence
from oraculo.testing.rates import FAULTS, FaultRates, rates_of
from oraculo.testing.stage import Story, WorldPlan, WorldStage, seeded
from oraculo.testing.workers import WorkerCall
from oraculo.testing.world import KitWorld
from oraculo.wire.requests import Defaults
from oraculo.worker.worker import Worker

Workers = Worker | Sequence[Worker] | Callable[[], Worker | Sequence[Worker]]
Expect = Callable[["WorldOutcome"], object]

LINES_SHOWN_MAX = 60
NO_FAULTS = FaultRates()


@dataclass(slots=True)
class WorldOutcome:
    """What came of one world. `value` is what the story returned; of a request it is its result. `trace` is the same
    for the same seed, in every process; `lines` say what happened, each with the second of the world."""

    seed: int
    value: Any = None
    calls: list[WorkerCall] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0
    trace: str = ""
    lines: list[str] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def result(self) -> dict[str, Any]:
        """The result of the request."""
        document: dict[str, Any] = self.value
        return document

    @property
    def status(self) -> str:
        """How the request ended."""
        return str(self.result["status"])

    @property
    def output(self) -> Any:
        """What the plan gave: its `saida`."""
        return self.result.get("saida")


@dataclass(slots=True)
class SeedsReport:
    """What came of many worlds, none of which failed."""

    seeds: int = 0
    seconds: float = 0.0
    virtual_s: float = 0.0
    tally: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        met = ", ".join(f"{self.tally[name]} {name}" for name in FAULTS)
        return f"{self.seeds} seeds in {self.seconds:.1f} s, {self.virtual_s / 3600:.1f} hours of their worlds: {met}"


class SeedFailedError(AssertionError):
    """A world in which something does not hold. `seed` makes it again."""

    def __init__(self, outcome: WorldOutcome, rates: FaultRates) -> None:
        error = outcome.error
        shown = outcome.lines[-LINES_SHOWN_MAX:]
        left_out = len(outcome.lines) - len(shown)
        text = [
            f"seed {outcome.seed} fails: {type(error).__name__}: {error}",
            f"the same world again: run(…, seed={outcome.seed}, faults=…), or pytest --oraculo-seed {outcome.seed}",
            f"what happened in it (faults {rates}){f', the last {len(shown)} lines' if left_out else ''}:",
            *shown,
        ]
        super().__init__("\n".join(text))
        self.seed = outcome.seed
        self.outcome = outcome


class BrokenPromiseError(AssertionError):
    """Something that Oráculo promises does not hold in a world: a bug of Oráculo."""


def run(
    story: Story | Mapping[str, Any],
    workers: Workers = (),
    *,
    seed: int = 0,
    faults: FaultRates | str | Iterable[str] = NO_FAULTS,
    types: Mapping[str, Mapping[str, Any]] | None = None,
    defaults: Defaults | None = None,
) -> WorldOutcome:
    """Run one world, without faults unless some are named; what its story raises is raised.

    `story` is a request or a `Plan`, or an async function that gets the world. `workers` is a Worker, several, or a
    function that makes them anew. `types` are task types; `defaults` those of requests."""
    rates = rates_of(faults)
    outcome = _play(_plan(story, workers, rates, types, defaults), seed)
    if outcome.error is not None:
        if isinstance(outcome.error, AssertionError):
            raise SeedFailedError(outcome, rates) from outcome.error
        raise outcome.error
    return outcome


def check(
    story: Story | Mapping[str, Any],
    workers: Workers = (),
    *,
    seeds: int | Iterable[int] = 100,
    faults: FaultRates | str | Iterable[str] = FAULTS,
    expect: Expect | None = None,
    types: Mapping[str, Mapping[str, Any]] | None = None,
    defaults: Defaults | None = None,
) -> SeedsReport:
    """Run a world for each seed, with all faults unless some are named; SeedFailedError for the first that fails.

    A world fails when its story raises, when `expect` (which gets the outcome) raises or returns False, when a request
    has not ended after two hours of its world, or when a promise of Oráculo is broken. Of a request without `expect` it
    is expected that it ends in every world as it does in one without faults."""
    rates = rates_of(faults)
    plan = _plan(story, workers, rates, types, defaults)
    if expect is None and isinstance(story, Mapping):
        expect = _ends_as(run(story, workers, types=types, defaults=defaults).status)
    report, began = SeedsReport(), time.perf_counter()
    for seed in range(seeds) if isinstance(seeds, int) else seeds:
        outcome = _play(plan, seed)
        _judge(outcome, expect)
        if outcome.error is not None:
            again = _play(plan, seed, keep=True)
            outcome.lines = again.lines
            if again.trace != outcome.trace:
                outcome.lines.append(
                    "NOTE: told again, this seed went another way: something keeps state between worlds"
                )
            raise SeedFailedError(outcome, rates) from outcome.error
        report.seeds += 1
        report.virtual_s += outcome.virtual_s
        report.tally += outcome.tally
    report.seconds = time.perf_counter() - began
    return report


def _judge(outcome: WorldOutcome, expect: Expect | None) -> None:
    if outcome.error is not None or expect is None:
        return
    try:
        if expect(outcome) is False:
            raise AssertionError("expect returned False")
    except Exception as error:
        outcome.error = error


def _ends_as(status: str) -> Expect:
    def expect(outcome: WorldOutcome) -> None:
        if outcome.status != status:
            errors = [one for task in outcome.result.get("tarefas", {}).values() for one in task.get("erros") or ()]
            raise AssertionError(f"ended {outcome.status}, and {status} without faults; {errors}")

    return expect


def _plan(
    story: Story | Mapping[str, Any],
    workers: Workers,
    rates: FaultRates,
    types: Mapping[str, Mapping[str, Any]] | None,
    defaults: Defaults | None,
) -> WorldPlan:
    def made() -> Sequence[Worker]:
        found = workers() if callable(workers) else workers
        return [found] if isinstance(found, Worker) else found

    if not isinstance(story, Mapping):
        return WorldPlan(story, made, rates, defaults or Defaults(), types or {})
    request = dict(story)

    async def submit(world: KitWorld) -> dict[str, Any]:
        return await world.result(await world.submit(request))

    return WorldPlan(submit, made, rates, defaults or Defaults(), types or {})


def _play(plan: WorldPlan, seed: int, *, keep: bool = False) -> WorldOutcome:
    """Run the world of one seed."""
    _refuse_running_loop()
    trace, outcome = Trace(keep), WorldOutcome(seed)

    async def main(virtual: VirtualLoop) -> None:
        stage = WorldStage(plan, seed, virtual, trace)
        outcome.calls = stage.world.calls
        with seeded(seed, stage.scene):
            outcome.value = await stage.play()

    try:
        with silence(trace):
            loop.run(main)
    except Exception as error:
        outcome.error = error
    if trace.violations:
        told = "; ".join(map(str, trace.violations))
        outcome.error = BrokenPromiseError(f"{told}. Please report it, with this test")
    trace.tally["kill"] = trace.tally.pop("crashes", 0)
    report = trace.report("kit", seed)
    outcome.tally, outcome.virtual_s = report.tally, report.virtual_s
    outcome.trace, outcome.lines = report.trace, report.lines
    return outcome


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("call it from a plain test function: a world has an event loop of its own, and one runs already")
