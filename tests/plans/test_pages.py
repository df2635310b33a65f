"""The plans that the documents show are plans, and what they show of commands is what commands say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oraculo.plans.drawing.outline import outline
from oraculo.plans.drawing.rails import lines_of
from oraculo.plans.source.source_reader import SourceFormat, read_text

DOCS = Path(__file__).parents[2] / "docs"
READMES = ["../README.md", "../README.pt-BR.md"]
PAGES = ["plans.md", "recipes.md", *READMES]


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_every_plan_of_the_documents_is_in_order(page: str) -> None:
    plans = [(text, SourceFormat.YAML) for text in blocks(page, "yaml")]
    plans += [(text, SourceFormat.JSON) for text in blocks(page, "json")]
    assert plans
    for text, format in plans:
        assert [str(one) for one in read_text(text.encode(), format).faults] == [], text


def test_the_faults_that_plans_md_shows_are_those_of_its_plan() -> None:
    plan = blocks("plans.md", "yaml")[0].replace("fonte: youtube", "fonte: you tube").replace("{{ top.r", "{{ topo.r")
    found = [f"plan.yaml:{one}" for one in read_text(plan.encode(), SourceFormat.YAML).faults]
    assert found == [line for line in blocks("plans.md", "console")[0].splitlines() if re.match(r"plan\.yaml:\d", line)]


def test_the_drawing_that_plans_md_shows_is_that_of_its_plan() -> None:
    plan = read_text(blocks("plans.md", "yaml")[0].encode(), SourceFormat.YAML).request
    assert plan is not None
    shown = blocks("plans.md", "console")[1].splitlines()
    assert lines_of(outline(plan, "pt")) == [line for line in shown if line.startswith("●")]


@pytest.mark.parametrize("page", READMES)
def test_the_drawing_that_a_readme_shows_is_that_of_its_plan(page: str) -> None:
    [text] = blocks(page, "yaml")
    plan = read_text(text.encode(), SourceFormat.YAML).request
    assert plan is not None
    drawn = [line for block in blocks(page, "console") for line in block.splitlines() if line[0:1] in ("●", "│")]
    assert lines_of(outline(plan, "pt" if "pt-BR" in page else "en")) == drawn
