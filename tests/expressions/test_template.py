"""Texts with expressions in them."""

from __future__ import annotations

from typing import Any

import pytest

from oraculo.errors import ExpressionError
from oraculo.expressions import as_text, parse_template

NAMES: dict[str, Any] = {"n": 3, "nome": "Ana", "l": [1, {"a": None}], "f": 2.0, "nada": None, "sim": True}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("${{ n }}", 3),
        ("${{l}}", [1, {"a": None}]),
        (" ${{ n }}", " 3"),
        ("${{ n }}${{ n }}", "33"),
        ("olá ${{ nome }}, ${{ n + 1 }} ${{ sim }} ${{ f }}${{ nada }} ${{ l }}", 'olá Ana, 4 true 2 [1,{"a":null}]'),
        ("$${{ n }}", "${{ n }}"),
        ("$${{ n }} ${{ n }}", "${{ n }} 3"),
        ("${{ {'a': {'b': '}}'}} }}", {"a": {"b": "}}"}}),
        ("${{ '}}' + nome }}!", "}}Ana!"),
        ("${{ timestamp('2026-01-01T00:00:00Z') }}", "2026-01-01T00:00:00Z"),
        ("${{ duration('90m') }}", "5400s"),
    ],
)
def test_a_text(text: str, wanted: Any) -> None:
    template = parse_template(text)
    assert template is not None
    found = template.evaluate(NAMES)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize("text", ["", "plain", "$ { {", "{{ n }}", "$n"])
def test_a_text_without_expressions_is_none(text: str) -> None:
    assert parse_template(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [("${{ n", "not closed by }}"), ("x ${{ n } }}", "}} is expected, not }"), ("${{ }}", "the expression is empty")],
)
def test_an_expression_that_does_not_end_is_refused(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        parse_template(text)


def test_all_expressions_of_a_text_share_their_units() -> None:
    template = parse_template("${{ l.size() }} ${{ l.size() }}")
    assert template is not None
    assert template.evaluate(NAMES, 2) == "2 2"
    with pytest.raises(ExpressionError, match="costs too much"):
        template.evaluate(NAMES, 1)


def test_a_number_that_json_has_not_is_an_error() -> None:
    template = parse_template("${{ 1.0 / 0.0 }}")
    assert template is not None
    with pytest.raises(ExpressionError, match=r"\+Inf cannot be written as JSON"):
        template.evaluate({})


def test_doubles_are_written_as_cel_does() -> None:
    assert [as_text(one) for one in (1.0, 0.5, 1e21, 1.5e-7)] == ["1", "0.5", "1e+21", "1.5e-07"]
