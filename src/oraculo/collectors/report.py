"""What a report says, apart from how it looks: rows, sources and counts made of whatever the collectors sent.

Collectors of any shape are served. A list is its items, an object with a list inside is that list, anything else is
one item; titles, dates and links are looked for under the names that the shipped collectors and common feeds use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from oraculo.collectors import parameters
from oraculo.collectors.charts import ChartSeries, by_source, over_time
from oraculo.collectors.dates import parse_instant
from oraculo.collectors.text import clean, http_url, shorten

MAX_ROWS = 500
NO_TITLE = "(sem título)"
_TITLES = ("titulo", "title", "nome", "name")
_LINKS = ("url", "link", "href")
_DATES = ("publicado_em", "data", "date", "published", "publicado", "timestamp")
_LISTS = ("itens", "items", "dados", "resultados", "results")
_DONE = frozenset({"concluida", "ok"})
_UNDATED = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One item of the table."""

    title: str
    source: str
    at: datetime | None
    url: str | None

    @property
    def day(self) -> str:
        return "—" if self.at is None else day_text(self.at.date())


@dataclass(frozen=True, slots=True)
class ReportSource:
    """One collection: how many items it brought, or why it brought none."""

    name: str
    status: str
    count: int
    first: date | None
    last: date | None
    missing: str = ""

    @property
    def span(self) -> str:
        return "—" if self.first is None or self.last is None else span_text(self.first, self.last)


@dataclass(frozen=True, slots=True)
class ReportContent:
    """Everything that the pages show. `rows` are the newest, at most `MAX_ROWS` of `total`."""

    title: str
    period: str
    sources: tuple[ReportSource, ...]
    rows: tuple[ReportRow, ...]
    total: int
    per_source: ChartSeries
    per_day: ChartSeries

    @property
    def missing(self) -> tuple[ReportSource, ...]:
        return tuple(source for source in self.sources if source.missing)

    @property
    def unlisted(self) -> int:
        return self.total - len(self.rows)


def build(dados: Sequence[Any], parametros: Mapping[str, Any]) -> ReportContent:
    """The report of what was collected; the same input always gives the same report."""
    if not isinstance(dados, list) or not all(isinstance(part, Mapping) for part in dados):
        raise parameters.invalid("'dados' deve ser uma lista de objetos com 'fonte', 'status' e 'dados'")
    used: Counter[str] = Counter()
    sources: list[ReportSource] = []
    rows: list[ReportRow] = []
    for part in dados:
        source, found = _read(part, used)
        sources.append(source)
        rows.extend(found)
    rows.sort(key=lambda row: row.at or _UNDATED, reverse=True)
    days = [row.at.date() for row in rows if row.at is not None]
    return ReportContent(
        title=shorten(clean(parameters.text(parametros, "titulo") or "Relatório"), 200),
        period=_period(parametros, days),
        sources=tuple(sources),
        rows=tuple(rows[:MAX_ROWS]),
        total=len(rows),
        per_source=by_source([(source.name, source.count) for source in sources]),
        per_day=over_time(days, undated=len(rows) - len(days)),
    )


def day_text(day: date) -> str:
    """14/10/2025."""
    return f"{day.day:02d}/{day.month:02d}/{day.year:04d}"


def span_text(first: date, last: date) -> str:
    """One day, or two and what is between them."""
    return day_text(first) if first == last else f"{day_text(first)} a {day_text(last)}"


def _read(part: Mapping[str, Any], used: Counter[str]) -> tuple[ReportSource, list[ReportRow]]:
    name = shorten(clean(str(part.get("fonte") or "")), 60) or "(sem nome)"
    used[name] += 1
    if used[name] > 1:
        name = f"{name} ({used[name]})"
    status = shorten(clean(str(part.get("status") or "desconhecido")), 30)
    data = part.get("dados")
    if status not in _DONE:
        return ReportSource(name, status, 0, None, None, missing=f"a coleta terminou como “{status}”"), []
    if data is None:
        return ReportSource(name, status, 0, None, None, missing="a coleta terminou sem dados"), []
    rows = [_row(item, name) for item in _items(data)]
    days = [row.at.date() for row in rows if row.at is not None]
    return ReportSource(name, status, len(rows), min(days, default=None), max(days, default=None)), rows


def _items(data: Any) -> list[Any]:
    if isinstance(data, list):
        return data
    if isinstance(data, Mapping):
        for key in _LISTS:
            inner = data.get(key)
            if isinstance(inner, list):
                return inner
    return [data]


def _row(item: Any, source: str) -> ReportRow:
    if not isinstance(item, Mapping):
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, default=str)
        return ReportRow(shorten(clean(text), 300) or NO_TITLE, source, None, None)
    title = shorten(clean(_first(item, _TITLES)), 300)
    url = next((url for key in _LINKS if isinstance(item.get(key), str) and (url := http_url(item[key]))), None)
    at = next((at for key in _DATES if isinstance(item.get(key), str) and (at := parse_instant(item[key]))), None)
    if not title and url is None:
        title = shorten(clean(json.dumps(item, ensure_ascii=False, default=str)), 300)
    return ReportRow(title or NO_TITLE, source, at, url)


def _first(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((item[key] for key in keys if isinstance(item.get(key), str) and item[key].strip()), "")


def _period(parametros: Mapping[str, Any], days: Sequence[date]) -> str:
    asked = parameters.text(parametros, "periodo")
    if asked is not None:
        return _period_text(shorten(clean(asked), 60))
    return span_text(min(days), max(days)) if days else "sem datas"


def _period_text(period: str) -> str:
    """`2025-10` as `10/2025`; whatever is no such period stays as it was written."""
    parts = period.split("-")
    return "/".join(reversed(parts)) if len(parts) <= 3 and all(part.isdigit() for part in parts) else period
