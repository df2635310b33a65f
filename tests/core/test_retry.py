"""Retries: what is taken over and when it counts, for every shape of plan."""

from __future__ import annotations

from typing import Any

import pytest

from core.given import Retry, Story, dag, flow, plan
from oraculo.core import retrying
from oraculo.core.commands import Cancel, Command, Signal
from oraculo.core.events import ResultsReused
from oraculo.core.plan import Plan
from oraculo.core.replay import cause_of
from oraculo.core.reuse import RetryFrom
from oraculo.core.vocabulary import FanIn, Phase, Status, Verdict
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.wire import requests


def named(tasks: dict[str, Any], **more: Any) -> Plan:
    return requests.plan_of(requests.parse({"tarefas": tasks, **more}), requests.Defaults())


def evaluated(story: Story) -> None:
    while commands := evaluate_inline(story.state):
        for command in commands:
            story.do(command)


def test_stages_take_over_what_was_collected() -> None:
    story = Story(plan(2, 1))
    story.confirm()
    story.ok(0, b"[1]")
    story.ok(1, b"[2]")
    story.confirm()
    story.fail(2)
    assert story.state.status is Status.ERRO
    retry = Retry(story)
    assert retry.sent == [2]
    assert [retry.ticket(p).dados for p in (0, 1)] == [b"[1]", b"[2]"]
    retry.ok(2)
    assert retry.state.status is Status.CONCLUIDA


def test_what_was_made_from_something_that_runs_again_is_made_again() -> None:
    story = Story(plan(2, 1))
    story.confirm()
    story.ok(0)
    story.fail(1)
    story.confirm()
    story.ok(2)
    assert story.state.status is Status.PARCIAL
    retry = Retry(story)
    assert retry.sent == [1]
    retry.ok(1)
    assert retry.sent == [1, 2]


def test_from_the_start_takes_nothing_over() -> None:
    story = Story(plan(2))
    story.ok(0)
    story.fail(1)
    retry = Retry(story, RetryFrom.START)
    assert retry.sent == [0, 1]
    assert retry.state.origin is not None and not retry.state.origin.reuses


def test_one_task_and_all_behind_it() -> None:
    story = Story(dag({"a": [], "b": ["a"], "c": ["b"], "d": ["a"]}))
    for position in (0, 1, 2, 3):
        story.ok(position)
    retry = Retry(story, RetryFrom.TASK, "b")
    assert retry.sent == [1]
    assert [retry.ticket(p).reused for p in range(4)] == [True, False, False, True]
    retry.ok(1)
    assert retry.sent == [1, 2]


@pytest.mark.parametrize("at_once", [None, 1])
def test_a_map_runs_only_the_items_that_failed_and_evaluates_nothing(at_once: int | None) -> None:
    window = {} if at_once is None else {"ao_mesmo_tempo": at_once}
    item = {"executador": "x", "max_tentativas": 1, "parametros": {"n": "${{ i }}"}}
    story = Story(named({"m": {"para_cada": [10, 11, 12, 13], "como": "i", "faz": item, **window}}))
    evaluated(story)
    for position in (1, 2, 3, 4):
        story.fail(position) if position in (2, 4) else story.ok(position, b"%d" % position)
    assert story.state.status is Status.PARCIAL
    retry = Retry(story)
    assert not retry.state.asks, "its rows are known"
    assert retry.sent == ([2, 4] if at_once is None else [2])
    assert retry.state.parameters(2) == b'{"n":11}'
    retry.ok(2, b"2")
    retry.ok(4, b"4")
    assert retry.state.status is Status.CONCLUIDA
    assert retry.sent == [2, 4]


def test_an_item_that_was_not_needed_stays_unneeded() -> None:
    item = {"executador": "x", "max_tentativas": 1, "parametros": {"n": "${{ i }}"}}
    tasks = {
        "m": {"para_cada": [1, 2, 3], "como": "i", "faz": item, "fan_in": {"modo": "primeiro"}},
        "f": {"executador": "y", "max_tentativas": 1, "depende": ["m"]},
    }
    story = Story(named(tasks))
    evaluated(story)
    story.ok(3)
    story.fail(1)
    retry = Retry(story)
    assert retry.sent == [1]
    retry.ok(1)
    assert [one.status for one in retry.state.tickets[2:]] == [Status.CANCELADA, Status.CONCLUIDA, Status.CANCELADA]


def test_a_signal_that_was_taken_counts_in_its_turn() -> None:
    tasks = {
        "a": {"executador": "x", "max_tentativas": 1},
        "ok": {"espera": {"sinal": "s"}, "depende": ["a"], "fan_in": {"modo": "fechadas"}},
        "b": {"executador": "y", "max_tentativas": 1, "depende": ["ok"]},
    }
    story = Story(named(tasks))
    story.fail(0)
    story.do(Signal("1", "s", b'"sim"'))
    story.fail(2)
    retry = Retry(story)
    assert retry.sent == [0], "what waited for it waits for it again"
    assert retry.ticket(1).phase is Phase.WAITING
    retry.ok(0)
    assert (retry.ticket(1).dados, retry.ticket(1).reused) == (b'"sim"', True)
    assert retry.sent == [0, 2]


def test_a_loop_that_concluded_gives_its_last_result_and_another_begins_anew() -> None:
    faz = {"executador": "x", "max_tentativas": 1, "parametros": {"n": "${{ indice }}"}}
    loop = {"repete": {"faz": faz, "pare_quando": "${{ indice == 1 }}", "no_maximo": 3}}
    story = Story(named({"a": loop, "b": {"executador": "y", "max_tentativas": 1, "depende": ["a"]}}))
    evaluated(story)
    for _ in range(2):
        story.ok(next(iter(story.state.owed)), b'"ultima"')
        evaluated(story)
    story.fail(1)
    retry = Retry(story)
    assert retry.sent == [1]
    assert (retry.ticket(0).dados, retry.ticket(0).reused) == (b'"ultima"', True)
    again = Retry(story, RetryFrom.TASK, "a")
    evaluated(again)
    assert again.state.parameters(again.sent[0]) == b'{"n":0}'


def test_what_was_undone_is_done_again() -> None:
    story = Story(flow({"a": [], "b": ["a"], "c": []}))
    story.ok(0)
    story.ok(2)
    story.fail(1)
    while story.state.closed_at is None:
        story.ok(next(iter(story.state.owed)))
    assert sorted(story.state.undone) == [0, 1]
    retry = Retry(story)
    assert retry.sent == [0]
    assert [one.reused for one in retry.state.tickets] == [False, False, True]


def test_a_quorum_that_was_met_is_met_again() -> None:
    story = Story(plan(3, 1, modo=FanIn.QUORUM, minimo=2))
    story.ok(0)
    story.ok(1)
    story.fail(3)
    retry = Retry(story)
    assert retry.sent == [3]


def test_chunks_hold_no_more_than_they_may_and_come_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "CHUNK_RESULTS", 2)
    story = Story(plan(5))
    for position in range(4):
        story.ok(position)
    story.do(Cancel("chega"))
    retry = Retry(story)
    chunks = [one for _, events in retry.journal for one in events if isinstance(one, ResultsReused)]
    assert [(len(one.results), one.more) for one in chunks] == [(2, True), (2, False)]
    assert retry.sent == [4]
    last: Command = cause_of([chunks[-1]])
    assert retry.do(last).verdict is Verdict.IDLE


def test_a_retry_can_be_tried_again() -> None:
    story = Story(dag({"a": [], "b": ["a"]}))
    story.ok(0, b"1")
    story.fail(1)
    first = Retry(story)
    first.fail(1)
    second = Retry(first)
    assert second.sent == [1]
    assert second.ticket(0).dados == b"1"


def test_names_of_tasks_are_those_of_the_plan() -> None:
    assert retrying.task_names(Story(plan(2, 1)).state) == ["fonte0", "fonte1", "exec0"]
    assert retrying.task_names(Story(flow({"a": [], "b": ["a"]})).state) == ["a", "b"]
    story = Story(named({"v": {"fonte": "x"}}))
    assert retrying.task_names(story.state) == ["v"]


def test_a_map_without_items_that_its_neighbour_makes_unnecessary_ends_once() -> None:
    """Both are given again in one step: the neighbour is enough for the first of two, and the map has nothing to do."""
    story = Story(
        named(
            {
                "mapa": {"para_cada": "${{ entrada.itens }}", "como": "item", "faz": {"fonte": "x"}},
                "outra": {"fonte": "outra"},
                "uma": {"executador": "uma", "depende": ["mapa", "outra"], "fan_in": {"modo": "primeiro"}},
                "fim": {"executador": "fim", "depende": ["outra"]},
            },
            entrada={"itens": []},
        )
    )
    evaluated(story)
    story.confirm()
    story.ok(1)
    story.confirm()
    story.ok(2)
    story.fail(3, definitivo=True)
    assert [story.ticket(p).status for p in range(4)] == [*[Status.CONCLUIDA] * 3, Status.ERRO]
    retry = Retry(story)
    assert [retry.ticket(p).phase for p in range(3)] == [Phase.CLOSED] * 3
    endings = [event for event in retry.events if type(event).__name__ == "MapEnded"]
    assert endings == [] and retry.ticket(0).status is Status.CANCELADA
    retry.ok(3)
    assert retry.state.status is Status.CONCLUIDA
