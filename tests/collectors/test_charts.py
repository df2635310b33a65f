from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest

from oraculo.collectors.charts import MAX_BARS, by_source, nice_ticks, over_time
from oraculo.collectors.svg import bars_svg, columns_svg


@pytest.mark.parametrize("highest", [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 99, 100, 101, 3_999, 123_456_789])
def test_ticks_are_few_whole_and_reach_the_highest(highest):
    ticks = nice_ticks(highest)
    assert ticks[0] == 0
    assert ticks[-1] >= max(1, highest)
    assert 2 <= len(ticks) <= 6
    assert len({after - before for before, after in pairwise(ticks)}) == 1


def test_days_without_items_are_there():
    series = over_time([date(2025, 10, 1), date(2025, 10, 4), date(2025, 10, 4)], undated=2)
    assert (series.title, series.labels, series.values) == (
        "Itens por dia",
        ("01/10", "02/10", "03/10", "04/10"),
        (1, 0, 0, 2),
    )
    assert series.note.startswith("2 itens sem data")


@pytest.mark.parametrize(
    ("span", "title", "count"), [(61, "Itens por dia", 62), (62, "Itens por mês", 3), (4_000, "Itens por ano", 12)]
)
def test_long_spans_use_longer_steps(span, title, count):
    first = date(2015, 1, 20)
    series = over_time([first, first + timedelta(days=span)])
    assert (series.title, len(series.labels), sum(series.values)) == (title, count, 2)


def test_dates_out_of_this_world_do_not_flatten_the_chart():
    series = over_time([date(1, 1, 1), date(2025, 1, 1), date(9999, 12, 31)])
    assert series.values == (1,)
    assert series.note.startswith("2 itens")
    assert over_time([date(9999, 12, 31)]).labels == ()


def test_small_sources_share_a_bar():
    series = by_source([(f"f{n}", n) for n in range(30)])
    assert len(series.labels) == MAX_BARS
    assert series.labels[0] == "f29"
    assert series.labels[-1] == "outras 19"
    assert sum(series.values) == sum(range(30))


def test_the_last_label_is_always_written():
    series = over_time([date(2025, 1, 1), date(2025, 2, 15)])
    for most in (1, 2, 5, 100):
        shown = series.shown_labels(most)
        assert len(series.labels) - 1 in shown
        assert len(shown) <= max(most, 1)


def test_svg_text_is_escaped_even_when_cut():
    series = by_source([("<&\"'" * 10, 3), ("zero", 0)])
    drawing = bars_svg(series)
    assert "<&" not in drawing
    assert "&lt;&amp;" in drawing
    assert columns_svg(over_time([])).startswith('<p class="empty">')
