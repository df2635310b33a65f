"""A journal becomes a tree of spans: right parents, right links, the times of the events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from core.given import RUN, Story, at, flow, plan
from oraculo.adapters.sinks.otel import Tracer
from oraculo.adapters.sinks.otel.spans import Span, spans_of
from oraculo.core.commands import Approve
from oraculo.core.step import Step
from oraculo.ports.journal import Batch, Recorded
from oraculo.ports.observer import group_by_type
from oraculo.wire import trace_context as context

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"


def recorded(story: Story) -> list[Recorded]:
    found, first = [], 1
    for instant, events in story.journal:
        found.append(Recorded(RUN, first, instant, events))
        first += len(events)
    return found


def spans(story: Story, traceparent: str = CALLER, answers: dict[int, str] | None = None) -> list[Span]:
    return spans_of(traceparent, recorded(story), answers or {}, "rabbitmq")


def test_a_fan_out_and_its_fan_in() -> None:
    story = Story(plan(2, 1))
    story.confirm(when=1)
    story.ok(0, when=2)
    story.ok(1, when=3)
    story.ok(2, when=5)
    found = spans(story)
    workflow = found[-1]
    assert (workflow.name, workflow.parent) == ("orchestration_workflow.run", "00f067aa0ba902b7")
    assert (workflow.start, workflow.end) == (at(0), at(5))
    assert [name for name, _, _ in workflow.events] == [
        "plan_validated", "tickets_generated", "tickets_published", "fan_in_closed", "tickets_published",
        "fan_in_closed", "results_consolidated",
    ]  # fmt: skip
    tickets = {span.id: span for span in found if span.name == "ticket_execution"}
    assert {span.parent for span in tickets.values()} == {workflow.id}
    first, second, last = tickets.values()
    assert (last.start, last.end) == (at(3), at(5))
    assert last.links == [first.id, second.id]
    assert first.links == []
    assert {span.id for span in tickets.values()} == {context.attempt_span(RUN, position, 1) for position in range(3)}
    assert first.events == [("dispatch_confirmed", at(1), {})]
    assert first.attributes["messaging.destination"] == "escavador_fonte0"
    assert first.attributes["messaging.system"] == "rabbitmq"
    assert len({span.id for span in found}) == len(found) == 4


def test_every_one_of_several_attempts_has_a_span_and_failures_say_why() -> None:
    story = Story(plan(1, attempts=2))
    story.confirm(when=1)
    story.fail(0, when=2)
    due = story.ticket(0).due_at
    assert due is not None
    story.wake(when=(due - at(0)).total_seconds())
    story.confirm()
    story.wake(when=60)
    first, second, ticket, workflow = spans(story)
    assert (first.error, first.start, first.end) == ("fora do ar", at(0), at(2))
    assert second.start == due and second.end == at(60) and second.error is not None
    assert first.parent == second.parent == ticket.id
    assert (ticket.start, ticket.end, ticket.attributes["ticket.status"]) == (at(0), at(60), "timeout")
    assert workflow.error == "erro"


def test_a_plan_that_waits_for_approval_and_grows_to_undo_what_was_done() -> None:
    story = Story(flow({"a": [], "b": ["a"]}, approval=True))
    story.do(Approve(True, "ana", "sim"), when=1)
    story.ok(0, when=2)
    story.fail(1, definitivo=True, when=3)
    story.ok(2, when=4)  # undoes b, then a
    story.ok(3, when=5)
    found = spans(story)
    workflow = found[-1]
    assert workflow.attributes["neural.hive.plan.id"] == "plan-1"
    assert workflow.attributes["neural.hive.intent.id"] == "intent-1"
    events = {name: about for name, _, about in workflow.events}
    assert events["approval_decided"] == {"aprovado": True, "por": "ana", "motivo": "sim"}
    assert events["compensation_started"] == {"tickets": 2, "motivo": "task_failed"}
    first, second, undoes_second, undoes_first = [span for span in found if span.name == "ticket_execution"]
    assert undoes_second.links == [second.id]
    assert undoes_first.links == [undoes_second.id, first.id]
    assert (undoes_first.start, undoes_first.end) == (at(4), at(5))


def test_a_ticket_that_waits_for_its_next_attempt_when_all_ends() -> None:
    story = Story(plan(1, attempts=2))
    story.confirm(when=1)
    story.fail(0, when=2)
    story.cancel(when=2.001)
    attempt, ticket, _ = spans(story)
    assert (attempt.name, attempt.end) == ("task_execution", at(2))
    assert (ticket.id, ticket.end, attempt.parent) == (context.ticket_span(RUN, 0), at(2.001), ticket.id)


def test_what_was_never_released_has_no_span() -> None:
    story = Story(plan(1, 1))
    story.cancel(when=1)
    assert [span.name for span in spans(story)] == ["ticket_execution", "orchestration_workflow.run"]


def test_a_trace_that_begins_here_has_a_root() -> None:
    story = Story(plan(1))
    story.ok(0)
    own = context.make(TRACE, context.workflow_span(RUN))
    assert spans(story, own)[-1].parent is None


def test_an_answer_with_a_context_of_its_own_is_inside_the_workers_span() -> None:
    story = Story(plan(1))
    answered = story.ok(0, when=1)
    worker = f"00-{TRACE}-1111111111111111-01"
    answer = next(span for span in spans(story, answers={answered.first: worker}) if span.name == "orchestrator.result")
    assert (answer.parent, answer.start) == ("1111111111111111", at(1))
    other = f"00-{'ab' * 16}-1111111111111111-01"
    assert len(spans(story, answers={answered.first: other})) == 2


def test_a_notice_and_a_late_answer_come_after_the_end() -> None:
    story = Story(plan([*plan(1, attempts=1).tasks], timeout=10, fila="avisos"))
    story.wake(when=10)
    story.told(0, 1, delivered=True)
    story.ok(0, attempt=1, when=12)
    *_, workflow, notice, late = spans(story)
    assert (notice.name, notice.parent, notice.start) == ("orchestrator.notify", workflow.id, at(10))
    assert (late.name, late.parent) == ("orchestrator.result", context.attempt_span(RUN, 0, 1))
    assert workflow.number < notice.number < late.number


class TestSampling:
    class Nothing:
        def send(self, *_: object) -> None: ...
        def close(self) -> None: ...

    def tracer(self, ratio: float, parent_based: bool = True) -> Tracer:
        return Tracer(self.Nothing(), ratio=ratio, parent_based=parent_based)

    def test_the_callers_decision_is_followed(self) -> None:
        tracer = self.tracer(0)
        assert tracer.begin(CALLER, RUN) == CALLER
        assert context.trace_id(tracer.request(CALLER) or "") == TRACE
        unsampled = f"{CALLER[:-2]}00"
        assert self.tracer(1).begin(unsampled, RUN) == unsampled  # passed on
        assert self.tracer(1).request(unsampled) is None

    def test_or_not(self) -> None:
        assert self.tracer(0, parent_based=False).begin(CALLER, RUN) == f"{CALLER[:-2]}00"
        assert self.tracer(0, parent_based=False).request(CALLER) is None
        assert self.tracer(1, parent_based=False).begin(f"{CALLER[:-2]}00", RUN) == CALLER

    def test_a_share_of_the_traces_that_begin_here(self) -> None:
        chosen = [self.tracer(0.1).begin(None, number) for number in range(4000)]
        assert 250 < sum(one is not None for one in chosen) < 550
        assert self.tracer(0).begin(None, 1) is None and self.tracer(1).begin(None, 1) is not None

    def test_a_request_that_was_not_sampled_is_not_asked_again(self) -> None:
        assert self.tracer(1).begin("", RUN) is None


class Kept:
    """An exporter that keeps what it gets, and a store that says what it was asked for."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.counts: Counter[str] = Counter()
        self.sent: list[list[Span]] = []
        self.asked = 0

    def send(self, _traceparent: str, spans: Sequence[Span]) -> None:
        self.sent.append(list(spans))

    def close(self) -> None: ...

    async def load(self, runs: Sequence[int]) -> dict[int, list[Recorded]]:
        self.asked += 1
        return {run: recorded(self.story) for run in runs}


class TestWhatIsKept:
    async def told(self, story: Story, steps: Sequence[Step]) -> Kept:
        kept = Kept(story)
        tracer = Tracer(kept)
        for step in steps:
            step.state.traceparent = CALLER
            tracer.saw(Batch(step.at, [step]), group_by_type([step]))
        await tracer.close(kept)
        assert tracer._events == 0 and not tracer._seen and not tracer._answers
        return kept

    async def test_what_was_seen_whole_is_not_read(self) -> None:
        story = Story(plan(2))
        kept = await self.told(story, [story.started, story.ok(0, when=1), story.ok(1, when=2)])
        assert kept.asked == 0
        assert [len(spans) for spans in kept.sent] == [3]

    async def test_what_another_process_wrote_is(self) -> None:
        story = Story(plan(2))
        started, _, last = story.started, story.ok(0, when=1), story.ok(1, when=2)
        for steps in ([started, last], [last]):
            kept = await self.told(story, steps)
            assert kept.asked == 1
            assert [len(spans) for spans in kept.sent] == [3]

    async def test_the_oldest_are_forgotten_when_there_is_too_much(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("oraculo.adapters.sinks.otel.MAX_EVENTS_IN_MEMORY", 5)
        story = Story(plan(2))
        kept = await self.told(story, [story.started, story.ok(0, when=1), story.ok(1, when=2)])
        assert kept.asked == 1 and len(kept.sent[0]) == 3


def test_what_is_not_a_context_is_none() -> None:
    assert context.parse(CALLER) == CALLER
    assert context.parse(f"cc-{CALLER[3:]}-what-may-come") == CALLER
    for wrong in (None, "", "x", CALLER.upper(), f"ff{CALLER[2:]}", f"00-{'0' * 32}-{'1' * 16}-01", f"{CALLER}x"):
        assert context.parse(wrong) is None, wrong
