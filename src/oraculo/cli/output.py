"""How results are printed: JSON for machines, plain columns for pipes, colours for people at a terminal.

Ids, errors and messages come from outside. They are shown as text and never as markup or terminal commands.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oraculo.cli.texts import t
from oraculo.wire import strict_json

AsJson = Annotated[bool, typer.Option("--json", help=t("o.json"))]
Url = Annotated[str | None, typer.Option("--url", help=t("o.url"), show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help=t("o.yes"))]

STYLES = {
    "concluida": "green",
    "parcial": "yellow",
    "erro": "red",
    "timeout": "magenta",
    "cancelada": "bright_black",
    "em_execucao": "cyan",
    "pendente": "blue",
}
SYMBOLS = {
    "concluida": "✔",
    "parcial": "◐",
    "erro": "✖",
    "timeout": "⌛",
    "cancelada": "⊘",
    "em_execucao": "▶",
    "pendente": "○",
    "nova_tentativa": "↻",
}
_ASCII = dict(
    zip(SYMBOLS, ("+", "~", "x", "!", "-", ">", ".", "r"), strict=True),
)
# Control characters, and the marks that turn the direction of text around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
WIDE = 100_000


@lru_cache(1)
def out() -> Console:
    """Standard output. Into a pipe, lines are never folded or cut."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE, soft_wrap=not sys.stdout.isatty())


@lru_cache(1)
def err() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def safe(text: object) -> str:
    """Text from outside with its control characters written out."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(text))


def note(text: str) -> None:
    """A line for people, on standard error; a log line where that is for machines."""
    logs = sys.modules.get("oraculo.logs")  # a command that never configured them need not wait for their import
    if logs is not None and logs.stream is not None:
        logs.say(text)
        return
    err().print(Text(safe(text)))


def emit(value: Any) -> None:
    """One JSON value on one line of standard output."""
    sys.stdout.buffer.write(strict_json.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def say(text: object, style: str = "") -> None:
    out().print(Text(safe(text), style=style))


def symbol(status: str) -> str:
    return SYMBOLS[status] if out().encoding.lower().startswith("utf") else _ASCII[status]


def status_text(status: str) -> Text:
    return Text(f"{symbol(status)} {status}" if status in SYMBOLS else safe(status), style=STYLES.get(status, ""))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    shown = Table(box=None, header_style="bold", pad_edge=False, show_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")
    count = 0
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else safe(cell)) for cell in row))
        count += 1
    if count:
        out().print(shown)
    else:
        note(t("none"))


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Name and value, one a line; what is None is left out."""
    shown = Table.grid(padding=(0, 2))
    shown.add_column(style="bold")
    shown.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            shown.add_row(name, value if isinstance(value, Text) else Text(safe(value)))
    out().print(shown)


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def instant(at: str | None) -> str:
    """In the zone of this machine, without the fraction; for machines there is --json."""
    if not at:
        return ""
    return datetime.fromisoformat(at).astimezone().isoformat(" ", "seconds")


def utc(at: str) -> datetime:
    return datetime.fromisoformat(at).astimezone(UTC)
