"""Answers in English words, against tables that were written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from oraculo.plans.words import in_english

PLACES: list[tuple[Any, Any]] = [
    # fields
    ({"coletas": [], "execucoes": []}, {"collects": [], "executes": []}),
    ({"inicio": "a", "fim": "b", "duracao_ms": 1}, {"started_at": "a", "ended_at": "b", "duration_ms": 1}),
    (
        {"erros": [{"codigo": "x", "mensagem": "y", "definitivo": True}]},
        {"errors": [{"code": "x", "message": "y", "final": True}]},
    ),
    ({"fonte": "fonte", "tentativas": 2}, {"source": "fonte", "attempts": 2}),
    ({"rotulos": ["fonte", "erro"]}, {"labels": ["fonte", "erro"]}),
    ({"tarefa": "erro", "indice": 3}, {"task": "erro", "index": 3}),
    ({"itens": {"total": 2, "falhas": 1}}, {"items": {"total": 2, "failures": 1}}),
    # words that the contract does not translate
    ({"destino": "q", "prazo": None, "motivo": "erro"}, {"destino": "q", "prazo": None, "motivo": "erro"}),
    # values, by the field that they stand in
    *(
        ({"status": pt}, {"status": en})
        for pt, en in [
            ("pendente", "pending"),
            ("em_execucao", "running"),
            ("concluida", "completed"),
            ("parcial", "partial"),
            ("erro", "failed"),
            ("cancelada", "cancelled"),
            ("ignorada", "skipped"),
            ("timeout", "timeout"),
        ]
    ),
    ({"status": 202}, {"status": 202}),
    ({"erro": "erro", "causa": "erro"}, {"erro": "erro", "causa": "erro"}),
    ({"fan_in": {"modo": "primeiro", "minimo": 1}}, {"fan_in": {"mode": "first", "at_least": 1}}),
    ({"modo": "todos"}, {"mode": "all"}),
    ({"ao_expirar": "segue", "ao_recusar": "falha"}, {"on_expire": "continue", "on_refuse": "fail"}),
    ({"de": "inicio"}, {"de": "start"}),
    # kinds of a ticket and of a wait; the type of a run is a name that somebody gave
    ({"ticket_id": "1", "tipo": "coleta"}, {"ticket_id": "1", "type": "collect"}),
    ({"correlation_id": "1", "tipo": "coleta"}, {"correlation_id": "1", "type": "coleta"}),
    ({"espera": {"tipo": "sinal", "sinal": "ate"}}, {"wait": {"type": "signal", "signal": "ate"}}),
    ({"espera": "aguarda"}, {"wait": "aguarda"}),
    # names that users gave
    (
        {"tarefas": {"fonte": {"status": "erro"}, "erros": {"resultado": {"fonte": 1}}}},
        {"tasks": {"fonte": {"status": "failed"}, "erros": {"result": {"fonte": 1}}}},
    ),
    (
        {"task_types": {"fila": {"coletas": [{"fonte": "x"}]}}},
        {"task_types": {"fila": {"collects": [{"source": "x"}]}}},
    ),
    # what is inside belongs to others
    *(
        ({pt: {"status": "erro", "fonte": [{"erros": 1}]}}, {en: {"status": "erro", "fonte": [{"erros": 1}]}})
        for pt, en in [
            ("parametros", "params"),
            ("dados", "data"),
            ("resultado", "result"),
            ("entrada", "input"),
            ("saida", "output"),
        ]
    ),
    ({"resultados": [{"status": "erro"}]}, {"results": [{"status": "erro"}]}),
    ({"para_cada": [{"fonte": "x"}], "como": "item"}, {"for_each": [{"fonte": "x"}], "as": "item"}),
    (
        {"mensagens": [{"lease_id": "1", "mensagem": {"tipo_evento": "x", "payload": {"fonte": "y"}}}]},
        {"mensagens": [{"lease_id": "1", "message": {"tipo_evento": "x", "payload": {"fonte": "y"}}}]},
    ),
]


@pytest.mark.parametrize(("portuguese", "english"), PLACES, ids=lambda place: str(place)[:60])
def test_a_word_is_translated_by_its_place(portuguese: Any, english: Any) -> None:
    assert in_english(portuguese) == english
