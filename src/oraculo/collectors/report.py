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
from oraculo.collectors.report_words import ReportWords, words_of
from oraculo.collectors.text import clean, http_url, plain, shorten

MAX_ROWS = 500
SUMMARY_MAX_CHARS = 280
PUBLICATIONS_SHOWN = 8  # names of channels or blogs of one source
_TITLES = ("titulo", "title", "nome", "name")
_LINKS = ("url", "link", "href")
_DATES = ("publicado_em", "data", "date", "published", "publicado", "timestamp")
_SUMMARIES = ("resumo", "summary", "description", "descricao")
_PUBLICATIONS = ("canal_nome", "blog_nome", "canal", "blog", "autor", "author")
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
    day: str
    publication: str = ""  # the channel or blog that it is from
    summary: str = ""

    @property
    def origin(self) -> str:
        """Where it is from: the channel or blog by name, else the source."""
        return self.publication or self.source


@dataclass(frozen=True, slots=True)
class ReportSource:
    """One collection: how many items it brought, or why it brought none."""

    name: str
    status: str
    count: int
    span: str
    key: str  # its name as it was asked for
    missing: str = ""
    publications: str = ""  # the channels or blogs of it, by name


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
    words: ReportWords
    provenance: str  # when it was made, and of which run

    @property
    def missing(self) -> tuple[ReportSource, ...]:
        return tuple(source for source in self.sources if source.missing)

    @property
    def unlisted(self) -> int:
        return self.total - len(self.rows)


def build(
    dados: Sequence[Any], parametros: Mapping[str, Any], made_at: datetime, correlation_id: str | None = None
) -> ReportContent:
    """The report of what was collected; the same input at the same instant always gives the same report."""
    words = words_of(parametros)
    if not isinstance(dados, list) or not all(isinstance(part, Mapping) for part in dados):
        raise parameters.invalid("'dados' deve ser uma lista de objetos com 'fonte', 'status' e 'dados'")
    used: Counter[str] = Counter()
    sources: list[ReportSource] = []
    rows: list[ReportRow] = []
    for part in dados:
        source, found = _read(part, used, words)
        sources.append(source)
        rows.extend(found)
    rows.sort(key=lambda row: row.at or _UNDATED, reverse=True)
    days = [row.at.date() for row in rows if row.at is not None]
    return ReportContent(
        title=shorten(clean(parameters.text(parametros, "titulo") or words("title")), 200),
        period=_period(parametros, days, words),
        sources=tuple(sources),
        rows=tuple(rows[:MAX_ROWS]),
        total=len(rows),
        per_source=by_source(_counts(sources, rows), words),
        per_day=over_time(days, undated=len(rows) - len(days), words=words),
        words=words,
        provenance=_provenance(words, made_at, correlation_id),
    )


def _provenance(words: ReportWords, made_at: datetime, correlation_id: str | None) -> str:
    run = [words("run", run=shorten(clean(correlation_id), 100))] if correlation_id else []
    return " · ".join([words("made", at=words.instant(made_at)), *run, words("utc")])


def _counts(sources: Sequence[ReportSource], rows: Sequence[ReportRow]) -> list[tuple[str, int]]:
    """Items by channel or blog where they have one, else by source; a source without items is there with none."""
    counted: Counter[str] = Counter(row.origin for row in rows)
    return [*counted.items(), *((source.name, 0) for source in sources if not source.count)]


def _read(part: Mapping[str, Any], used: Counter[str], words: ReportWords) -> tuple[ReportSource, list[ReportRow]]:
    asked = shorten(clean(str(part.get("fonte") or "")), 60) or words("unnamed")
    used[asked] += 1
    again = f" ({used[asked]})" if used[asked] > 1 else ""
    key, name = f"{asked}{again}", f"{words.kind(asked)}{again}"
    status = shorten(clean(str(part.get("status") or words("unknown"))), 30)
    shown, data = words.status(status), part.get("dados")
    if status not in _DONE:
        return ReportSource(name, shown, 0, "—", key, missing=words("ended-as", status=shown)), []
    if data is None:
        return ReportSource(name, shown, 0, "—", key, missing=words("ended-empty")), []
    rows = [_row(item, name, words) for item in _items(data)]
    days = [row.at.date() for row in rows if row.at is not None]
    span = words.span(min(days), max(days)) if days else "—"
    return ReportSource(name, shown, len(rows), span, key, publications=_publications(rows)), rows


def _publications(rows: Sequence[ReportRow]) -> str:
    names = list(dict.fromkeys(row.publication for row in rows if row.publication))
    more = f", +{len(names) - PUBLICATIONS_SHOWN}" if len(names) > PUBLICATIONS_SHOWN else ""
    return ", ".join(names[:PUBLICATIONS_SHOWN]) + more


def _items(data: Any) -> list[Any]:
    if isinstance(data, list):
        return data
    if isinstance(data, Mapping):
        for key in _LISTS:
            inner = data.get(key)
            if isinstance(inner, list):
                return inner
    return [data]


def _row(item: Any, source: str, words: ReportWords) -> ReportRow:
    if not isinstance(item, Mapping):
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, default=str)
        return ReportRow(shorten(clean(text), 300) or words("untitled"), source, None, None, "—")
    title = shorten(clean(_first(item, _TITLES)), 300)
    url = next((url for key in _LINKS if isinstance(item.get(key), str) and (url := http_url(item[key]))), None)
    at = next((at for key in _DATES if isinstance(item.get(key), str) and (at := parse_instant(item[key]))), None)
    if not title and url is None:
        title = shorten(clean(json.dumps(item, ensure_ascii=False, default=str)), 300)
    summary = shorten(plain(_first(item, _SUMMARIES)), SUMMARY_MAX_CHARS)
    publication = shorten(clean(_first(item, _PUBLICATIONS)), 60)
    day = "—" if at is None else words.calendar_day(at.date())
    shown = summary if summary.casefold() != title.casefold() else ""
    return ReportRow(title or words("untitled"), source, at, url, day, publication, shown)


def _first(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((item[key] for key in keys if isinstance(item.get(key), str) and item[key].strip()), "")


def _period(parametros: Mapping[str, Any], days: Sequence[date], words: ReportWords) -> str:
    asked = parameters.text(parametros, "periodo")
    if asked is not None:
        return _period_text(shorten(clean(asked), 60))
    return words.span(min(days), max(days)) if days else words("undated")


def _period_text(period: str) -> str:
    """`2025-10` as `10/2025`; whatever is no such period stays as it was written."""
    parts = period.split("-")
    return "/".join(reversed(parts)) if len(parts) <= 3 and all(part.isdigit() for part in parts) else period
