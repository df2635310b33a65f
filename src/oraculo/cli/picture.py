"""An orchestration as a tree that moves: stages, tickets, attempts, durations and a bar, kept up to date by events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from time import monotonic, time
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from oraculo.cli.output import STYLES, duration, field_word, safe, status_word, symbol
from oraculo.cli.texts import t

TICKETS_SHOWN_PER_DESTINATION = 20  # more tickets than this of one destination are shown as counts
OPEN_STATUSES = ("pendente", "em_execucao")
_STATUS_ORDER = ("concluida", "em_execucao", "nova_tentativa", "pendente", "erro", "timeout", "cancelada", "ignorada")


@dataclass(slots=True)
class Row:
    destino: str
    stage: str
    status: str
    attempt: int
    retrying: bool = False
    began: datetime | None = None
    took: float | None = None  # milliseconds
    seen: float | None = None  # when it began, by our own clock
    error: str | None = None
    number: int | None = None  # of an item or a round

    @property
    def look(self) -> str:
        return "nova_tentativa" if self.retrying and self.status == "pendente" else self.status

    @property
    def name(self) -> str:
        return self.destino if self.number is None else f"{self.destino} #{self.number}"


class Picture:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._name = document["correlation_id"]
        self._started = monotonic()
        self._before = 0.0  # milliseconds that it had been running when we came
        self.rows: dict[str, Row] = {}
        self.settle(document)
        if document["fim"] is None and document["inicio"] is not None:
            self._before = _since(datetime.fromisoformat(document["inicio"]))

    def settle(self, document: Mapping[str, Any]) -> None:
        """Take over how it stands."""
        self.status: str = document["status"]
        self.version: int = document["versao"]
        self.took: float | None = document["duracao_ms"] if document["fim"] else None
        self._waits: str | None = document["espera"]
        self._notices = [f"{one['destino']}: {one['situacao']}" for one in document["notificacoes"]]
        for ticket in document["tickets"]:
            row = self.rows.get(ticket["ticket_id"]) or Row(label(ticket), ticket["tipo"], "", 0)
            row.number = ticket.get("indice")
            row.status, row.attempt, row.error = ticket["status"], ticket["tentativas"], ticket["erro"]
            row.retrying = ticket["proxima_tentativa_em"] is not None
            row.began = _at(ticket["despachado_em"])
            row.took = ticket["duracao_ms"] if ticket["concluido_em"] else None
            if row.seen is None and row.began is not None:
                row.seen = monotonic() - _since(row.began) / 1000
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
            case "ticket_concluded" | "child_ended":
                self._close([event["ticket_id"]], event.get("status", "concluida"), at)
            case "attempt_failed":
                for row in self._named([event["ticket_id"]]):
                    row.status, row.retrying, row.error = "pendente", True, _error(event)
            case "ticket_failed":
                self._close([event["ticket_id"]], event["status"], at, _error(event))
            case "wait_started":
                for row in self._named([event["ticket_id"]]):
                    row.status, row.began, row.seen = "em_execucao", at, monotonic()
                self.status = "em_execucao"
            case "wait_ended":
                self._close([event["ticket_id"]], event["status"], at, event["motivo"])
            case "tickets_closed":
                self._close(event["tickets"], event["status"], at, event.get("motivo"))
            case "tickets_reused":
                self._close(event["tickets"], "concluida", at)
            case "plan_grown" | "map_restored":
                for number, one in enumerate(event["tickets"], event["desde"]):
                    self.rows[one] = Row(label(event), event["tipo"], "pendente", 0, number=number)
                for row in self._named([event["ticket_id"]]):
                    row.status, row.began, row.seen = "em_execucao", row.began or at, row.seen or monotonic()
            case "map_ended" | "loop_ended":
                self._close([event["ticket_id"]], event["status"], at, event.get("motivo"))
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
        fold = (
            TICKETS_SHOWN_PER_DESTINATION
            if sum(min(len(g), TICKETS_SHOWN_PER_DESTINATION) for stage in groups.values() for g in stage.values())
            <= height
            else 1
        )
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
        closed = sum(1 for row in self.rows.values() if row.status not in OPEN_STATUSES)
        took = self.took if self.took is not None else self._before + (monotonic() - self._started) * 1000
        head = Table.grid(padding=(0, 2))
        head.add_row(
            Text(f"{symbol(self.status)} {safe(self._name)}", style=f"bold {STYLES.get(self.status, '')}"),
            Text(status_word(self.status), style=STYLES.get(self.status, "")),
            ProgressBar(max(1, len(self.rows)), closed, width=24, complete_style=STYLES.get(self.status, "cyan")),
            Text(f"{closed}/{len(self.rows)}"),
            Text(duration(took), style="bright_black"),
        )
        return head


def _ticket(row: Row) -> Text:
    style = STYLES.get(row.status, "yellow")
    took = row.took
    if took is None and row.seen is not None and row.status in OPEN_STATUSES:
        took = (monotonic() - row.seen) * 1000
    text = Text.assemble((f"{symbol(row.look)} ", style), safe(row.name), "  ", (status_word(row.status), style))
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
    for look in _STATUS_ORDER:
        if counts[look]:
            text.append(f"  {symbol(look)} {counts[look]}", STYLES.get(look, "yellow"))
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def label(ticket: Mapping[str, Any]) -> str:
    """Where a ticket went, with the name of its task where it has one; of Fluxo C, where most go to one topic, what it
    does or undoes."""
    flow, name = ticket.get("fluxo_c"), ticket.get("tarefa")
    if name is not None:
        return f"{name} ({ticket['destino'] or waits_for(ticket)})"
    return str(ticket["destino"]) if flow is None else f"{flow['task_id']} ({flow['task_type']})"


def waits_for(ticket: Mapping[str, Any]) -> str:
    """What a ticket that is a wait waits for; of a child, its id."""
    wait = ticket.get("espera")
    if wait is None:
        return str(ticket.get("filha") or ticket["tipo"])
    about = wait.get("sinal") or wait.get("pergunta")
    return f"{field_word(wait['tipo'])}: {about}" if about else field_word(wait["tipo"])


def _at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _since(at: datetime) -> float:
    """Milliseconds from an instant until now; none when the clock of the server is ahead of ours."""
    return max(0.0, time() - at.timestamp()) * 1000


def _between(first: datetime, then: datetime) -> float:
    return max(0.0, (then - first).total_seconds() * 1000)


def _error(event: dict[str, Any]) -> str | None:
    erros = event.get("erros") or []
    return "; ".join(str(one.get("mensagem") or one.get("codigo")) for one in erros) or event.get("causa")
