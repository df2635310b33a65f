"""No expression costs more than it may, whatever it says; the same one costs the same everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oraculo.errors import ExpressionCostError, ExpressionError
from oraculo.expressions import EVALUATION_MAX_UNITS, as_json, compile_expression
from oraculo.expressions.parser import MAX_NESTING, MAX_PARTS, SOURCE_MAX_CHARS

NAMES = {"l": list(range(1000)), "t": "x" * 10_000, "m": {"a": None, "b": [1, {"c": "d"}]}}


@pytest.mark.parametrize(
    "bomb",
    [
        "l.map(a, l.map(b, l.map(c, a + b + c)))",
        "l.map(a, t + t + t).map(b, b + b)",
        "l.map(a, l).flatten().map(a, l).flatten()",
        "l.exists(a, l.exists(b, l.exists(c, false)))",
        "l.filter(a, t.matches('(x+x+)+y'))",
        "l.map(a, t.replace('x', t))",
        "l.map(a, t.split('')).flatten().join(t)",
        "l.map(a, l).distinct()",
        "l.map(a, [l, l]) == l.map(a, [l, l])",
    ],
)
def test_a_bomb_ends_with_its_cost(bomb: str) -> None:
    with pytest.raises(ExpressionCostError, match="costs too much"):
        compile_expression(bomb).evaluate(NAMES)


def test_a_value_that_is_much_larger_than_it_looks_is_weighed_before_it_is_written() -> None:
    doubled = ".map(x, [x, x, x, x, x, x, x, x, x, x])"
    value = compile_expression("['0123456789']" + doubled * 9).evaluate({})
    with pytest.raises(ExpressionError, match="larger than 1048576 bytes"):
        as_json(value)


def test_the_cost_grows_with_the_list_and_no_faster() -> None:
    source = compile_expression("l.filter(x, x % 2 == 0).map(x, x * 2).size()")
    small = source.measured({"l": list(range(1000))})[1]
    large = source.measured({"l": list(range(10_000))})[1]
    assert 9 <= large / small <= 11


def test_fifty_thousand_elements_are_within_the_budget() -> None:
    value, units = compile_expression("l.filter(x, x.v > 10).size()").measured({"l": [{"v": n} for n in range(50_000)]})
    assert value == 49_989 and units < EVALUATION_MAX_UNITS


def test_a_budget_that_is_too_small_fails_at_the_same_place_every_time() -> None:
    expression = compile_expression("l.map(x, x + 1)")
    _, units = expression.measured(NAMES)
    assert expression.evaluate(NAMES, units) == list(range(1, 1001))
    for _ in range(2):
        with pytest.raises(ExpressionCostError) as caught:
            expression.evaluate(NAMES, units - 1)
        assert caught.value.position == 11


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1" + "+1" * MAX_PARTS, f"at most {MAX_PARTS} parts"),
        ("(" * (MAX_NESTING + 1) + "1" + ")" * (MAX_NESTING + 1), f"at most {MAX_NESTING} levels"),
        ("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1), f"at most {MAX_NESTING} levels"),
        ("x" + ".a" * MAX_PARTS, f"at most {MAX_PARTS} parts"),
        ("true" + " ? true : true" * MAX_NESTING, f"at most {MAX_NESTING} levels"),
        (" " * (SOURCE_MAX_CHARS + 1), f"at most {SOURCE_MAX_CHARS} characters"),
    ],
)
def test_a_text_beyond_its_bounds_is_refused(source: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        compile_expression(source)


@pytest.mark.parametrize("sign", ["!", "-"])
def test_many_signs_are_no_depth(sign: str) -> None:
    operand = "true" if sign == "!" else "1"
    assert compile_expression(sign * 4000 + operand).evaluate({}) in (True, 1)


_SIGNS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"]
_ATOMS = [
    "1",
    "0",
    "-2",
    "1.5",
    "'a'",
    "''",
    "null",
    "true",
    "false",
    "l",
    "t",
    "m",
    "m.a",
    "m.b",
    "[1, 2]",
    "{'a': 1}",
    "x",
]
_expressions = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(_SIGNS), inner).map(" ".join),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]}) ? ({three[1]}) : ({three[2]})"),
        st.tuples(inner, st.sampled_from(["all", "exists", "exists_one", "filter", "map"]), inner).map(
            lambda three: f"({three[0]}).{three[1]}(x, {three[2]})"
        ),
        st.tuples(inner, inner).map(lambda two: f"({two[0]})[{two[1]}]"),
        inner.map(lambda one: f"!({one})"),
        inner.map(lambda one: f"-({one})"),
        inner.map(lambda one: f"string({one})"),
        inner.map(lambda one: f"size({one})"),
        inner.map(lambda one: f"({one}).flatten().distinct()"),
        inner.map(lambda one: f"[{one}, {one}]"),
        inner.map(lambda one: f"{{'k': {one}}}"),
        inner.map(lambda one: f"has(({one}).a)"),
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(_expressions)
def test_whatever_is_written_gives_a_value_or_an_error_of_the_expression_and_the_same_twice(source: str) -> None:
    def outcome() -> tuple[str, object]:
        try:
            return "value", repr(compile_expression(source).measured({**NAMES, "l": [1, 2, 3]}, 20_000))
        except ExpressionError as error:
            return "error", (error.message, error.position)

    assert outcome() == outcome()


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet="abx01.+-*/%&|=!<>?:()[]{}'\"\\ru,` \n", max_size=40))
def test_any_text_is_read_or_refused(source: str) -> None:
    try:
        compile_expression(source).evaluate(NAMES, 20_000)
    except ExpressionError as error:
        assert 0 <= error.position <= len(source)
