"""Every decision of a journal is a sentence in both languages, about the run or about one ticket; nothing is decided
again."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any, get_args

import pytest

from core.given import Story, at, coleta, flow, plan
from golden_journals.journals import Golden, all_of_them
from oraculo.core import events as ev
from oraculo.core.allocations import Allocation, AllocationMethod, Candidate, NotChosen
from oraculo.core.commands import AllocateTicket, Judge, WithdrawTicket
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyPoint, PolicySource, PolicyViolation
from oraculo.core.replay import rebuild
from oraculo.core.sentences import Language
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Cause, FanIn
from oraculo.ports.journal import Recorded
from oraculo.wire import event_views
from oraculo.wire.hold_views import nothing_held
from oraculo.wire.why import standing
from oraculo.wire.why.decisions import decisions
from oraculo.wire.why.telling import Telling

CARRIED_OUT = {
    ev.DispatchConfirmed, ev.Woken, ev.NoticeSent, ev.NoticeDelivered, ev.NoticeFailed, ev.TasksAsked, ev.Resolved,
    ev.PolicyAsked,
}  # fmt: skip


def recorded(story: Story) -> Iterator[Recorded]:
    first = 1
    for when, events in story.journal:
        yield Recorded(story.run, first, when, events)
        first += len(events)


def told(story: Story, only: int | None = None, language: Language = "en") -> list[dict[str, Any]]:
    return list(decisions(Telling(story.state, language, only), recorded(story)))


def lines(story: Story, only: int | None = None, language: Language = "en") -> list[str]:
    return [line for one in told(story, only, language) for line in (one["frase"], *one["detalhes"])]


def now(story: Story, only: int | None = None, language: Language = "en") -> str:
    return standing.summary(Telling(story.state, language, only), nothing_held)


GOLDENS = all_of_them()


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_every_run_and_every_ticket_of_every_engine_can_be_explained(golden: Golden) -> None:
    steps = golden.recorded()
    state = rebuild(steps)
    before = deepcopy(state)
    for only in (None, *range(len(state.tickets))):
        english, portuguese = (list(decisions(Telling(state, of, only), steps)) for of in ("en", "pt"))
        assert [one["seq"] for one in english] == [one["seq"] for one in portuguese]
        assert [one["seq"] for one in english] == sorted({one["seq"] for one in english})
        for one in english:
            assert one["frase"] and "{" not in one["frase"].replace("${{", "")
            assert all(one["detalhes"])
        if only is None:
            assert english[0]["evento"] == "orchestration_started"
            assert english != portuguese
        telling = Telling(state, "pt", only)
        assert standing.summary(telling, nothing_held)
        shown, total = standing.open_tickets(telling, nothing_held)
        assert len(shown) == total or len(shown) == standing.OPEN_SHOWN
    assert state == before, "only read"


def test_every_event_is_told_or_is_carried_out_by_another() -> None:
    said = set()
    for golden in GOLDENS:
        steps = golden.recorded()
        state = rebuild(steps)
        every = [None, *range(len(state.tickets))]
        said |= {one["evento"] for only in every for one in decisions(Telling(state, "en", only), steps)}
    wanted = {event_views.event_name(kind) for kind in set(get_args(ev.Event)) - CARRIED_OUT}
    assert said == wanted


def allocation(worker: str = "w1", **more: Any) -> Allocation:
    others = (
        Candidate(worker, 0.9, 1, 1, 0.8, 0.5),
        Candidate("w2", 0.85, 1, 1, 0.7, 0.5, reason=NotChosen.LOWER_SCORE),
        Candidate("w3", 0.2, 1, 1, 0.1, 0.5, reason=NotChosen.SLOWER),
    )
    refused = {NotChosen.LOWER_SCORE: 1, NotChosen.SLOWER: 1, NotChosen.NO_ROOM: 4}
    return Allocation(worker, AllocationMethod.BEST, 0.58, 0.9, others, refused, **more)


def test_a_choice_says_who_got_it_why_not_the_others_what_was_predicted_and_what_came() -> None:
    story = Story(plan([coleta(attempts=2), coleta("blog")]))
    story.confirm(when=1)
    story.do(AllocateTicket(0, 1, allocation(predicted_ms=1200, predicted_p90_ms=2900)), 1)
    assert now(story, 0) == "escavador_youtube: attempt 1 is with escavador_youtube since 2025-10-14T12:00:01Z"
    story.ok(0, when=3)
    story.confirm(1, when=3)
    (chosen,) = [one for one in told(story, 0) if one["evento"] == "ticket_allocated"]
    assert chosen["frase"] == "escavador_youtube, attempt 1: given to w1 (score 0.9, urgency 0.58): best score"
    assert chosen["detalhes"] == [
        "w2 0.85: its score is lower",
        "w3 0.2: others would be done sooner",
        "others looked at: its score is lower 1, others would be done sooner 1, it has no room 4",
        "predicted: half of such tasks take 1.2 s at most, nine of ten 2.9 s",
    ]
    assert chosen["alocacao"]["avaliados"] == 7 and chosen["em"] == at(1)
    (came,) = [one for one in told(story) if one["evento"] == "ticket_concluded"]
    assert came["detalhes"][-1] == "came after 2.0 s: within what nine of ten take"
    assert came["previsao"] == {
        "previsto_ms": 1200, "previsto_p90_ms": 2900, "levou_ms": 2000, "dentro_do_p90": True,
    }  # fmt: skip
    assert lines(story, 1, "pt")[0].startswith("pedida; tickets: 2")
    assert not any("w1" in line for line in lines(story, 1)), "of another ticket"


def test_a_slow_answer_says_that_it_took_longer_than_was_predicted() -> None:
    story = Story(plan([coleta(timeout=100)]))
    story.confirm(when=0)
    story.do(AllocateTicket(0, 1, allocation(predicted_ms=100, predicted_p90_ms=200)), 0)
    story.ok(0, when=90)
    assert "came after 90.0 s: longer than nine of ten take" in lines(story)


def test_a_failure_says_what_is_left_of_its_attempts_and_the_last_one_why_there_is_none() -> None:
    story = Story(plan([coleta(attempts=2)]))
    story.confirm(when=0)
    story.fail(0, when=1)
    assert "(error)" in now(story, 0)
    story.wake(100)
    story.confirm(when=100)
    story.fail(0, when=101)
    found = lines(story, 0)
    assert any("attempt 1 failed (error): fora do ar" in line for line in found)
    assert any(line.endswith(": 1 of 2 are used up") for line in found)
    assert "escavador_youtube: failed for good with attempt 2: fora do ar" in found
    assert "all of its attempts are used up: 2" in found
    assert now(story, 0) == "escavador_youtube: failed, because fora do ar"
    ended = told(story)[-1]
    assert ended["frase"] == "ended as failed"
    assert ended["detalhes"] == ["not enough for its fan-in (all): 1 of 1", "1 × failed: fora do ar"]


def test_an_attempt_that_made_room_says_for_which_and_that_it_uses_up_none() -> None:
    story = Story(plan([coleta(attempts=1)]))
    story.confirm(when=0)
    wait, urgent = timedelta(seconds=300), ticket_id(story.run + 1, 0)
    story.do(WithdrawTicket(0, 1, Cause.PREEMPTADO, "w1", wait, by=urgent), 1)
    (back,) = [one for one in told(story) if one["evento"] == "ticket_withdrawn"]
    assert back["frase"].endswith(f"attempt 1 taken back from w1: its place was needed for {urgent}")
    assert back["detalhes"] == ["it uses up no attempt; goes out again after 300 s"]
    assert "(it made room for a more urgent ticket)" in now(story, 0)


def test_an_offer_that_lapsed_says_who_did_not_take_it() -> None:
    story = Story(plan([coleta(attempts=1)]))
    story.confirm(when=0)
    story.do(WithdrawTicket(0, 1, Cause.OFERTA_VENCIDA, "w1"), 1)
    (back,) = [one for one in told(story) if one["evento"] == "ticket_withdrawn"]
    assert back["frase"].endswith("offer of attempt 1 withdrawn: w1 did not take it in time")
    assert back["detalhes"] == ["it uses up no attempt; goes out again at once"]


def test_a_verdict_says_which_policy_refused_which_version_and_decision() -> None:
    wanted = plan(2)
    wanted.policies = (PolicyPoint.TICKET,)
    story = Story(wanted)
    assert now(story, 0) == "escavador_fonte0: waits for the policies"
    rule = PolicyViolation("resource_limits", "timeout_exceeds_maximum", "too long", "high", "sla", "60", "90")
    refused, source = PolicyFinding(0, False, [rule]), PolicySource("opa", "v7", "d-1", "abc")
    story.do(Judge(PolicyPoint.TICKET, [(0, 0), (1, 0)], [refused], source), 1)
    (verdict,) = [one for one in told(story, 0) if one["evento"] == "policy_evaluated"]
    said = "policies (ticket): escavador_fonte0 refused: resource_limits/timeout_exceeds_maximum: too long"
    assert verdict["frase"] == said
    assert verdict["detalhes"] == [
        "by opa, policies v7, decision d-1",
        "resource_limits/timeout_exceeds_maximum: too long",
        "sla: expected 60, found 90",
    ]
    assert verdict["parecer"]["motor"] == "opa"
    (other,) = [one for one in told(story, 1) if one["evento"] == "policy_evaluated"]
    assert other["frase"] == "policies (ticket): escavador_fonte1 allowed"
    assert "released; the policies allow it" in lines(story, 1)[-1]


def test_a_verdict_that_could_not_be_had_and_let_pass_says_so() -> None:
    wanted = plan(1)
    wanted.policies = (PolicyPoint.TICKET,)
    story = Story(wanted)
    story.do(
        Judge(PolicyPoint.TICKET, [(0, 0)], [PolicyFinding(0, True, error="no answer in 1 s")], PolicySource("opa")), 1
    )
    assert any("allowed, although they could not be asked: no answer in 1 s" in line for line in lines(story))


def test_a_verdict_that_could_not_be_had_and_refuses_says_so() -> None:
    wanted = plan(1)
    wanted.policies = (PolicyPoint.PLAN,)
    story = Story(wanted)
    late = PolicyFinding(THE_PLAN, False, error="p: no answer in 1 s")
    story.do(Judge(PolicyPoint.PLAN, [(THE_PLAN, 0)], [late], PolicySource("embedded")), 1)
    why = "policies (plan): the plan refused, because they could not be asked: p: no answer in 1 s"
    assert why in lines(story)
    assert any("recusado, porque não puderam ser consultadas: p: " in line for line in lines(story, language="pt"))


def test_what_stands_behind_a_fan_in_says_who_is_missing_and_why_it_may_start() -> None:
    story = Story(plan(5, 1, modo=FanIn.QUORUM, minimo=3))
    story.confirm(when=0)
    story.ok(0, when=1)
    waits = (
        "executador_exec0 waits for 4 of 5 (quorum): escavador_fonte1, escavador_fonte2, escavador_fonte3 and 1 more"
    )
    assert now(story, 5) == waits
    story.ok(1, when=2)
    story.ok(2, when=3)
    assert "executador_exec0: may start; 3 of 5 concluded" in lines(story, 5)
    assert "escavador_fonte4: cancelled, because the fan-in (quorum) is met already" in lines(story, 4)


def test_a_plan_of_fluxo_c_is_told_by_its_tasks_with_what_it_estimated() -> None:
    story = Story(flow({"build": [], "deploy": ["build"]}))
    story.confirm(when=0)
    assert now(story, 1) == "deploy waits for 1 of 1 (all ok): build"
    story.ok(0, when=4)
    found = lines(story, 0)
    assert any(line.startswith("estimated by its plan: ") for line in found) and "took 4.0 s" in found


def test_pages_follow_each_other_without_a_gap() -> None:
    story = Story(plan(3, 1, attempts=2))
    story.confirm(when=0)
    for position in range(3):
        story.fail(position, when=1)
    whole = told(story)
    telling, steps = Telling(story.state, "en"), list(recorded(story))
    for cut in whole:
        rest = list(decisions(telling, steps, cut["seq"]))
        assert rest == [one for one in whole if one["seq"] > cut["seq"]]
