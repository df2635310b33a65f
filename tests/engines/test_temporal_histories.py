"""What earlier releases wrote can be gone on with: histories replay, with the core and all else inside the sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from oraculo.engines.temporal.codec import CONVERTER
from oraculo.engines.temporal.tracing import Tracing
from oraculo.engines.temporal.workflow import WORKFLOWS

HISTORIES = {
    path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "histories").glob("*.json")
}
STRICT = SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules("orjson", "jiter"))


@pytest.mark.parametrize("name", sorted(HISTORIES))
async def test_a_history_replays(name: str) -> None:
    replayer = Replayer(workflows=WORKFLOWS, workflow_runner=STRICT, data_converter=CONVERTER)
    await replayer.replay_workflow(WorkflowHistory.from_json("replayed", HISTORIES[name]))


async def test_so_it_does_when_traces_are_on_and_no_span_is_made() -> None:
    provider, made = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(made))
    traced = [Tracing(provider.get_tracer("replay")).interceptor]
    replayer = Replayer(workflows=WORKFLOWS, workflow_runner=STRICT, data_converter=CONVERTER, interceptors=traced)
    for history in HISTORIES.values():
        await replayer.replay_workflow(WorkflowHistory.from_json("replayed", history))
    assert made.get_finished_spans() == ()


async def test_one_that_was_changed_does_not() -> None:
    history = json.loads(HISTORIES["collects_then_executes"])
    marker = next(n for n, event in enumerate(history["events"]) if "markerRecordedEventAttributes" in event)
    del history["events"][marker]
    for number, event in enumerate(history["events"], 1):
        event["eventId"] = str(number)
    replayer = Replayer(workflows=WORKFLOWS, workflow_runner=STRICT, data_converter=CONVERTER)
    with pytest.raises(Exception, match="Nondeterminism"):
        await replayer.replay_workflow(WorkflowHistory.from_json("changed", history))


def test_there_are_histories() -> None:
    assert len(HISTORIES) >= 5
    assert '"recall"' in HISTORIES["continues_as_new"]
