"""How results are printed: JSON for machines, plain columns for pipes, colours for people at a terminal.

Ids, errors and messages come from outside. They are shown as text and never as markup or terminal commands. A command
that prints JSON or logs only, as a server does, never loads rich.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oraculo.cli.texts import column, t, words
from oraculo.wire import strict_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

AsJson = Annotated[bool, typer.Option("--json", help=t("o.json"))]
Url = Annotated[str | None, typer.Option("--url", help=t("o.url"), show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help=t("o.yes"))]

STYLES = {
    "concluida": "green",
    "parcial": "yellow",
    "erro": "red",
    "timeout": "magenta",
    "cancelada": "bright_black",
    "ignorada": "bright_black",
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
    "ignorada": "⤼",
}
_ASCII = dict(
    zip(SYMBOLS, ("+", "~", "x", "!", "-", ">", ".", "r", "/"), strict=True),
)
# Control characters, and the marks that turn the direction of text around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PIPE_WIDTH_COLUMNS = 100_000
JUST_NOW_S = 1.0


@lru_cache(1)
def out() -> Console:
    """Standard output. Into a pipe, lines are never folded or cut."""
    from rich.console import Console

    return Console(
        highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH_COLUMNS, soft_wrap=not sys.stdout.isatty()
    )


@lru_cache(1)
def err() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def safe(text: object) -> str:
    """Text from outside with its control characters written out."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(text))


def _text(text: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(safe(text), style=style)


def note(text: str, level: str = "info") -> None:
    """A line for people, on standard error; a log line where that is for machines."""
    logs = sys.modules.get("oraculo.logs")  # a command that never configured them need not wait for their import
    if logs is not None and logs.stream is not None:
        logs.say(text, level)
        return
    err().print(_text(text))


def fail(text: str) -> None:
    """The line that says why a command ends without having done what it should."""
    note(f"oraculo: {text}", "error")


def emit(value: Any, *, as_it_is: bool = False) -> None:
    """One JSON value on one line of standard output, in the words of the reader unless it has to stay as it is."""
    sys.stdout.buffer.write(strict_json.dumps(value if as_it_is else in_words(value)) + b"\n")
    sys.stdout.buffer.flush()


def say(text: object, style: str = "") -> None:
    out().print(_text(text, style))


def symbol(status: str) -> str:
    return SYMBOLS[status] if out().encoding.lower().startswith("utf") else _ASCII[status]


def status_text(status: str) -> Text:
    from rich.text import Text

    shown = f"{symbol(status)} {status_word(status)}" if status in SYMBOLS else safe(status)
    return Text(shown, style=STYLES.get(status, ""))


def status_word(status: str) -> str:
    """A status in the words of the reader."""
    if words() != "en":
        return status
    from oraculo.plans.words import STATUSES  # most commands, and most readers, do without

    return STATUSES.get(status, status)


def field_word(field: str) -> str:
    """The name of a field in the words of the reader."""
    if words() != "en":
        return field
    from oraculo.plans.words import FIELDS

    return FIELDS.get(field, field)


def in_words(answer: Any) -> Any:
    """An answer of the server in the words of the reader."""
    if words() != "en":
        return answer
    from oraculo.plans.words import in_english

    return in_english(strict_json.loads_trusted(strict_json.dumps(answer)))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "none") -> None:
    """Print rows below the titles of their columns; without rows, the text `empty` on standard error."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, header_style="bold", pad_edge=False, show_edge=False)
    for name in columns:
        shown.add_column(column(name), overflow="fold")
    count = 0
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else safe(cell)) for cell in row))
        count += 1
    if count:
        out().print(shown)
    else:
        note(t(empty))


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Name and value, one a line; what is None is left out."""
    from rich.table import Table
    from rich.text import Text

    shown = Table.grid(padding=(0, 2))
    shown.add_column(style="bold")
    shown.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            shown.add_row(column(name), value if isinstance(value, Text) else Text(safe(value)))
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
    return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"


def when(at: str | None) -> str:
    """An instant in the zone of this machine and how far it is from now."""
    if not at:
        return ""
    return f"{instant(at)} ({ago(at)})"


def ago(at: str | None) -> str:
    """How far an instant is from now, in its largest unit; nothing for no instant."""
    if not at:
        return ""
    seconds = time() - datetime.fromisoformat(at).timestamp()
    if abs(seconds) < JUST_NOW_S:
        return t("ago.now")
    return t("ago" if seconds > 0 else "in", age=_age(abs(seconds)))


def _age(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} d"


def utc(at: str) -> datetime:
    return datetime.fromisoformat(at).astimezone(UTC)
