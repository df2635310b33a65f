"""Requests with `tarefas`: read in either vocabulary, kept in the journal, written back, refused with the place."""

from __future__ import annotations

from typing import Any

import pytest

from core.given import RUN, T0
from oraculo.core.commands import Start
from oraculo.core.plan import Plan
from oraculo.core.step import step
from oraculo.core.vocabulary import Ending, FanIn
from oraculo.errors import PlanError, WireError
from oraculo.wire import payloads, records, requests, strict_json

DEFAULTS = requests.Defaults()
BODY: dict[str, Any] = {
    "tarefas": {
        "videos": {"fonte": "youtube", "parametros": {"canal": "x"}, "timeout_s": 5, "max_tentativas": 2},
        "blog": {"fonte": "blog", "opcional": True, "retentativa": {"base_s": 2, "nao_em": ["http_404"]}},
        "top": {
            "executador": "ranking", "depende": ["videos", "blog"], "fan_in": {"modo": "quorum", "minimo": 1},
        },
    },
    "timeout_s": 90,
    "notificar": {"fila": "avisos"},
}  # fmt: skip
ENGLISH: dict[str, Any] = {
    "tasks": {
        "videos": {"source": "youtube", "params": {"canal": "x"}, "timeout_s": 5, "max_attempts": 2},
        "blog": {"source": "blog", "optional": True, "retry": {"base_s": 2, "not_on": ["http_404"]}},
        "top": {"executor": "ranking", "needs": ["videos", "blog"], "fan_in": {"mode": "quorum", "at_least": 1}},
    },
    "timeout_s": 90,
    "notify": {"queue": "avisos"},
}


def plan_of(body: dict[str, Any]) -> Plan:
    return requests.plan_of(requests.parse(body), DEFAULTS)


def test_a_request_becomes_a_plan() -> None:
    plan = plan_of(BODY)
    assert [(task.queue, task.after, task.feeds) for task in plan.tasks] == [
        ("escavador_youtube", None, (0,)), ("escavador_blog", None, (0,)), ("executador_ranking", 0, ()),
    ]  # fmt: skip
    (gate,) = plan.gates
    assert (gate.mode, gate.needed, gate.inputs, gate.releases, gate.essential) == (
        FanIn.QUORUM, 1, (0, 1), (2,), False,
    )  # fmt: skip
    assert (plan.ending, plan.profile.names) == (Ending.ABSORBED, ("videos", "blog", "top"))
    assert (plan.timeout.total_seconds(), plan.notify.queue) == (90, "avisos")
    backoff = plan.profile.backoff(1)
    assert backoff is not None and (backoff.base.total_seconds(), backoff.cap.total_seconds()) == (2, 60)


def test_both_vocabularies_are_the_same_request() -> None:
    assert plan_of(BODY) == plan_of(ENGLISH)
    assert requests.fingerprint(requests.parse(BODY)) == requests.fingerprint(requests.parse(ENGLISH))


def test_the_journal_keeps_it() -> None:
    started = step(None, Start(RUN, "abc", plan_of(BODY)), T0)
    assert records.decode(records.encode(started.events)) == started.events


def test_the_request_can_be_written_again() -> None:
    plan = plan_of(BODY)
    again = requests.request_of(plan)
    assert again == BODY
    assert plan_of(again) == plan
    assert requests.written(requests.parse(ENGLISH)) == BODY


def test_what_was_made_in_python_is_a_plan_too() -> None:
    made = requests.Requisicao(tarefas=BODY["tarefas"], timeout_s=90, notificar=requests.Notificar(fila="avisos"))
    plan, read = requests.plan_of(made, DEFAULTS), plan_of(BODY)
    assert (plan.tasks, plan.gates, plan.timeout, plan.notify) == (read.tasks, read.gates, read.timeout, read.notify)
    assert plan.profile.names == read.profile.names


def test_collect_and_execute_is_written_in_the_journal_as_ever() -> None:
    plan = plan_of({"coletas": [{"fonte": "a"}], "execucoes": [{"executador": "b"}]})
    body = records.encode(step(None, Start(RUN, "abc", plan), T0).events)
    assert strict_json.loads(body)[0][1]["plan"]["profile"] == {}


def test_a_map_is_written_again_as_it_was_sent() -> None:
    body = {
        "tarefas": {
            "m": {
                "para_cada": "${{ entrada.lista }}",
                "como": "um",
                "ao_mesmo_tempo": 3,
                "timeout_s": 90,
                "fan_in": {"modo": "quorum", "minimo": 2},
                "faz": {
                    "fonte": "blog",
                    "parametros": {"n": "${{ um }}"},
                    "quando": "${{ um > 1 }}",
                    "max_tentativas": 4,
                },
            }
        },
        "entrada": {"lista": [1, 2]},
    }
    plan = plan_of(body)
    assert requests.request_of(plan) == body
    assert plan_of(requests.request_of(plan)) == plan
    started = step(None, Start(RUN, "abc", plan), T0)
    assert records.decode(records.encode(started.events)) == started.events


def test_a_loop_is_written_again_as_it_was_sent() -> None:
    faz = {"executador": "pagina", "parametros": {"c": "${{ p.resultado }}"}, "max_tentativas": 4}
    loop = {"faz": faz, "pare_quando": "${{ indice > 3 }}", "no_maximo": 9, "pausa_s": 2.5, "ao_esgotar": "segue"}
    body = {"tarefas": {"p": {"repete": loop, "timeout_s": 90}, "d": {"executador": "d", "depende": ["p"]}}}
    english = {
        "tasks": {
            "p": {
                "repeat": {
                    "do": {"executor": "pagina", "params": {"c": "${{ p.resultado }}"}, "max_attempts": 4},
                    "stop_when": "${{ indice > 3 }}",
                    "at_most": 9,
                    "pause_s": 2.5,
                    "on_exhaust": "continue",
                },
                "timeout_s": 90,
            },
            "d": {"executor": "d", "needs": ["p"]},
        }
    }
    plan = plan_of(body)
    assert plan_of(english) == plan
    assert requests.request_of(plan) == body
    assert plan_of(requests.request_of(plan)) == plan
    started = step(None, Start(RUN, "abc", plan), T0)
    assert records.decode(records.encode(started.events)) == started.events


def test_orders_of_two_tasks_behind_the_same_gate_have_the_data_that_each_asked_for() -> None:
    body = {
        "tarefas": {
            "a": {"fonte": "a"},
            "b": {"fonte": "b"},
            "ab": {"executador": "x", "depende": ["a", "b"]},
            "ba": {"executador": "x", "depende": ["b", "a"]},
        }
    }
    state = step(None, Start(RUN, "abc", plan_of(body)), T0).state
    given = [strict_json.loads(raw)["payload"] for _, _, raw in payloads.orders(state, [(2, 1), (3, 1)], T0)]
    assert [[one["tarefa"] for one in payload["dados"]] for payload in given] == [["a", "b"], ["b", "a"]]


CALL = {"executador": "x"}
LOOPED = {"faz": {**CALL, "desfaz": {"executador": "y"}}, "pare_quando": "${{ true }}", "no_maximo": 2}


@pytest.mark.parametrize(
    "body",
    [
        {"tarefas": {"t": {"filha": {"tarefas": {"u": {"repete": LOOPED}}}}}},
        {"tarefas": {"t": {"repete": LOOPED}}},
    ],
)
def test_a_round_may_say_how_it_is_undone(body: dict[str, Any]) -> None:
    assert requests.request_of(requests.plan_of(requests.parse(body), requests.Defaults()))["tarefas"]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"tarefas": {}}, "tarefas"),
        ({"tarefas": {"t": {**CALL, "depende": ["u"]}}}, "tarefas.t.depende.0"),
        ({"tarefas": {"t": {**CALL, "depende": ["t"]}}}, "tarefas.t"),
        ({"tarefas": {"t": CALL}, "coletas": [{"fonte": "a"}]}, "coletas"),
        ({"tarefas": {"t": CALL}, "tipo": "x"}, "tipo"),
        ({"tarefas": {"t": {**CALL, "fan_in": {"modo": "todos"}}}}, "tarefas.t.fan_in"),
    ],
)
def test_faults_of_a_plan(body: dict[str, Any], where: str) -> None:
    with pytest.raises(WireError) as refused:
        requests.parse(body)
    assert where in [one["campo"] for one in refused.value.errors]


def test_a_task_type_that_is_a_plan() -> None:
    template = requests.parse({"tarefas": {"t": CALL}, "timeout_s": 30})
    asked = requests.parse({"tipo": "semanal", "timeout_s": 7, "notificar": {"fila": "avisos"}})
    plan = requests.plan_of(requests.expand(asked, template), DEFAULTS)
    assert (plan.tipo, plan.timeout.total_seconds(), plan.notify.queue) == ("semanal", 7, "avisos")
    assert plan.profile.names == ("t",)
    with pytest.raises(PlanError, match="is a plan"):
        requests.expand(requests.parse({"tipo": "semanal", "fan_in": {"modo": "todos"}}), template)


def test_the_parameters_of_a_task_type_are_laid_over_its_input() -> None:
    template = requests.parse({"tarefas": {"t": CALL}, "entrada": {"a": 1, "b": 2}})
    asked = requests.parse({"tipo": "semanal", "parametros": {"b": 3, "c": 4}})
    plan = requests.plan_of(requests.expand(asked, template), DEFAULTS)
    assert requests.request_of(plan) == {"entrada": {"a": 1, "b": 3, "c": 4}, "tarefas": {"t": CALL}}


@pytest.mark.parametrize("word", ["entrada", "saida"])
def test_input_and_output_go_with_tasks(word: str) -> None:
    with pytest.raises(PlanError, match="go with tarefas"):
        requests.check_shape(requests.parse({"coletas": [{"fonte": "a"}], word: {}}))


def test_what_an_expression_names_is_depended_on() -> None:
    body = {
        "entrada": {"n": 1},
        "tarefas": {
            "a": {"fonte": "a"},
            "b": {"fonte": "b"},
            "c": {**CALL, "depende": ["b"], "quando": "${{ a.ok }}", "parametros": {"x": ["${{ a.dados }}"]}},
        },
        "saida": {"tudo": "${{ c.resultado }}"},
    }
    plan = plan_of(body)
    assert [gate.inputs for gate in plan.gates] == [(0, 1)]
    assert [plan.profile.asks(position) for position in range(3)] == [False, False, True]
    assert plan.profile.gives(2) == (1,), "what is only named is not sent twice"
    assert requests.request_of(plan) == body
    started = step(None, Start(RUN, "abc", plan), T0)
    assert records.decode(records.encode(started.events)) == started.events
