"""Tickets of plans of named tasks as MongoDB gets them, one of each kind."""

from __future__ import annotations

from typing import Any

from core.test_undoing import UNDO, UndoStory
from oraculo.adapters.sinks.mongo import documents
from oraculo.core.commands import Cancel

TASKS: dict[str, Any] = {
    "a": {"executador": "x", "desfaz": UNDO},
    "m": {"para_cada": [1, 2], "faz": {"fonte": "y", "parametros": {"i": "${{ item }}"}}},
    "w": {"espera": {"sinal": "s"}},
    "t": {"espera": {"segundos": 5}},
    "ap": {"espera": {"aprovacao": {"pergunta": "sim?"}}},
    "l": {"repete": {"faz": {"executador": "z"}, "pare_quando": "${{ indice == 2 }}", "no_maximo": 3}},
    "c": {"filha": {"tipo": "t", "parametros": {"x": 1}}},
    "s": {"executador": "x", "quando": False},
}


def test_every_kind_of_task_has_a_document() -> None:
    story = UndoStory(TASKS)
    story.ok(story.position("a"), b'{"id":7}')
    story.ok(story.position("l#0"))
    story.ok(story.position("l#1"))
    story.do(Cancel("chega", undo=True))
    made = list(documents.tickets(story.state, range(len(story.state.tickets))))
    told = [(one["task_name"], one["task_type"], one["parameters"]) for one in made[: len(TASKS)]]
    assert told == [
        ("a", "EXECUTE", {}), ("m", "MAP", {}), ("w", "WAIT", {}), ("t", "WAIT", {"value": "5"}),
        ("ap", "WAIT", {"value": "sim?"}), ("l", "LOOP", {}), ("c", "CHILD", {"parametros": '{"x":1}'}),
        ("s", "EXECUTE", {}),
    ]  # fmt: skip
    assert [one["parameters"] for one in made if one["task_type"] == "QUERY"] == [{"i": "1"}, {"i": "2"}]
    assert made[7]["status"] == "SKIPPED"
    assert made[2]["sla"] == {"deadline": None, "timeout_ms": None, "max_retries": 0}
    assert made[0]["compensation_ticket_id"] == made[-1]["ticket_id"] and made[-1]["parameters"] == {"id": "7"}
