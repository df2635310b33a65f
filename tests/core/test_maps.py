"""Maps: what becomes of each item, how many run at once, when the map has ended, and how."""

from __future__ import annotations

from typing import Any

import pytest

from core.given import Story, operations
from oraculo.core import events as ev
from oraculo.core.commands import Grow
from oraculo.core.consolidation import aggregate, collected
from oraculo.core.plan import MAX_TASKS
from oraculo.core.reasons import ReasonCode
from oraculo.core.replay import cause_of
from oraculo.core.sentences import errors_of
from oraculo.core.step import step
from oraculo.core.vocabulary import Kind, Phase, Status, Verdict
from oraculo.runtime.evaluation import evaluate, snapshot
from oraculo.wire import payloads, records, strict_json
from runtime.test_evaluation import EvaluatedStory, asked, started

FAZ = {"executador": "resumo", "parametros": {"item": "${{ item }}"}}
OWNER = 0


def map_story(items: Any, *, entrada: dict[str, Any] | None = None, **more: Any) -> EvaluatedStory:
    faz = more.pop("faz", FAZ)
    return started({"m": {"para_cada": items, "faz": faz, **more}}, entrada=entrada or {})


def parameters(story: Story, position: int) -> Any:
    ((_, _, body),) = payloads.orders(story.state, [(position, 1)], story.state.started_at)
    return strict_json.loads(body)["payload"]


def told(story: Story) -> dict[str, Any]:
    found: dict[str, Any] = strict_json.loads(strict_json.dumps(aggregate(story.state)))["tarefas"]["m"]
    return found


def phases(story: Story) -> str:
    return "".join(ticket.phase.value[0] for ticket in story.state.tickets[1:])


def replayed(story: Story) -> None:
    """The journal, as it is written, is the log of its commands too."""
    state = None
    for at, events in story.journal:
        recorded = records.decode(records.encode(events))
        assert recorded == events
        done = step(state, cause_of(recorded), at)
        assert done.events == recorded
        state = done.state
    assert state == story.state


def test_each_item_is_a_ticket_with_its_own_parameters() -> None:
    story = map_story(["a", {"b": 1}, None])
    assert [parameters(story, p)["parametros"] for p in (1, 2, 3)] == [
        {"item": "a"},
        {"item": {"b": 1}},
        {"item": None},
    ]
    assert parameters(story, 1)["dados"] == []
    assert (story.ticket(OWNER).phase, story.ticket(OWNER).status) == (Phase.GROWN, Status.EM_EXECUCAO)
    replayed(story)


def test_results_stand_in_the_order_of_the_items_with_null_where_one_failed() -> None:
    story = map_story([1, 2, 3])
    story.ok(3, b'"tres"')
    story.fail(2, definitivo=True)
    story.ok(1, b'"um"')
    assert (story.ticket(OWNER).status, story.status) == (Status.PARCIAL, Status.PARCIAL)
    failure = {"indice": 1, "status": "erro", "codigo": "http_500", "mensagem": "fora do ar"}
    shown = told(story)
    assert (shown["resultados"], shown["total"], shown["falhas"]) == (["um", None, "tres"], 3, [failure])
    assert aggregate(story.state)["execucoes"] == []
    replayed(story)


def test_the_template_is_cut_at_what_names_an_item_and_the_rest_is_evaluated_once() -> None:
    params = {
        "de": "${{ entrada.x }}",
        "n": ["${{ indice }}", "v ${{ v.id }}"],
        "fixo": 'a"b',
        "todos": "${{ entrada }}",
    }
    faz = {"fonte": "blog", "parametros": params}
    story = map_story("${{ entrada.lista }}", como="v", faz=faz, entrada={"x": "y", "lista": [{"id": 7}, {"id": 8}]})
    grown = next(event for event in story.events if isinstance(event, ev.PlanGrown))
    assert grown.template == ['{"de":"y","n":[', ",", '],"fixo":"a\\"b","todos":{"x":"y","lista":[{"id":7},{"id":8}]}}']
    assert grown.rows == [(b"0", b'"v 7"'), (b"1", b'"v 8"')]
    assert parameters(story, 2)["parametros"]["n"] == [1, "v 8"]
    replayed(story)


def test_no_items_conclude_a_map() -> None:
    story = map_story([])
    assert (story.statuses, story.status) == (["concluida"], Status.CONCLUIDA)
    assert told(story)["resultados"] == []
    replayed(story)


@pytest.mark.parametrize("fan_in", [{"modo": "quorum", "minimo": 1}, {"modo": "primeiro"}])
def test_no_items_are_too_few_for_a_fan_in_that_needs_one(fan_in: dict[str, Any]) -> None:
    story = map_story([], fan_in=fan_in)
    assert (story.status, errors_of(story.ticket(OWNER))[0]["codigo"]) == (Status.ERRO, "itens_de_menos")


def test_a_quorum_above_the_number_of_items_fails_and_says_both() -> None:
    story = map_story([1, 2], fan_in={"modo": "quorum", "minimo": 5})
    (error,) = errors_of(story.ticket(OWNER))
    assert error["mensagem"] == "tarefas.m.fan_in: quorum needs 5 and there are 2 items"
    assert (len(story.state.tickets), story.published) == (1, [])


def test_a_quorum_ends_the_map_and_cancels_the_rest() -> None:
    story = map_story([1, 2, 3, 4], fan_in={"modo": "quorum", "minimo": 2})
    story.ok(4)
    story.ok(2)
    assert story.statuses == ["concluida", "cancelada", "concluida", "cancelada", "concluida"]
    assert told(story)["resultados"] == [None, {"n": 1}, None, {"n": 1}]
    assert story.status is Status.CONCLUIDA
    replayed(story)


def test_todas_ok_fails_at_the_first_failure() -> None:
    story = map_story([1, 2, 3], fan_in={"modo": "todas_ok"})
    story.ok(1)
    story.fail(2, definitivo=True)
    assert story.statuses == ["erro", "concluida", "erro", "cancelada"]
    assert (story.status, errors_of(story.ticket(OWNER))[0]["codigo"]) == (Status.ERRO, "itens_com_falha")
    assert told(story)["resultados"] is None
    replayed(story)


def test_a_map_all_of_whose_items_failed_fails() -> None:
    story = map_story([1, 2])
    story.fail(1, definitivo=True)
    story.fail(2, definitivo=True)
    assert (story.statuses, story.status) == (["erro", "erro", "erro"], Status.ERRO)


def test_skipped_items_are_no_failures() -> None:
    faz = {**FAZ, "quando": "${{ item > 1 }}"}
    story = map_story([1, 2], faz=faz)
    story.ok(2)
    assert (story.statuses, story.status) == (["concluida", "ignorada", "concluida"], Status.CONCLUIDA)
    all_skipped = map_story([0, 1], faz=faz)
    assert (all_skipped.statuses, all_skipped.status) == (["concluida", "ignorada", "ignorada"], Status.CONCLUIDA)
    replayed(all_skipped)


def test_an_item_whose_expression_has_no_value_fails_alone() -> None:
    faz = {"fonte": "blog", "parametros": {"x": "${{ item.x }}"}}
    story = map_story([{"x": 1}, {}], faz=faz)
    (error,) = errors_of(story.ticket(2))
    assert (error["codigo"], error["definitivo"]) == ("expressao", True)
    story.ok(1)
    assert (story.ticket(OWNER).status, told(story)["resultados"]) == (Status.PARCIAL, [{"n": 1}, None])
    replayed(story)


@pytest.mark.parametrize("items", ["${{ entrada }}", "${{ entrada.nada }}", "${{ null }}", "${{ 'abc' }}"])
def test_a_map_over_something_that_is_no_list_fails(items: str) -> None:
    story = map_story(items)
    assert errors_of(story.ticket(OWNER))[0]["codigo"] == "expressao"
    assert story.status is Status.ERRO


def test_nothing_behind_a_false_condition_is_evaluated() -> None:
    story = map_story("${{ entrada.nada }}", quando=False)
    assert (story.statuses, story.status) == (["ignorada"], Status.CONCLUIDA)


def test_the_window_lets_the_next_item_out_in_the_step_that_closes_one() -> None:
    story = map_story([1, 2, 3, 4], ao_mesmo_tempo=2)
    assert phases(story) == "ooww"
    story.confirm()
    done = story.ok(2)
    assert [type(event).__name__ for event in done.events] == ["TicketConcluded", "TicketsDispatched"]
    assert phases(story) == "rcow"
    story.ok(1)
    story.ok(3)
    story.ok(4)
    assert story.status is Status.CONCLUIDA
    replayed(story)


def test_an_item_in_back_off_keeps_its_place_in_the_window() -> None:
    story = map_story([1, 2], ao_mesmo_tempo=1, faz={**FAZ, "max_tentativas": 2})
    story.confirm()
    story.fail(1)
    assert phases(story) == "bw"
    story.wake(200)
    story.ok(1)
    assert phases(story) == "co"


def test_items_that_time_out_together_make_room_for_as_many() -> None:
    story = map_story([1, 2, 3, 4, 5], ao_mesmo_tempo=2, faz={**FAZ, "timeout_s": 5, "max_tentativas": 1})
    story.confirm()
    story.wake(5)
    assert phases(story) == "ccoow"


def test_skipped_items_do_not_use_the_window() -> None:
    story = map_story([1, 2, 3, 4], ao_mesmo_tempo=1, faz={**FAZ, "quando": "${{ item != 2 && item != 3 }}"})
    assert phases(story) == "occw"
    story.ok(1)
    assert phases(story) == "ccco"


def test_the_time_of_a_map_counts_for_the_whole_of_it() -> None:
    story = map_story([1, 2], timeout_s=10, faz={**FAZ, "timeout_s": 60})
    story.confirm()
    story.ok(1, when=3)
    story.wake(10)
    assert story.statuses == ["timeout", "concluida", "cancelada"]
    assert (story.status, story.ticket(OWNER).fault.code) == (Status.ERRO, ReasonCode.NOT_IN_TIME)
    assert story.state.wake_at() is None
    replayed(story)


def test_an_optional_map_that_fails_is_absorbed() -> None:
    story = map_story([1], opcional=True)
    story.fail(1, definitivo=True)
    assert story.status is Status.PARCIAL


def test_what_depends_on_a_map_gets_its_results_and_may_name_them() -> None:
    tasks = {
        "m": {"para_cada": [1, 2], "faz": FAZ},
        "fim": {
            "executador": "fim",
            "depende": ["m"],
            "parametros": {
                "n": "${{ m.resultados.size() }}",
                "t": "${{ m.total }}",
                "f": "${{ m.falhas }}",
                "ok": "${{ m.ok }}",
            },
        },
    }
    story = started(tasks, saida="${{ m.resultados }}")
    story.ok(2, b"20")
    story.ok(3, b"30")
    assert collected(story.state, 1) == [
        {"tarefa": "m", "executador": "resumo", "status": Status.CONCLUIDA, "dados": b"[20,30]"}
    ]
    assert parameters(story, 1)["parametros"] == {"n": 2, "t": 2, "f": [], "ok": True}
    story.ok(1)
    assert (story.status, story.state.output) == (Status.CONCLUIDA, b"[20,30]")
    replayed(story)


def test_two_maps_and_a_map_behind_a_map() -> None:
    tasks = {
        "a": {"para_cada": [1, 2], "faz": FAZ},
        "b": {"para_cada": "${{ a.resultados }}", "faz": {"fonte": "x", "parametros": {"r": "${{ item }}"}}},
        "c": {"para_cada": [3], "faz": FAZ},
    }
    story = started(tasks)
    for position in (3, 4, 5):
        story.ok(position, b"%d" % position)
    assert [parameters(story, p)["parametros"] for p in (6, 7)] == [{"r": 3}, {"r": 4}]
    story.ok(6)
    story.ok(7)
    assert story.status is Status.CONCLUIDA
    replayed(story)


def test_more_items_than_a_run_may_have_tickets_fail_the_map() -> None:
    plan = asked({"m": {"para_cada": "${{ entrada.x }}", "faz": FAZ}})
    story = Story(plan, check=False)
    done = story.do(Grow(OWNER, 0, 1, MAX_TASKS + 1, [(b"1",)], ['{"item":', "}"]))
    assert done.verdict is Verdict.APPLIED
    assert (len(story.state.tickets), errors_of(story.ticket(OWNER))[0]["codigo"]) == (1, "itens_demais")
    assert story.status is Status.ERRO
    just = Story(plan, check=False)
    just.do(Grow(OWNER, 0, 1, MAX_TASKS, [(b"1",)], ['{"item":', "}"]))
    assert len(just.state.tickets) == 2


def test_rows_that_are_too_large_fail_the_map() -> None:
    plan = asked(
        {
            "m": {
                "para_cada": list(range(40)),
                "faz": {"fonte": "x", "parametros": {"t": "${{ entrada.t + string(item) }}"}},
            }
        },
        entrada={"t": "x" * 500_000},
    )
    story = Story(plan, check=False)
    wanted = snapshot(story.state)
    assert wanted is not None
    for command in evaluate(wanted):
        story.do(command)
    assert (len(story.state.tickets), errors_of(story.ticket(OWNER))[0]["codigo"]) == (1, "dados_demais")


def test_chunks_count_once_in_their_order() -> None:
    story = Story(asked({"m": {"para_cada": "${{ entrada.x }}", "faz": FAZ}}))
    second = Grow(OWNER, 1, 1, 2, [(b"2",)])
    first = Grow(OWNER, 0, 1, 2, [(b"1",)], ['{"item":', "}"])
    assert story.do(second).verdict is Verdict.IDLE
    assert story.do(first).verdict is Verdict.APPLIED
    assert (story.do(first).verdict, story.published) == (Verdict.IDLE, [])
    assert story.do(second).verdict is Verdict.APPLIED
    assert story.do(second).verdict is Verdict.IDLE
    assert story.published == [(1, 1), (2, 1)]
    replayed(story)


def test_an_answer_to_the_map_itself_belongs_to_nobody() -> None:
    story = map_story([1])
    assert story.ok(OWNER, attempt=1).verdict is Verdict.UNKNOWN_TICKET


def test_answers_without_an_id_find_the_only_item_that_is_out() -> None:
    story = map_story([1, 2], ao_mesmo_tempo=1)
    story.do(story.bare(Kind.EXECUCAO, "resumo"))
    assert phases(story) == "co"
    story.do(story.bare(Kind.EXECUCAO, "resumo"))
    assert story.status is Status.CONCLUIDA
    both = map_story([1, 2])
    assert both.do(both.bare(Kind.EXECUCAO, "resumo")).verdict is Verdict.AMBIGUOUS


def test_a_late_answer_of_an_item_is_kept() -> None:
    story = map_story([1, 2], fan_in={"modo": "primeiro"})
    story.ok(1)
    assert story.ok(2).verdict is Verdict.LATE


def test_a_map_that_nobody_needs_any_more_takes_its_items_with_it() -> None:
    tasks = {
        "a": {"fonte": "a"},
        "m": {"para_cada": [1, 2], "faz": FAZ, "ao_mesmo_tempo": 1},
        "z": {"executador": "z", "depende": ["a", "m"], "fan_in": {"modo": "primeiro"}},
    }
    story = started(tasks)
    story.ok(0)
    assert story.statuses == ["concluida", "cancelada", "pendente", "cancelada", "cancelada"]
    story.ok(2)
    assert story.status is Status.CONCLUIDA
    replayed(story)


def test_cancelling_closes_items_and_map() -> None:
    story = map_story([1, 2, 3], ao_mesmo_tempo=1)
    story.cancel("chega")
    assert set(story.statuses) == {"cancelada"}
    replayed(story)


def test_one_result_costs_the_same_in_a_map_of_any_width() -> None:
    costs = []
    for width in (20, 2000):
        body = {"m": {"para_cada": list(range(width)), "faz": FAZ, "ao_mesmo_tempo": 5}}
        story = Story(asked(body), check=False)
        wanted = snapshot(story.state)
        assert wanted is not None
        for command in evaluate(wanted):
            story.do(command)
        story.ok(3)
        costs.append(operations(lambda story=story: story.ok(4)))
    assert costs[1] <= costs[0] * 1.1
