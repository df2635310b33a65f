"""What a state asks is evaluated: conditions, parameters, the output; bounded, and with errors that say where."""

from __future__ import annotations

from typing import Any

import pytest

from core.given import Story
from core.test_named_tasks import plan_of
from oraculo.core.commands import Resolve
from oraculo.core.consolidation import aggregate
from oraculo.core.plan import Plan
from oraculo.core.resolution import Outcome, Resolution
from oraculo.core.vocabulary import Status, Verdict
from oraculo.runtime.evaluation import Snapshot, evaluate, evaluate_inline, snapshot
from oraculo.wire import payloads, requests, strict_json

COSTLY = "${{ entrada.lista.map(x, entrada.lista.map(y, x + y).size()).sum() }}"


def asked(tasks: dict[str, Any], **more: Any) -> Plan:
    return requests.plan_of(requests.parse({"tarefas": tasks, **more}), requests.Defaults(max_tentativas=1))


class EvaluatedStory(Story):
    """A story in which all that is asked is evaluated at once, as an engine does."""

    def do(self, command: Any, when: float | None = None) -> Any:
        done = super().do(command, when)
        self.evaluate()
        return done

    def evaluate(self) -> None:
        while commands := evaluate_inline(self.state):
            for command in commands:
                super().do(command)


def started(tasks: dict[str, Any], **more: Any) -> EvaluatedStory:
    story = EvaluatedStory(asked(tasks, **more))
    story.evaluate()
    return story


def resolutions(found: Snapshot) -> list[Resolution]:
    (command,) = evaluate(found)
    assert isinstance(command, Resolve)
    return command.resolutions


def parameters(story: Story, position: int) -> Any:
    ((_, _, body),) = payloads.orders(story.state, [(position, 1)], story.state.started_at)
    return strict_json.loads(body)["payload"]["parametros"]


def reason(story: Story, position: int) -> dict[str, str]:
    found = story.ticket(position).reason
    assert found is not None
    return found.params


def test_nothing_goes_out_before_it_is_evaluated() -> None:
    story = Story(asked({"a": {"fonte": "a", "parametros": {"n": "${{ entrada.n }}"}}}, entrada={"n": 3}))
    assert (story.state.owed, list(story.state.asks), story.state.owes) == (set(), [0], 1)
    assert story.do(Resolve([Resolution(0, Outcome.GO, b'{"n":3}')])).verdict is Verdict.APPLIED
    assert story.state.owed == {0}
    assert story.do(Resolve([Resolution(0, Outcome.GO, b'{"n":4}')])).verdict is Verdict.IDLE
    assert parameters(story, 0) == {"n": 3}


def test_parameters_keep_their_types_and_become_text_beside_text() -> None:
    body = {"lista": ["${{ a.dados }}", 1], "texto": "canal ${{ input.canal }}: ${{ a.data.size() }}", "$": "$${{ x }}"}
    story = started({"a": {"fonte": "a"}, "b": {"executador": "b", "parametros": body}}, entrada={"canal": "x"})
    story.ok(0, b"[1,2]")
    assert parameters(story, 1) == {"lista": [[1, 2], 1], "texto": "canal x: 2", "$": "${{ x }}"}


@pytest.mark.parametrize(
    ("when", "status"), [("${{ a.ok }}", "pendente"), ("${{ !a.ok }}", "ignorada"), (False, "ignorada")]
)
def test_a_condition(when: Any, status: str) -> None:
    story = started({"a": {"fonte": "a"}, "b": {"executador": "b", "depende": ["a"], "quando": when}})
    story.ok(0)
    assert story.ticket(1).status == status


def test_what_a_false_condition_saw_is_kept() -> None:
    story = started({"a": {"fonte": "a"}, "b": {"executador": "b", "quando": "${{ a.status == 'erro' }}"}})
    story.ok(0)
    assert reason(story, 1) == {"expression": "${{ a.status == 'erro' }}", "detail": "a: concluida"}
    assert story.state.status is Status.CONCLUIDA


def test_if_and_else_meet_again() -> None:
    story = started(
        {
            "a": {"fonte": "a"},
            "yes": {"executador": "b", "quando": "${{ a.dados.n > 1 }}"},
            "no": {"executador": "c", "quando": "${{ a.dados.n <= 1 }}"},
            "join": {"executador": "d", "depende": ["yes", "no"]},
        }
    )
    story.ok(0, b'{"n":5}')
    assert [story.ticket(p).status.value for p in (1, 2, 3)] == ["pendente", "ignorada", "pendente"]
    story.ok(1)
    assert story.state.owed == {3}
    story.ok(3)
    assert story.state.status is Status.CONCLUIDA


def test_a_false_condition_says_what_it_saw() -> None:
    condition = "${{ entrada.x.y == 2 && a.dados.itens.size() > 1 && a.dados.n > 9 && !has(a.dados.zz) }}"
    tasks = {"a": {"fonte": "a"}, "b": {"executador": "b", "quando": condition}}
    story = started(tasks, entrada={"x": {"y": 1}})
    story.ok(0, b'{"n":5,"itens":[1,2]}')
    assert reason(story, 1) == {"expression": condition, "detail": "a: concluida, entrada.x.y: 1, a.dados.n: 5"}


def test_items_that_are_skipped_by_one_condition_share_its_reason() -> None:
    body = {"executador": "b", "quando": "${{ item > entrada.limite }}"}
    story = started({"m": {"para_cada": [1, 2, 3], "faz": body}}, entrada={"limite": 9})
    (idle,) = story.state.blocks.by_owner[0].idle
    assert (idle.items, idle.why.detail) == ([0, 1, 2], "entrada.limite: 9")


def test_nothing_behind_a_false_condition_is_evaluated() -> None:
    story = started({"a": {"fonte": "a", "quando": False, "parametros": {"x": "${{ entrada.missing }}"}}})
    assert story.ticket(0).status is Status.IGNORADA


@pytest.mark.parametrize(
    ("task", "word", "said"),
    [
        ({"parametros": {"x": [{"y": "${{ a.dados.z }}"}]}}, "parametros.x.0.y", "there is no field 'z'"),
        ({"quando": "${{ a.dados.n }}"}, "quando", "a condition is true or false, not 1"),
        ({"parametros": {"x": "${{ skipped.resultado.n }}"}}, "parametros.x", "[skipped: ignorada]"),
    ],
)
def test_an_expression_without_a_value_fails_its_task(task: dict[str, Any], word: str, said: str) -> None:
    tasks = {
        "a": {"fonte": "a"},
        "skipped": {"executador": "s", "quando": False},
        "b": {"executador": "b", "depende": ["a"], **task},
    }
    story = started(tasks)
    story.ok(0, b'{"n":1}')
    assert story.ticket(2).status is Status.ERRO
    assert (reason(story, 2)["word"], said in reason(story, 2)["detail"]) == (f"tarefas.b.{word}", True), reason(
        story, 2
    )
    (erro,) = aggregate(story.state)["tarefas"]["b"]["erros"]
    assert (erro["codigo"], erro["definitivo"]) == ("expressao", True)
    assert story.state.status is Status.ERRO


def test_what_failed_offers_null() -> None:
    story = started(
        {
            "a": {"fonte": "a"},
            "b": {
                "executador": "b", "depende": ["a"], "fan_in": {"modo": "fechadas"},
                "parametros": {"x": "${{ [a.dados, a.status, a.ok, a.erros[0].codigo, a.tentativas] }}"},
            },
        }
    )  # fmt: skip
    story.fail(0, definitivo=True)
    assert parameters(story, 1) == {"x": [None, "erro", False, "http_500", 1]}


def test_the_output() -> None:
    story = started({"a": {"fonte": "a"}}, saida={"n": "${{ a.dados.n }}", "fixo": 1})
    story.ok(0, b'{"n":7}')
    assert story.state.status is Status.CONCLUIDA
    assert strict_json.loads(aggregate(story.state)["saida"]) == {"n": 7, "fixo": 1}


def test_an_output_that_fails_makes_the_end_partial() -> None:
    story = started({"a": {"fonte": "a"}}, saida="${{ a.dados.x }}")
    story.ok(0, b'{"n":7}')
    whole = aggregate(story.state)
    assert (story.state.status, whole["saida"], whole["erros"][0]["codigo"]) == (Status.PARCIAL, b"null", "expressao")


def test_a_run_that_failed_has_no_output() -> None:
    story = started({"a": {"fonte": "a"}}, saida="${{ a.status }}")
    story.fail(0, definitivo=True)
    assert (story.state.status, aggregate(story.state)["saida"]) == (Status.ERRO, b"null")


def test_a_deadline_ends_what_waits_for_its_evaluation() -> None:
    story = Story(asked({"a": {"fonte": "a", "quando": "${{ true }}"}}, timeout_s=5))
    story.wake(5)
    assert (story.state.status, story.ticket(0).status, story.state.asks) == (Status.TIMEOUT, Status.CANCELADA, {})


def test_what_is_too_long_for_the_loop_is_left_to_a_thread() -> None:
    plan = asked({"a": {"fonte": "a", "parametros": {"n": COSTLY}}}, entrada={"lista": list(range(200))})
    story = Story(plan)
    assert evaluate_inline(story.state) == []
    found = snapshot(story.state)
    assert found is not None
    (one,) = resolutions(found)
    assert (one.outcome, one.value) == (Outcome.GO, b'{"n":40000}')


def test_what_is_too_long_for_anything_fails() -> None:
    plan = asked({"a": {"fonte": "a", "parametros": {"n": COSTLY}}}, entrada={"lista": list(range(2000))})
    found = snapshot(Story(plan).state)
    assert found is not None
    (one,) = resolutions(found)
    assert one.outcome is Outcome.FAIL
    assert one.word == "tarefas.a.parametros.n"


def test_parameters_that_become_too_large_fail() -> None:
    plan = asked(
        {"a": {"fonte": "a", "parametros": {str(n): "${{ entrada.x }}" for n in range(3)}}},
        entrada={"x": "y" * 500_000},
    )
    found = snapshot(Story(plan).state)
    assert found is not None
    (one,) = resolutions(found)
    assert (one.outcome, "larger than" in one.detail) == (Outcome.FAIL, True)


def test_a_plan_without_expressions_asks_nothing() -> None:
    story = Story(plan_of(a={}, b={"depende": ["a"]}))
    assert (story.state.asks_anything, story.state.owed, snapshot(story.state)) == (False, {0}, None)
