"""The journal's own format: every event comes back as it was written, and old journals stay readable."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.chance import HAPPENINGS, PLANS, fitted
from core.given import RUN, Story, at, coleta, execucao, plan
from oraculo.core import events as ev
from oraculo.core.allocations import Allocation, AllocationMethod, Candidate, NotChosen
from oraculo.core.commands import Command
from oraculo.core.flow.allocation import score_of_plan
from oraculo.core.flow.profile import Flow, Spec
from oraculo.core.named_tasks import MapSpec, NamedTask, NamedTasks
from oraculo.core.plan import Added, Backoff, Gate, Join, NoticeTargets, Plan, Task
from oraculo.core.policies import PolicyFinding, PolicyPoint, PolicySource, PolicyViolation
from oraculo.core.profile import PLAIN
from oraculo.core.reasons import Reason, ReasonCode, because
from oraculo.core.replay import cause_of
from oraculo.core.resolution import IdleItems, Obstacle, Outcome, Resolution
from oraculo.core.reuse import Origin, RetryFrom, ReusedResult, ReusedRows
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import step
from oraculo.core.vocabulary import Cause, Ending, FanIn, Kind, Priority, RiskBand, SecurityLevel, Status, TaskType
from oraculo.core.waits import Wait, WaitEnd, WaitKind
from oraculo.wire import records, strict_json
from oraculo.wire.payloads import WORK_MAX_MS
from wire.strategies import JSON, NAMES, OBJECTS, TEXT, bounded

INSTANTS = st.datetimes(timezones=st.just(UTC))
LENGTHS = st.timedeltas(timedelta(0), timedelta(days=30))
POSITIONS = st.integers(0, 50_000)
ATTEMPTS = st.integers(1, 100)
DATA = JSON.map(strict_json.compact)
ERRORS = st.lists(OBJECTS, max_size=3)
DIGESTS = st.integers(0, 2**63 - 1)
WORK = st.none() | st.integers(0, WORK_MAX_MS)
REASONS = st.builds(Reason, st.sampled_from(ReasonCode), st.dictionaries(NAMES, TEXT, max_size=3))
TASKS = st.lists(
    st.builds(
        Task,
        kind=st.sampled_from(Kind), name=NAMES, queue=NAMES, parametros=OBJECTS.map(strict_json.compact),
        timeout=LENGTHS, max_attempts=ATTEMPTS, after=st.none() | POSITIONS,
        feeds=st.lists(POSITIONS, max_size=3).map(tuple),
    ),
    max_size=3,
).map(tuple)  # fmt: skip
GATES = st.lists(
    st.builds(
        Gate,
        mode=st.sampled_from(FanIn), needed=ATTEMPTS, inputs=st.lists(POSITIONS, max_size=3).map(tuple),
        releases=st.lists(POSITIONS, max_size=3).map(tuple), essential=st.booleans(),
    ),
    max_size=2,
).map(tuple)  # fmt: skip
SPECS = st.lists(
    st.builds(
        Spec,
        task_id=TEXT, task_type=st.sampled_from(TaskType), description=TEXT, estimated_ms=st.integers(0, 2**40),
        dependencies=st.lists(POSITIONS, max_size=3).map(tuple),
        capabilities=st.lists(TEXT, max_size=2).map(tuple), metadata=OBJECTS.map(strict_json.compact),
        compensates=st.none() | POSITIONS, undo=TEXT,
    ),
    max_size=2,
).map(tuple)  # fmt: skip
MAPS = st.builds(
    MapSpec, items=DATA, item_name=NAMES, task=TASKS.filter(bool).map(lambda tasks: tasks[0]),
    item=st.builds(NamedTask, name=NAMES, when=DATA),
    join=st.builds(Join, st.sampled_from(FanIn), st.none() | ATTEMPTS),
    at_once=st.none() | ATTEMPTS, limit=st.none() | LENGTHS,
)  # fmt: skip
WAITS = st.builds(
    Wait, kind=st.sampled_from(WaitKind), signal=NAMES, roles=st.lists(TEXT, max_size=2).map(tuple),
    limit=st.none() | LENGTHS, continues_expired=st.booleans(), continues_refused=st.booleans(),
)  # fmt: skip
NAMED = st.builds(
    NamedTasks,
    named=st.lists(
        st.builds(
            NamedTask, name=NAMES, needs=st.lists(POSITIONS, max_size=3).map(tuple), is_optional=st.booleans(),
            backoff=st.none() | st.builds(Backoff, LENGTHS, LENGTHS), final_codes=st.lists(TEXT, max_size=2).map(tuple),
            when=DATA, asks=st.booleans(), map=st.none() | MAPS, wait=st.none() | WAITS,
        ),
        max_size=2,
    ).map(tuple),
    document=OBJECTS.map(strict_json.compact), input=OBJECTS.map(strict_json.compact), output=DATA,
)  # fmt: skip
RESOLUTIONS = st.builds(
    Resolution, ticket=POSITIONS, outcome=st.sampled_from(Outcome), value=DATA, word=TEXT, expression=TEXT, detail=TEXT,
    obstacle=st.sampled_from(Obstacle),
)  # fmt: skip
PLAN = st.builds(
    Plan,
    tasks=TASKS,
    gates=GATES,
    timeout=st.none() | LENGTHS,
    backoff=st.builds(Backoff, LENGTHS, LENGTHS),
    notify=st.builds(NoticeTargets, st.none() | TEXT, st.none() | NAMES, st.lists(LENGTHS, max_size=3).map(tuple)),
    tipo=st.none() | NAMES,
    rules=st.just(4),
    approval=st.booleans(),
    undo=st.none() | LENGTHS,
    ending=st.sampled_from(Ending),
    profile=st.just(PLAIN) | NAMED | st.builds(
        Flow,
        plan_id=TEXT, intent_id=TEXT, decision_id=TEXT, risk_band=st.sampled_from(RiskBand),
        priority=st.sampled_from(Priority), security_level=st.sampled_from(SecurityLevel),
        specs=SPECS,
        correlation_id=TEXT, trace_id=st.none() | TEXT, span_id=st.none() | TEXT,
        document=OBJECTS.map(strict_json.compact),
        score=st.none() | st.builds(score_of_plan, st.sampled_from(RiskBand), st.sampled_from(Priority)),
    ),
)  # fmt: skip

SCORES = st.floats(0, 1)
CANDIDATES = st.builds(
    Candidate, TEXT, SCORES, SCORES, SCORES, SCORES, SCORES, SCORES, st.none() | st.integers(0, 10**9),
    st.integers(0, 100), st.none() | st.sampled_from(NotChosen), st.none() | SCORES,
)  # fmt: skip
ALLOCATIONS = st.builds(
    Allocation, TEXT, st.sampled_from(AllocationMethod), SCORES, SCORES, st.lists(CANDIDATES, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(NotChosen), st.integers(1, 100), max_size=3),
    st.none() | st.integers(0, 10**9), st.none() | st.integers(0, 10**9),
)  # fmt: skip
VIOLATIONS = st.builds(PolicyViolation, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT)
EVENTS: dict[type, st.SearchStrategy[Any]] = {
    ev.OrchestrationStarted: st.builds(
        ev.OrchestrationStarted, run=st.integers(0, 2**63 - 1), correlation_id=TEXT, plan=PLAN,
        deadline=st.none() | INSTANTS, fingerprint=TEXT, traceparent=st.none() | TEXT, actor=st.none() | TEXT,
        origin=st.none() | st.builds(
            Origin, st.integers(0, 2**63 - 1), TEXT, st.sampled_from(RetryFrom), st.none() | TEXT, st.booleans()
        ),
    ),
    ev.ResultsReused: st.builds(
        ev.ResultsReused, st.integers(0, 2**63 - 1),
        st.lists(st.builds(ReusedResult, POSITIONS, DATA, ERRORS, st.none() | POSITIONS), max_size=3),
        st.lists(
            st.builds(
                ReusedRows, POSITIONS, POSITIONS, st.lists(st.lists(DATA, max_size=3).map(tuple), max_size=3),
                st.none() | st.lists(TEXT, max_size=3),
                st.lists(st.builds(IdleItems, st.lists(POSITIONS, max_size=3), RESOLUTIONS), max_size=2),
            ),
            max_size=2,
        ),
        st.booleans(),
    ),
    ev.TicketsReused: st.builds(ev.TicketsReused, st.lists(POSITIONS, max_size=5)),
    ev.MapRestored: st.builds(ev.MapRestored, POSITIONS, POSITIONS, POSITIONS),
    ev.TicketsDispatched: st.builds(ev.TicketsDispatched, st.lists(POSITIONS, max_size=5), ATTEMPTS),
    ev.DispatchConfirmed: st.builds(ev.DispatchConfirmed, st.lists(st.tuples(POSITIONS, ATTEMPTS), max_size=5)),
    ev.TicketConcluded: st.builds(
        ev.TicketConcluded, POSITIONS, ATTEMPTS, DATA, ERRORS, DIGESTS, st.none() | TEXT, WORK
    ),
    ev.AttemptFailed: st.builds(
        ev.AttemptFailed, POSITIONS, ATTEMPTS, st.sampled_from(Cause), ERRORS, INSTANTS, DATA, DIGESTS,
        st.none() | REASONS, st.none() | TEXT, WORK,
    ),
    ev.TicketFailed: st.builds(
        ev.TicketFailed, POSITIONS, ATTEMPTS, st.sampled_from([Status.ERRO, Status.TIMEOUT]), ERRORS, DATA,
        st.booleans(), DIGESTS, st.none() | REASONS, st.none() | TEXT, WORK,
    ),
    ev.TicketRequeued: st.builds(ev.TicketRequeued, POSITIONS, ATTEMPTS),
    ev.TicketWithdrawn: st.builds(
        ev.TicketWithdrawn, POSITIONS, ATTEMPTS, st.sampled_from(Cause), TEXT, st.none() | LENGTHS, st.none() | TEXT
    ),
    ev.TicketAllocated: st.builds(ev.TicketAllocated, POSITIONS, ATTEMPTS, ALLOCATIONS),
    ev.ConflictingAnswerKept: st.builds(
        ev.ConflictingAnswerKept, POSITIONS, ATTEMPTS, st.booleans(), DATA, ERRORS, st.booleans(), DIGESTS
    ),
    ev.LateAnswerKept: st.builds(
        ev.LateAnswerKept, POSITIONS, ATTEMPTS, st.booleans(), DATA, ERRORS, st.booleans(), DIGESTS
    ),
    ev.TicketsClosed: st.builds(
        ev.TicketsClosed, st.lists(POSITIONS, max_size=5), st.sampled_from([Status.CANCELADA, Status.TIMEOUT]), REASONS
    ),
    ev.FanInClosed: st.builds(ev.FanInClosed, POSITIONS, st.booleans()),
    ev.TasksAsked: st.builds(ev.TasksAsked, st.lists(POSITIONS, max_size=5), st.booleans()),
    ev.Resolved: st.builds(ev.Resolved, st.lists(RESOLUTIONS, max_size=3), st.none() | RESOLUTIONS),
    ev.Woken: st.builds(ev.Woken),
    ev.CancelRequested: st.builds(ev.CancelRequested, TEXT),
    ev.PriorityChanged: st.builds(ev.PriorityChanged, st.integers(1, 9), TEXT, st.none() | TEXT),
    ev.OrchestrationPaused: st.builds(ev.OrchestrationPaused, TEXT, st.none() | TEXT),
    ev.OrchestrationResumed: st.builds(ev.OrchestrationResumed, TEXT, st.none() | TEXT),
    ev.ApprovalAsked: st.builds(ev.ApprovalAsked),
    ev.ApprovalGiven: st.builds(ev.ApprovalGiven, TEXT, TEXT, st.none() | TEXT, st.none() | POSITIONS),
    ev.ApprovalRefused: st.builds(ev.ApprovalRefused, TEXT, TEXT, st.none() | TEXT, st.none() | POSITIONS),
    ev.SignalReceived: st.builds(
        ev.SignalReceived, TEXT, NAMES, DATA, st.none() | POSITIONS, st.integers(0, 2**48 - 1), st.none() | TEXT
    ),
    ev.WaitStarted: st.builds(ev.WaitStarted, POSITIONS, st.none() | INSTANTS),
    ev.WaitEnded: st.builds(
        ev.WaitEnded, POSITIONS, st.sampled_from(WaitEnd), st.sampled_from([Status.CONCLUIDA, Status.TIMEOUT]),
        st.none() | TEXT, DATA, st.none() | REASONS,
    ),
    ev.CompensationStarted: st.builds(
        ev.CompensationStarted, st.lists(POSITIONS, max_size=5), TEXT,
        st.none() | st.builds(Added, TASKS, GATES, SPECS),
    ),
    ev.OrchestrationClosed: st.builds(ev.OrchestrationClosed, st.sampled_from([s for s in Status if s.final])),
    ev.NoticeSent: st.builds(ev.NoticeSent, POSITIONS, ATTEMPTS),
    ev.NoticeDelivered: st.builds(ev.NoticeDelivered, POSITIONS, ATTEMPTS, TEXT),
    ev.PlanGrown: st.builds(
        ev.PlanGrown, POSITIONS, POSITIONS, POSITIONS, POSITIONS, POSITIONS,
        st.lists(st.lists(DATA, max_size=3).map(tuple), max_size=3), st.none() | st.lists(TEXT, max_size=3),
        st.lists(st.builds(IdleItems, st.lists(POSITIONS, max_size=3), RESOLUTIONS), max_size=2), st.none() | INSTANTS,
    ),
    ev.MapEnded: st.builds(ev.MapEnded, POSITIONS, st.sampled_from(Status), st.none() | REASONS),
    ev.ChildEnded: st.builds(ev.ChildEnded, POSITIONS, ATTEMPTS, st.sampled_from(Status), DATA, st.integers(0, 2**62)),
    ev.ChildrenCancelled: st.builds(
        ev.ChildrenCancelled, st.lists(st.tuples(POSITIONS, ATTEMPTS), max_size=5)
    ),
    ev.LoopEnded: st.builds(ev.LoopEnded, POSITIONS, st.sampled_from(Status), st.none() | REASONS),
    ev.NoticeFailed: st.builds(ev.NoticeFailed, POSITIONS, ATTEMPTS, TEXT, INSTANTS, st.none() | LENGTHS),
    ev.NoticeGivenUp: st.builds(ev.NoticeGivenUp, POSITIONS, ATTEMPTS, TEXT, st.booleans(), st.none() | LENGTHS),
    ev.PolicyAsked: st.builds(
        ev.PolicyAsked, st.sampled_from(PolicyPoint), st.lists(st.tuples(POSITIONS, ATTEMPTS), max_size=3)
    ),
    ev.PolicyEvaluated: st.builds(
        ev.PolicyEvaluated, st.sampled_from(PolicyPoint), st.lists(st.tuples(POSITIONS, ATTEMPTS), max_size=3),
        st.lists(
            st.builds(
                PolicyFinding, POSITIONS, st.booleans(), st.lists(VIOLATIONS, max_size=2),
                st.lists(VIOLATIONS, max_size=2), TEXT,
            ),
            max_size=2,
        ),
        st.builds(PolicySource, TEXT, TEXT, TEXT, TEXT),
    ),
    ev.AnswerHeld: st.builds(
        ev.AnswerHeld, POSITIONS, ATTEMPTS, DATA, st.just([]), st.integers(0, 2**62), st.none() | TEXT
    ),
}  # fmt: skip


def test_every_event_type_is_covered_here() -> None:
    assert set(EVENTS) == set(get_args(ev.Event))


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_comes_back_as_it_was_written(kind: type) -> None:
    @given(EVENTS[kind])
    @bounded
    def check(event: Any) -> None:
        (back,) = records.decode(records.encode([event]))
        assert back == event
        assert {name: type(getattr(back, name)) for name in back.__slots__} == {
            name: type(getattr(event, name)) for name in event.__slots__
        }

    check()


@given(st.lists(st.one_of(list(EVENTS.values())), max_size=6))
@bounded
def test_events_that_are_written_from_parts_are_written_like_all_others(events: list[ev.Event]) -> None:
    assert records.encode(events) == strict_json.dumps([[type(event).__name__, _as_it_is(event)] for event in events])


def _as_it_is(event: Any) -> Any:
    """Its fields, without a length of work that is not known."""
    if getattr(event, "work_ms", 0) is not None:
        return event
    return {name: getattr(event, name) for name in event.__slots__ if name != "work_ms"}


@pytest.mark.parametrize(
    "event",
    [
        ev.TicketConcluded(3, 1, b'{"work_ms":null}', [], 7, "ana"),
        ev.AttemptFailed(2, 1, Cause.ERRO, [{"codigo": "x", "work_ms": None}], at(2), b"null", 0),
        ev.TicketFailed(2, 1, Status.ERRO, [{"codigo": "x"}], b"null", True, 4, None, "ana"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_length_of_work_that_is_not_known_costs_the_row_nothing(event: Any) -> None:
    [[name, fields]] = orjson.loads(records.encode([event]))
    assert name == type(event).__name__ and "work_ms" not in fields
    assert list(fields) == [name for name in event.__slots__ if name != "work_ms"]
    assert records.decode(records.encode([event])) == [event]
    for known in (0, 1500):
        timed = replace(event, work_ms=known)
        assert orjson.loads(records.encode([timed])) == [[name, fields | {"work_ms": known}]]
        assert records.decode(records.encode([timed])) == [timed]


def test_a_task_may_be_called_like_what_stands_for_its_parameters() -> None:
    tasks = [
        Task(Kind.COLETA, name, "\x01", b'["\\u0001"]', timedelta(seconds=1), 1) for name in ("\x01", "\x02", 'x"\x01')
    ]
    plan = Plan(tasks, (), None)
    event = ev.OrchestrationStarted(1, "c", plan, None, "")
    assert records.encode([event]) == strict_json.dumps([["OrchestrationStarted", event]])


@given(st.lists(st.one_of(list(EVENTS.values())), max_size=6))
@bounded
def test_steps_come_back_in_order_also_as_text(events: list[ev.Event]) -> None:
    assert records.decode(records.encode(events).decode()) == events


def test_the_format_on_disk_is_pinned() -> None:
    """Journals live for years: a change of this text needs a new FORMAT and an upcaster, a new field a default."""
    events = [
        ev.TicketConcluded(3, 1, b'{"n":1}', [], 7),
        ev.AttemptFailed(2, 1, Cause.TIMEOUT, [{"codigo": "timeout"}], at(2), b"null", 0),
        ev.DispatchConfirmed([(0, 1), (4, 2)]),
        ev.TicketsClosed([1], Status.CANCELADA, because(ReasonCode.FAN_IN_MET, mode="quorum")),
        ev.NoticeFailed(0, 1, "503", at(5), timedelta(seconds=1.5)),
    ]
    assert records.FORMAT == 2
    assert orjson.loads(records.encode(events)) == [
        ["TicketConcluded", {"ticket": 3, "attempt": 1, "dados": {"n": 1}, "erros": [], "digest": 7, "actor": None}],
        [
            "AttemptFailed",
            {
                "ticket": 2, "attempt": 1, "cause": "timeout", "erros": [{"codigo": "timeout"}],
                "retry_at": "2025-10-14T12:00:02Z", "dados": None, "digest": 0, "reason": None,
                "actor": None,
            },
        ],
        ["DispatchConfirmed", {"tickets": [[0, 1], [4, 2]]}],
        [
            "TicketsClosed",
            {
                "tickets": [1],
                "status": "cancelada",
                "reason": {"code": "fan_in_met", "params": {"mode": "quorum"}},
            },
        ],
        [
            "NoticeFailed",
            {"notice": 0, "attempt": 1, "detail": "503", "retry_at": "2025-10-14T12:00:05Z", "retry_after": 1.5},
        ],
    ]  # fmt: skip


def test_the_format_of_a_plan_on_disk_is_pinned() -> None:
    story = Story(plan([coleta("youtube", parametros=b'{"canal":"x"}')], [execucao("relatorio")], fila="avisos"))
    (name, fields), _ = orjson.loads(records.encode(story.started.events))
    assert name == "OrchestrationStarted"
    assert fields == {
        "run": RUN,
        "correlation_id": "abc123",
        "deadline": "2025-10-14T12:10:00Z",
        "fingerprint": "f",
        "traceparent": None,
        "actor": None,
        "origin": None,
        "plan": {
            "tasks": [
                {
                    "kind": "coleta", "name": "youtube", "queue": "escavador_youtube", "parametros": {"canal": "x"},
                    "timeout": 30.0, "max_attempts": 3, "after": None, "feeds": [0],
                },
                {
                    "kind": "execucao", "name": "relatorio", "queue": "executador_relatorio", "parametros": {},
                    "timeout": 30.0, "max_attempts": 3, "after": 0, "feeds": [1],
                },
            ],
            "gates": [
                {"mode": "todos", "needed": 1, "inputs": [0], "releases": [1], "essential": True},
                {"mode": "todos", "needed": 1, "inputs": [1], "releases": [], "essential": True},
            ],
            "timeout": 600.0,
            "backoff": {"base": 1.0, "cap": 60.0, "factor": 2.0},
            "notify": {
                "webhook": None,
                "queue": "avisos",
                "waits": [5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0],
            },
            "tipo": None,
            "rules": 4,
            "approval": False,
            "undo": None,
            "ending": "essential",
            "profile": {},
            "labels": [],
            "parent": None,
            "policies": [],
            "unique": None,
            "undo_attempts": None,
            "undo_strict": False,
        },
    }  # fmt: skip


def test_labels_are_kept_and_a_plan_from_before_there_were_any_is_read() -> None:
    story = Story(replace(plan(1), labels=("cliente:acme", "b")))
    body = records.encode(story.started.events)
    assert records.decode(body) == story.started.events
    ((name, fields), *rest) = orjson.loads(body)
    del fields["plan"]["labels"]
    (first, *_) = records.decode(orjson.dumps([[name, fields], *rest]))
    assert isinstance(first, ev.OrchestrationStarted) and first.plan == replace(plan(1), labels=())


def test_a_journal_from_before_there_were_traces_is_read() -> None:
    story = Story(plan(1))
    ((name, fields), *rest) = orjson.loads(records.encode(story.started.events))
    del fields["traceparent"]
    events = records.decode(orjson.dumps([[name, fields], *rest]))
    assert events == story.started.events
    assert step(None, cause_of(events), at(0)).events == events


def test_a_journal_of_another_format_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="journal format 3 is not known; this version reads formats 1 to 2"):
        records.decode(b"[]", 3)


# -- replay ------------------------------------------------------------------------------------------------------------


def replay(journal: list[tuple[Any, bytes]]) -> Orchestration:
    """Read each step back, ask what caused it, and let the core decide again."""
    state = None
    for instant, text in journal:
        events = records.decode(text)
        done = step(state, cause_of(events), instant)
        assert done.events == events
        state = done.state
    assert state is not None
    return state


def check(story: Story) -> None:
    journal = [(instant, records.encode(events)) for instant, events in story.journal]
    assert replay(journal) == story.state
    assert fold((instant, records.decode(text)) for instant, text in journal) == story.state


@given(PLANS, HAPPENINGS)
@bounded
def test_replaying_the_causes_of_any_journal_gives_the_same_journal(
    wanted: Plan, happenings: list[tuple[Command, float]]
) -> None:
    story = Story(copy.deepcopy(wanted), check=False)
    now = 0.0
    for command, pause in happenings:
        now += pause
        story.do(fitted(command, wanted), now)
    check(story)


def test_a_long_story_with_everything_in_it_replays() -> None:
    story = Story(plan(4, 2, modo=FanIn.QUORUM, minimo=2, attempts=2, webhook="https://example.com", fila="avisos"))
    story.confirm(0, 1, 2)
    story.do(story.bare(Kind.COLETA, "fonte3"), 1)
    story.fail(0, when=2)
    story.wake(4)
    story.wake(30)
    story.ok(1, attempt=1, when=31)
    story.wake(33)
    story.fail(2, definitivo=True, when=34)
    story.ok(0, when=35)
    story.ok(1, attempt=2, when=36)
    story.confirm(when=36)
    story.fail(4, when=37)
    story.ok(5, when=38)
    story.wake(45)
    story.ok(4, when=46)
    story.told(0, 1, detail="503", retry_after=timedelta(seconds=7))
    story.told(1, 1, final=True, detail="410")
    story.wake(60)
    story.told(0, 2, delivered=True, detail="200")
    assert story.status is Status.PARCIAL
    check(story)


def test_what_cannot_begin_a_step() -> None:
    with pytest.raises(ValueError, match="FanInClosed cannot be the first event"):
        cause_of([ev.FanInClosed(0, True)])


def test_a_plan_from_before_waits_had_a_factor_doubles_them_and_undoes_as_ever() -> None:
    grown = replace(plan(1), backoff=Backoff(factor=3.0), undo_attempts=2, undo_strict=True)
    body = records.encode(Story(grown).started.events)
    (first, *_) = records.decode(body)
    assert isinstance(first, ev.OrchestrationStarted) and first.plan == grown
    ((name, fields), *rest) = orjson.loads(body)
    del fields["plan"]["backoff"]["factor"], fields["plan"]["undo_attempts"], fields["plan"]["undo_strict"]
    (first, *_) = records.decode(orjson.dumps([[name, fields], *rest]))
    assert isinstance(first, ev.OrchestrationStarted) and first.plan == plan(1)
