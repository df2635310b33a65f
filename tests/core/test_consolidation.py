"""One result out of many: the aggregate, at the end and before it, and what executions are given."""

from __future__ import annotations

from core.given import ERRO, Story, at, dag, plan
from oraculo.core.consolidation import aggregate, collected, milliseconds
from oraculo.core.vocabulary import FanIn, Status


def test_the_document_of_the_contract() -> None:
    story = Story(plan(1, 1))
    story.confirm()
    story.ok(0, b'[{"video":1}]', when=0.012)
    story.ok(1, b'{"resultado":"ok","arquivo":"relatorio.pdf"}', when=0.020)
    assert aggregate(story.state) == {
        "correlation_id": "abc123",
        "status": "concluida",
        "coletas": [
            {
                "fonte": "fonte0", "status": "concluida", "dados": b'[{"video":1}]', "erros": [], "tentativas": 1,
                "duracao_ms": 12,
            }
        ],
        "execucoes": [
            {
                "executador": "exec0", "status": "concluida", "erros": [], "tentativas": 1, "duracao_ms": 8,
                "resultado": b'{"resultado":"ok","arquivo":"relatorio.pdf"}',
            }
        ],
        "inicio": at(0),
        "fim": at(0.020),
        "duracao_ms": 20,
    }  # fmt: skip


def test_it_is_there_in_every_case_with_what_came_in() -> None:
    story = Story(plan(3, 1, timeout=60))
    story.ok(0, b'"kept"')
    story.fail(1)
    story.wake(60)
    document = aggregate(story.state)
    assert document["status"] is Status.TIMEOUT
    assert [(c["status"].value, c["dados"]) for c in document["coletas"]] == [
        ("concluida", b'"kept"'),
        ("erro", b'{"n":1}'),
        ("timeout", b"null"),
    ]
    assert document["coletas"][1]["erros"] == [ERRO]
    assert document["coletas"][2]["erros"][0]["codigo"] == "timeout"
    assert document["execucoes"][0] == {
        "executador": "exec0", "status": "cancelada", "resultado": b"null", "erros": [], "tentativas": 0,
        "duracao_ms": None,
    }  # fmt: skip


def test_so_far() -> None:
    story = Story(plan(2, 1))
    story.ok(1)
    document = aggregate(story.state)
    assert (document["status"].value, document["fim"], document["duracao_ms"]) == ("em_execucao", None, None)
    assert [c["status"].value for c in document["coletas"]] == ["pendente", "concluida"]


def test_attempts_and_time_count_from_the_first_dispatch() -> None:
    story = Story(plan(1, attempts=3))
    story.fail(0, when=1)
    story.wake(3)
    story.ok(0, when=4)
    one = aggregate(story.state)["coletas"][0]
    assert (one["tentativas"], one["duracao_ms"]) == (2, 4000)


def test_executions_get_one_entry_per_collection_also_of_those_that_gave_nothing() -> None:
    story = Story(plan(4, 1, modo=FanIn.QUORUM, minimo=2))
    story.ok(2, b'{"b":2}')
    story.fail(0)
    story.ok(1, b"[1]")
    assert collected(story.state, 4) == [
        {"fonte": "fonte0", "status": "erro", "dados": b'{"n":1}'},
        {"fonte": "fonte1", "status": "concluida", "dados": b"[1]"},
        {"fonte": "fonte2", "status": "concluida", "dados": b'{"b":2}'},
        {"fonte": "fonte3", "status": "cancelada", "dados": b"null"},
    ]


def test_first_stage_executions_get_nothing() -> None:
    assert collected(Story(plan(0, 1)).state, 0) == []


def test_in_a_graph_a_task_gets_what_it_depends_on_and_nothing_else() -> None:
    story = Story(dag({"a": [], "b": [], "c": ["b"]}))
    story.ok(0, b"1")
    story.ok(1, b"2")
    assert collected(story.state, 2) == [{"executador": "b", "status": "concluida", "dados": b"2"}]


def test_milliseconds_are_rounded_and_need_both_ends() -> None:
    assert milliseconds(at(0), at(0.0016)) == 2
    assert milliseconds(None, at(1)) is None and milliseconds(at(1), None) is None
