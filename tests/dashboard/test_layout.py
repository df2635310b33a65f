"""Where nodes go: layers from left to right, nothing on top of anything, many tickets in few nodes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from core.given import coleta, dag, execucao, flow, plan
from core.test_undoing import UndoStory, call, map_of
from oraculo.core.compensation import grown, started
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import FanIn
from oraculo.dashboard.layout import NODES_DRAWN, drawing
from oraculo.dashboard.timeline import ranges
from runtime.test_evaluation import started as started_story


def drawn(wanted: Plan) -> dict[str, Any]:
    picture = drawing(wanted)
    nodes = picture["nodes"]
    members = [p for node in nodes for start, count in zip(node["members"][::2], node["members"][1::2], strict=True)
               for p in range(start, start + count)]  # fmt: skip
    assert sorted(members) == list(range(len(wanted.tasks))), "every ticket is in one node"
    for source, target in picture["edges"]:
        assert nodes[source]["x"] + nodes[source]["w"] < nodes[target]["x"], "edges lead to the right"
    for node in nodes:
        assert node["x"] >= 0 and node["x"] + node["w"] <= picture["width"]
        assert node["y"] >= 0 and node["y"] + node["h"] <= picture["height"]
    boxes = sorted((n["x"], n["y"], n["w"], n["h"]) for n in nodes)
    for (x1, y1, w1, h1), (x2, y2, _, _) in pairwise(boxes):
        assert x1 + w1 <= x2 or y1 + h1 <= y2, "nothing lies on top of anything"
    return picture


def labels(picture: dict[str, Any]) -> list[tuple[str, int]]:
    return [(node["label"], node["count"]) for node in picture["nodes"]]


def test_a_map_is_one_node_with_all_its_items() -> None:
    tasks = {
        "a": {"fonte": "a"},
        "m": {"para_cada": list(range(9)), "faz": {"fonte": "b"}, "depende": ["a"], "fan_in": {"modo": "primeiro"}},
        "vazio": {"para_cada": [], "faz": {"fonte": "b"}},
        "fim": {"executador": "fim", "depende": ["m"]},
    }
    story = started_story(tasks)
    before = drawn(story.state.plan)
    story.ok(0)
    after = drawn(story.state.plan)
    assert [labels(before)[n] for n in range(2)] == [("a", 1), ("fim", 1)]
    assert sorted(labels(after)) == [("a", 1), ("fim", 1), ("m", 10), ("vazio", 1)]
    assert len(before["edges"]) == len(after["edges"]) == 2


def test_a_few_of_each() -> None:
    picture = drawn(plan([coleta("youtube"), coleta("blog")], [execucao("relatorio")]))
    assert labels(picture) == [
        ("escavador_youtube", 1), ("escavador_blog", 1), ("executador_relatorio", 1), ("todos", 0),
    ]  # fmt: skip
    assert len(picture["edges"]) == 3


def test_many_of_one_queue_are_one_node() -> None:
    picture = drawn(plan([coleta("eco") for _ in range(10_000)] + [coleta("blog")], [execucao("relatorio")]))
    assert labels(picture)[:2] == [("escavador_eco", 10_000), ("escavador_blog", 1)]
    assert picture["nodes"][0]["members"] == [0, 10_000]


def test_many_queues_are_one_node() -> None:
    picture = drawn(plan(500, 1))
    assert [(node["queues"], node["count"]) for node in picture["nodes"][:2]] == [(500, 500), (1, 1)]


def test_a_choice_is_shown_also_at_the_end() -> None:
    picture = drawn(plan(3, modo=FanIn.QUORUM, minimo=2))
    assert [(n["label"], n["needed"], n["inputs"]) for n in picture["nodes"] if n["gate"] is not None] == [
        ("quorum", 2, 3)
    ]


def test_any_graph() -> None:
    picture = drawn(dag({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d", "a"]}))
    assert len([node for node in picture["nodes"] if node["gate"] is None]) == 5


def test_what_undoes_stands_behind_what_is_undone() -> None:
    asked = flow({"a": [], "b": ["a"], "c": ["b"]})
    before, after = drawn(asked), drawn(grown(asked, started(asked, [2, 1, 0])))
    assert [(node["kind"], node["label"]) for node in before["nodes"]] == [("execucao", name) for name in "abc"]
    assert [(node["kind"], node["label"], node["members"]) for node in after["nodes"][3:]] == [
        ("desfaz", "c", [3, 1]), ("desfaz", "b", [4, 1]), ("desfaz", "a", [5, 1]),
    ]  # fmt: skip
    assert {(2, 3), (1, 4), (0, 5), (3, 4), (4, 5)} <= {tuple(edge) for edge in after["edges"]}


@pytest.mark.parametrize("together", [1, 2, 4])
def test_what_undoes_the_items_of_a_map_is_one_node_behind_it(together: int) -> None:
    whole = {"executador": "limpa"}
    story = UndoStory({"a": call(), "m": map_of(ao_mesmo_tempo=together, depende=["a"], desfaz=whole), "z": call("m")})
    story.done("a", "m#0", "m#1", "m#2", "m#3")
    story.failed("z")
    picture = drawn(story.state.plan)
    nodes = [node["label"] for node in picture["nodes"]]
    undoing = {one["label"]: n for n, one in enumerate(picture["nodes"]) if one["kind"] == "desfaz"}
    assert [(name, picture["nodes"][n]["count"]) for name, n in sorted(undoing.items())] == [("a", 1), ("m", 5)]
    edges = {tuple(edge) for edge in picture["edges"]}
    assert {(nodes.index("m"), undoing["m"]), (nodes.index("a"), undoing["a"])} <= edges


def test_what_undoes_is_no_part_of_what_it_undoes() -> None:
    """They share queue, kind and neighbours, and are many."""
    asked = flow({f"t{n}": [] for n in range(8)})
    picture = drawn(grown(asked, started(asked, list(range(7, -1, -1)))))
    assert [(node["kind"], node["members"]) for node in picture["nodes"]] == [
        ("execucao", [0, 8]), ("desfaz", [8, 8]),
    ]  # fmt: skip


@pytest.mark.parametrize("width", [40, 400])
def test_a_large_graph_is_folded_by_layers(width: int) -> None:
    depends: dict[str, list[str]] = {f"0-{n}": [] for n in range(width)}
    for layer in range(1, 6):
        depends |= {f"{layer}-{n}": [f"{layer - 1}-{n}", f"{layer - 1}-{(n + 1) % width}"] for n in range(width)}
    picture = drawn(dag(depends))
    assert len(picture["nodes"]) <= NODES_DRAWN


def test_ranges() -> None:
    assert ranges([]) == []
    assert ranges([0, 1, 2, 5, 7, 8]) == [0, 3, 5, 1, 7, 2]
