"""How fan-ins close, what they start and cancel, and every way an orchestration ends."""

from __future__ import annotations

import pytest

from core.given import Story, coleta, dag, execucao, names, plan
from oraculo.core.events import FanInClosed, OrchestrationClosed, TicketsClosed, TicketsDispatched
from oraculo.core.reasons import ReasonCode, because
from oraculo.core.vocabulary import FanIn, Phase, Status

MODES = [(FanIn.TODOS, None), (FanIn.QUORUM, 2), (FanIn.PRIMEIRO, None)]


class TestTodos:
    def test_everything_concluded(self) -> None:
        story = Story(plan(2, 1))
        story.ok(0)
        assert story.published == [(0, 1), (1, 1)]
        done = story.ok(1)
        assert done.events[1:] == [FanInClosed(0, True), TicketsDispatched([2], 1)]
        story.ok(2)
        assert (story.status, story.statuses) == (Status.CONCLUIDA, ["concluida"] * 3)

    def test_it_waits_for_every_collection_also_after_a_failure(self) -> None:
        story = Story(plan(3, 1))
        story.fail(0)
        story.ok(1)
        assert story.ticket(3).phase is Phase.WAITING
        story.ok(2)
        assert story.ticket(3).phase is Phase.OWED

    @pytest.mark.parametrize("how", ["erro", "timeout"])
    def test_one_collection_that_failed_makes_it_parcial(self, how: str) -> None:
        story = Story(plan(2, 1))
        story.confirm()
        story.ok(0)
        if how == "erro":
            story.fail(1)
        else:
            story.wake(30)
        story.ok(2)
        assert (story.status, story.statuses) == (Status.PARCIAL, ["concluida", how, "concluida"])

    @pytest.mark.parametrize("how", ["erro", "timeout"])
    def test_no_collection_concluded_is_an_error_and_executions_never_start(self, how: str) -> None:
        story = Story(plan(2, 2))
        story.confirm()
        if how == "erro":
            story.fail(0)
            story.fail(1)
        else:
            story.wake(30)
        assert (story.status, story.statuses) == (Status.ERRO, [how, how, "cancelada", "cancelada"])
        assert story.published == [(0, 1), (1, 1)]
        assert [story.ticket(p).attempt for p in (2, 3)] == [0, 0]

    def test_no_execution_concluded_is_an_error(self) -> None:
        story = Story(plan(1, 2))
        story.ok(0)
        story.fail(1)
        story.fail(2)
        assert story.status is Status.ERRO

    def test_one_execution_concluded_and_one_failed_is_parcial(self) -> None:
        story = Story(plan(1, 2))
        story.ok(0)
        story.fail(1)
        assert not story.status.final
        story.ok(2)
        assert story.status is Status.PARCIAL

    def test_only_collections(self) -> None:
        story = Story(plan(2))
        story.ok(0)
        assert names(story.ok(1)) == ["TicketConcluded", "FanInClosed", "OrchestrationClosed"]
        assert story.status is Status.CONCLUIDA

    def test_only_executions(self) -> None:
        story = Story(plan(0, 2))
        story.ok(0)
        story.fail(1)
        assert story.status is Status.PARCIAL


class TestQuorum:
    def test_as_soon_as_enough_concluded_the_rest_is_cancelled(self) -> None:
        story = Story(plan(4, 1, modo=FanIn.QUORUM, minimo=2))
        story.confirm(3)
        story.ok(2)
        assert story.ticket(4).phase is Phase.WAITING
        done = story.ok(0)
        assert done.events[1:3] == [FanInClosed(0, True), TicketsDispatched([4], 1)]
        assert isinstance(done.events[3], TicketsClosed)
        assert (done.events[3].tickets, done.events[3].status) == ([1, 3], Status.CANCELADA)
        story.ok(4)
        assert story.status is Status.CONCLUIDA
        assert story.statuses == ["concluida", "cancelada", "concluida", "cancelada", "concluida"]
        assert story.ticket(1).reason == because(ReasonCode.FAN_IN_MET, mode="quorum")

    def test_a_failure_on_the_way_makes_it_parcial(self) -> None:
        story = Story(plan(3, 0, modo=FanIn.QUORUM, minimo=2))
        story.fail(0)
        story.ok(1)
        story.ok(2)
        assert story.status is Status.PARCIAL

    def test_it_ends_in_error_as_soon_as_the_quorum_cannot_be_reached(self) -> None:
        story = Story(plan(3, 1, modo=FanIn.QUORUM, minimo=2))
        story.confirm()
        story.fail(0)
        assert not story.status.final
        done = story.fail(2)
        assert names(done)[1:] == ["FanInClosed", "TicketsClosed", "TicketsClosed", "OrchestrationClosed"]
        assert story.statuses == ["erro", "cancelada", "erro", "cancelada"]
        assert story.status is Status.ERRO

    def test_what_came_in_before_the_error_is_kept(self) -> None:
        story = Story(plan(3, 1, modo=FanIn.QUORUM, minimo=3))
        story.ok(0, b'"kept"')
        story.fail(1)
        assert story.status is Status.ERRO
        assert story.ticket(0).dados == b'"kept"'

    def test_a_quorum_of_all_is_not_met_by_fewer(self) -> None:
        story = Story(plan(2, 0, modo=FanIn.QUORUM, minimo=2))
        story.ok(0)
        assert not story.status.final
        story.ok(1)
        assert story.status is Status.CONCLUIDA

    def test_a_retry_keeps_the_quorum_within_reach(self) -> None:
        story = Story(plan(2, 0, modo=FanIn.QUORUM, minimo=2, attempts=2))
        story.fail(0)
        assert not story.status.final
        story.wake(5)
        story.ok(0)
        story.ok(1)
        assert story.status is Status.CONCLUIDA

    def test_it_rules_the_executions_when_there_are_no_collections(self) -> None:
        story = Story(plan(0, 3, modo=FanIn.QUORUM, minimo=1))
        story.ok(1)
        assert (story.status, story.statuses) == (Status.CONCLUIDA, ["cancelada", "concluida", "cancelada"])

    def test_spare_tickets_that_wait_for_a_retry_are_cancelled_too(self) -> None:
        story = Story(plan(2, 1, modo=FanIn.QUORUM, minimo=1, attempts=3))
        story.fail(0)
        story.ok(1)
        assert story.ticket(0).status is Status.CANCELADA
        story.ok(2)
        assert story.wake(1000).events == []
        assert story.status is Status.CONCLUIDA


class TestPrimeiro:
    def test_the_first_success_is_enough(self) -> None:
        story = Story(plan(3, 1, modo=FanIn.PRIMEIRO))
        story.ok(1)
        assert story.statuses == ["cancelada", "concluida", "cancelada", "pendente"]
        story.ok(3)
        assert story.status is Status.CONCLUIDA

    def test_a_failure_is_not_the_first(self) -> None:
        story = Story(plan(3, 1, modo=FanIn.PRIMEIRO))
        story.fail(0)
        assert story.statuses == ["erro", "pendente", "pendente", "pendente"]
        story.ok(2)
        story.ok(3)
        assert story.status is Status.PARCIAL

    def test_all_failed(self) -> None:
        story = Story(plan(2, 1, modo=FanIn.PRIMEIRO))
        story.fail(0)
        story.fail(1)
        assert (story.status, story.statuses) == (Status.ERRO, ["erro", "erro", "cancelada"])

    def test_a_late_answer_of_a_spare_ticket_changes_nothing(self) -> None:
        story = Story(plan(2, 1, modo=FanIn.PRIMEIRO))
        story.ok(0, b'"first"')
        story.ok(1, b'"second"')
        assert story.statuses == ["concluida", "cancelada", "pendente"]
        assert story.ticket(1).late is not None


class TestTodasOk:
    def test_a_task_starts_when_all_it_depends_on_concluded(self) -> None:
        story = Story(dag({"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}))
        assert story.published == [(0, 1), (1, 1)]
        story.ok(0)
        assert story.published == [(0, 1), (1, 1)]
        story.ok(1)
        story.ok(2)
        story.ok(3)
        assert story.published == [(0, 1), (1, 1), (2, 1), (3, 1)]
        assert story.status is Status.CONCLUIDA

    def test_a_failure_cancels_what_is_behind_it_all_the_way_and_nothing_else(self) -> None:
        story = Story(dag({"a": [], "b": [], "c": ["a"], "d": ["c"], "e": ["b"], "f": ["d", "e"]}))
        story.fail(0)
        assert story.statuses == ["erro", "pendente", "cancelada", "cancelada", "pendente", "cancelada"]
        story.ok(1)
        story.ok(4)
        assert story.status is Status.PARCIAL

    def test_nothing_concluded_is_an_error(self) -> None:
        story = Story(dag({"a": [], "b": ["a"]}))
        story.fail(0)
        assert (story.status, story.statuses) == (Status.ERRO, ["erro", "cancelada"])

    def test_two_failures_in_one_breath(self) -> None:
        story = Story(dag({"a": [], "b": [], "c": ["a"], "d": ["b"], "e": ["c", "d"]}))
        story.confirm()
        story.wake(30)
        assert story.status is Status.ERRO
        assert story.statuses == ["timeout", "timeout", "cancelada", "cancelada", "cancelada"]

    def test_a_join_fails_at_the_first_failure_without_waiting_for_the_rest(self) -> None:
        story = Story(dag({"a": [], "b": [], "c": ["a", "b"]}))
        done = story.fail(0)
        assert FanInClosed(0, False) in done.events
        assert story.ticket(2).status is Status.CANCELADA and story.ticket(1).phase is Phase.OWED

    def test_a_long_chain_of_cancellations_is_one_step(self) -> None:
        depends = {str(n): [str(n - 1)] if n else [] for n in range(3000)}
        story = Story(dag(depends), check=False)
        story.fail(0)
        assert story.status is Status.ERRO
        assert set(story.statuses[1:]) == {"cancelada"}


class TestTimeoutOfTheOrchestration:
    @pytest.mark.parametrize(("modo", "minimo"), MODES)
    def test_its_own_time_passes_first(self, modo: FanIn, minimo: int | None) -> None:
        story = Story(plan(3, 1, modo=modo, minimo=minimo, timeout=20))
        story.confirm(0, 1)
        if modo is FanIn.TODOS:
            story.ok(0)
        story.wake(20)
        assert story.status is Status.TIMEOUT
        first = "concluida" if modo is FanIn.TODOS else "timeout"
        assert story.statuses == [first, "timeout", "timeout", "cancelada"]

    def test_not_a_moment_early(self) -> None:
        story = Story(plan(1, timeout=20))
        assert story.wake(19.999999).events == []
        assert not story.status.final

    def test_it_also_ends_what_waits_for_a_retry(self) -> None:
        story = Story(plan([coleta(attempts=5)], timeout=20))
        story.fail(0, when=19.9)
        story.wake(20)
        assert (story.status, story.statuses) == (Status.TIMEOUT, ["timeout"])

    def test_when_everything_is_late_at_once_the_orchestration_s_end_counts(self) -> None:
        story = Story(plan([coleta(timeout=20)], timeout=20))
        story.confirm()
        story.wake(20)
        assert (story.status, story.statuses) == (Status.TIMEOUT, ["timeout"])

    def test_no_executions_are_started_at_the_last_moment(self) -> None:
        story = Story(plan(1, 1, timeout=20))
        done = story.wake(25)
        assert names(done) == ["Woken", "TicketsClosed", "TicketsClosed", "OrchestrationClosed"]
        assert done.effects == []


class TestCancel:
    @pytest.mark.parametrize(("modo", "minimo"), MODES)
    def test_it_cascades_to_every_open_ticket(self, modo: FanIn, minimo: int | None) -> None:
        story = Story(plan(3, 2, modo=modo, minimo=minimo, attempts=3))
        story.confirm(0)
        story.fail(1)
        story.cancel("mudou de ideia")
        assert (story.status, story.statuses) == (Status.CANCELADA, ["cancelada"] * 5)
        assert all(one.reason == because(ReasonCode.CANCELLED, text="mudou de ideia") for one in story.state.tickets)
        assert story.state.wake_at() is None

    def test_what_had_concluded_stays(self) -> None:
        story = Story(plan(2, 1))
        story.ok(0)
        story.cancel()
        assert story.statuses == ["concluida", "cancelada", "cancelada"]
        assert story.ticket(1).reason == because(ReasonCode.CANCELLED, text="")

    def test_a_second_cancel_does_nothing(self) -> None:
        story = Story(plan(1))
        story.cancel("a")
        assert story.cancel("b").events == []
        assert story.state.cancel_reason == "a"


@pytest.mark.parametrize(("modo", "minimo"), MODES)
def test_one_ending_only_and_it_is_the_last_word(modo: FanIn, minimo: int | None) -> None:
    story = Story(plan(3, 2, modo=modo, minimo=minimo))
    story.confirm()
    story.wake(30)
    for position in range(5):
        story.ok(position)
        story.fail(position)
    story.cancel()
    story.wake(5000)
    assert len([event for event in story.events if isinstance(event, OrchestrationClosed)]) == 1


def test_execution_gets_its_own_attempts_after_the_fan_in() -> None:
    story = Story(plan([coleta()], [execucao(attempts=2)]))
    story.ok(0)
    story.fail(1)
    story.wake(5)
    story.ok(1)
    assert story.published == [(0, 1), (1, 1), (1, 2)]
    assert story.status is Status.CONCLUIDA
