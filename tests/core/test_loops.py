"""Loops: which rounds there are, what each gets, when the loop is over, and what is left of the rounds before."""

from __future__ import annotations

from typing import Any

import pytest

from core.given import Story, operations
from core.test_maps import replayed
from oraculo.core import events as ev
from oraculo.core.commands import Grow, Resolve
from oraculo.core.consolidation import aggregate, collected
from oraculo.core.plan import MAX_TASKS, Plan
from oraculo.core.resolution import Outcome, Resolution
from oraculo.core.sentences import errors_of
from oraculo.core.vocabulary import Kind, Phase, Status, Verdict
from oraculo.runtime.evaluation import evaluate, snapshot
from oraculo.wire import payloads, strict_json
from runtime.test_evaluation import EvaluatedStory, asked, started

FAZ = {"executador": "pagina", "parametros": {"n": "${{ indice }}", "cursor": "${{ p.resultado.proximo }}", "k": 1}}
FIRST = {"executador": "pagina", "parametros": {"n": "${{ indice }}", "antes": "${{ p.resultado }}", "k": 1}}
DONE = "${{ p.resultado.fim == true }}"
OWNER = 0
GOES_ON = b'{"fim":false}'


def loop_plan(stop: str = DONE, at_most: int = 4, around: dict[str, Any] | None = None, **more: Any) -> Plan:
    loop = {"faz": FIRST, "pare_quando": stop, "no_maximo": at_most, **more}
    return asked({"p": {"repete": loop, **(around or {})}})


def loop_story(stop: str = DONE, at_most: int = 4, around: dict[str, Any] | None = None, **more: Any) -> EvaluatedStory:
    story = EvaluatedStory(loop_plan(stop, at_most, around, **more))
    story.evaluate()
    return story


def parameters(story: Story, position: int) -> Any:
    ((_, _, body),) = payloads.orders(story.state, [(position, 1)], story.state.started_at)
    return strict_json.loads(body)["payload"]


def told(story: Story, name: str = "p") -> dict[str, Any]:
    found: dict[str, Any] = strict_json.loads(strict_json.dumps(aggregate(story.state)))["tarefas"][name]
    return found


def codes(story: Story) -> list[Any]:
    return [one["codigo"] for one in errors_of(story.ticket(OWNER))]


def test_a_round_gets_its_number_and_what_the_one_before_gave() -> None:
    story = loop_story()
    assert parameters(story, 1)["parametros"] == {"n": 0, "antes": None, "k": 1}
    assert (parameters(story, 1)["dados"], story.ticket(OWNER).phase) == ([], Phase.GROWN)
    story.ok(1, b'{"fim":false}')
    assert parameters(story, 2)["parametros"] == {"n": 1, "antes": {"fim": False}, "k": 1}
    story.ok(2, b'{"fim":true,"x":1}')
    assert (told(story)["status"], told(story)["resultado"]) == ("concluida", {"fim": True, "x": 1})
    assert story.state.status is Status.CONCLUIDA
    replayed(story)


def test_the_condition_sees_the_number_of_the_round_that_ended() -> None:
    story = loop_story("${{ indice == 1 }}")
    story.ok(1)
    story.ok(2)
    assert (story.state.status, len(story.state.tickets)) == (Status.CONCLUIDA, 3)


@pytest.mark.parametrize(
    ("otherwise", "status", "result"), [("falha", Status.ERRO, None), ("segue", Status.CONCLUIDA, {"n": 3})]
)
def test_a_loop_that_runs_out(otherwise: str, status: Status, result: Any) -> None:
    story = loop_story("${{ p.resultado.n > 9 }}", 3, ao_esgotar=otherwise)
    for position in (1, 2, 3):
        assert story.state.closed_at is None
        story.ok(position, b'{"n":%d}' % position)
    assert (len(story.state.tickets), story.state.status, told(story)["resultado"]) == (4, status, result)
    assert codes(story) == ([] if result else ["no_maximo"])
    replayed(story)


def test_the_condition_counts_at_the_last_round_too() -> None:
    story = loop_story("${{ p.resultado.n == 1 }}", 1)
    story.ok(1, b'{"n":1}')
    assert story.state.status is Status.CONCLUIDA


def test_a_failed_round_fails_the_loop() -> None:
    story = loop_story()
    story.ok(1, GOES_ON)
    story.fail(2)
    assert (told(story)["status"], told(story)["resultado"], codes(story)) == ("erro", None, ["rodada_com_falha"])
    assert told(story)["erros"][0]["mensagem"] == "a rodada 1 terminou como erro: fora do ar"
    replayed(story)


def test_a_round_has_attempts_of_its_own() -> None:
    story = loop_story(faz={**FIRST, "max_tentativas": 2, "retentativa": {"base_s": 0}})
    story.fail(1)
    story.wake(0)
    assert (story.ticket(1).attempt, len(story.state.tickets)) == (2, 2)
    story.ok(1, b'{"fim":true}')
    assert story.state.status is Status.CONCLUIDA


def test_the_pause_stands_between_two_rounds() -> None:
    story = loop_story(pausa_s=30)
    assert story.state.owed == {1}
    story.ok(1, GOES_ON, when=5)
    assert (story.state.owed, story.ticket(2).phase, story.state.wake_at()) == (set(), Phase.BACKOFF, at_35(story))
    assert story.wake(34).verdict is Verdict.IDLE
    story.wake(35)
    assert (story.state.owed, story.ticket(2).attempt) == ({2}, 1)
    replayed(story)


def at_35(story: Story) -> Any:
    return story.journal[0][0].replace(second=35)


def test_the_whole_of_it_may_take_so_long() -> None:
    story = loop_story(around={"timeout_s": 20}, pausa_s=30)
    story.ok(1, GOES_ON, when=5)
    story.wake(20)
    assert [story.ticket(p).status for p in (OWNER, 2)] == [Status.TIMEOUT, Status.CANCELADA]
    assert story.state.status is Status.ERRO
    replayed(story)


def test_an_expression_without_a_value_fails_the_loop() -> None:
    story = loop_story("${{ p.resultado.falta }}")
    story.ok(1, b'{"n":1}')
    assert (told(story)["status"], codes(story), told(story)["resultado"]) == ("erro", ["expressao"], None)
    assert "repete.pare_quando" in told(story)["erros"][0]["mensagem"]
    story = loop_story("${{ false }}", faz=FAZ)
    assert (told(story)["status"], codes(story)) == ("erro", ["expressao"])
    assert "repete.faz.parametros.cursor" in told(story)["erros"][0]["mensagem"]


def test_a_false_condition_skips_the_whole() -> None:
    story = loop_story(around={"quando": False})
    assert (story.ticket(OWNER).status, len(story.state.tickets)) == (Status.IGNORADA, 1)


def test_cancelling_takes_the_open_round_along() -> None:
    story = loop_story(pausa_s=5)
    story.ok(1, GOES_ON)
    story.cancel()
    assert [one.status for one in story.state.tickets[1:]] == [Status.CONCLUIDA, Status.CANCELADA]
    assert (story.state.status, story.state.wake_at()) == (Status.CANCELADA, None)


def test_what_stands_behind_gets_the_last_result() -> None:
    loop = {"faz": {"fonte": "site"}, "pare_quando": "${{ indice == 1 }}", "no_maximo": 5}
    story = started({"p": {"repete": loop}, "d": {"executador": "d", "depende": ["p"]}})
    story.ok(2, b"1")
    story.ok(3, b"2")
    assert strict_json.loads(strict_json.dumps(collected(story.state, 1))) == [
        {"tarefa": "p", "fonte": "site", "status": "concluida", "dados": 2}
    ]


def test_two_loops_and_a_map_grow_side_by_side() -> None:
    def loop(name: str) -> dict[str, Any]:
        faz = {"executador": name, "parametros": {"n": "${{ indice }}"}}
        return {"repete": {"faz": faz, "pare_quando": "${{ indice == 2 }}", "no_maximo": 3}}

    faz = {"executador": "m", "parametros": {"i": "${{ item }}"}}
    story = started({"a": loop("a"), "b": loop("b"), "m": {"para_cada": [1, 2], "faz": faz}})
    numbers: dict[str, list[int]] = {"a": [], "b": []}
    while story.state.owed:
        position = max(story.state.owed)
        task = story.state.plan.tasks[position]
        if task.name != "m":
            numbers[task.name].append(parameters(story, position)["parametros"]["n"])
        story.ok(position)
    assert (numbers, story.state.status) == ({"a": [0, 1, 2], "b": [0, 1, 2]}, Status.CONCLUIDA)
    replayed(story)


def test_a_round_counts_once_and_only_when_it_is_asked_for() -> None:
    story = loop_story()
    assert story.do(Grow(OWNER, 1, 1, 2, [(b"1", b"null")])).verdict is Verdict.IDLE
    story.ok(1, GOES_ON)
    assert story.do(Grow(OWNER, 1, 1, 2, [(b"1", b"null")])).verdict is Verdict.IDLE
    assert story.do(Resolve([Resolution(OWNER, Outcome.STOP)])).verdict is Verdict.IDLE


def test_what_was_evaluated_beside_the_loop_is_the_same() -> None:
    found = snapshot(Story(loop_plan()).state)
    assert found is not None
    (grow,) = evaluate(found)
    assert grow == Grow(OWNER, 0, 1, 1, [(b"0", b"null")], ['{"n":', ',"antes":', ',"k":1}'])


def test_a_run_that_is_full_has_no_further_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oraculo.core.loops.MAX_TASKS", 2)
    story = loop_story()
    story.ok(1, GOES_ON)
    assert codes(story) == ["itens_demais"]
    assert MAX_TASKS == 50_000


def test_an_answer_without_a_ticket_finds_the_round_that_is_out() -> None:
    story = loop_story("${{ indice == 3 }}", 9)
    for position in (1, 2, 3):
        story.confirm(position)
        story.do(story.bare(Kind.EXECUCAO, "pagina"))
        assert story.ticket(position).status is Status.CONCLUIDA
    assert story.state.by_name == {(Kind.REPETE, "pagina"): [0], (Kind.EXECUCAO, "pagina"): [3, 4]}
    story.ok(4)
    assert story.do(story.bare(Kind.EXECUCAO, "pagina")).verdict is Verdict.AMBIGUOUS
    story.state.by_name = None
    assert story.state.named(Kind.EXECUCAO, "pagina") == [3, 4]


def test_nothing_but_its_end_is_kept_of_a_round_that_is_over() -> None:
    story = loop_story("${{ indice == 4 }}", 5)
    for position in range(1, 6):
        story.ok(position, b'{"texto":"%s"}' % (b"x" * 50))
    assert [len(one.dados) > 4 for one in story.state.tickets] == [True, *[False] * 4, True]
    assert story.state.parameters(2) == b"null"
    assert [one.status for one in story.state.tickets] == [Status.CONCLUIDA] * 6
    assert sum(isinstance(one, ev.LoopEnded) for _, events in story.journal for one in events) == 1


def test_a_round_costs_the_same_however_many_came_before() -> None:
    story = EvaluatedStory(loop_plan("${{ false }}", 500), check=False)
    story.evaluate()
    costs: dict[int, int] = {}
    for position in range(1, 401):
        story.confirm(position)
        answer = story.answer(position, dados=GOES_ON)
        if position in (10, 400):
            costs[position] = operations(lambda answer=answer: story.do(answer))
        else:
            story.do(answer)
    assert costs[400] <= 1.05 * costs[10]
