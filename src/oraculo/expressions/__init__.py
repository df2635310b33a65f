"""Expressions in `${{ … }}`: the JSON profile of CEL, metered, pure, with errors that say where.

    expression = compile_expression("videos.dados.filter(v, v.views > 1000).size() > 0")
    expression.check({"entrada", "videos"})
    expression.evaluate({"videos": {"dados": […]}})

Values are what JSON can hold (null, bool, int, double, string, list, map with text keys), timestamps and durations.
Left out of CEL: `uint`, `bytes`, `type()`, messages, optionals. The same expression over the same values costs the same
units, and gives the same value or the same error on every machine: there is no clock, no random number and no memory
between two evaluations. docs/expressions.md is the page for users.

    lexer → parser (syntax.py) → compiler (closures) → evaluate, under a meter of units
"""

from oraculo.expressions.expression import (
    EVALUATION_MAX_UNITS,
    INLINE_MAX_UNITS,
    Expression,
    Use,
    compile_expression,
)
from oraculo.expressions.output import VALUE_MAX_BYTES, as_json, as_text
from oraculo.expressions.template import Template, parse_template

__all__ = [
    "EVALUATION_MAX_UNITS",
    "INLINE_MAX_UNITS",
    "VALUE_MAX_BYTES",
    "Expression",
    "Template",
    "Use",
    "as_json",
    "as_text",
    "compile_expression",
    "parse_template",
]
