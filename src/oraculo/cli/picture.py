"""An orchestration as a tree that moves: stages, tickets, attempts, durations and a bar, kept up to date by events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from oraculo.cli.output import STYLES, duration, safe, symbol
from oraculo.cli.texts import t

FOLD = 20  # more tickets than this of one destination are shown as counts
OPEN = ("pendente", "em_execucao")
_ORDER = ("concluida", "em_execucao", "nova_tentativa", "pendente", "erro", "timeout", "cancelada")


@dataclass(slots=True)
class Row:
    destino: str
    stage: str
    status: str
    attempt: int
    retrying: bool = False
    began: datetime | None = None
    took: float | None = None  # milliseconds
    seen: float | None = None  # when we saw it begin, by our own clock
    error: str | None = None

    @property
    def look(self) -> str:
        return "nova_tentativa" if self.retrying and self.status == "pendente" else self.status


class Picture:
    def __init__(self, document: dict[str, Any]) -> None:
        self._name = document["correlation_id"]
        self._started = monotonic()
        self._before = 0.0  # milliseconds that it had been running when we came
        self.rows: dict[str, Row] = {}
        self.settle(document)
        if document["fim"] is None and document["inicio"] is not None:
            latest = max((row.began for row in self.rows.values() if row.began), default=None)
            if latest is not None:
                self._before = _between(datetime.fromisoformat(document["inicio"]), latest)

    def settle(self, document: dict[str, Any]) -> None:
        """Take over how it stands."""
        self.status: str = document["status"]
        self.version: int = document["versao"]
        self.took: float | None = document["duracao_ms"] if document["fim"] else None
        self._waits: str | None = document["espera"]
        self._notices = [f"{one['destino']}: {one['situacao']}" for one in document["notificacoes"]]
        for ticket in document["tickets"]:
            row = self.rows.get(ticket["ticket_id"]) or Row(ticket["destino"], ticket["tipo"], "", 0)
            row.status, row.attempt, row.error = ticket["status"], ticket["tentativas"], ticket["erro"]
            row.retrying = ticket["proxima_tentativa_em"] is not None
            row.began = _at(ticket["despachado_em"])
            row.took = ticket["duracao_ms"] if ticket["concluido_em"] else None
            row.seen = row.seen or (monotonic() if row.began else None)
            self.rows[ticket["ticket_id"]] = row

    @property
    def ended(self) -> bool:
        return self.took is not None

    def apply(self, event: dict[str, Any]) -> None:
        """One event of the stream."""
        self.version = event["seq"]
        at = datetime.fromisoformat(event["em"])
        match event["evento"]:
            case "tickets_dispatched":
                for row in self._named(event["tickets"]):
                    row.status, row.attempt, row.retrying = "pendente", event["tentativa"], False
                    row.began, row.seen = row.began or at, row.seen or monotonic()
            case "dispatch_confirmed":
                for row in self._named(event["tickets"]):
                    row.status = "em_execucao"
                self.status = "em_execucao"
            case "ticket_concluded":
                self._close([event["ticket_id"]], "concluida", at)
            case "attempt_failed":
                for row in self._named([event["ticket_id"]]):
                    row.status, row.retrying, row.error = "pendente", True, _error(event)
            case "ticket_failed":
                self._close([event["ticket_id"]], event["status"], at, _error(event))
            case "tickets_closed":
                self._close(event["tickets"], event["status"], at, event.get("motivo"))
            case "orchestration_closed":
                self.status = event["status"]
            case _:
                pass

    def _named(self, ids: list[str]) -> list[Row]:
        return [self.rows[one] for one in ids if one in self.rows]

    def _close(self, ids: list[str], status: str, at: datetime, error: str | None = None) -> None:
        for row in self._named(ids):
            row.status, row.retrying, row.error = status, False, error
            row.took = _between(row.began, at) if row.began else None

    # -- drawing -----------------------------------------------------------------------------------------------------

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = (options.height or console.size.height) - 6
        groups: dict[str, dict[str, list[Row]]] = {}
        for row in self.rows.values():
            groups.setdefault(row.stage, {}).setdefault(row.destino, []).append(row)
        fold = FOLD if sum(min(len(g), FOLD) for stage in groups.values() for g in stage.values()) <= height else 1
        yield self._head()
        tree = Tree("", hide_root=True, guide_style="bright_black")
        for stage, destinations in groups.items():
            branch = tree.add(Text(t(f"stages.{stage}"), style="bold"))
            for destino, rows in list(destinations.items())[: max(3, height)]:
                if len(rows) > fold:
                    branch.add(_counts(destino, rows))
                else:
                    for row in rows:
                        branch.add(_ticket(row))
        yield tree

    def _head(self) -> Table:
        closed = sum(1 for row in self.rows.values() if row.status not in OPEN)
        took = self.took if self.took is not None else self._before + (monotonic() - self._started) * 1000
        head = Table.grid(padding=(0, 2))
        head.add_row(
            Text(f"{symbol(self.status)} {safe(self._name)}", style=f"bold {STYLES.get(self.status, '')}"),
            Text(self.status, style=STYLES.get(self.status, "")),
            ProgressBar(max(1, len(self.rows)), closed, width=24, complete_style=STYLES.get(self.status, "cyan")),
            Text(f"{closed}/{len(self.rows)}"),
            Text(duration(took), style="bright_black"),
        )
        return head


def _ticket(row: Row) -> Text:
    style = STYLES.get(row.status, "yellow")
    took = row.took
    if took is None and row.seen is not None and row.status in OPEN:
        took = (monotonic() - row.seen) * 1000
    text = Text.assemble((f"{symbol(row.look)} ", style), safe(row.destino), "  ", (row.status, style))
    if row.attempt > 1:
        text.append(f"  {t('attempt', n=row.attempt)}", "yellow")
    if took is not None:
        text.append(f"  {duration(took)}", "bright_black")
    if row.error and row.status != "concluida":
        text.append(f"  {safe(row.error)[:200]}", "red" if row.status not in ("pendente", "cancelada") else "yellow")
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _counts(destino: str, rows: list[Row]) -> Text:
    counts = Counter(row.look for row in rows)
    text = Text(safe(destino) + f"  ×{len(rows)}")
    for look in _ORDER:
        if counts[look]:
            text.append(f"  {symbol(look)} {counts[look]}", STYLES.get(look, "yellow"))
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _between(first: datetime, then: datetime) -> float:
    return max(0.0, (then - first).total_seconds() * 1000)


def _error(event: dict[str, Any]) -> str | None:
    erros = event.get("erros") or []
    return "; ".join(str(one.get("mensagem") or one.get("codigo")) for one in erros) or event.get("causa")
