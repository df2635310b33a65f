"""Children: under which id each begins, how it answers, and who ends it."""

from __future__ import annotations

from typing import Any

import pytest

from core.given import Story
from core.test_maps import replayed
from oraculo.core.children import child_id, is_wanted, parent_of
from oraculo.core.commands import ConfirmCancel, RecordResult
from oraculo.core.consolidation import aggregate
from oraculo.core.effects import Begin, EndChildren, Publish, owed_effects
from oraculo.core.named_tasks import named_in
from oraculo.core.sentences import errors_of
from oraculo.core.step import Step
from oraculo.core.vocabulary import Kind, Status, Verdict
from oraculo.wire import named_children, requests, strict_json
from runtime.test_evaluation import EvaluatedStory, asked, started

TYPE = {"filha": {"tipo": "t", "parametros": {"v": "${{ entrada.v }}"}}}


def child_story(**more: Any) -> EvaluatedStory:
    return started({"c": {**TYPE, **more}, "d": {"executador": "d", "depende": ["c"]}}, entrada={"v": 7})


def ended(story: Story, position: int, status: str = "concluida", dados: bytes = b"1", attempt: int = 1) -> Step:
    good = status in ("concluida", "parcial")
    erros: list[dict[str, object]] = [] if good else [{"codigo": status, "mensagem": status, "definitivo": False}]
    answer = RecordResult(good, dados if good else b"null", erros, attempt=attempt, position=position, digest=1 << 33)
    answer.child = Status(status) if good else None
    return story.do(answer)


def wanted(story: Story, position: int) -> dict[str, Any]:
    named = named_in(story.state.plan)
    assert named is not None
    spec = named.spec(position).child
    assert spec is not None
    return named_children.request_of(spec, story.state.parameters(position))


def begun(story: Story) -> list[str]:
    found = [one for effect in story.effects if isinstance(effect, Begin) for one in effect.tickets]
    return [child_id(story.state, position, attempt) for position, attempt in found]


def test_a_child_begins_with_what_its_parent_gives_it() -> None:
    story = child_story()
    assert (begun(story), wanted(story, 0)) == (["abc123/c"], {"tipo": "t", "parametros": {"v": 7}})
    assert not any(isinstance(effect, Publish) for effect in story.effects)
    story.confirm(0)
    assert (story.ticket(0).status, story.state.wake_at()) == (Status.EM_EXECUCAO, story.state.deadline)
    ended(story, 0, dados=b'{"x":1}')
    assert (story.ticket(0).status, story.ticket(0).dados, story.state.owed) == (Status.CONCLUIDA, b'{"x":1}', {1})
    replayed(story)


def test_its_own_expressions_are_left_to_it() -> None:
    tasks = {"a": {"fonte": "a", "parametros": {"v": "${{ entrada.v }}"}, "quando": "${{ entrada.v > 1 }}"}}
    child = {"entrada": {"v": "${{ entrada.lista.size() }}"}, "tarefas": tasks, "saida": "${{ a.dados }}"}
    story = started({"c": {"filha": child}}, entrada={"lista": [1, 2]})
    assert wanted(story, 0) == {**child, "entrada": {"v": 2}}
    stages = {"coletas": [{"fonte": "a"}, {"fonte": "b", "parametros": {"v": "${{ entrada.v }}"}}]}
    story = started({"c": {"filha": stages}}, entrada={"v": 1})
    assert wanted(story, 0) == {"coletas": [{"fonte": "a"}, {"fonte": "b", "parametros": {"v": 1}}]}


@pytest.mark.parametrize("status", ["concluida", "parcial"])
def test_what_went_through_is_passed_on(status: str) -> None:
    story = child_story()
    ended(story, 0, status)
    story.ok(1)
    assert (story.ticket(0).status, story.state.status) == (Status(status), Status(status))
    replayed(story)


@pytest.mark.parametrize("status", ["erro", "timeout", "cancelada"])
def test_all_else_is_a_failure(status: str) -> None:
    story = child_story()
    ended(story, 0, status)
    assert (story.ticket(0).status, story.state.status, story.state.to_end) == (Status.ERRO, Status.ERRO, {})
    assert errors_of(story.ticket(0))[0]["codigo"] == status
    assert strict_json.loads(strict_json.dumps(aggregate(story.state)))["tarefas"]["c"]["resultado"] is None
    replayed(story)


def test_a_later_attempt_has_an_id_of_its_own() -> None:
    story = child_story(max_tentativas=2, retentativa={"base_s": 0})
    ended(story, 0, "erro")
    story.wake(0)
    assert begun(story) == ["abc123/c", "abc123/c~2"]
    assert ended(story, 0, attempt=1).verdict is Verdict.DUPLICATE
    ended(story, 0, attempt=2)
    assert story.ticket(0).status is Status.CONCLUIDA


def test_items_and_rounds_have_their_number_in_the_id() -> None:
    child = {"filha": {"tipo": "t", "parametros": {"v": "${{ indice }}"}}}
    loop = {"faz": child, "pare_quando": "${{ r.resultado == 2 }}", "no_maximo": 3}
    story = started({"m": {"para_cada": [8, 9], "faz": child}, "r": {"repete": loop}})
    assert sorted(begun(story)) == ["abc123/m/0", "abc123/m/1", "abc123/r/0"]
    first, second, round_ = 2, 3, 4
    assert [wanted(story, p)["parametros"]["v"] for p in (first, second, round_)] == [0, 1, 0]
    ended(story, first, dados=b'"a"')
    ended(story, second, "parcial", b'"b"')
    ended(story, round_, dados=b"1")
    assert begun(story)[-1] == "abc123/r/1"
    ended(story, 5, dados=b"2")
    told = strict_json.loads(strict_json.dumps(aggregate(story.state)))["tarefas"]
    assert (told["m"]["resultados"], told["r"]["resultado"]) == (["a", "b"], 2)
    replayed(story)


@pytest.mark.parametrize("confirmed", [True, False])
def test_whoever_closes_its_ticket_owes_its_end(confirmed: bool) -> None:
    story = child_story()
    if confirmed:
        story.confirm(0)
    story.effects.clear()
    story.cancel()
    assert [one.tickets for one in story.effects if isinstance(one, EndChildren)] == [[(0, 1)]]
    assert (story.state.to_end, story.state.owes, story.state.finished) == ({0: 1}, 1, False)
    assert owed_effects(story.state) == [EndChildren([(0, 1)])]
    assert story.do(ConfirmCancel([(0, 2), (1, 1)])).verdict is Verdict.IDLE
    assert story.do(ConfirmCancel([(0, 1)])).verdict is Verdict.APPLIED
    assert story.do(ConfirmCancel([(0, 1)])).verdict is Verdict.IDLE
    assert ended(story, 0, "cancelada").verdict is Verdict.IDLE
    assert story.state.finished
    replayed(story)


def test_a_child_that_is_out_of_time_has_to_end() -> None:
    story = child_story(timeout_s=5, max_tentativas=3)
    story.confirm(0, when=1)
    story.wake(6)
    assert (story.ticket(0).status, story.ticket(0).attempt, story.state.to_end) == (Status.TIMEOUT, 1, {0: 1})


def test_a_child_is_wanted_while_its_ticket_is_open() -> None:
    story = child_story()
    parent = parent_of(story.state, 0, 1)
    assert (parent.correlation_id, parent.depth, is_wanted(story.state, parent)) == ("abc123", 1, True)
    assert not is_wanted(None, parent)
    story.cancel()
    assert not is_wanted(story.state, parent)


def test_no_worker_can_answer_for_a_child() -> None:
    story = child_story()
    assert story.ok(0).verdict is Verdict.UNKNOWN_TICKET
    assert story.do(story.bare(Kind.EXECUCAO)).verdict is Verdict.UNKNOWN_TICKET


def test_it_is_written_again_as_it_was_sent() -> None:
    inner = {"entrada": {"v": "${{ item }}"}, "tarefas": {"a": {"fonte": "a"}}, "timeout_s": 9}
    tasks = {
        "c": {**TYPE, "max_tentativas": 2, "timeout_s": 60},
        "m": {"para_cada": [1], "faz": {"filha": inner, "quando": "${{ item > 1 }}"}},
        "r": {"repete": {"faz": TYPE, "pare_quando": "${{ true }}", "no_maximo": 2}},
    }
    body = {"tarefas": tasks, "entrada": {"v": 1}}
    plan = requests.plan_of(requests.parse(body), requests.Defaults())
    assert requests.request_of(plan) == body
    assert requests.child_types(requests.parse(body)) == {"t": "tarefas.c.filha.tipo"}
    assert asked(tasks, entrada={"v": 1}).tasks[0].max_attempts == 2
