"""The report as one HTML file: no script, nothing loaded from elsewhere, light and dark, fit for paper.

Every text goes through `escape`; a content security policy forbids scripts and requests should one ever slip by.
"""

from __future__ import annotations

from html import escape

from oraculo.collectors.charts import ChartSeries
from oraculo.collectors.report import ReportContent, ReportRow, ReportSource
from oraculo.collectors.report_words import ReportWords
from oraculo.collectors.svg import bars_svg, columns_svg
from oraculo.collectors.text import readable_url

_CSS = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5c6675; --line: #dfe3ea; --page: #f6f7f9; --card: #fff;
  --accent: #2f62b5; --warn: #8a4b00; --warn-bg: #fff4e2; --warn-line: #f0cf9a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --soft: #9aa5b5; --line: #2d3542; --page: #12161d;
  --card: #1a2029; --accent: #7aa7f0; --warn: #f4c27a; --warn-bg: #2b2213; --warn-line: #5a4620; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 48px 24px 64px; }
header { border-bottom: 3px solid var(--accent); padding-bottom: 20px; margin-bottom: 28px; }
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 14px; }
header p, .note, .empty { color: var(--soft); margin: 0; }
.note { font-size: .875rem; margin-top: 12px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(110px, 1fr)); gap: 16px; margin: 0 0 28px; }
.facts div, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.facts div { padding: 16px 18px; }
.facts dt { color: var(--soft); font-size: .8125rem; }
.facts dd { margin: 2px 0 0; font-size: 1.7rem; font-weight: 650; line-height: 1.2; }
section { padding: 22px 24px; margin-bottom: 24px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 24px;
  margin-bottom: 24px; }
.charts section { margin: 0; }
.missing { background: var(--warn-bg); border-color: var(--warn-line); color: var(--warn); }
.missing ul { margin: 0; padding-left: 20px; }
svg { display: block; width: 100%; height: auto; font-size: 13px; }
svg .bar { fill: var(--accent); } svg g:hover .bar { opacity: .8; }
svg text { fill: var(--soft); } svg .label, svg .value { fill: var(--ink); } svg .value { font-weight: 600; }
svg .tick { font-size: 12px; } svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
th { text-align: left; color: var(--soft); font-weight: 600; font-size: .8125rem;
  border-bottom: 2px solid var(--line); }
th, td { padding: 9px 14px 9px 0; vertical-align: top; }
td { border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
tbody tr:last-child td { border-bottom: 0; }
.num { text-align: right; } .num, .day { font-variant-numeric: tabular-nums; white-space: nowrap; }
.items .title { min-width: 200px; overflow-wrap: anywhere; }
.more { color: var(--soft); font-size: .875rem; margin: 3px 0 0; overflow-wrap: anywhere; }
.where { color: var(--soft); font-size: .8125rem; margin: 2px 0 0; overflow-wrap: anywhere; }
td:last-child, th:last-child { padding-right: 0; } th.num, td.num { padding-right: 32px; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 2px; }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #ccc; --page: #fff; --card: #fff; --accent: #2f62b5;
    --warn: #5f3400; --warn-bg: #fff; --warn-line: #999; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; } h1 { font-size: 18pt; } table { font-size: 9pt; }
  section { border: 0; padding: 0; } th, td { padding-top: 4px; padding-bottom: 4px; } h2 { break-after: avoid; }
  .charts { grid-template-columns: 1fr 1fr; } .scroll { overflow: visible; }
  .facts div, .charts section, .missing { break-inside: avoid; } tr { break-inside: avoid; }
  thead { display: table-header-group; }
}
"""

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="Oráculo">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def render_html(report: ReportContent) -> str:
    """The whole page."""
    title, words = escape(report.title), report.words
    body = "\n".join(
        part
        for part in (
            f"<header><h1><bdi>{title}</bdi></h1><p>{escape(words('period', period=report.period))}</p>"
            f'<p class="note">{escape(report.provenance)}</p></header>',
            _facts(report),
            _missing(report.missing, words),
            f'<div class="charts">{_chart(report.per_source, bars_svg(report.per_source))}'
            f"{_chart(report.per_day, columns_svg(report.per_day))}</div>",
            _summary(report.sources, words),
            _items(report),
        )
        if part
    )
    return _PAGE.format(language=words.tag, title=title, css=_CSS, body=body)


def _facts(report: ReportContent) -> str:
    words = report.words
    counted = (("items", report.total), ("sources", len(report.sources)), ("missing-sources", len(report.missing)))
    facts = [(words(name), words.number(value)) for name, value in counted]
    return '<dl class="facts">' + "".join(f"<div><dt>{n}</dt><dd>{v}</dd></div>" for n, v in facts) + "</dl>"


def _missing(sources: tuple[ReportSource, ...], words: ReportWords) -> str:
    if not sources:
        return ""
    lines = "".join(f"<li><bdi>{escape(source.name)}</bdi>: {escape(source.missing)}</li>" for source in sources)
    return f'<section class="missing"><h2>{escape(words("missing"))}</h2><ul>{lines}</ul></section>'


def _chart(series: ChartSeries, drawing: str) -> str:
    note = f'<p class="note">{escape(series.note)}</p>' if series.note else ""
    return f"<section><h2>{escape(series.title)}</h2>{drawing}{note}</section>"


def _summary(sources: tuple[ReportSource, ...], words: ReportWords) -> str:
    heading = f"<section><h2>{escape(words('summary'))}</h2>"
    if not sources:
        return f'{heading}<p class="empty">{escape(words("no-source"))}</p></section>'
    lines = "".join(
        f"<tr><td><bdi>{escape(source.name)}</bdi>{_small(source.publications)}</td><td>{escape(source.status)}</td>"
        f'<td class="num">{words.number(source.count)}</td><td class="day">{escape(source.span)}</td></tr>'
        for source in sources
    )
    return (
        f'{heading}<div class="scroll"><table><thead><tr>{_column(words("source"))}{_column(words("status"))}'
        f"{_column(words('items'), 'num')}{_column(words('published'))}</tr></thead><tbody>{lines}</tbody>"
        "</table></div></section>"
    )


def _column(name: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<th scope="col"{attribute}>{escape(name)}</th>'


def _small(text: str) -> str:
    """A second line below a cell's first, or nothing."""
    return f'<p class="more"><bdi>{escape(text)}</bdi></p>' if text else ""


def _items(report: ReportContent) -> str:
    words = report.words
    heading = f"<section><h2>{escape(words('items'))}</h2>"
    if not report.rows:
        return f'{heading}<p class="empty">{escape(words("no-item"))}</p></section>'
    note = ""
    if report.unlisted:
        said = words.counted("unlisted", report.unlisted, shown=words.number(len(report.rows)))
        note = f'<p class="note">{escape(said)}</p>'
    return (
        f'{heading}<div class="scroll"><table class="items"><thead><tr>{_column(words("item"))}'
        f"{_column(words('source'))}{_column(words('day'))}</tr></thead>"
        f"<tbody>{''.join(_line(row) for row in report.rows)}</tbody></table></div>{note}</section>"
    )


def _line(row: ReportRow) -> str:
    """One item: its title leads to it; below it the summary and where the link goes."""
    title, where = f"<bdi>{escape(row.title)}</bdi>", ""
    if row.url is not None:
        href = escape(row.url)
        title = f'<a href="{href}" title="{href}" rel="noopener noreferrer nofollow">{title}</a>'
        where = f'<p class="where">{escape(readable_url(row.url))}</p>'
    kind = row.source if row.publication else ""
    return (
        f'<tr><td class="title">{title}{_small(row.summary)}{where}</td>'
        f'<td><bdi>{escape(row.origin)}</bdi>{_small(kind)}</td><td class="day">{escape(row.day)}</td></tr>'
    )
