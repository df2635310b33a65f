"""The same plan from JSON, YAML and Python gives the same journal to the byte; in the other words it is the same
request, whose journal quotes expressions as they were sent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from oraculo.core.commands import Start
from oraculo.core.step import step
from oraculo.plans.python.builder import PlanBuilder
from oraculo.plans.python.writer import to_python
from oraculo.plans.reader import load
from oraculo.plans.source.source_reader import SourceFormat, read_text
from oraculo.plans.source.yaml_writer import to_yaml
from oraculo.plans.words import Words
from oraculo.plans.writer import write
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.wire import records, requests, strict_json
from plans.generated import PlanMaker

AT = datetime(2026, 11, 18, tzinfo=UTC)


def journal(request: Any) -> list[bytes]:
    """The records of the first steps: the start, and what its expressions give."""
    parsed = requests.parse(request)
    done = step(None, Start(1, "abc", requests.plan_of(parsed, requests.Defaults()), requests.fingerprint(parsed)), AT)
    found = [records.encode(done.events)]
    while commands := evaluate_inline(done.state):
        for command in commands:
            done = step(done.state, command, AT)
            found.append(records.encode(done.events))
    return found


def built(plan: dict[str, Any], words: Words) -> dict[str, Any]:
    """What the Python source of a plan builds."""
    room: dict[str, Any] = {}
    exec(to_python(load(plan), words), room)
    (found,) = [one for one in room.values() if isinstance(one, PlanBuilder)]
    return dict(found)


def test_the_same_plan_in_every_format_gives_the_same_journal() -> None:
    asked = 0
    for seed in range(60):
        plan = PlanMaker(seed).plan()
        if "tarefas" not in plan or b'"tipo"' in strict_json.dumps(plan):  # types are looked up where it is submitted
            continue
        known, english = journal(plan), write(load(plan), "en")
        for data in (plan, english):
            as_sent = journal(data)
            assert journal(read_text(strict_json.dumps(data), SourceFormat.JSON).data) == as_sent, seed
            assert journal(read_text(to_yaml(data).encode(), SourceFormat.YAML).data) == as_sent, seed
        assert journal(built(plan, "pt")) == journal(built(plan, "en")) == known, seed
        assert len({requests.fingerprint(requests.parse(one)) for one in (plan, english)}) == 1, seed
        asked += len(known) > 1
    assert asked > 10
