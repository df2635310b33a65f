"""The programs of the tutorial and of the page about Celery, on the engine, with the result that the page shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from oraculo.testing import KitWorld, check, run

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(python|json)\n(.*?)^```$", re.M | re.S)


def programs(page: str) -> list[tuple[str, str]]:
    """The programs of a page that have a plan, each with the JSON that the page shows next."""
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [
        (source, next(text for kind, text in blocks[number:] if kind == "json"))
        for number, (language, source) in enumerate(blocks)
        if language == "python" and "plan = Plan(" in source
    ]


def loaded(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "app"}
    exec(compile(source, "app.py", "exec"), names)
    return names


async def approved(world: KitWorld, plan: Any) -> dict[str, Any]:
    name = await world.submit(plan)
    if "approval" in plan["tarefas"]:
        await world.waiting(name, "approval")
        await world.approve(name, by="Ana")
    return await world.result(name)


@pytest.mark.parametrize("page", ["tutorial.md", "from-celery.md"])
def test_every_program_gives_what_the_page_shows(page: str) -> None:
    found = programs(page)
    assert len(found) == (4 if page == "tutorial.md" else 1)
    for source, shown in found:
        app = loaded(source)
        result = run(lambda world, plan=app["plan"]: approved(world, plan), app["worker"]).value
        assert (result["status"], result["saida"]) == ("concluida", json.loads(shown)), source


def test_the_test_of_the_last_step_holds() -> None:
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    app = loaded(programs("tutorial.md")[-1][0])
    source = next(text for _, text in BLOCK.findall(page) if "import app" in text).replace("import app\n", "")
    names: dict[str, Any] = {"app": type("app", (), app)}
    exec(compile(source, "test_app.py", "exec"), names)
    names["test_whatever_happens"](lambda story, worker, seeds: check(story, worker, seeds=min(seeds, 15)))


def test_the_portuguese_tutorial_has_the_same_programs() -> None:
    english, portuguese = ((DOCS / page).read_text(encoding="utf-8") for page in ("tutorial.md", "pt/tutorial.md"))
    assert BLOCK.findall(english) == BLOCK.findall(portuguese)
    assert english.count("\n## ") == portuguese.count("\n## ")
