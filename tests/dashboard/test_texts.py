"""Both languages say the same things, and everything that pages and scripts ask for is there."""

from __future__ import annotations

import re
from importlib.resources import files
from string import Formatter

import pytest

from oraculo.core.vocabulary import Status
from oraculo.dashboard import texts
from oraculo.dashboard.formats import duration, number, tree
from oraculo.dashboard.texts.details import detail_in
from oraculo.runtime.kernel.decider import explain

DASHBOARD = files("oraculo.dashboard")


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_the_same_texts_with_the_same_blanks() -> None:
    english, portuguese = texts.LANGUAGES["en"], texts.LANGUAGES["pt-BR"]
    assert english.keys() == portuguese.keys()
    assert [key for key in english if fields(english[key]) != fields(portuguese[key])] == []


def test_every_text_that_is_asked_for_exists_and_every_text_is_asked_for() -> None:
    known = texts.LANGUAGES["en"]
    templates = "".join(one.read_text() for one in (DASHBOARD / "templates").iterdir())
    scripts = "".join(one.read_text() for one in (DASHBOARD / "static/js").iterdir())
    pages = set(re.findall(r"""\bt\(\s*'([\w.-]+)'(?!\s*~)""", templates))
    assert pages - known.keys() == set()
    asked = {f"js.{key}" for key in re.findall(r"""\bt\(\s*"([\w.-]+)\"""", scripts)}
    assert asked - known.keys() == set()
    shared = ["flash.", "js.", "health.", "confirm.", "gantt."]
    of_codes = [f"{kind}." for kind in re.findall(r"""\bword\('(\w+)'""", templates)]
    beginnings = tuple(re.findall(r"""'([\w.]+\.)' ~""", templates) + of_codes + shared)
    named = {key for key in known if f"'{key}'" in templates}
    assert {
        key for key in known.keys() - named if not key.startswith(beginnings) and key.removesuffix(".one") not in pages
    } == set()


def test_every_status_has_a_name_and_a_shape() -> None:
    sprite = (DASHBOARD / "templates/sprite.html").read_text()
    for status in Status:
        assert f"status.{status}" in texts.LANGUAGES["en"] and f'id="i-{status}"' in sprite


@pytest.mark.parametrize(
    ("cookie", "accept", "language"),
    [
        (None, "", "en"),
        (None, "pt-BR,pt;q=0.9,en;q=0.8", "pt-BR"),
        (None, "pt", "pt-BR"),
        (None, "en-GB,en;q=0.9,pt;q=0.8", "en"),
        (None, "fr,pt;q=0.3,en;q=0.2", "pt-BR"),
        (None, "pt;q=0,en", "en"),
        (None, "pt;q=x,*", "en"),
        ("en", "pt-BR", "en"),
        ("pt-BR", "en", "pt-BR"),
        ("<script>", "pt", "pt-BR"),
    ],
)
def test_the_language(cookie: str | None, accept: str, language: str) -> None:
    assert texts.chosen(cookie, accept) == language


def test_numbers_and_durations() -> None:
    assert (number(1284, "en"), number(1284, "pt-BR"), number(99.5, "pt-BR")) == ("1,284", "1.284", "99,5")
    assert (number(99, "en", 2), number(0.5, "pt-BR", 2)) == ("99.00", "0,50")
    shown = [duration(ms) for ms in (None, 12, 1500, 61_000, 3_700_000, 90_000_000)]
    assert shown == ["—", "12 ms", "1.5 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]


def test_json_is_cut_where_it_is_too_much() -> None:
    assert tree({"a": [1, True, None, 1.5, "x"]})["children"][0]["children"][0]["text"] == "1"
    assert [one["text"] for one in tree([1, True, None, 1.5, "x"])["children"]] == ["1", "true", "null", "1.5", "x"]
    wide = tree(list(range(10_000)))
    assert len(wide["children"]) == 100 and wide["more"] == 9_900 and wide["count"] == 10_000
    many = tree([[n] * 50 for n in range(100)])
    assert sum(1 + len(one["children"]) for one in many["children"]) <= 1500
    assert tree("é" * 5000)["more"] == 3000


def test_details_of_dead_letters_are_in_the_language_of_the_reader() -> None:
    kept = [explain(one) for one in ("ambiguous", "unknown_ticket", "wrong_attempt", "run_ended", "already_decided")]
    kept += [explain("too_many_answers"), "no orchestration has the correlation_id 'a b'"]
    kept.append("no answer from escavador_x in 60 s (attempt 3)")
    for one in kept:
        assert detail_in("en", one) == one != detail_in("pt-BR", one), one
    assert detail_in("pt-BR", kept[-2]).endswith("'a b'") and detail_in("pt-BR", "boom: no") == "boom: no"
