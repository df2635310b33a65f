"""The plans of docs/recipes.md: each is run as far as this version runs its words; all are checked by test_pages.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cli.processes import Server
from oraculo import Client
from oraculo.errors import WireError
from oraculo.plans.drawing.outline import outline
from oraculo.plans.model import InstantWait, PlanDocument, TimerWait, WaitNode
from oraculo.plans.source.source_reader import SourceFormat, read_text
from oraculo.wire import named_plans
from plans.test_pages import blocks
from waiting import DEADLINE_S, eventually

# Whatever the destination, the answer has what the expressions of the recipes ask for.
WORKER = """
from oraculo import Worker

worker = Worker()
ANSWER = {{"items": [1, 2, 3], "n": 7, "id": "r1", "end": True}}

for name in {sources!r}:
    worker.collector(name)(lambda params: ANSWER)
for name in {executors!r}:
    worker.executor(name)(lambda data, params: ANSWER)


@worker.executor("quebra")
def quebra(data, params):
    raise ValueError("quebrou")
"""


def recipes() -> list[tuple[str, dict[str, Any], PlanDocument]]:
    """First task, data and document of each recipe."""
    found = []
    for text in blocks("recipes.md", "yaml"):
        reading = read_text(text.encode(), SourceFormat.YAML)
        assert isinstance(reading.request, PlanDocument) and isinstance(reading.data, dict), text
        found.append((next(iter(reading.request.tasks)), reading.data, reading.request))
    return found


RECIPES = recipes()


def _destinations(word: str) -> list[str]:
    """Every destination of a kind, children and bodies included."""
    found: set[str] = set()
    stack: list[Any] = [data for _, data, _ in RECIPES]
    words = {"fonte": ("fonte", "source"), "executador": ("executador", "executor")}[word]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            found.update(one[key] for key in words if isinstance(one.get(key), str))
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)
    return sorted(found)


def runs(data: dict[str, Any], document: PlanDocument) -> bool:
    """Whether this version takes the plan, and it ends within an hour."""
    waits = [node.wait for node in document.tasks.values() if isinstance(node, WaitNode)]
    if any(isinstance(wait, TimerWait | InstantWait) for wait in waits):
        return False
    try:
        named_plans.load(data)
    except WireError:
        return False
    return True


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("recipes")
    source = WORKER.format(sources=_destinations("fonte"), executors=_destinations("executador"))
    (folder / "receitas.py").write_text(source, encoding="utf-8")
    one = Server(folder, "--worker", "receitas:worker")
    one.start()
    yield one
    one.kill()


def test_some_recipes_run_and_every_one_can_be_drawn() -> None:
    assert len(RECIPES) >= 13
    assert sum(runs(data, document) for _, data, document in RECIPES) >= 6
    assert all(outline(document, "pt").tasks for _, _, document in RECIPES)


def _answer(client: Client, name: str) -> bool:
    """Approve and signal whatever the run waits for; True when it has ended."""
    shown = client.get(name)
    for ticket in shown["tickets"]:
        wait = ticket.get("espera")
        if wait is None or ticket["status"] != "em_execucao":
            continue
        if wait["tipo"] == "aprovacao":
            client.decide(name, True, "ana", task=ticket["tarefa"])
        else:
            client.signal(name, wait["sinal"], {"sim": True}, idempotency_key=ticket["ticket_id"])
    return shown["fim"] is not None


@pytest.mark.parametrize(
    ("name", "data"),
    [pytest.param(name, data, id=name) for name, data, document in RECIPES if runs(data, document)],
)
def test_a_recipe_runs_to_its_end(server: Server, name: str, data: dict[str, Any]) -> None:
    with Client(server.url) as client:
        run = client.submit(data)
        eventually(lambda: _answer(client, run.correlation_id), pause=0.1)
        result = client.result(run.correlation_id, wait=DEADLINE_S)
    assert result is not None and result["status"] == "concluida", result


def test_the_saga_is_undone_when_the_charge_fails(server: Server) -> None:
    [data] = [data for name, data, _ in RECIPES if name == "flight"]
    tasks = {**data["tasks"], "charge": {**data["tasks"]["charge"], "executor": "quebra"}}
    with Client(server.url) as client:
        run = client.submit({**data, "tasks": tasks})
        result: Any = client.result(run.correlation_id, wait=DEADLINE_S)
        assert result is not None and result["status"] == "erro", result
        assert result["tarefas"]["flight"]["desfeita"] == "concluida"
        assert result["tarefas"]["rooms"]["itens_desfeitos"] == {"total": 2, "concluidos": 2, "falhas": 0}
        began = [one["destino"] for one in client.get(run.correlation_id)["tickets"] if one.get("desfaz")]
    assert began == ["executador_free_room", "executador_free_room", "executador_cancel_flight"]
