"""A thousand plans go from JSON to YAML and back, and from one vocabulary to the other and back, and stay the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from oraculo import Plan
from oraculo.cli.plan_convert import text_of
from oraculo.plans.model import RequestDocument
from oraculo.plans.python.writer import to_python
from oraculo.plans.reader import load
from oraculo.plans.source.source_reader import SourceFormat, read_text
from oraculo.plans.source.yaml_writer import to_yaml
from plans.generated import TEXTS, PlanMaker


def again(text: str, format: SourceFormat) -> RequestDocument:
    reading = read_text(text.encode(), format)
    assert reading.request is not None, (text, [str(one) for one in reading.faults])
    return reading.request


def built_by(source: str) -> Plan:
    names: dict[str, Any] = {}
    exec(compile(source, "plan.py", "exec"), names)
    plan = names["plan"]
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize("hundred", range(10))
def test_plans_survive_every_format_in_both_vocabularies(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        plan = PlanMaker(seed).plan()
        request = load(plan)
        for words in ("pt", "en"):
            built = built_by(to_python(request, words))
            assert built.document() == request and built.to_dict() == plan, seed
        yaml_pt = text_of(request, SourceFormat.YAML, "pt")
        assert again(yaml_pt, SourceFormat.YAML) == request, seed
        english = again(text_of(request, SourceFormat.YAML, "en"), SourceFormat.YAML)
        json_pt = text_of(english, SourceFormat.JSON, "pt")
        assert json.loads(json_pt) == plan, seed
        assert again(json_pt, SourceFormat.JSON) == request, seed
        assert text_of(again(json_pt, SourceFormat.JSON), SourceFormat.YAML, "pt") == yaml_pt, seed


# fmt: off
VALUES: list[Any] = [
    *TEXTS, "yes", "No", "010", "1_000", "12:30", ".inf", "y", "<<", "a\nb", "a\n b\n", "\n", " a", "a ", "a #b",
    "a: b", "%a", "@a",
    "`a", "\x85", "\u2028", "a\r\nb", "a\x85b", "a\u2028 b", "\x01", "\ufeff", "\x7f", "true", "1.5", "-",
    "---", "...", "?", "a" * 300, "'", '"', "\\", "!a",
    "&a", "*a", "|", ">", "é: ç", 1e100, 1.5, -0.5, 1e-7, 5e22, 2**64 - 1, -(2**63), True, None, [], {}, [[]],
    [{}, {"a": []}],
]
# fmt: on


@pytest.mark.parametrize("value", VALUES)
def test_yaml_of_any_value_is_read_back_as_it_was_as_value_and_as_key(value: Any) -> None:
    written: dict[str, Any] = {"coletas": [{"fonte": "x", "parametros": {"v": value, str(value): [value]}}]}
    text = to_yaml(written)
    reading = read_text(text.encode(), SourceFormat.YAML)
    assert reading.data == written and [one for one in reading.faults if one.fault.code == "syntax"] == []
    back = reading.data["coletas"][0]["parametros"]["v"]  # type: ignore[index, call-overload]
    assert type(back) is type(value)


def test_other_tools_read_the_same_in_what_we_write() -> None:
    for seed in range(100):
        plan = PlanMaker(seed).plan()
        read = yaml.safe_load(to_yaml(plan))
        assert json.loads(json.dumps(read)) == plan, seed
