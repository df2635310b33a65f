"""Which ticket an answer belongs to, which attempt, and what it does: match, fence, retry, give up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.given import ERRO, RUN, Story, at, coleta, execucao, idle, names, plan, seconds
from oraculo.core.commands import RecordResult
from oraculo.core.events import AttemptFailed, ConflictingAnswerKept, LateAnswerKept, TicketConcluded, TicketFailed
from oraculo.core.plan import Backoff
from oraculo.core.reasons import ReasonCode, because
from oraculo.core.results import CONFLICTS_MAX, jittered
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Cause, FanIn, Kind, Phase, Status, Verdict


def retrying(**more: object) -> Story:
    story = Story(plan([coleta(attempts=3, **more), coleta("blog")]))
    story.confirm()
    return story


class TestMatch:
    def test_by_ticket_id(self) -> None:
        story = Story(plan(3))
        story.ok(1)
        assert story.statuses == ["pendente", "concluida", "pendente"]

    @pytest.mark.parametrize(
        "ticket", ["", "abc", ticket_id(RUN, 2), ticket_id(RUN + 1, 0), ticket_id(RUN, 2**32 - 1), "x" * 36]
    )
    def test_a_ticket_id_that_is_not_of_this_orchestration_is_unknown(self, ticket: str) -> None:
        story = Story(plan(2))
        idle(story.do(RecordResult(True, b"1", [], ticket=ticket, kind=Kind.COLETA)), Verdict.UNKNOWN_TICKET)

    def test_a_wrong_ticket_id_is_not_rescued_by_a_right_name(self) -> None:
        story = Story(plan([coleta("youtube")]))
        answer = RecordResult(True, b"1", [], ticket="nonsense", kind=Kind.COLETA, name="youtube")
        idle(story.do(answer), Verdict.UNKNOWN_TICKET)

    def test_by_name_when_nothing_is_echoed(self) -> None:
        story = Story(plan([coleta("youtube"), coleta("blog")]))
        story.do(story.bare(Kind.COLETA, "blog"))
        assert story.statuses == ["pendente", "concluida"]

    def test_the_name_counts_within_its_kind_only(self) -> None:
        story = Story(plan([coleta("x")], [execucao("x")]))
        idle(story.do(story.bare(Kind.EXECUCAO, "x")), Verdict.UNKNOWN_TICKET)
        story.do(story.bare(Kind.COLETA, "x"))
        assert story.statuses == ["concluida", "pendente"]

    def test_two_open_tickets_of_the_same_name_are_ambiguous(self) -> None:
        story = Story(plan([coleta("youtube"), coleta("youtube")]))
        idle(story.do(story.bare(Kind.COLETA, "youtube")), Verdict.AMBIGUOUS)

    def test_the_last_open_ticket_of_a_name_is_not_ambiguous_any_more(self) -> None:
        story = Story(plan([coleta("youtube"), coleta("youtube")]))
        story.ok(0)
        story.do(story.bare(Kind.COLETA, "youtube"))
        assert story.statuses == ["concluida", "concluida"]

    def test_an_unknown_name_is_no_name(self) -> None:
        story = Story(plan([coleta("youtube"), coleta("blog")]))
        idle(story.do(story.bare(Kind.COLETA, "vimeo")), Verdict.AMBIGUOUS)
        story.do(story.bare(Kind.COLETA, "blog"))
        story.do(story.bare(Kind.COLETA, "vimeo"))
        assert story.statuses == ["concluida", "concluida"]

    def test_without_a_name_by_being_the_only_open_ticket_of_that_kind(self) -> None:
        story = Story(plan([coleta("youtube")], [execucao("relatorio")]))
        story.do(story.bare(Kind.COLETA))
        assert story.statuses == ["concluida", "pendente"]
        story.do(story.bare(Kind.EXECUCAO))
        assert story.status is Status.CONCLUIDA

    def test_without_a_name_two_open_tickets_of_that_kind_are_ambiguous(self) -> None:
        story = Story(plan(2))
        idle(story.do(story.bare(Kind.COLETA)), Verdict.AMBIGUOUS)
        story.ok(0)
        assert story.do(story.bare(Kind.COLETA)).verdict is Verdict.APPLIED

    def test_a_ticket_that_was_never_sent_cannot_be_answered(self) -> None:
        story = Story(plan(1, 1))
        idle(story.do(story.bare(Kind.EXECUCAO)), Verdict.UNKNOWN_TICKET)
        idle(story.do(story.bare(Kind.EXECUCAO, "exec0")), Verdict.UNKNOWN_TICKET)
        idle(story.do(RecordResult(True, b"1", [], ticket=ticket_id(RUN, 1))), Verdict.WRONG_ATTEMPT)

    def test_no_ticket_of_that_kind_at_all(self) -> None:
        story = Story(plan(1))
        idle(story.do(story.bare(Kind.EXECUCAO)), Verdict.UNKNOWN_TICKET)

    def test_a_bare_answer_to_the_only_ticket_of_a_name_that_is_closed_is_late(self) -> None:
        story = Story(plan(2, modo=FanIn.PRIMEIRO))
        story.ok(0)
        assert story.do(story.bare(Kind.COLETA, "fonte1")).verdict is Verdict.LATE

    def test_a_name_that_the_plan_never_had_is_unknown_once_nothing_is_open(self) -> None:
        story = Story(plan(2))
        story.ok(0)
        story.ok(1)
        idle(story.do(story.bare(Kind.COLETA, "vimeo")), Verdict.UNKNOWN_TICKET)
        alone = Story(plan(1))
        alone.ok(0)
        idle(alone.do(alone.bare(Kind.COLETA, "vimeo")), Verdict.UNKNOWN_TICKET)

    def test_rules_before_4_match_as_they_did(self) -> None:
        story = Story(replace(plan(1, 1), rules=3))
        story.ok(0)
        idle(story.do(story.bare(Kind.COLETA, "exec0", dados=b"2")), Verdict.DUPLICATE)
        assert story.statuses == ["concluida", "pendente"]

    def test_a_bare_answer_when_several_closed_tickets_could_be_meant_is_ambiguous(self) -> None:
        story = Story(plan([coleta("youtube"), coleta("youtube"), coleta("blog")], modo=FanIn.PRIMEIRO))
        story.ok(2)
        idle(story.do(story.bare(Kind.COLETA, "youtube")), Verdict.AMBIGUOUS)
        idle(story.do(story.bare(Kind.COLETA)), Verdict.AMBIGUOUS)


class TestExecutorsThatAnswerLikeCollectors:
    """They were sent `iniciar_coleta` once, and answer `resultado_coleta`."""

    def test_by_its_own_name(self) -> None:
        story = Story(plan([coleta("youtube")], [execucao("relatorio")]))
        story.ok(0)
        assert story.do(story.bare(Kind.COLETA, "relatorio", dados=b'"pdf"')).verdict is Verdict.APPLIED
        assert (story.status, story.ticket(1).dados) == (Status.CONCLUIDA, b'"pdf"')

    def test_not_before_it_was_sent(self) -> None:
        story = Story(plan([coleta("youtube")], [execucao("relatorio")]))
        idle(story.do(story.bare(Kind.COLETA, "relatorio")), Verdict.UNKNOWN_TICKET)

    def test_without_a_name_when_nothing_is_collected_at_all(self) -> None:
        story = Story(plan([], [execucao("relatorio")]))
        assert story.do(story.bare(Kind.COLETA)).verdict is Verdict.APPLIED
        two = Story(plan([], 2))
        idle(two.do(two.bare(Kind.COLETA)), Verdict.AMBIGUOUS)

    def test_without_a_name_it_may_be_the_second_answer_of_a_collection(self) -> None:
        story = Story(plan([coleta("youtube")], [execucao("relatorio")]))
        first = story.bare(Kind.COLETA)
        story.do(first)
        idle(story.do(story.bare(Kind.COLETA, dados=b'"pdf"')), Verdict.AMBIGUOUS)
        idle(story.do(first), Verdict.DUPLICATE)
        assert story.statuses == ["concluida", "pendente"]


class TestConflicts:
    def test_a_second_answer_that_says_something_else_is_kept_and_changes_nothing(self) -> None:
        story = Story(plan(2))
        story.ok(0)
        honest = story.answer(0, dados=b'"other"')
        done = story.do(honest)
        assert done.verdict is Verdict.CONFLICTING and done.effects == []
        assert done.events == [ConflictingAnswerKept(0, 1, True, b'"other"', [], False, honest.digest)]
        assert (story.ticket(0).dados, story.ticket(0).conflicts) == (b'{"n":1}', done.events)
        idle(story.do(honest), Verdict.DUPLICATE)

    def test_an_error_after_a_success_conflicts(self) -> None:
        story = Story(plan(1))
        story.ok(0)
        assert story.fail(0).verdict is Verdict.CONFLICTING
        assert story.status is Status.CONCLUIDA

    def test_a_success_after_a_failure_that_is_tried_again_conflicts_with_that_attempt(self) -> None:
        story = retrying()
        story.fail(0)
        story.wake(2)
        story.confirm(0)
        assert story.ok(0, attempt=1).verdict is Verdict.CONFLICTING
        assert story.ticket(0).phase is Phase.RUNNING
        idle(story.fail(0, attempt=1), Verdict.DUPLICATE)
        story.ok(0, b'"new"', attempt=2)
        idle(story.fail(0, attempt=1), Verdict.DUPLICATE)
        assert story.ticket(0).dados == b'"new"'

    def test_a_late_answer_has_one_that_disagrees(self) -> None:
        story = Story(plan(2, modo=FanIn.PRIMEIRO))
        story.ok(0)
        assert [story.ok(1, dados).verdict.value for dados in (b"1", b"1", b"2")] == [
            "late",
            "duplicate",
            "conflicting_answer",
        ]

    def test_an_earlier_failure_sent_again_without_its_attempt_is_a_duplicate(self) -> None:
        story = Story(plan([coleta("youtube", attempts=2)]))
        story.confirm()
        first = story.bare(Kind.COLETA, "youtube", ok=False)
        story.do(first)
        story.wake(2)
        story.ok(0)
        idle(story.do(first), Verdict.DUPLICATE)

    def test_a_ticket_holds_a_few_and_refuses_the_rest(self) -> None:
        story = Story(plan(1))
        story.ok(0)
        for number in range(CONFLICTS_MAX):
            assert story.ok(0, b"%d" % number).verdict is Verdict.CONFLICTING
        idle(story.ok(0, b'"more"'), Verdict.TOO_MANY_ANSWERS)
        assert Verdict.TOO_MANY_ANSWERS.refused
        idle(story.ok(0, b"0"), Verdict.DUPLICATE)

    def test_what_was_said_is_unknown_in_older_journals_and_nothing_conflicts(self) -> None:
        story = Story(plan(1))
        story.do(RecordResult(True, b"1", [], ticket=ticket_id(RUN, 0), attempt=1, digest=7))
        idle(story.ok(0, b"2"), Verdict.DUPLICATE)
        before = Story(replace(plan(1), rules=3))
        before.ok(0)
        idle(before.ok(0, b"2"), Verdict.DUPLICATE)


class TestAttempts:
    def test_an_answer_that_echoes_no_attempt_counts_for_the_current_one(self) -> None:
        story = retrying()
        story.fail(0)
        story.wake(2)
        done = story.do(RecordResult(True, b"1", [], ticket=ticket_id(RUN, 0), digest=7))
        assert done.events[0] == TicketConcluded(0, 2, b"1", [], 7)

    def test_an_attempt_that_was_never_made_is_refused(self) -> None:
        story = retrying()
        idle(story.ok(0, attempt=2), Verdict.WRONG_ATTEMPT)
        idle(story.ok(0, attempt=2**31), Verdict.WRONG_ATTEMPT)
        idle(story.do(RecordResult(True, b"1", [], ticket=ticket_id(RUN, 0), attempt=0)), Verdict.WRONG_ATTEMPT)

    def test_the_second_answer_to_an_attempt_is_a_duplicate_when_it_says_the_same_in_other_bytes(self) -> None:
        story = Story(plan(2))
        first = story.answer(0)
        story.do(first)
        again = story.answer(0)
        assert first.digest != again.digest
        idle(story.do(again), Verdict.DUPLICATE)

    def test_the_same_bytes_without_an_attempt_are_a_duplicate_after_a_retry_began(self) -> None:
        story = Story(plan([coleta("youtube", attempts=3)]))
        story.confirm()
        first = story.bare(Kind.COLETA, "youtube", ok=False)
        assert story.do(first).verdict is Verdict.APPLIED
        story.wake(2)
        idle(story.do(first), Verdict.DUPLICATE)
        assert story.do(story.bare(Kind.COLETA, "youtube")).verdict is Verdict.APPLIED

    def test_an_answer_to_an_attempt_that_timed_out_is_late_while_the_next_one_waits(self) -> None:
        story = retrying()
        story.wake(30)
        assert story.ticket(0).phase is Phase.BACKOFF
        done = story.ok(0, attempt=1)
        assert done.verdict is Verdict.LATE and names(done) == ["LateAnswerKept"]
        assert story.ticket(0).phase is Phase.BACKOFF

    def test_an_answer_to_an_old_attempt_is_late_while_the_next_one_runs(self) -> None:
        story = retrying()
        story.wake(30)
        story.wake(32)
        story.confirm(0)
        assert story.ok(0, b'"old"', attempt=1).verdict is Verdict.LATE
        assert story.ticket(0).phase is Phase.RUNNING
        story.ok(0, b'"new"', attempt=2)
        assert story.ticket(0).dados == b'"new"'

    def test_a_late_answer_is_kept_once(self) -> None:
        story = Story(plan(2, modo=FanIn.PRIMEIRO))
        story.ok(0)
        late = story.answer(1, dados=b'"late"')
        done = story.do(late, 5)
        assert done.events == [LateAnswerKept(1, 1, True, b'"late"', [], False, late.digest)]
        assert story.ticket(1).late == done.events
        assert story.ticket(1).dados == b"null"
        idle(story.do(late, 6), Verdict.DUPLICATE)

    def test_a_late_failure_is_kept_with_all_that_it_said(self) -> None:
        story = Story(plan(2, modo=FanIn.PRIMEIRO))
        story.ok(0)
        late = story.do(story.answer(1, ok=False, definitivo=True)).events[0]
        assert isinstance(late, LateAnswerKept)
        assert (late.ok, late.definitivo, late.erros) == (False, True, [{**ERRO, "definitivo": True}])

    @pytest.mark.parametrize("ending", ["ok", "erro", "timeout", "cancel"])
    def test_terminal_states_are_final(self, ending: str) -> None:
        story = Story(plan(1))
        story.confirm()
        {
            "ok": lambda: story.ok(0),
            "erro": lambda: story.fail(0),
            "timeout": lambda: story.wake(30),
            "cancel": story.cancel,
        }[ending]()
        status, version = story.status, story.state.version
        assert status.final
        for command in (story.answer(0), story.answer(0, ok=False), story.bare(Kind.COLETA)):
            done = story.do(command, 40)
            assert done.verdict in (Verdict.LATE, Verdict.DUPLICATE, Verdict.CONFLICTING)
        story.cancel()
        story.wake(10_000)
        assert story.status is status
        assert story.state.version <= version + 2


class TestOvertaking:
    def test_an_answer_may_overtake_the_confirmation(self) -> None:
        story = Story(plan(2))
        story.ok(0)
        assert story.statuses == ["concluida", "pendente"]
        done = story.confirm(0, 1)
        assert done.events[0].tickets == [(1, 1)]

    def test_a_failure_may_overtake_it_too_and_is_tried_again(self) -> None:
        story = Story(plan(1, attempts=2))
        story.fail(0)
        assert story.ticket(0).phase is Phase.BACKOFF
        assert story.do(story.answer(0)).verdict is Verdict.CONFLICTING
        assert story.published == [(0, 1)]
        story.wake(2)
        assert story.published == [(0, 1), (0, 2)]


class TestRetries:
    def test_a_failure_is_tried_again_while_attempts_are_left(self) -> None:
        story = Story(plan(1, attempts=3))
        for attempt in (1, 2):
            story.confirm()
            done = story.fail(0)
            assert isinstance(done.events[0], AttemptFailed) and done.effects == []
            assert story.ticket(0).status is Status.PENDENTE
            retry_at = story.ticket(0).due_at
            assert retry_at is not None
            again = story.wake((retry_at - at(0)).total_seconds())
            assert [effect.tickets for effect in again.effects] == [[(0, attempt + 1)]]
        story.confirm()
        assert names(story.fail(0)) == ["TicketFailed", "FanInClosed", "OrchestrationClosed"]
        assert story.ticket(0).causes == [Cause.ERRO, Cause.ERRO]
        assert story.status is Status.ERRO

    def test_definitivo_is_not_tried_again(self) -> None:
        story = Story(plan(2, attempts=100))
        story.confirm()
        done = story.fail(0, definitivo=True)
        assert isinstance(done.events[0], TicketFailed) and done.events[0].definitivo
        assert story.ticket(0).status is Status.ERRO and story.ticket(0).attempt == 1

    def test_success_after_a_failure_clears_the_error_and_remembers_the_cause(self) -> None:
        story = Story(plan(1, attempts=2))
        story.fail(0)
        story.wake(5)
        story.ok(0)
        assert (story.ticket(0).erros, story.ticket(0).causes) == (None, [Cause.ERRO])
        assert story.status is Status.CONCLUIDA

    def test_a_success_may_carry_errors_as_remarks(self) -> None:
        story = Story(plan(1))
        story.do(RecordResult(True, b"1", [ERRO], ticket=ticket_id(RUN, 0), digest=3))
        assert (story.status, story.ticket(0).erros) == (Status.CONCLUIDA, [ERRO])

    def test_timeouts_and_errors_share_the_attempts(self) -> None:
        story = Story(plan([coleta(attempts=2, timeout=10)]))
        story.confirm()
        story.wake(10)
        story.wake(12)
        story.confirm()
        story.fail(0)
        assert story.ticket(0).status is Status.ERRO
        assert story.ticket(0).causes == [Cause.TIMEOUT]

    def test_the_last_timeout_ends_the_ticket_as_timeout(self) -> None:
        story = Story(plan([coleta(attempts=2, timeout=10)]))
        for when in (0, 12):
            story.confirm(when=when)
            story.wake(when + 10)
            story.wake(when + 12)
        assert story.ticket(0).status is Status.TIMEOUT
        silence = because(ReasonCode.NO_ANSWER, queue="escavador_youtube", seconds="10", attempt="2")
        assert (story.ticket(0).erros, story.ticket(0).fault) == (None, silence)


class TestJitter:
    @given(
        st.floats(0.001, 3600),
        st.floats(0.001, 86400),
        st.text(max_size=20).filter(lambda s: s.isprintable()),
        st.integers(1, 200),
    )
    @settings(deadline=None, derandomize=True)
    def test_never_above_the_doubling_base_nor_the_cap_and_never_negative(
        self, base: float, cap: float, who: str, attempt: int
    ) -> None:
        backoff = Backoff(seconds(base), seconds(cap))
        wait = jittered(backoff, who, attempt)
        assert timedelta(0) <= wait <= backoff.cap
        assert wait <= backoff.base * 2 ** min(attempt - 1, 32)
        assert wait == jittered(backoff, who, attempt)

    def test_it_is_full_jitter_spread_over_the_whole_wait(self) -> None:
        waits = [jittered(Backoff(seconds(8), seconds(60)), f"{RUN}:{p}", 1) / seconds(8) for p in range(2000)]
        assert min(waits) < 0.01 and max(waits) > 0.99
        assert 0.47 < sum(waits) / len(waits) < 0.53

    def test_the_wait_doubles_and_stops_at_the_cap(self) -> None:
        backoff = Backoff(seconds(1), seconds(60))
        longest = [max(jittered(backoff, str(n), attempt) for n in range(3000)) for attempt in range(1, 9)]
        for wait, bound in zip(longest, (1, 2, 4, 8, 16, 32, 60, 60), strict=True):
            assert 0.99 * bound < wait.total_seconds() <= bound

    def test_attempts_of_one_ticket_and_tickets_of_one_attempt_wait_differently(self) -> None:
        backoff = Backoff(seconds(60), seconds(60))
        assert len({jittered(backoff, f"{RUN}:{p}", n) for p in range(50) for n in range(1, 20)}) == 50 * 19

    def test_the_same_failure_of_the_same_ticket_waits_the_same_in_every_replay(self) -> None:
        first, second = (Story(plan(1, attempts=2)) for _ in range(2))
        assert first.fail(0, when=3).events == second.fail(0, when=3).events


@pytest.mark.parametrize(
    ("factor", "longest"),
    [(1.0, [2, 2, 2, 2]), (1.5, [2, 3, 4.5, 6.75]), (2.0, [2, 4, 8, 16]), (10.0, [2, 20, 50, 50])],
)
def test_waits_grow_by_the_factor_up_to_the_longest(factor: float, longest: list[float]) -> None:
    backoff = Backoff(seconds(2), seconds(50), factor)
    found = [max(jittered(backoff, str(n), attempt) for n in range(3000)) for attempt in range(1, 5)]
    assert [round(wait.total_seconds() / most, 2) for wait, most in zip(found, longest, strict=True)] == [1.0] * 4
    assert jittered(Backoff(seconds(2), seconds(50), 100.0), "a", 100_000) <= seconds(50)
