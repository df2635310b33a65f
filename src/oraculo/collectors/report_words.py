"""The words, numbers and dates of a report, in Portuguese or English."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from oraculo.collectors import parameters

LANGUAGES: Final = {"pt": "pt-BR", "en": "en"}  # as asked for → as the pages say
_MONTHS: Final = {
    "pt": ("jan", "fev", "mar", "abr", "mai", "jun", "jul", "ago", "set", "out", "nov", "dez"),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
}
_STATUSES: Final = {
    "pt": {
        "concluida": "concluída",
        "ok": "concluída",
        "erro": "erro",
        "timeout": "prazo estourado",
        "cancelada": "cancelada",
    },
    "en": {"concluida": "done", "ok": "done", "erro": "failed", "timeout": "timed out", "cancelada": "cancelled"},
}
_KINDS: Final = {"youtube": "YouTube", "blog": "Blog"}
_TEXTS: Final[dict[str, tuple[str, str]]] = {
    "title": ("Relatório", "Report"),
    "untitled": ("(sem título)", "(untitled)"),
    "unnamed": ("(sem nome)", "(unnamed)"),
    "unknown": ("desconhecido", "unknown"),
    "period": ("Período: {period}", "Period: {period}"),
    "undated": ("sem datas", "no dates"),
    "until": ("{first} a {last}", "{first} to {last}"),
    "ended-as": ("a coleta terminou como “{status}”", "the collection ended as “{status}”"),
    "ended-empty": ("a coleta terminou sem dados", "the collection ended without data"),
    "items": ("Itens", "Items"),
    "sources": ("Fontes", "Sources"),
    "missing-sources": ("Fontes ausentes", "Missing sources"),
    "missing": ("Fontes que faltam neste relatório", "Sources missing from this report"),
    "by-source": ("Itens por fonte", "Items by source"),
    "by-day": ("Itens por dia", "Items by day"),
    "by-month": ("Itens por mês", "Items by month"),
    "by-year": ("Itens por ano", "Items by year"),
    "others": ("outras {count}", "{count} others"),
    "nothing-shown": ("Nada para mostrar.", "Nothing to show."),
    "undated-one": (
        "{count} item sem data utilizável, fora deste gráfico",
        "{count} item without a usable date, not in this chart",
    ),
    "undated-many": (
        "{count} itens sem data utilizável, fora deste gráfico",
        "{count} items without a usable date, not in this chart",
    ),
    "summary": ("Resumo por fonte", "Summary by source"),
    "source": ("Fonte", "Source"),
    "status": ("Situação", "Status"),
    "published": ("Publicados", "Published"),
    "item": ("Título", "Title"),
    "day": ("Data", "Date"),
    "link": ("Link", "Link"),
    "no-source": ("Nenhuma fonte foi coletada.", "No source was collected."),
    "no-item": ("Nenhum item foi coletado.", "No item was collected."),
    "unlisted-one": (
        "Estes são os {shown} mais recentes; {count} outro item não está listado.",
        "These are the newest {shown}; {count} other item is not listed.",
    ),
    "unlisted-many": (
        "Estes são os {shown} mais recentes; {count} outros itens não estão listados.",
        "These are the newest {shown}; {count} other items are not listed.",
    ),
    "latin": (
        "Outros alfabetos e símbolos aparecem em letras latinas; o original está no HTML.",
        "Other alphabets and symbols are shown in Latin letters; the HTML has the original.",
    ),
    "made": ("Gerado pelo Oráculo em {at}", "Made by Oráculo on {at}"),
    "run": ("execução {run}", "run {run}"),
    "utc": ("Datas em UTC", "Dates in UTC"),
}


@dataclass(frozen=True, slots=True)
class ReportWords:
    """One language of a report. Calling it gives a text by its name."""

    language: str = "pt"

    def __call__(self, name: str, **values: Any) -> str:
        return _TEXTS[name][self.language == "en"].format(**values)

    @property
    def tag(self) -> str:
        """The language as documents name it."""
        return LANGUAGES[self.language]

    def number(self, value: int) -> str:
        """12.345, or 12,345 in English."""
        grouped = f"{value:,}"
        return grouped if self.language == "en" else grouped.replace(",", ".")

    def counted(self, name: str, value: int, **values: Any) -> str:
        """The text `name-one` or `name-many`, with the number in it."""
        return self(f"{name}-{'one' if value == 1 else 'many'}", count=self.number(value), **values)

    def calendar_day(self, day: date) -> str:
        """14/10/2025, or 14 Oct 2025."""
        if self.language == "en":
            return f"{day.day} {_MONTHS['en'][day.month - 1]} {day.year:04d}"
        return f"{day.day:02d}/{day.month:02d}/{day.year:04d}"

    def span(self, first: date, last: date) -> str:
        """One day, or two and what is between them."""
        return (
            self.calendar_day(first)
            if first == last
            else self("until", first=self.calendar_day(first), last=self.calendar_day(last))
        )

    def instant(self, at: datetime) -> str:
        """The day and the minute, in UTC."""
        there = at.astimezone(UTC)
        return f"{self.calendar_day(there.date())}, {there:%H:%M} UTC"

    def day_label(self, day: date) -> str:
        if self.language == "en":
            return f"{day.day} {_MONTHS['en'][day.month - 1]}"
        return f"{day.day:02d}/{day.month:02d}"

    def month_label(self, day: date) -> str:
        return f"{_MONTHS[self.language][day.month - 1]}/{day.year % 100:02d}"

    def status(self, word: str) -> str:
        """A status of the wire as people say it; another one as it is."""
        return _STATUSES[self.language].get(word, word)

    def kind(self, source: str) -> str:
        """A shipped source as people write it; another one as it is."""
        return _KINDS.get(source, source)


def words_of(parametros: Mapping[str, Any]) -> ReportWords:
    """The language that `idioma` asks for; Portuguese when it does not."""
    asked = parameters.text(parametros, "idioma") or "pt"
    if asked not in LANGUAGES:
        raise parameters.invalid(f"'idioma' é {asked[:20]!r}; permitido: {', '.join(LANGUAGES)}")
    return ReportWords(asked)
