"""Drawings of plans show every task and exactly the dependencies that there are."""

from __future__ import annotations

import re
from typing import Any

from oraculo.plans.drawing.mermaid import mermaid
from oraculo.plans.drawing.outline import PlanOutline, outline
from oraculo.plans.drawing.rails import RAILS_MAX, draw, lines_of
from oraculo.plans.graph import dependencies
from oraculo.plans.model import PlanDocument
from oraculo.plans.reader import load
from plans.generated import PlanMaker

PLAN = {
    "tarefas": {
        "videos": {"fonte": "youtube"},
        "artigos": {"fonte": "blog"},
        "top": {"executador": "ranking", "parametros": {"itens": "${{ videos.dados }}"}},
        "resumos": {"para_cada": "${{ top.resultado }}", "ao_mesmo_tempo": 5, "faz": {"executador": "resumo"}},
        "ok": {"espera": {"sinal": "revisao", "timeout_s": 60}, "depende": ["resumos"]},
        "fim": {"executador": "email", "depende": ["ok", "artigos"], "quando": "${{ videos.ok }}"},
    },
    "saida": "${{ fim.resultado }}",
}


def drawn(plan: dict[str, Any]) -> PlanOutline:
    return outline(load(plan), "pt")


def _followed(rails: list[str], row: int) -> set[int]:
    """The rows whose rails lead into the node of this row, found by following the lines with a finger."""
    line = rails[row].ljust(4 * RAILS_MAX)
    node = line.index("●")
    columns = set()
    for step, meets, last in ((-1, "├╰┼┴", "├╰"), (1, "┤╯┼┴", "┤╯")):
        at = node + step
        while 0 <= at < len(line) and line[at] in "─│" + meets:
            if line[at] in meets:
                columns.add(at)
            if line[at] in last:
                break
            at += step
    found = set()
    for column in (*columns, node):
        above = row - 1
        while above >= 0 and rails[above].ljust(column + 1)[column] in "│├┤┼":
            above -= 1
        if above >= 0 and rails[above].ljust(column + 1)[column] == "●":
            found.add(above)
        else:
            assert column == node, "a rail that comes from nowhere"
    return found


def test_rails_lead_from_what_is_needed_and_from_nothing_else() -> None:
    for seed in range(150):
        plan = drawn(PlanMaker(seed).plan())
        rows = draw(plan)
        assert rows is not None
        rails = [one.rails for one in rows]
        numbers = {task.id: number for number, task in enumerate(plan.tasks)}
        for row, task in enumerate(plan.tasks):
            assert rails[row].count("●") == 1
            assert _followed(rails, row) == {numbers[need] for need in task.needs}, (seed, task.name, rails)


def test_a_plan_as_a_person_sees_it() -> None:
    assert lines_of(drawn(PLAN)) == [
        "●      videos   fonte youtube",
        "│ ●    artigos  fonte blog",
        "├─│─●  top      executador ranking",
        "│ │ ●  resumos  para_cada ${{ top.resultado }}, ao_mesmo_tempo 5: executador resumo",
        "│ │ ●  ok       espera sinal revisao (60 s)",
        "●─┴─╯  fim      executador email · quando ${{ videos.ok }}",
    ]
    assert lines_of(drawn(PLAN), ascii_only=True)[5].startswith("*-'-'  fim")


def test_words_and_expressions_are_those_that_are_asked_for() -> None:
    english = lines_of(outline(load(PLAN), "en"))
    assert "for_each ${{ top.result }}, at_once 5: executor resumo" in english[3]
    assert outline(load(PLAN), "en").output == "${{ fim.result }}"


def test_two_stages_a_type_and_children_are_drawn_too() -> None:
    stages = {
        "coletas": [{"fonte": "a"}, {"fonte": "a"}],
        "execucoes": [{"executador": "b"}],
        "fan_in": {"modo": "primeiro"},
    }
    assert lines_of(drawn(stages)) == [
        "●    a  fonte a", "│ ●  a  fonte a", "●─╯  b  executador b · fan_in primeiro",
    ]  # fmt: skip
    assert lines_of(drawn({"tipo": "semanal"})) == ["●  semanal  tipo"]
    child = {"tarefas": {"c": {"filha": stages}, "d": {"fonte": "x", "depende": ["c"]}}}
    assert lines_of(drawn(child)) == [
        "●  c  filha", "│      ●    a  fonte a", "│      │ ●  a  fonte a",
        "│      ●─╯  b  executador b · fan_in primeiro",
        "●  d  fonte x",
    ]  # fmt: skip


def test_more_rails_than_one_can_follow_become_a_list() -> None:
    wide: dict[str, Any] = {f"t{n}": {"fonte": "x"} for n in range(40)}
    plan = drawn({"tarefas": {**wide, "fim": {"executador": "y", "depende": list(wide)}}})
    assert draw(plan) is None
    lines = lines_of(plan)
    assert lines[0] == "   1  t0   fonte x"
    assert lines[-1].startswith("   2  fim  executador y  ← t0, t1,") and lines[-1].endswith(", …")


_BOX = re.compile(r"""\s*(\w+)(\(\[|\[/|\[\[|\[|\{\{|>)"[^"<>`]*(?:<br>[^"<>`]*)*"(\]\)|/\]|\]\]|\]|\}\})""")
_EDGE = re.compile(r"\s*(\w+) (-->|-\.-) (\w+)")


def test_mermaid_has_a_box_for_each_task_and_an_arrow_for_each_dependency() -> None:
    for seed in range(150):
        request = load(PlanMaker(seed).plan())
        assert isinstance(request, PlanDocument)
        first, *lines = mermaid(outline(request, "pt")).splitlines()
        assert first == "flowchart TD"
        boxes, arrows, groups, depth = set(), [], set(), 0
        top = 0
        for line in lines:
            if line.strip().startswith("subgraph"):
                groups.add(line.split()[1].partition("[")[0])
                depth += 1
            elif line.strip() == "end":
                depth -= 1
            elif found := _EDGE.fullmatch(line):
                arrows.append((found[1], found[3]))
                top += depth == 0 and found[2] == "-->"
            else:
                box = _BOX.fullmatch(line)
                assert box, line
                boxes.add(box[1])
        assert depth == 0 and all({one, other} <= boxes | groups for one, other in arrows)
        assert top == sum(map(len, dependencies(request).values())), seed


def test_nothing_of_a_plan_is_markup_in_mermaid() -> None:
    evil = {"tarefas": {"a": {"fonte": "x", "quando": '${{ entrada.a == "]<script>#`|" }}'}}}
    [line] = [line for line in mermaid(drawn(evil)).splitlines() if "quando" in line]
    assert _BOX.fullmatch(line) and "script" in line and "#34;" in line
