"""Waits of a plan: signals, approvals, seconds and instants."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from core.given import Story, at
from oraculo.core import events as ev
from oraculo.core.commands import Approve, Cancel, RecordResult, Signal, Wake
from oraculo.core.consolidation import aggregate, collected
from oraculo.core.plan import Plan
from oraculo.core.reasons import ReasonCode
from oraculo.core.replay import cause_of
from oraculo.core.sentences import errors_of
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Phase, Status, Verdict
from oraculo.core.waits import SIGNALS_KEPT_MAX, WaitEnd
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.wire import requests

DEFAULTS = requests.Defaults(max_tentativas=1)


def plan_of(tasks: dict[str, Any], **more: Any) -> Plan:
    return requests.plan_of(requests.parse({"tarefas": tasks, **more}), DEFAULTS)


def signal_wait(name: str = "ok", **more: Any) -> dict[str, Any]:
    return {"espera": {"sinal": name, **more}}


def approval_wait(**more: Any) -> dict[str, Any]:
    return {"espera": {"aprovacao": {}, **more}}


def run_task(*needs: str, **more: Any) -> dict[str, Any]:
    return {"executador": "x", **({"depende": list(needs)} if needs else {}), **more}


class WaitStory(Story):
    """A story that speaks of tasks by their names, and evaluates what is asked."""

    def __init__(self, tasks: dict[str, Any], **more: Any) -> None:
        super().__init__(plan_of(tasks, **more))
        self.at = {name: number for number, name in enumerate(tasks)}
        self._sent = 0
        self.evaluate()

    def evaluate(self) -> None:
        while commands := evaluate_inline(self.state):
            for command in commands:
                self.do(command)

    def signal(self, name: str = "ok", dados: bytes = b"1", id: str | None = None, when: float | None = None) -> Any:
        self._sent += 1
        done = self.do(Signal(id or f"s{self._sent}", name, dados), when)
        self.evaluate()
        return done

    def decide(self, name: str, approved: bool, when: float | None = None) -> Any:
        done = self.do(Approve(approved, "ana", "visto", task=self.at[name]), when)
        self.evaluate()
        return done

    def done(self, name: str) -> None:
        self.ok(self.at[name])
        self.evaluate()

    def of(self, name: str) -> Any:
        return self.ticket(self.at[name])

    def by_name(self) -> dict[str, str]:
        return {name: self.of(name).status.value for name in self.at}


# -- signals -----------------------------------------------------------------------------------------------------------


def test_a_signal_ends_the_wait_and_its_data_go_on() -> None:
    story = WaitStory({"ok": signal_wait(), "x": run_task("ok")})
    assert (story.of("ok").phase, story.of("ok").status) == (Phase.HELD, Status.EM_EXECUCAO)
    assert not story.state.owed
    done = story.signal(dados=b'{"nota":7}', when=3)
    assert [type(event) for event in done.events[:2]] == [ev.SignalReceived, ev.WaitEnded]
    assert story.of("ok").dados == b'{"nota":7}'
    assert story.of("x").phase is Phase.OWED
    assert collected(story.state, story.at["x"]) == [
        {"tarefa": "ok", "espera": "sinal:ok", "status": "concluida", "dados": b'{"nota":7}'}
    ]
    story.done("x")
    assert story.state.status is Status.CONCLUIDA
    assert aggregate(story.state)["tarefas"]["ok"] == {
        "status": "concluida", "dados": b'{"nota":7}', "erros": [], "tentativas": 0, "duracao_ms": 3000,
    }  # fmt: skip
    assert len(aggregate(story.state)["execucoes"]) == 1


def test_an_early_signal_is_kept_and_taken_by_one_wait() -> None:
    story = WaitStory(
        {"x": run_task(), "a": signal_wait() | {"depende": ["x"]}, "b": signal_wait() | {"depende": ["x"]}}
    )
    early = story.signal(dados=b'"cedo"')
    assert isinstance(early.events[0], ev.SignalReceived) and early.events[0].taken_by is None
    assert list(story.state.kept) == ["s1"]
    story.done("x")
    assert (story.of("a").dados, story.of("b").phase) == (b'"cedo"', Phase.HELD)
    assert not story.state.kept
    story.signal(dados=b'"tarde"')
    assert story.of("b").dados == b'"tarde"'
    assert story.state.status is Status.CONCLUIDA


def test_signals_are_taken_in_the_order_of_waiting() -> None:
    """`b` begins to wait before `a`, which stands before it in the plan."""
    story = WaitStory({"a": signal_wait() | {"depende": ["x"]}, "b": signal_wait(), "x": run_task()})
    story.done("x")
    story.signal(dados=b"1")
    assert (story.of("b").dados, story.of("a").phase) == (b"1", Phase.HELD)
    story.signal(dados=b"2")
    assert story.of("a").dados == b"2"


def test_the_same_id_again_is_no_second_signal() -> None:
    story = WaitStory({"a": signal_wait(), "b": signal_wait()})
    story.signal(dados=b"1", id="k")
    assert story.signal(dados=b"1", id="k").verdict is Verdict.DUPLICATE
    assert story.signal(dados=b"2", id="k").verdict is Verdict.SIGNAL_REUSED
    assert story.of("b").phase is Phase.HELD
    assert story.state.signals["k"].taken_by == story.at["a"]
    story.signal(dados=b"1", id="l")
    assert story.state.status is Status.CONCLUIDA
    assert story.signal(dados=b"1", id="k").verdict is Verdict.DUPLICATE
    assert story.signal(dados=b"1", id="m").verdict is Verdict.IDLE


def test_a_signal_that_no_wait_has_is_refused_and_changes_nothing() -> None:
    story = WaitStory({"a": signal_wait("revisao")})
    assert story.signal("outra").verdict is Verdict.UNKNOWN_SIGNAL
    assert story.signal("aprovacao").verdict is Verdict.UNKNOWN_SIGNAL
    assert not story.state.signals


def test_at_most_a_hundred_signals_are_kept() -> None:
    story = WaitStory({"x": run_task(), "a": signal_wait() | {"depende": ["x"]}, "b": signal_wait("outro")})
    for _ in range(SIGNALS_KEPT_MAX):
        assert story.signal().verdict is Verdict.APPLIED
    assert story.signal().verdict is Verdict.TOO_MANY_SIGNALS
    assert story.signal("outro").verdict is Verdict.APPLIED  # a wait takes it at once
    story.done("x")
    assert story.state.status is Status.CONCLUIDA


@pytest.mark.parametrize(
    ("otherwise", "task", "run"), [("falha", "timeout", "erro"), ("segue", "concluida", "concluida")]
)
def test_a_wait_without_a_signal_expires(otherwise: str, task: str, run: str) -> None:
    story = WaitStory({"a": signal_wait(timeout_s=60, ao_expirar=otherwise), "x": run_task("a")})
    assert story.state.wake_at() == at(60)
    assert story.do(Wake(), 59.9).verdict is Verdict.IDLE
    story.do(Wake(), 60)
    assert story.of("a").status.value == task
    if otherwise == "falha":
        assert errors_of(story.of("a")) == [
            {"codigo": "timeout", "mensagem": "o sinal ok não veio em 60 s", "definitivo": True}
        ]
        assert story.of("x").status is Status.CANCELADA
    else:
        assert story.of("a").dados == b"null"
        story.done("x")
    assert story.state.status.value == run


def test_whichever_comes_first_ends_the_wait() -> None:
    story = WaitStory({"a": signal_wait(timeout_s=60), "x": run_task()})
    story.signal(when=60)  # its time is over, and nothing has woken it
    assert story.of("a").status is Status.CONCLUIDA
    assert story.do(Wake(), 61).verdict is Verdict.IDLE
    other = WaitStory({"a": signal_wait(timeout_s=60), "x": run_task()})
    other.do(Wake(), 60)
    assert other.signal(when=60).verdict is Verdict.APPLIED  # kept for a wait that may come
    assert other.of("a").status is Status.TIMEOUT


def test_what_a_worker_says_to_a_wait_is_refused() -> None:
    story = WaitStory({"a": signal_wait()})
    identity = ticket_id(story.run, 0)
    for attempt in (None, 1):
        answer = RecordResult(True, b"1", [], ticket=identity, attempt=attempt, digest=1)
        assert story.do(answer).verdict is Verdict.WRONG_ATTEMPT
    assert story.do(RecordResult(True, b"1", [], digest=1)).verdict is Verdict.UNKNOWN_TICKET


def test_a_wait_that_nothing_needs_any_more_is_cancelled() -> None:
    story = WaitStory({"a": signal_wait(), "x": run_task(), "y": run_task("a", "x", fan_in={"modo": "primeiro"})})
    story.done("x")
    assert story.of("a").status is Status.CANCELADA
    assert not story.state.held["sinal:ok"]
    story.done("y")
    assert story.state.status is Status.CONCLUIDA


# -- approvals ---------------------------------------------------------------------------------------------------------


def test_an_approval_goes_on_with_who_decided() -> None:
    story = WaitStory({"a": approval_wait(), "x": run_task("a", quando="${{ a.dados.aprovado }}")})
    story.decide("a", True, when=5)
    assert json.loads(story.of("a").dados) == {
        "aprovado": True, "por": "ana", "motivo": "visto", "em": "2025-10-14T12:00:05Z",
    }  # fmt: skip
    assert story.of("x").phase is Phase.OWED
    assert story.decide("a", False).verdict is Verdict.IDLE


def test_a_refused_approval_cancels_what_is_behind_it_and_the_run() -> None:
    story = WaitStory({"a": approval_wait(), "x": run_task("a"), "y": run_task("x")}, saida="${{ x.resultado }}")
    story.decide("a", False)
    assert story.by_name() == {"a": "cancelada", "x": "cancelada", "y": "cancelada"}
    assert story.of("a").reason.code is ReasonCode.NOT_APPROVED
    assert story.state.status is Status.CANCELADA
    assert story.state.output == b"null"


def test_other_branches_finish_before_a_refused_run_ends() -> None:
    story = WaitStory({"a": approval_wait(), "x": run_task("a"), "z": run_task()})
    story.decide("a", False)
    assert story.state.status is Status.EM_EXECUCAO
    story.done("z")
    assert story.state.status is Status.CANCELADA


def test_a_failure_weighs_more_than_a_refusal() -> None:
    story = WaitStory({"a": approval_wait(), "x": run_task("a"), "z": run_task()})
    story.decide("a", False)
    story.fail(story.at["z"], definitivo=True)
    assert story.state.status is Status.ERRO


def test_a_refusal_is_absorbed_by_a_fan_in_that_passes_all_the_same() -> None:
    story = WaitStory({"a": approval_wait(), "z": run_task(), "y": run_task("a", "z", fan_in={"modo": "todos"})})
    story.decide("a", False)
    story.done("z")
    story.done("y")
    assert story.state.status is Status.PARCIAL
    optional = WaitStory({"a": approval_wait() | {"opcional": True}, "z": run_task()})
    optional.decide("a", False)
    optional.done("z")
    assert optional.state.status is Status.PARCIAL


def test_a_refusal_may_be_said_to_go_on() -> None:
    story = WaitStory({"a": approval_wait(ao_recusar="segue"), "x": run_task("a", quando="${{ a.dados.aprovado }}")})
    story.decide("a", False)
    assert story.by_name() == {"a": "concluida", "x": "ignorada"}
    assert story.state.status is Status.CONCLUIDA


def test_an_approval_for_the_whole_plan_is_none_of_a_task() -> None:
    story = WaitStory({"a": approval_wait(), "b": signal_wait()})
    assert story.do(Approve(True, "ana")).verdict is Verdict.IDLE
    assert story.do(Approve(True, "ana", task=story.at["b"])).verdict is Verdict.IDLE
    assert story.do(Approve(True, "ana", task=99)).verdict is Verdict.IDLE


def test_several_approvals_are_decided_one_by_one() -> None:
    story = WaitStory({"a": approval_wait(), "b": approval_wait()})
    story.decide("b", True)
    assert story.by_name() == {"a": "em_execucao", "b": "concluida"}
    story.decide("a", True)
    assert story.state.status is Status.CONCLUIDA


# -- instants ----------------------------------------------------------------------------------------------------------


def test_seconds_pass_from_when_the_wait_begins() -> None:
    story = WaitStory({"x": run_task(), "a": {"espera": {"segundos": 3 * 86400}, "depende": ["x"]}})
    story.ok(story.at["x"], when=100)
    due = 100 + 3 * 86400
    assert story.state.wake_at() == at(due)
    assert story.do(Wake(), due - 1).verdict is Verdict.IDLE
    done = story.do(Wake(), due)
    assert [type(event) for event in done.events] == [ev.Woken, ev.WaitEnded, ev.OrchestrationClosed]
    assert done.events[1].how is WaitEnd.ELAPSED
    assert story.state.status is Status.CONCLUIDA


@pytest.mark.parametrize("wait", [{"segundos": 0}, {"ate": "2025-01-01T00:00:00-03:00"}])
def test_what_is_past_ends_at_once(wait: dict[str, Any]) -> None:
    story = WaitStory({"a": {"espera": wait}, "x": run_task("a")})
    assert (story.of("a").status, story.of("x").phase) == (Status.CONCLUIDA, Phase.OWED)


def test_an_instant_is_waited_for_in_its_zone() -> None:
    story = WaitStory({"a": {"espera": {"ate": "2025-10-14T10:00:30-02:00"}}})
    assert story.state.wake_at() == at(30)
    story.do(Wake(), 30)
    assert story.state.status is Status.CONCLUIDA


def test_an_instant_that_is_too_far_away_is_an_error() -> None:
    story = WaitStory({"a": {"espera": {"ate": "2030-01-01T00:00:00Z"}}})
    assert story.of("a").status is Status.ERRO
    assert errors_of(story.of("a"))[0]["codigo"] == "expressao"
    assert story.state.status is Status.ERRO


def test_seconds_instants_and_questions_may_be_expressions() -> None:
    tasks = {
        "a": {"espera": {"segundos": "${{ entrada.n * 2 }}"}},
        "b": {"espera": {"ate": "${{ timestamp(entrada.at) + duration('60s') }}"}},
        "c": {"espera": {"aprovacao": {"pergunta": "pagar ${{ entrada.n }}?"}}},
    }
    story = WaitStory(tasks, entrada={"n": 5, "at": "2025-10-14T12:00:00Z"})
    assert (story.of("a").due_at, story.of("b").due_at, story.of("c").due_at) == (at(10), at(60), None)
    assert story.state.parameters(story.at["c"]) == b'"pagar 5?"'


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        ({"segundos": "${{ 'x' }}"}, "espera.segundos: ${{ 'x' }}: a wait takes 0 to 31622400 seconds, not 'x'"),
        ({"segundos": "${{ -1 }}"}, "espera.segundos: ${{ -1 }}: a wait takes 0 to 31622400 seconds, not -1"),
        ({"ate": "${{ 'amanha' }}"}, "espera.ate: ${{ 'amanha' }}: a wait ends at an instant with its zone"),
    ],
)
def test_an_expression_that_gives_no_instant_is_an_error(wait: dict[str, Any], said: str) -> None:
    story = WaitStory({"a": {"espera": wait}})
    (error,) = errors_of(story.of("a"))
    assert error["mensagem"].startswith(f"tarefas.a.{said}")
    assert (error["codigo"], story.state.status) == ("expressao", Status.ERRO)


def test_a_wait_with_a_false_condition_is_skipped() -> None:
    story = WaitStory({"a": signal_wait() | {"quando": "${{ entrada.n > 1 }}"}, "x": run_task()}, entrada={"n": 1})
    assert story.of("a").status is Status.IGNORADA
    story.done("x")
    assert story.state.status is Status.CONCLUIDA


# -- deadlines ---------------------------------------------------------------------------------------------------------


def test_a_plan_that_waits_has_no_deadline_of_its_own() -> None:
    story = WaitStory({"a": signal_wait()})
    assert (story.state.deadline, story.state.wake_at()) == (None, None)
    story.do(Wake(), 400 * 86400)
    assert story.state.status is Status.EM_EXECUCAO
    assert not story.state.finished
    story.signal()
    assert story.state.finished


def test_a_deadline_that_was_asked_for_ends_a_wait() -> None:
    story = WaitStory({"a": signal_wait()}, timeout_s=600)
    assert story.state.wake_at() == at(600)
    story.do(Wake(), 600)
    assert (story.of("a").status, story.state.status) == (Status.TIMEOUT, Status.TIMEOUT)


def test_a_plan_without_a_wait_keeps_its_deadline() -> None:
    assert plan_of({"x": run_task()}).timeout == timedelta(seconds=DEFAULTS.timeout_s)


def test_cancelling_ends_a_wait() -> None:
    story = WaitStory({"a": signal_wait(), "b": approval_wait()})
    story.do(Cancel("basta"))
    assert story.by_name() == {"a": "cancelada", "b": "cancelada"}
    assert story.state.wake_at() is None


# -- the journal -------------------------------------------------------------------------------------------------------


def test_signals_and_decisions_are_their_own_commands_again() -> None:
    story = WaitStory({"a": signal_wait(), "b": approval_wait()})
    given = Signal("k", "ok", b"1", "kana")
    assert cause_of(story.do(given).events) == given
    decided = Approve(False, "ana", "não", "kana", story.at["b"])
    assert cause_of(story.do(decided).events) == decided


# -- maps --------------------------------------------------------------------------------------------------------------


def map_of(items: Any, *needs: str, **more: Any) -> dict[str, Any]:
    return {"para_cada": items, "faz": {"executador": "x"}, **({"depende": list(needs)} if needs else {}), **more}


def test_a_signal_brings_the_items_of_a_map() -> None:
    """While it runs, items stand behind the plan, and another wait takes its signal all the same."""
    story = WaitStory(
        {
            "lista": signal_wait(),
            "m": map_of("${{ lista.dados }}"),
            "fim": signal_wait("fim"),
            "x": run_task("m", "fim"),
        }
    )
    story.signal(dados=b"[10,20]")
    items = story.state.items(story.at["m"])
    assert (story.of("m").phase, [story.ticket(item).phase for item in items]) == (Phase.GROWN, [Phase.OWED] * 2)
    story.signal("fim", b'"agora"')
    assert story.of("fim").dados == b'"agora"'
    for item in items:
        story.ok(item, b"%d" % item)
    story.evaluate()
    given = collected(story.state, story.at["x"])
    assert [(one["tarefa"], one["dados"]) for one in given] == [
        ("m", b"[%d,%d]" % tuple(items)),
        ("fim", b'"agora"'),
    ]
    story.done("x")
    assert story.state.status is Status.CONCLUIDA


def test_a_wait_behind_a_map_that_is_partial_begins() -> None:
    story = WaitStory({"m": map_of([1, 2]), "ok": approval_wait() | {"depende": ["m"]}})
    first, second = story.state.items(story.at["m"])
    story.ok(first)
    story.fail(second)
    assert (story.of("m").status, story.of("ok").phase) == (Status.PARCIAL, Phase.HELD)
    story.decide("ok", True)
    assert story.state.status is Status.PARCIAL


def test_a_map_behind_a_refusal_is_refused_with_it() -> None:
    story = WaitStory({"ok": approval_wait(), "m": map_of([1], "ok"), "x": run_task("m")})
    story.decide("ok", False)
    assert story.by_name() == {"ok": "cancelada", "m": "cancelada", "x": "cancelada"}
    assert story.state.status is Status.CANCELADA


def test_items_that_failed_weigh_more_than_a_refusal() -> None:
    story = WaitStory({"ok": approval_wait(), "m": map_of([1]), "x": run_task("ok")})
    story.decide("ok", False)
    (item,) = story.state.items(story.at["m"])
    story.fail(item)
    assert (story.of("m").status, story.state.status) == (Status.ERRO, Status.ERRO)
