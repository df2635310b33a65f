"""Commands that this engine gives to itself: what a workflow made, and what no workflow can decide any more."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from oraculo.core.commands import Command, Start
from oraculo.core.step import Step
from oraculo.engines.temporal.messages import StepReport
from oraculo.ports.journal import Recorded
from oraculo.ports.work import EngineCommand, EvaluatedTasks, Work

EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class ProjectSteps(EngineCommand):
    """Write the steps that a workflow made to the journal. `news` are those that the journal did not have."""

    report: StepReport
    news: list[Step] = field(default_factory=list)
    missing: bool = False  # steps between the journal's last and the first of these are not known here

    @property
    def steps(self) -> list[Recorded]:
        return [Recorded(self.report.run, first, at, events) for first, at, events in self.report.steps]


@dataclass(slots=True)
class LocalCommand(EngineCommand):
    """Step a command in this process, not before `since`; `recorded` is what became true."""

    command: Command | EvaluatedTasks | None
    since: datetime = EARLIEST
    recorded: Recorded | None = None


def is_for_workflow(work: Work) -> bool:
    """Return whether this is a command for an orchestration that exists, so that its workflow has to hear of it."""
    if work.dead is not None or isinstance(work.command, EngineCommand):
        return False
    return work.command is not None and not isinstance(work.command, Start)
