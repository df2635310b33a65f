"""What users of plans write, and what they are told when it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from oraculo.errors import ExpressionError
from oraculo.expressions import compile_expression
from oraculo.expressions.expression import Use

VIDEOS = {"videos": {"dados": [{"titulo": "a", "views": 10}, {"titulo": "b", "views": 2000}], "ok": True}}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("videos.dados.filter(v, v.views > 1000).map(v, v.titulo)", ["b"]),
        ("videos.ok && videos.dados.size() == 2", True),
        ("videos.dados[0].titulo + '!'", "a!"),
        ("videos.dados.map(v, v.views).sum()", 2010),
        ("videos.dados.map(v, v.views > 100, v.titulo)", ["b"]),
        ("[[1, 2], [3]].flatten()", [1, 2, 3]),
        ("[1, 1.0, '1', 2, 1, true, [1], [1]].distinct()", [1, "1", 2, True, [1]]),
        ("'a,b,c'.split(',').join('-').upperAscii()", "A-B-C"),
        ("'açaí'.size()", 4),
        ("math.greatest(1, 2.5, 2)", 2.5),
        ("math.least([3, 1, 2])", 1),
        ("'banana'.replace('an', 'x', 1).substring(1)", "xana"),
        ("has(videos.erros) ? 1 : 2", 2),
        ("'views' in videos.dados[0]", True),
        ("string(timestamp('2026-01-31T23:30:00Z') + duration('1h'))", "2026-02-01T00:30:00Z"),
        ("timestamp('2026-01-31T23:30:00Z').getHours('America/Sao_Paulo')", 20),
        ("timestamp('2026-01-31T23:30:00Z').getDate('+02:00')", 1),
        ("'2026-11' .matches('^[0-9]{4}-[0-9]{2}$')", True),
        ("7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1", True),
        ("9223372036854775807 == 9223372036854775807.0", False),
        ("{'a': {'b': [1, 2.0]}} == {'a': {'b': [1.0, 2]}}", True),
        ("-9223372036854775808", -(2**63)),
        ("'a'.`x y` == 1 || true", True),
    ],
)
def test_a_value(source: str, wanted: Any) -> None:
    found = compile_expression(source).evaluate(VIDEOS)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize(
    ("source", "message", "position"),
    [
        ("videos.dados.", "a name is expected, not the end", 13),
        ("videos.dadoz", "there is no field 'dadoz'; did you mean 'dados'?", 7),
        ("video.dados", "there is no 'video' here", 0),
        ("videos.dados.fliter(v, true)", "there is no method 'fliter'; did you mean filter?", 13),
        ("sice('a')", "there is no function 'sice'; did you mean size?", 0),
        ("size('a', 'b')", "size takes 1 argument, not 2", 0),
        ("join(['a'])", "join is a method here", 0),
        ("1 + 1.0", "+ is not defined for int and double; convert with double(…) or int(…)", 2),
        ("1 + 'a'", "+ is not defined for int and string", 2),
        ("videos.dados[2]", "the list has 2 elements, there is no [2]", 12),
        ("videos.dados[-1]", "the list has 2 elements, there is no [-1]", 12),
        ("videos.ok ? 1", "':' is expected, not the end", 13),
        ("9223372036854775807 + 1", "an integer is beyond 64 bits", 20),
        ("1 / 0", "division by zero", 2),
        ("1u", "unsigned integers are not part of this profile; leave out the u", 1),
        ("b'a'", "bytes are not part of this profile; write a plain text", 0),
        ("'a", "a text is not closed", 0),
        ("1 # 2", "'#' is not part of the language", 2),
        ("", "the expression is empty", 0),
        ("videos.dados.map(1, 2)", "the first argument of map is the name of a variable", 13),
        ("'a'.matches('(')", "matches: '(' is no pattern: unclosed group", 4),
        ("true && 1", "&& is not defined for an int", 5),
        ("1 ? 2 : 3", "the condition of ?: is a bool, not an int", 2),
        ("{'a': 1, 'a': 2}", "the map has the key 'a' twice", 0),
        ("duration('soon')", "'soon' is no duration such as 1h30m or 2.5s", 0),
        ("timestamp('2026-02-30T00:00:00Z')", "'2026-02-30T00:00:00Z' is no instant such as 2026-01-31T08:30:00Z", 0),
    ],
)
def test_an_error_says_what_and_where(source: str, message: str, position: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source).evaluate(VIDEOS)
    assert (caught.value.message, caught.value.position, caught.value.source) == (message, position, source)


def test_an_unknown_name_is_refused_with_the_known_ones_before_anything_runs() -> None:
    with pytest.raises(
        ExpressionError, match=r"there is no 'vidos' here; did you mean 'videos'\? known: entrada, videos"
    ):
        compile_expression("entrada.x + vidos.dados").check({"entrada", "videos"})


def test_variables_of_macros_are_no_names_from_outside() -> None:
    expression = compile_expression("a.filter(x, x == y).exists(y, y > x)")
    assert expression.names == {"a", "x", "y"}
    assert [use.position for use in expression.uses if use.name == "x"] == [34]


def test_uses_say_which_field_is_asked_first() -> None:
    expression = compile_expression("has(a.ok) ? b.dados[0].ok : c")
    assert expression.uses == (
        Use("a", "ok", 4, 6, ("ok",)),
        Use("b", "dados", 12, 14, ("dados", 0, "ok")),
        Use("c", "", 28, 28),
    )


@pytest.mark.parametrize(
    ("source", "reference"),
    [
        ("videos.dados", ("videos", "dados")),
        ("videos.dados[0]['titulo']", ("videos", "dados", 0, "titulo")),
        ("item", ("item",)),
        ("videos.dados.size()", None),
        ("videos.dados[i]", None),
        ("1", None),
    ],
)
def test_a_plain_path_is_known_as_one(source: str, reference: tuple[str | int, ...] | None) -> None:
    assert compile_expression(source).reference == reference


def test_errors_beside_what_decides_are_passed_over() -> None:
    assert compile_expression("1 / 0 > 0 || true").evaluate({}) is True
    assert compile_expression("false && 1 / 0 > 0").evaluate({}) is False
    assert compile_expression("[0, 1].exists(x, 1 / x == 1)").evaluate({}) is True
    with pytest.raises(ExpressionError, match="division by zero"):
        compile_expression("1 / 0 > 0 || false").evaluate({})
