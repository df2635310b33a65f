"""The official cases of the language, as far as they are about values that JSON has."""

from __future__ import annotations

import math
import os
import re
from typing import Any

import pytest
from tools.cel_cases import folder

from expressions.cases import Case, NotInProfileError, cases, value_of
from oraculo.errors import ExpressionError
from oraculo.expressions import compile_expression
from oraculo.expressions.lexer import RESERVED

FILES = (
    "basic",
    "comparisons",
    "conversions",
    "fields",
    "fp_math",
    "integer_math",
    "lists",
    "logic",
    "macros",
    "parse",
    "plumbing",
    "string",
    "timestamps",
)
LEFT_OUT = re.compile(
    r"""\b(?:uint|bytes|type|TestAllTypes|google\.protobuf|cel\.|optional|GlobalEnum|NestedEnum|proto[23]|net\.)\b|\.\?|\[\?"""
    r"""|\b\d+[uU]\b|0x[0-9a-fA-F]+[uU]\b|(?<![A-Za-z0-9_"'])[rR]?[bB][rR]?["']|\{\s*-?[0-9.]|\{\s*(?:true|false)\b|[:{,]\s*dyn"""
)
DEVIATIONS = {
    "a function that does not exist is refused when the plan is submitted, also behind ||": (
        "basic/functions/unbound_is_runtime_error",
        *(f"parse/receiver_function_names/{word}" for word in sorted(RESERVED)),
    ),
    "keys of maps are texts": (
        "comparisons/eq_literal/eq_map_value_mixed_types",
        "macros/exists/map_key_type_shortcircuit",
        "macros/exists/map_key_type_exhaustive",
    ),
    "int and double are compared exactly, also where a double cannot tell two ints apart": (
        "comparisons/lt_literal/not_lt_dyn_int_big_lossy_double",
        "comparisons/gt_literal/not_gt_dyn_big_double_int",
        "comparisons/lte_literal/lte_dyn_big_double_int",
        "comparisons/gte_literal/gte_dyn_int_big_lossy_double",
    ),
    "names have no dots": (
        "fields/qualified_identifier_resolution/qualified_ident",
        "fields/qualified_identifier_resolution/map_field_select",
        "fields/qualified_identifier_resolution/qualified_identifier_resolution_unchecked",
        "fields/qualified_identifier_resolution/ident_with_longest_prefix_check",
    ),
    "time is counted in microseconds": (
        "timestamps/timestamp_conversions/toString_timestamp_nanos",
        "timestamps/timestamp_arithmetic/add_time_to_duration_nanos_negative",
        "timestamps/timestamp_arithmetic/add_time_to_duration_nanos_positive",
        "timestamps/timestamp_range/add_duration_nanos_over",
        "timestamps/timestamp_range/add_duration_nanos_under",
    ),
}
DEVIATING = {name: reason for reason, names in DEVIATIONS.items() for name in names}


BEYOND = ("container", "any_eval_errors", "typed_result", "unknown")  # what messages and type checkers are about


def in_profile(case: Case) -> bool:
    if LEFT_OUT.search(case.source) or any(key in case.message for key in BEYOND):
        return False
    try:
        _names(case)
    except NotInProfileError:
        return False
    return True


def _names(case: Case) -> dict[str, Any]:
    return {
        binding["key"][0]: value_of(binding["value"][0]["value"][0]) for binding in case.message.get("bindings", ())
    }


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    return type(left) is type(right) and bool(left == right)


def verdict(case: Case) -> str:
    """Empty when the case passes."""
    try:
        wanted = value_of(case.message["value"][0]) if "value" in case.message else True
        names = _names(case)
    except NotInProfileError as error:
        pytest.skip(str(error))
    try:
        found = compile_expression(case.source).evaluate(names)
    except ExpressionError as error:
        return "" if "eval_error" in case.message else f"{error}"
    if "eval_error" in case.message:
        return f"an error was expected, not {found!r}"
    return "" if _same(found, wanted) else f"{wanted!r} was expected, not {found!r}"


def known() -> list[Case]:
    return [case for case in cases(folder(), FILES) if in_profile(case)] if folder().exists() else []


def test_the_official_cases_are_here() -> None:
    if not folder().exists():
        if os.environ.get("ORACULO_REQUIRE_SERVICES"):
            pytest.fail("the cases of CEL are missing: make services")
        pytest.skip("the cases of CEL are missing: make services")
    assert len(known()) > 700


@pytest.mark.parametrize("case", known(), ids=lambda case: case.name)
def test_an_official_case(case: Case) -> None:
    found = verdict(case)
    if case.name in DEVIATING:
        assert found, f"{case.name} passes now; take it out of DEVIATIONS"
        return
    assert not found, f"{case.source}: {found}"
