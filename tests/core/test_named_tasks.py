"""Plans of named tasks: what starts when, what is skipped, what a failure does, how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from core.given import Story
from oraculo.core.blocks import map_at
from oraculo.core.consolidation import aggregate, collected
from oraculo.core.events import TicketsDispatched
from oraculo.core.plan import Plan
from oraculo.core.reasons import ReasonCode
from oraculo.core.vocabulary import Status
from oraculo.wire import requests

DEFAULTS = requests.Defaults(max_tentativas=1)


def plan_of(**tasks: dict[str, Any]) -> Plan:
    """A task without a destination is an execution of its own name."""
    full = {
        name: {**({} if {"fonte", "executador"} & task.keys() else {"executador": name}), **task}
        for name, task in tasks.items()
    }
    return requests.plan_of(requests.parse({"tarefas": full}), DEFAULTS)


class NamedStory(Story):
    """A story that speaks of tasks by their names."""

    def __init__(self, **tasks: dict[str, Any]) -> None:
        super().__init__(plan_of(**tasks))
        self._at = {name: number for number, name in enumerate(tasks)}

    def done(self, *names: str) -> None:
        for name in names:
            self.ok(self._at[name])

    def failed(self, *names: str) -> None:
        for name in names:
            self.fail(self._at[name], definitivo=True)

    @property
    def owed(self) -> set[str]:
        return {name for name, position in self._at.items() if position in self.state.owed}

    def by_name(self) -> dict[str, str]:
        return {name: self.ticket(position).status.value for name, position in self._at.items()}

    def reason(self, name: str) -> ReasonCode | None:
        reason = self.ticket(self._at[name]).reason
        return None if reason is None else reason.code


def needs(*names: str, **more: Any) -> dict[str, Any]:
    return {"depende": list(names), **more}


def test_a_diamond_runs_in_the_order_of_its_dependencies() -> None:
    story = NamedStory(a={}, b=needs("a"), c=needs("a"), d=needs("b", "c"))
    assert story.owed == {"a"}
    story.done("a")
    assert story.owed == {"b", "c"}
    story.done("c")
    assert story.owed == {"b"}
    story.done("b")
    assert story.owed == {"d"}
    story.done("d")
    assert story.state.status is Status.CONCLUIDA


def test_what_depends_on_a_failure_is_cancelled_and_other_branches_go_on() -> None:
    story = NamedStory(a={}, b=needs("a"), c=needs("b"), x={}, y=needs("x"))
    story.failed("a")
    assert story.by_name() == {"a": "erro", "b": "cancelada", "c": "cancelada", "x": "pendente", "y": "pendente"}
    assert story.reason("b") is ReasonCode.DEPENDENCY_FAILED
    story.done("x", "y")
    assert story.state.status is Status.ERRO


@pytest.mark.parametrize(("mode", "status"), [("todos", "parcial"), ("fechadas", "parcial"), ("todas_ok", "erro")])
def test_a_fan_in_that_passes_absorbs_a_failure(mode: str, status: str) -> None:
    story = NamedStory(a={}, b={}, c=needs("a", "b", fan_in={"modo": mode}))
    story.failed("a")
    story.done("b")
    if mode != "todas_ok":
        story.done("c")
    assert story.state.status == status


def test_a_failure_at_the_end_of_a_plan_is_absorbed_by_nothing() -> None:
    story = NamedStory(a={}, b={})
    story.failed("a")
    story.done("b")
    assert story.state.status is Status.ERRO


def test_an_optional_failure_counts_neither_way() -> None:
    story = NamedStory(a={"opcional": True}, b={}, c=needs("a", "b"))
    story.failed("a")
    story.done("b")
    assert story.owed == {"c"}, "todas_ok counts what was not skipped"
    story.done("c")
    assert (story.state.status, story.by_name()["a"]) == (Status.PARCIAL, "erro")


def test_what_depends_on_nothing_but_skipped_tasks_is_skipped() -> None:
    story = NamedStory(a={"opcional": True}, b=needs("a"), c=needs("b"), d={}, e=needs("c", "d"))
    story.failed("a")
    assert story.by_name() == {"a": "erro", "b": "ignorada", "c": "ignorada", "d": "pendente", "e": "pendente"}
    assert story.reason("b") is ReasonCode.DEPENDENCIES_SKIPPED
    story.done("d")
    assert story.owed == {"e"}, "one of two dependencies was not skipped"
    story.done("e")
    assert story.state.status is Status.PARCIAL


def test_every_mode_skips_a_join_of_skipped_tasks() -> None:
    for mode in ("todas_ok", "todos", "primeiro", "fechadas", "quorum"):
        rule = {"modo": mode, **({"minimo": 2} if mode == "quorum" else {})}
        story = NamedStory(a={"opcional": True}, b={"opcional": True}, c=needs("a", "b", fan_in=rule))
        story.failed("a", "b")
        assert (mode, story.by_name()["c"], story.state.status) == (mode, "ignorada", Status.PARCIAL)


def test_an_input_is_spare_only_when_every_gate_that_it_feeds_has_closed() -> None:
    story = NamedStory(a={}, b={}, first=needs("a", "b", fan_in={"modo": "primeiro"}), both=needs("a", "b"))
    story.done("a")
    assert story.owed == {"b", "first"}, "`both` needs b"
    story.done("b", "first", "both")
    assert story.state.status is Status.CONCLUIDA


def test_the_first_is_enough_and_the_others_are_cancelled() -> None:
    story = NamedStory(a={}, b={}, c={}, d=needs("a", "b", "c", fan_in={"modo": "primeiro"}))
    story.done("b")
    assert story.by_name() == {"a": "cancelada", "b": "concluida", "c": "cancelada", "d": "pendente"}
    assert story.reason("a") is ReasonCode.FAN_IN_MET
    story.done("d")
    assert story.state.status is Status.CONCLUIDA


def test_spare_once_the_other_gate_cannot_pass() -> None:
    story = NamedStory(
        a={}, b={}, x={}, first=needs("a", "b", fan_in={"modo": "primeiro"}), both=needs("b", "x", fan_in={})
    )
    story.done("a")
    assert story.by_name()["b"] == "pendente"
    story.failed("x")
    assert story.by_name()["both"] == "cancelada"
    assert (story.by_name()["b"], story.reason("b")) == ("cancelada", ReasonCode.FAN_IN_MET)


def test_a_quorum_that_cannot_be_met() -> None:
    story = NamedStory(a={}, b={}, c={}, d=needs("a", "b", "c", fan_in={"modo": "quorum", "minimo": 2}))
    story.failed("a", "b")
    assert (story.by_name()["d"], story.reason("d")) == ("cancelada", ReasonCode.FAN_IN_UNREACHABLE)
    assert story.by_name()["c"] == "pendente", "what runs goes on"
    story.done("c")
    assert story.state.status is Status.ERRO


def test_codes_that_are_not_tried_again() -> None:
    story = NamedStory(a={"max_tentativas": 5, "retentativa": {"nao_em": ["http_500"]}}, b={"max_tentativas": 5})
    story.fail(0)
    story.fail(1)
    assert story.by_name() == {"a": "erro", "b": "pendente"}


def test_waits_of_its_own() -> None:
    story = NamedStory(a={"max_tentativas": 9, "retentativa": {"base_s": 600, "teto_s": 6000}}, b={"max_tentativas": 9})
    story.fail(0)
    story.fail(1)
    due = [story.ticket(position).due_at for position in (0, 1)]
    assert due[0] is not None and due[1] is not None
    assert due[0].timestamp() > due[1].timestamp() + 1


def test_an_executor_gets_what_it_says_it_depends_on_in_that_order() -> None:
    story = NamedStory(a={"fonte": "youtube"}, b={}, c=needs("b", "a"), d=needs("a"))
    story.ok(0, b"[1]")
    story.ok(1, b'{"x":2}')
    assert collected(story.state, 2) == [
        {"tarefa": "b", "executador": "b", "status": Status.CONCLUIDA, "dados": b'{"x":2}'},
        {"tarefa": "a", "fonte": "youtube", "status": Status.CONCLUIDA, "dados": b"[1]"},
    ]
    assert [one["tarefa"] for one in collected(story.state, 3)] == ["a"]


def test_the_aggregate_has_the_tasks_by_name() -> None:
    story = NamedStory(a={"fonte": "youtube"}, b=needs("a"))
    story.ok(0, b"[1]")
    story.failed("b")
    whole = aggregate(story.state)
    assert list(whole["tarefas"]) == ["a", "b"]
    assert whole["tarefas"]["a"] | {"duracao_ms": 0} == {
        "status": Status.CONCLUIDA, "dados": b"[1]", "erros": [], "tentativas": 1, "duracao_ms": 0,
    }  # fmt: skip
    assert whole["tarefas"]["b"]["erros"][0]["codigo"] == "http_500"
    assert whole["saida"] == b"null"
    assert (whole["coletas"][0]["tarefa"], whole["execucoes"][0]["tarefa"]) == ("a", "b")


def test_an_order_says_what_had_ended_when_its_task_began_whenever_it_is_written() -> None:
    rule = {"modo": "primeiro"}
    story = NamedStory(a={}, b={}, first=needs("a", "b", fan_in=rule), both=needs("a", "b"))
    story.ok(0, b"1", when=1)
    before = collected(story.state, 2)
    assert [(one["tarefa"], one["status"], one["dados"]) for one in before] == [
        ("a", Status.CONCLUIDA, b"1"), ("b", Status.PENDENTE, None),
    ]  # fmt: skip
    story.ok(1, b"2", when=5)
    assert collected(story.state, 2) == before
    assert [one["dados"] for one in collected(story.state, 3)] == [b"1", b"2"]


def _dispatched(story: Story) -> list[list[int]]:
    return [one.tickets for _, events in story.journal for one in events if isinstance(one, TicketsDispatched)]


def test_tasks_that_are_ready_together_go_by_their_priority() -> None:
    story = NamedStory(a={"prioridade": 1}, b={}, c={"prioridade": 9}, d={}, e=needs("a", prioridade=6), f=needs("a"))
    assert _dispatched(story) == [[2, 1, 3, 0]]
    story.done("a")
    assert _dispatched(story)[-1] == [4, 5]


def test_a_plan_says_how_urgent_its_tickets_are() -> None:
    mapped = {"para_cada": [1], "prioridade": 2, "faz": {"fonte": "x"}}
    tasks = {"a": {"fonte": "x", "prioridade": 9}, "b": {"fonte": "x"}, "c": mapped}
    plan = requests.plan_of(requests.parse({"tarefas": tasks}), DEFAULTS)
    assert plan.profile.has_ceiling and not plan_of(a={}).profile.has_ceiling
    assert [plan.profile.score_of(position).value for position in range(3)] == [0.79, 0.44, 0.335]
    spec = map_at(plan, 2)
    assert spec is not None and spec.item.priority == 2
