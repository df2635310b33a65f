"""Fluxo C in the core: cognitive plans that are sound and those that are not, approval, compensation, the verdict."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.given import RUN, T0, Story, at
from oraculo.core.commands import Approve
from oraculo.core.compensation import completed, started
from oraculo.core.events import ApprovalAsked, CompensationStarted, TicketsDispatched
from oraculo.core.flow import outcome
from oraculo.core.flow.cognitive import CognitivePlan, FlowRules, TaskNode, ordered, plan_of, problems, task_type
from oraculo.core.flow.decision import Course, Decision, FinalDecision
from oraculo.core.flow.profile import flow_in, specs_in
from oraculo.core.flow.service_levels import CompensationRules
from oraculo.core.plan import Plan
from oraculo.core.sentences import say
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind, Phase, Priority, RiskBand, Status, TaskType, TicketStatus, Verdict
from oraculo.errors import PlanError


def node(name: str, *needs: str, kind: str = "EXECUTE", **more: Any) -> TaskNode:
    return TaskNode(name, kind, f"do {name}", needs, **more)


def cognitive(*nodes: TaskNode, band: RiskBand = RiskBand.LOW, **more: Any) -> CognitivePlan:
    return CognitivePlan("plan-1", "intent-1", nodes, tuple(one.task_id for one in nodes), band, **more)


def made(*nodes: TaskNode, rules: FlowRules = FlowRules(), **more: Any) -> Plan:
    return plan_of(cognitive(*nodes, **more), rules, T0, lambda worker: f"executador_{worker}", name="abc123")


DIAMOND = (node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"))
ONCE = {"max_retries": 0}


# -- C1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (cognitive(), "tasks is empty"),
        (cognitive(node("a"), node("a")), "task_id 'a' is used more than once"),
        (cognitive(node("a", "ghost")), "task 'a' depends on 'ghost', which is no task"),
        (replace(cognitive(node("a")), execution_order=("a", "z")), "execution_order names 'z', which is no task"),
        (replace(cognitive(node("a")), execution_order=("a", "a")), "execution_order names 'a' more than once"),
        (cognitive(node("a", "c"), node("b", "a"), node("c", "b")), "cycle: a → c → b → a"),
        (cognitive(node("a", "a")), "cycle: a → a"),
        (cognitive(node("a"), valid_until=at(0)), "the plan expired at 2025-10-14T12:00:00+00:00"),
        (cognitive(node("a"), schema_version=2), "schema_version is 2"),
        (cognitive(node("a", estimated_duration_ms=-1)), "estimated_duration_ms -1; allowed: 0 to"),
        (cognitive(node("a", timeout_ms=-5)), "timeout_ms -5; allowed: 1 to"),
        (cognitive(node("a", max_retries=10_000_000)), "max_retries 10000000; allowed: 0 to 99"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(plan: CognitivePlan, said: str) -> None:
    assert any(said in problem for problem in problems(plan, T0)), problems(plan, T0)
    with pytest.raises(PlanError) as refused:
        plan_of(plan, FlowRules(), T0, str, name="abc123")
    assert said in refused.value.detail


def test_every_fault_is_named_at_once() -> None:
    assert len(problems(cognitive(node("a", "x", "y", max_retries=-1), valid_until=at(-5)), T0)) == 4


def test_a_sound_plan_has_no_problems() -> None:
    assert problems(cognitive(*DIAMOND, valid_until=at(1)), T0) == []


# -- C2 --------------------------------------------------------------------------------------------------------------


def test_one_ticket_a_task_in_topological_order() -> None:
    plan = made(*reversed(DIAMOND))
    assert flow_in(plan) is not None
    names = [spec.task_id for spec in specs_in(plan)]
    for number, spec in enumerate(specs_in(plan)):
        assert all(need < number for need in spec.dependencies), names
    assert sorted(names) == ["a", "b", "c", "d"]
    assert {task.queue for task in plan.tasks} == {"execution.tickets"}


def test_the_execution_order_is_kept_where_dependencies_leave_it_open() -> None:
    plan = replace(cognitive(node("a"), node("b"), node("c", "b")), execution_order=("b", "c", "a"))
    assert [one.task_id for one in ordered(plan)] == ["b", "c", "a"]


def test_a_named_class_of_workers_has_its_own_queue() -> None:
    plan = made(node("a", worker="gpu"), node("b"))
    assert [task.queue for task in plan.tasks] == ["executador_gpu", "execution.tickets"]


OFFERS = {"gpu": frozenset(("cuda", "python")), "all": frozenset(("cuda", "python", "helm")), "web": frozenset(("js",))}


@pytest.mark.parametrize(
    ("wanted", "worker", "queue"),
    [
        (("cuda",), None, "executador_gpu"),  # of two that can, the one that can do least besides
        (("helm", "cuda"), None, "executador_all"),
        (("js",), "web", "executador_web"),
        (("cuda",), "all", "executador_all"),
        ((), None, "execution.tickets"),
        ((), "anybody", "executador_anybody"),
    ],
)
def test_a_task_goes_to_a_class_that_has_its_capabilities(
    wanted: tuple[str, ...], worker: str | None, queue: str
) -> None:
    (task,) = made(node("a", required_capabilities=wanted, worker=worker), rules=FlowRules(offers=OFFERS)).tasks
    assert task.queue == queue


@pytest.mark.parametrize(
    ("wanted", "worker", "said"),
    [
        (("rust",), None, "task 'a' requires rust; no class of workers has all of that (all: cuda, helm, python; gpu:"),
        (("js", "cuda"), None, "task 'a' requires cuda, js; no class of workers has all of that"),
        (("helm", "cuda"), "gpu", "task 'a' requires cuda, helm; the class of workers 'gpu' does not have helm"),
        (("js",), "unheard", "the class of workers 'unheard' does not have js"),
    ],
)
def test_what_nobody_can_do_is_refused(wanted: tuple[str, ...], worker: str | None, said: str) -> None:
    with pytest.raises(PlanError, match=re.escape(said)):
        made(node("a", required_capabilities=wanted, worker=worker), rules=FlowRules(offers=OFFERS))


def test_when_nobody_says_what_classes_can_do_capabilities_are_for_workers() -> None:
    (task,) = made(node("a", required_capabilities=("rust",))).tasks
    assert task.queue == "execution.tickets"


def test_what_a_task_says_itself_wins_over_its_risk_band() -> None:
    (task,) = made(node("a", timeout_ms=1500, max_retries=7), band=RiskBand.CRITICAL).tasks
    assert (task.timeout, task.max_attempts) == (timedelta(seconds=1.5), 8)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("BUILD", "BUILD"), ("deploy", "DEPLOY"), ("analyze", "QUERY"), ("review", "VALIDATE"), ("query", "QUERY"),
     ("generate", "EXECUTE"), ("code_generation", "EXECUTE"), ("transform", "TRANSFORM"), ("dance", "EXECUTE")],
)  # fmt: skip
def test_task_types_of_old_and_new(text: str, meant: str) -> None:
    assert task_type(text) is TaskType(meant)


# -- C0 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("final", "review", "wants", "course"),
    [
        ("approve", False, False, Course.RUN),
        ("conditional", False, False, Course.RUN),
        ("approve", True, False, Course.ASK),
        ("approve", False, True, Course.ASK),
        ("review_required", False, False, Course.ASK),
        ("reject", False, False, Course.REJECT),
        ("reject", True, True, Course.REJECT),
    ],
)
def test_what_follows_from_a_decision(final: str, review: bool, wants: bool, course: Course) -> None:
    plan = cognitive(node("a"), requires_approval=wants)
    decision = Decision(plan, "plan-1", final_decision=FinalDecision(final), requires_human_review=review)
    assert decision.course() is course


def test_nothing_is_published_before_a_human_agrees() -> None:
    story = Story(made(node("a"), requires_approval=True))
    assert any(isinstance(event, ApprovalAsked) for event in story.started.events)
    assert story.state.awaits_approval
    assert not story.started.effects
    given = story.do(Approve(True, "ana"))
    assert any(isinstance(event, TicketsDispatched) for event in given.events)
    assert given.effects
    assert (story.state.approved_by, story.state.awaits_approval) == ("ana", False)
    assert story.do(Approve(False, "rui")).verdict is Verdict.IDLE


def test_a_plan_that_is_refused_ends_there() -> None:
    story = Story(made(node("a"), node("b", "a"), requires_approval=True))
    refused = story.do(Approve(False, "rui", "muito arriscado"))
    assert story.state.status is Status.CANCELADA
    assert not refused.effects
    assert say(story.state.tickets[0].reason) == "não foi aprovada por rui: muito arriscado"


def test_the_deadline_also_ends_a_plan_that_waits_for_a_human() -> None:
    story = Story(made(node("a"), requires_approval=True))
    story.wake(4 * 3600)
    assert story.state.status is Status.TIMEOUT


# -- the way through -------------------------------------------------------------------------------------------------


def test_a_ticket_is_released_only_when_all_it_needs_completed() -> None:
    story = Story(made(*DIAMOND))
    assert story.published == [(0, 1)]
    story.ok(0)
    assert sorted(story.published) == [(0, 1), (1, 1), (2, 1)]
    story.ok(1)
    assert story.state.tickets[3].phase is Phase.WAITING
    story.ok(2)
    story.ok(3)
    assert story.state.status is Status.CONCLUIDA
    assert outcome.overall(story.state) == "SUCCESS"


@pytest.mark.parametrize(
    ("completed", "total", "status", "word"),
    [(4, 4, Status.CONCLUIDA, "SUCCESS"), (3, 4, Status.PARCIAL, "PARTIAL"), (2, 4, Status.PARCIAL, "PARTIAL"),
     (1, 4, Status.ERRO, "FAILED"), (0, 4, Status.ERRO, "FAILED"), (1, 2, Status.PARCIAL, "PARTIAL"),
     (0, 1, Status.ERRO, "FAILED"), (1, 3, Status.ERRO, "FAILED"), (2, 3, Status.PARCIAL, "PARTIAL")],
)  # fmt: skip
def test_how_a_plan_ends(completed: int, total: int, status: Status, word: str) -> None:
    story = Story(made(*(node(f"t{n}", **ONCE) for n in range(total)), compensate=False))
    for position in range(total):
        story.ok(position) if position < completed else story.fail(position)
    assert story.state.status is status
    assert outcome.overall(story.state) == word


# -- compensation ----------------------------------------------------------------------------------------------------


def test_what_a_failure_leaves_behind_is_undone_in_reverse_order() -> None:
    nodes = (node("a", kind="BUILD"), node("b", "a", kind="DEPLOY"), node("c", "b", **ONCE), node("x", kind="TEST"))
    story = Story(made(*nodes))
    specs = specs_in(story.state.plan)
    place = {spec.task_id: number for number, spec in enumerate(specs)}
    story.ok(place["x"])
    story.ok(place["a"])
    story.ok(place["b"])
    last = story.fail(place["c"])
    (started,) = [event for event in last.events if isinstance(event, CompensationStarted)]
    assert started.undone == [place["c"], place["b"], place["a"]]  # x succeeded, and nothing failed behind it
    assert story.state.closed_at is None
    assert len(story.state.tickets) == 7
    assert [story.state.tickets[p].phase for p in (4, 5, 6)] == [Phase.OWED, Phase.WAITING, Phase.WAITING]
    assert outcome.ticket_status(story.state, place["b"]) is TicketStatus.COMPENSATING
    story.ok(4)
    assert story.state.tickets[5].phase is Phase.OWED
    story.ok(5)
    story.ok(6)
    assert story.state.status is Status.PARCIAL
    assert outcome.ticket_status(story.state, place["b"]) is TicketStatus.COMPENSATED
    grown = flow_in(story.state.plan)
    assert grown is not None
    assert [spec.description.partition(":")[0] for spec in grown.specs[4:]] == [
        "rollback_execution",
        "rollback_deployment",
        "delete_artifacts",
    ]
    assert all(spec.task_type is TaskType.COMPENSATE for spec in grown.specs[4:])
    assert all(spec.task_id.startswith("compensate-") and len(spec.task_id) == 19 for spec in grown.specs[4:])
    assert all(task.timeout == timedelta(minutes=2) for task in story.state.plan.tasks[4:])


def test_undoing_goes_on_when_one_step_of_it_fails() -> None:
    story = Story(made(node("a"), node("b", "a", **ONCE), band=RiskBand.LOW))
    story.ok(0)
    story.fail(1)
    story.fail(2)  # what undoes b: one attempt, as b had
    assert story.state.tickets[3].phase is Phase.OWED
    story.ok(3)
    assert story.state.status is Status.PARCIAL
    result = outcome.consolidated(story.state, at(story.now))
    assert [one["status"] for one in result["compensation_results"]] == ["FAILED", "COMPLETED"]
    assert result["metrics"]["compensated_tickets"] == 1
    assert result["compensation_reason"] == "task_failed"


def test_a_ticket_that_was_never_published_is_not_undone() -> None:
    story = Story(made(node("a", **ONCE), node("b", "a")))
    story.fail(0)
    assert story.state.undone == {0: 2}
    story.ok(2)
    assert story.state.status is Status.ERRO
    assert say(story.state.tickets[1].reason) == "uma dependência falhou"


def test_an_answer_that_names_no_ticket_never_counts_for_what_undoes() -> None:
    story = Story(made(node("a", worker="gpu", **ONCE)))
    story.fail(0)
    assert story.state.tickets[1].phase is Phase.OWED
    assert story.do(story.bare(Kind.EXECUCAO, "gpu")).verdict is Verdict.CONFLICTING
    assert story.do(story.bare(Kind.EXECUCAO)).verdict is Verdict.DUPLICATE
    assert story.state.tickets[1].phase is Phase.OWED


def test_a_plan_can_do_without() -> None:
    story = Story(made(node("a", **ONCE), compensate=False))
    story.fail(0)
    assert story.state.status is Status.ERRO
    assert len(story.state.tickets) == 1


# -- C5 and C6 -------------------------------------------------------------------------------------------------------


def test_the_consolidated_result() -> None:
    story = Story(made(node("a"), node("b", **ONCE), node("c"), compensate=False, decision_id="dec-1"))
    story.ok(0)
    story.ok(2)
    story.fail(1)
    result = outcome.consolidated(story.state, at(story.now))
    assert result["workflow_id"] == "orch-plan-1"
    assert (result["plan_id"], result["intent_id"], result["decision_id"]) == ("plan-1", "intent-1", "dec-1")
    assert (result["status"], result["consistent"], result["errors"]) == ("PARTIAL", True, [])
    assert result["metrics"] == {
        "total_tickets": 3, "successful_tickets": 2, "failed_tickets": 1, "compensated_tickets": 0,
        "total_duration_ms": 0, "total_retries": 0, "sla_violations": 0,
    }  # fmt: skip
    assert result["sla_status"] == {"deadline_approaching": False, "budget_critical": False, "violations_count": 0}
    assert result["budget_status"] == "HEALTHY"
    frame = outcome.frame(story.state, at(story.now))
    assert frame["correlation"]["ticket_ids"] == [ticket_id(RUN, position) for position in range(3)]
    assert frame["metrics"]["sla_metrics"]["violations_count"] == 0
    (incident,) = outcome.incidents(story.state)
    assert (incident.incident_type, incident.severity, incident.escalation_required) == (
        "WORKER_FAILURE", "CRITICAL", True,
    )  # fmt: skip
    assert incident.affected == (ticket_id(RUN, 1),)
    assert [outcome.incidents(story.state)[0].incident_id] == [incident.incident_id]


def test_silence_violates_the_service_level() -> None:
    story = Story(made(node("a", max_retries=0, timeout_ms=1000), compensate=False))
    story.confirm(0)
    story.wake(1)
    assert outcome.violated(story.state, 0)
    kinds = {one.incident_type: one for one in outcome.incidents(story.state)}
    assert set(kinds) == {"TICKET_TIMEOUT", "SLA_VIOLATION"}
    assert outcome.PLAYBOOKS[outcome.IncidentType.TICKET_TIMEOUT] == "ticket_timeout_recovery"
    assert kinds[outcome.IncidentType.TICKET_TIMEOUT].severity == "WARNING"


def test_the_priority_is_never_below_the_risk_band() -> None:
    assert flow_in(made(node("a"), band=RiskBand.HIGH)).priority is Priority.HIGH
    assert flow_in(made(node("a"), band=RiskBand.LOW, priority=Priority.CRITICAL)).priority is Priority.CRITICAL


def test_a_compensation_decided_without_parameters_is_completed_from_the_plan() -> None:
    """As a workflow decides it that has begun anew and knows tasks without their parameters."""
    plan = made(*DIAMOND)
    lean = replace(plan, tasks=tuple(replace(task, parametros=b"null") for task in plan.tasks))
    decided = started(lean, [3, 1, 0])
    assert decided != started(plan, [3, 1, 0])
    assert completed(plan, decided) == started(plan, [3, 1, 0])
    old = CompensationStarted([1, 0], "task_failed")
    assert completed(plan, old) is old


def test_what_does_not_fit_together_is_told_ticket_by_ticket() -> None:
    story = Story(made(*DIAMOND))
    story.confirm(0, when=10)
    story.ok(0, when=4)  # the clock was turned back
    for position in (1, 2, 3):
        story.ok(position, when=20)
    assert story.state is not None
    assert outcome.integrity(story.state) == ["a completed before it started"]
    story.state.tickets[1].status = Status.ERRO  # as no rule does it
    story.state.tickets[2].phase = Phase.RUNNING
    found = outcome.consolidated(story.state, at(30))
    assert found["errors"] == ["a completed before it started", "c is not closed", "d completed although b did not"]
    assert found["consistent"] is False
    kinds = {one.incident_type: one for one in outcome.incidents(story.state)}
    assert list(kinds[outcome.IncidentType.INCONSISTENCY].details) == found["errors"]
    assert not kinds[outcome.IncidentType.INCONSISTENCY].escalation_required


def undoing(**rules: Any) -> Story:
    """a, b and c, each after the one before; c has failed for good, and undoing has begun."""
    story = Story(
        made(node("a"), node("b", "a"), node("c", "b", **ONCE), rules=FlowRules(undo=CompensationRules(**rules)))
    )
    story.confirm()
    for position in (0, 1):
        story.ok(position)
        story.confirm(position + 1)
    story.fail(2)
    return story


def test_nothing_is_undone_where_that_is_switched_off() -> None:
    assert undoing().state.undoes == 3
    off = undoing(enabled=False)
    assert off.state.undoes == 0 and off.state.closed_at is not None


def test_what_undoes_has_the_attempts_and_the_time_that_rules_give_it() -> None:
    story = undoing(attempts=4, timeout=timedelta(seconds=9))
    tasks = story.state.plan.tasks[3:]
    assert {(task.max_attempts, task.timeout) for task in tasks} == {(4, timedelta(seconds=9))}
    assert [task.max_attempts for task in undoing().state.plan.tasks[3:]] == [1, 2, 2], "as many as each had"


@pytest.mark.parametrize(
    ("strict", "ends"), [(False, ["erro", "concluida", "concluida"]), (True, ["erro", "cancelada", "cancelada"])]
)
def test_undoing_stops_at_a_step_that_fails_where_rules_are_strict(strict: bool, ends: list[str]) -> None:
    story = undoing(strict=strict, attempts=1)
    story.confirm(3)
    story.fail(3)
    for position in (4, 5):
        if not strict:
            story.confirm(position)
            story.ok(position)
    assert story.state.closed_at is not None
    assert story.statuses[3:] == ends
