"""The script folds the journal to the state that the core folds it to, after every event of many histories."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from typing import Any

from core.given import Retry, Story, dag, flow, plan
from dashboard.conftest import Site
from oraculo.core.commands import (
    Approve,
    Cancel,
    Command,
    ConfirmDispatch,
    RecordDelivery,
    RecordResult,
    Signal,
    Wake,
    WithdrawTicket,
)
from oraculo.core.plan import Plan
from oraculo.core.state import Orchestration, begin, evolve
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Cause, FanIn
from oraculo.core.vocabulary import Phase as TicketPhase
from oraculo.dashboard import assets, timeline
from oraculo.ports.journal import Recorded
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.simulation.plans import loops_plan, maps_plan
from oraculo.wire import requests

HISTORIES = 1000
PHASES = list(TicketPhase)
FOLD = """async ([module, text]) => {
  const { RunStore, STATUS } = await import(module);
  return JSON.stringify(JSON.parse(text).map(({ tasks, events, seeks }) => {
    const store = new RunStore({ start: 0, deadline: 1, tasks, events });
    store.every = 1 + (seeks[0] % 9); // states are kept on the way more often than in a long run
    return seeks.map((seq) => {
      const state = store.seek(seq);
      const some = (values) => [...values].slice(0, state.total);
      return { run: STATUS[state.run], status: some(state.status).map((code) => STATUS[code]), phase: some(state.phase),
               attempt: some(state.attempt), open: state.open, gates: [...state.gates].sort(),
               asks: state.approval === "asked", approver: state.approver || null };
    });
  }));
}"""


def told(state: Orchestration) -> dict[str, Any]:
    return {
        "run": state.status.value,
        "status": [ticket.status.value for ticket in state.tickets],
        "phase": [PHASES.index(ticket.phase) for ticket in state.tickets],
        "attempt": [ticket.attempt for ticket in state.tickets],
        "open": state.open,
        "gates": [[number, gate.passed] for number, gate in enumerate(state.gates) if gate.passed is not None],
        "asks": state.awaits_approval,
        "approver": state.approved_by or None,
    }


def history(story: Story, seeks: list[int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the script gets, and what it has to answer."""
    recorded: list[Recorded] = []
    first = 1
    for at, events in story.journal:
        recorded.append(Recorded(story.run, first, at, events))
        first += len(events)
    started = recorded[0].events[0]
    state = begin(started, recorded[0].at)
    after = [told(state)]
    for step in recorded:
        for event in step.events:
            if event is not started:
                evolve(state, event, step.at)
                after.append(told(state))
    chosen = [1 + seek % len(after) for seek in seeks]
    rows = list(timeline.rows(recorded, state.plan, recorded[0].at))
    count = len(started.plan.tasks)
    tasks = {"kinds": [["fila", "coleta", 1000]], "of": [0] * count}
    return {"tasks": tasks, "events": rows, "seeks": chosen}, [after[seek - 1] for seek in chosen]


def waiting_plan() -> Plan:
    """Signals, an approval and a pause, with orders between them."""
    tasks = {
        "a": {"espera": {"sinal": "ok", "timeout_s": 60}},
        "b": {"executador": "x"},
        "c": {"espera": {"aprovacao": {}}, "depende": ["a"]},
        "d": {"espera": {"segundos": 20}, "depende": ["b"]},
        "e": {"executador": "x", "depende": ["c", "d"], "fan_in": {"modo": "todos"}},
    }
    return requests.plan_of(requests.parse({"tarefas": tasks}), requests.Defaults())


def by_chance(chance: random.Random) -> Story:
    """An orchestration to which anything may have happened: answers, silence, confirmations, cancelling, notices."""
    width, behind, attempts = chance.randint(1, 5), chance.randint(0, 3), chance.randint(1, 3)
    modo = chance.choice([FanIn.TODOS, FanIn.QUORUM, FanIn.PRIMEIRO])
    minimo = chance.randint(1, width) if modo is FanIn.QUORUM else None
    hook = chance.choice([None, "https://example.com"])
    wanted = chance.choice(
        [
            plan(
                width,
                behind,
                modo=modo,
                minimo=minimo,
                attempts=attempts,
                timeout=chance.choice([20, 200]),
                webhook=hook,
            ),
            dag({"a": [], "b": [], "c": ["a"], "d": ["a", "b"], "e": ["c", "d"]}, attempts=2),
            flow({"a": [], "b": ["a"], "c": ["a", "b"]}, approval=chance.random() < 0.5),
            maps_plan(chance, masked=True),
            loops_plan(chance, masked=True),
            waiting_plan(),
        ]
    )
    story = Story(wanted, check=False)
    for _ in range(chance.randint(0, 40)):
        assert story.state is not None
        position = chance.randrange(len(story.state.tickets))
        attempt = chance.choice([None, 1, 2])
        commands: list[Command] = [
            Wake(),
            ConfirmDispatch([(p, story.ticket(p).attempt) for p in sorted(story.state.owed)]),
            ConfirmDispatch([(position, chance.randint(1, 3))]),
            RecordResult(True, b"[1]", [], ticket=ticket_id(story.run, position), attempt=attempt, digest=1),
            RecordResult(
                False, b"null", [{"mensagem": "x"}], chance.random() < 0.2, ticket_id(story.run, position), attempt
            ),
            next(iter(evaluate_inline(story.state)), Wake()),
            RecordDelivery(0, chance.randint(1, 2), chance.random() < 0.5, False),
            Cancel("chega"),
            Approve(chance.random() < 0.8, "ana", "porque sim"),
            Approve(chance.random() < 0.8, "ana", "porque sim", task=position),
            Signal(str(chance.random()), "ok", b"1"),
            WithdrawTicket(position, attempt or 1, Cause.REALOCADO, "w", chance.choice([None, timedelta(seconds=9)])),
        ]
        weights = [3, 4, 2, 5, 4, 5, 1, 0.2, 2, 1, 1, 1]
        story.do(chance.choices(commands, weights)[0], story.now + chance.uniform(0, 12))
    if story.state.closed_at is not None and chance.random() < 0.5:
        return Retry(story)
    return story


async def test_fold_parity(site: Site) -> None:
    chance = random.Random(20261115)
    pairs = [history(by_chance(chance), [chance.randrange(500) for _ in range(6)]) for _ in range(HISTORIES)]
    page = await site.open("/problems")
    text = json.dumps([asked for asked, _ in pairs])
    answers = json.loads(await page.evaluate(FOLD, [assets.address("js/run-state.js"), text]))
    endings = Counter(expected[-1]["run"] for _, expected in pairs)
    assert len(endings) >= 6, endings
    assert sum(len(row) > 3 and row[2] == "u" for asked, _ in pairs for row in asked["events"]) > 20, "plans grew"
    assert sum(row[2] == "j" for asked, _ in pairs for row in asked["events"]) > 20, "results were reused"
    assert sum(row[2] == "W" for asked, _ in pairs for row in asked["events"]) > 20, "attempts were withdrawn"
    assert sum(row[2] == "t" for asked, _ in pairs for row in asked["events"]) > 100, "waits ended"
    for given_back, (asked, expected) in zip(answers, pairs, strict=True):
        assert given_back == expected, asked


NAMED = """async ([state, names, document]) => {
  const { RunStore } = await import(state);
  const { ticketName } = await import(names);
  const store = new RunStore(document);
  return [...Array(store.total).keys()].map((position) => ticketName(store, position));
}"""


async def test_items_are_named_by_their_map(site: Site) -> None:
    """Also when the items of a map came in several chunks, and others after them."""
    tasks = {"kinds": [["fila", "coleta", 1000]], "of": [0, 0, 0], "names": ["a", "ok", "b"]}
    events: list[list[Any]] = [[1, 0, "s", 3]]
    first = 3
    for owner, count, total in ((0, 2, 3), (0, 1, 3), (2, 1, 1)):
        events.append([len(events) + 1, 0, "b", owner, first, count, total, 1000])
        first += count
    document = {"start": 0, "deadline": None, "tasks": tasks, "events": events}
    page = await site.open("/problems")
    where = [assets.address("js/run-state.js"), assets.address("js/names.js")]
    assert await page.evaluate(NAMED, [*where, document]) == ["a", "ok", "b", "a[0]", "a[1]", "a[2]", "b[0]"]
