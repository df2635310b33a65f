"""Requests with maps, loops, waits and children, for worlds of the whole engine."""

from __future__ import annotations

from random import Random
from typing import Any

from oraculo.simulation import plans


def shaped_request(rng: Random, masked: bool) -> dict[str, Any]:
    """A request with maps, loops, waits or children, for the whole engine: its children say themselves what they do."""
    body = rng.choice((plans.maps_request, plans.loops_request, plans.waits_request, plans.children_request))(
        rng, masked
    )
    for task in body["tarefas"].values():
        call = task.get("faz") or task.get("repete", {}).get("faz") or task
        if "filha" in call:
            call["filha"] = _child(rng, masked)
    return body


def _child(rng: Random, masked: bool) -> dict[str, Any]:
    def call(key: str, chosen: tuple[str, ...]) -> dict[str, Any]:
        return {
            key: rng.choice(chosen),
            "parametros": {"n": "${{ entrada.n }}"},
            "timeout_s": plans.ticket_timeout(rng, masked),
            "max_tentativas": plans.attempts(rng, masked),
        }

    tasks = {"a": call("fonte", plans.FONTES)}
    if rng.random() < 0.5:
        tasks["b"] = {**call("executador", plans.EXECUTADORES), "depende": ["a"]}
    child: dict[str, Any] = {"tarefas": tasks, "entrada": {"n": 1}, "timeout_s": plans.plan_timeout(rng, masked)}
    if rng.random() < 0.5:
        child["saida"] = {"n": "${{ entrada.n }}"}
    return child
