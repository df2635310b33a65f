"""Undoing a plan of named tasks: what is undone, in which order, with what, and how the run ends."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from core.given import Story
from oraculo.core.commands import Approve, Cancel, ConfirmDispatch, Grow, Resolve, Wake
from oraculo.core.events import CompensationStarted
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Kind, Status, Verdict
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.wire import requests, views

DEFAULTS = requests.Defaults(max_tentativas=1)
UNDO = {"executador": "desfaz", "parametros": {"id": "${{ feito.id }}"}}


def plan_of(tasks: dict[str, Any], **more: Any) -> Plan:
    return requests.plan_of(requests.parse({"tarefas": tasks, **more}), DEFAULTS)


def call(*needs: str, undo: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "executador": "x",
        **({"depende": list(needs)} if needs else {}),
        **({"desfaz": UNDO} if undo else {}),
        **more,
    }


class UndoStory(Story):
    """Speaks of tasks by name; expressions are evaluated as soon as they are asked."""

    def __init__(self, tasks: dict[str, Any], **more: Any) -> None:
        super().__init__(plan_of(tasks, **more))
        self._at = {name: number for number, name in enumerate(tasks)}
        self._evaluate()

    def do(self, command: Any, when: float | None = None) -> Any:
        done = super().do(command, when)
        if not isinstance(command, Resolve | Grow):
            self._evaluate()
        return done

    def _evaluate(self) -> None:
        while self.state.asks_anything:
            for command in evaluate_inline(self.state):
                super().do(command)

    def position(self, name: str) -> int:
        """Of a task, `task#n` of an item, `-task` and `-task#n` of what undoes them."""
        undoes, name = name.startswith("-"), name.removeprefix("-")
        task, _, item = name.partition("#")
        found = self.state.items(self._at[task])[int(item)] if item else self._at[task]
        return self.state.undone[found] if undoes else found

    def sent(self) -> list[str]:
        """What is with brokers now."""
        return sorted(self.name(position) for position in self.state.owed)

    def name(self, position: int) -> str:
        if self.state.undoes and position >= self.state.undoes:
            return "-" + self.name(self.state.undoing[position - self.state.undoes])
        block = None if self.state.blocks is None else self.state.blocks.of(position)
        named = str(self.state.plan.profile.name_of(position))
        return named if block is None else f"{named}#{position - block.first}"

    def done(self, *names: str) -> None:
        for name in names:
            self.ok(self.position(name), orjson.dumps({"id": name}))

    def failed(self, *names: str) -> None:
        for name in names:
            self.fail(self.position(name), definitivo=True)

    @property
    def undone(self) -> list[str]:
        return [self.name(position) for position in self.state.undoing]


def test_what_concluded_is_undone_in_the_reverse_of_dependencies_also_past_what_nothing_undoes() -> None:
    story = UndoStory({"a": call(), "b": call("a", undo=False), "c": call("b"), "d": call("a"), "e": call("c", "d")})
    story.done("a", "b", "c", "d")
    story.failed("e")
    assert story.state.status is Status.EM_EXECUCAO and story.state.ending is Status.ERRO
    assert story.sent() == ["-c", "-d"] and sorted(story.undone) == ["a", "c", "d"]
    story.done("-c")
    assert story.sent() == ["-d"], "a is undone when everything behind it is"
    story.failed("-d")
    assert story.sent() == ["-a"], "whether that worked or not"
    assert story.state.parameters(story.position("-a")) == b'{"id":"a"}'
    story.done("-a")
    assert story.state.status is Status.ERRO and story.state.closed_at is not None
    assert sum(isinstance(e, CompensationStarted) for _, events in story.journal for e in events) == 1
    shown = views.orchestration(story.state)["agregado"]
    assert shown["execucoes"].__len__() == 5 and shown["tarefas"]["a"]["desfeita"] == "concluida"
    assert shown["tarefas"]["d"]["desfeita"] == "erro" and "desfeita" not in shown["tarefas"]["b"]


def test_nothing_is_undone_that_failed_was_skipped_or_says_not_how() -> None:
    story = UndoStory({"a": call(quando=False), "b": call(undo=False), "c": call(), "d": call()})
    story.done("b", "c")
    story.failed("d")
    assert story.undone == ["c"]


@pytest.mark.parametrize("tasks", [{"a": call(), "b": call(opcional=True)}, {"a": call()}])
def test_nothing_is_undone_when_the_run_goes_through(tasks: dict[str, Any]) -> None:
    story = UndoStory(tasks, saida="${{ a.resultado.nothing }}")
    story.done("a")
    if "b" in tasks:
        story.failed("b")
    assert story.state.status is Status.PARCIAL and story.state.output_fault is not None and not story.state.undoes


def test_a_deadline_undoes_what_concluded_and_what_a_broker_took_and_has_no_deadline_then() -> None:
    story = UndoStory({"a": call(), "b": call(timeout_s=900), "c": call(timeout_s=900), "d": call("b")}, timeout_s=30)
    story.done("a")
    story.do(ConfirmDispatch([(story.position("b"), 1)]))
    story.do(Wake(), 30)
    assert sorted(story.undone) == ["a", "b"] and story.state.ending is Status.TIMEOUT
    assert story.state.deadline is None and story.ticket(story.position("c")).status is Status.TIMEOUT
    assert story.state.parameters(story.position("-a")) == b'{"id":"a"}'
    assert story.ticket(story.position("-b")).status is Status.ERRO, "nobody knows what b gave: null has no id"
    story.do(Wake(), 10_000)
    story.done("-a")
    assert story.state.status is Status.TIMEOUT


@pytest.mark.parametrize("undo", [True, False])
def test_a_cancel_undoes_only_when_it_is_asked_to(undo: bool) -> None:
    story = UndoStory({"a": call(), "b": call("a")})
    story.done("a")
    story.do(Cancel("enough", undo=undo))
    if not undo:
        assert story.state.status is Status.CANCELADA and not story.state.undoes
        return
    assert story.sent() == ["-a"] and story.ticket(1).status is Status.CANCELADA
    assert story.do(Cancel("again")).verdict is Verdict.IDLE, "what is being undone is undone to the end"
    story.done("-a")
    assert story.state.status is Status.CANCELADA


def test_a_refusal_undoes() -> None:
    wait = {"espera": {"aprovacao": {"pergunta": "?"}}, "depende": ["a"]}
    story = UndoStory({"a": call(), "w": wait, "b": call("w")})
    story.done("a")
    story.do(Approve(False, "ana", "no", task=1))
    assert story.undone == ["a"]
    story.done("-a")
    assert story.state.status is Status.CANCELADA


def map_of(**more: Any) -> dict[str, Any]:
    undo = {"executador": "apaga", "parametros": {"v": "${{ item.v }}", "n": "${{ indice }}", "id": "${{ feito.id }}"}}
    faz = {"executador": "y", "parametros": {"x": "${{ item.v + 1 }}"}, "desfaz": undo}
    return {"para_cada": [{"v": v} for v in range(4)], "faz": faz, "fan_in": {"modo": "todas_ok"}, **more}


def test_items_are_undone_by_falling_index_within_the_window_and_the_map_once_before_them() -> None:
    once = {"executador": "limpa", "parametros": {"n": "${{ size(feito) }}"}}
    story = UndoStory({"a": call(), "m": map_of(ao_mesmo_tempo=2, depende=["a"], desfaz=once), "z": call("m")})
    story.done("a", "m#0", "m#1", "m#2", "m#3")
    story.failed("z")
    assert story.undone == ["m", "m#3", "m#2", "m#1", "m#0", "a"]
    assert story.sent() == ["-m"] and story.state.parameters(story.position("-m")) == b'{"n":4}'
    story.done("-m")
    assert story.sent() == ["-m#2", "-m#3"]


def test_rounds_are_undone_one_by_one_the_last_first_after_their_loop_and_see_what_they_gave() -> None:
    undo = {"executador": "desfaz", "parametros": {"n": "${{ indice }}", "f": "${{ feito.v }}"}}
    loop = {"faz": {"executador": "x", "desfaz": undo}, "pare_quando": "${{ indice == 2 }}", "no_maximo": 5}
    whole = {"executador": "desfaz", "parametros": {"w": "${{ feito.v }}"}}
    story = UndoStory({"l": {"repete": loop, "desfaz": whole}, "f": {"executador": "f", "depende": ["l"]}})
    for number in range(3):
        story.ok(story.position(f"l#{number}"), b'{"v":%d}' % number)
    story.fail(story.position("f"), definitivo=True)
    gone: list[dict[str, Any]] = []
    for name in ("-l", "-l#2", "-l#1", "-l#0"):
        assert story.state.owed == {story.position(name)}, name
        gone.append(orjson.loads(story.state.parameters(story.position(name))))
        story.ok(story.position(name))
    assert gone == [{"w": 2}, {"n": 2, "f": 2}, {"n": 1, "f": 1}, {"n": 0, "f": 0}]
    told = views.orchestration(story.state)["agregado"]["tarefas"]["l"]
    assert (story.state.status, told["itens_desfeitos"]["total"]) == (Status.ERRO, 3)


def test_items_of_a_map_that_failed_are_undone_as_far_as_they_were_done() -> None:
    story = UndoStory({"a": call(), "m": map_of(ao_mesmo_tempo=2, depende=["a"])})
    story.done("a", "m#0", "m#1", "m#2")
    story.failed("m#3")
    assert story.undone == ["m#2", "m#1", "m#0", "a"] and story.sent() == ["-m#1", "-m#2"]
    assert orjson.loads(story.state.parameters(story.position("-m#2"))) == {"v": 2, "n": 2, "id": "m#2"}
    story.done("-m#1")
    assert story.sent() == ["-m#0", "-m#2"]
    story.done("-m#0", "-m#2")
    assert story.sent() == ["-a"]
    story.done("-a")
    assert story.state.status is Status.ERRO
    shown = views.orchestration(story.state)["agregado"]["tarefas"]["m"]
    assert shown["itens_desfeitos"] == {"total": 3, "concluidos": 3, "falhas": 0}


def test_an_answer_without_a_ticket_id_finds_what_undoes_where_nothing_else_can_have_said_it() -> None:
    story = UndoStory({"a": call(), "b": call("a")})
    story.done("a")
    story.failed("b")
    story.do(story.bare(Kind.EXECUCAO, "desfaz"))
    assert story.state.status is Status.ERRO and story.ticket(2).status is Status.CONCLUIDA


def test_orders_of_undoing_go_to_their_own_destination_and_the_request_says_it_again() -> None:
    plan = plan_of({"a": call(), "m": map_of()})
    assert requests.request_of(plan)["tarefas"]["a"]["desfaz"] == UNDO
    story = UndoStory({"a": call(), "b": call()})
    story.done("a")
    story.failed("b")
    ticket = views.ticket(story.state, 2)
    assert ticket["destino"] == "executador_desfaz" and ticket["tarefa"] == "a"
    assert ticket["desfaz"] == views.ticket(story.state, 0)["ticket_id"]
    assert views.orchestration(story.state)["desfazendo"] == {
        "desfecho": "erro", "motivo": "task_failed", "total": 1, "concluidos": 0, "falhas": 0, "abertos": 1,
    }  # fmt: skip
