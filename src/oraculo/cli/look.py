"""`ls`, `show` and `workers`: what there is, and how it stands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from oraculo.cli import inputs
from oraculo.cli.output import AsJson, Url, duration, emit, instant, note, out, pairs, safe, say, status_text, table
from oraculo.cli.texts import t

PAGE = 500
MANY = 200  # tickets shown one by one


def ls(
    status: Annotated[list[str] | None, typer.Option(help=t("o.status"), show_default=False)] = None,
    fonte: Annotated[str | None, typer.Option(help=t("o.fonte"), show_default=False)] = None,
    since: Annotated[str | None, typer.Option(help=t("o.since"), show_default=False)] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help=t("o.limit"), min=1)] = 50,
    url: Url = None,
    json: AsJson = False,
) -> None:
    begun = inputs.since(since)
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    with inputs.client(url) as client:
        while len(found) < limit:
            page = client.list(
                status=status, fonte=fonte, since=begun, limit=min(PAGE, limit - len(found)), cursor=cursor
            )
            found += page.items
            cursor = page.cursor
            if cursor is None:
                break
    if json:
        emit({"orchestrations": found, "more": cursor is not None})
        return
    table(
        ("correlation_id", "status", "tipo", "tickets", "inicio", "duracao"),
        (
            (
                one["correlation_id"],
                status_text(one["status"]),
                one["tipo"],
                _tickets(one),
                instant(one["inicio"]),
                duration(one["duracao_ms"]),
            )
            for one in found
        ),
    )
    if cursor is not None:
        note(f"… --limit {limit * 10}")


def _tickets(one: dict[str, Any]) -> Text:
    text = Text(f"{one['tickets_total'] - one['tickets_abertos']}/{one['tickets_total']}")
    if one["tickets_com_falha"]:
        text.append(f" ({one['tickets_com_falha']} ✖)" if out().encoding.startswith("utf") else " (x)", style="red")
    return text


def show(correlation_id: Annotated[str, typer.Argument(metavar="ID")], url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        document = client.get(correlation_id)
    if json:
        emit(document)
        return
    pairs(
        (
            ("correlation_id", document["correlation_id"]),
            ("status", status_text(document["status"])),
            ("tipo", document["tipo"]),
            ("inicio", instant(document["inicio"])),
            ("fim", instant(document["fim"]) or None),
            ("prazo", instant(document["prazo"]) if document["fim"] is None else None),
            ("duracao", duration(document["duracao_ms"]) or None),
            ("fan_in", _fan_in(document["fan_in"])),
            (t("waiting"), document["espera"]),
            ("motivo", document["motivo_cancelamento"]),
            *_flow(document["fluxo_c"]),
            *(
                (f"notificar.{one['destino']}", f"{one['situacao']} {one['detalhe']}")
                for one in document["notificacoes"]
            ),
        )
    )
    say("")
    tickets = document["tickets"]
    table(
        ("destino", "status", "tentativas", "duracao", "ticket_id", "erro"),
        (
            (
                _name(one),
                status_text(one["status"]),
                f"{one['tentativas']}/{one['max_tentativas']}",
                duration(one["duracao_ms"]),
                one["ticket_id"],
                Text(safe(one["erro"] or one["motivo"] or "")[:300], style="red" if one["erro"] else ""),
            )
            for one in sorted(tickets, key=_failed_first)[:MANY]
        ),
    )
    if len(tickets) > MANY:
        note(f"… {len(tickets) - MANY} {t('tickets')}: --json")


def _flow(flow: dict[str, Any] | None) -> list[tuple[str, Any]]:
    names = ("plan_id", "intent_id", "decision_id", "risk_band", "priority", "decidido_por", "compensacao")
    return [] if flow is None else [(name, flow.get(name)) for name in names]


def _name(ticket: dict[str, Any]) -> str:
    """Where it went; of Fluxo C, where most go to one topic, what it does."""
    flow = ticket.get("fluxo_c")
    return ticket["destino"] if flow is None else f"{flow['task_id']} ({flow['task_type']})"


def _fan_in(rule: dict[str, Any]) -> str:
    return f"{rule['modo']} {rule['minimo']}" if rule["modo"] == "quorum" else str(rule["modo"])


def _failed_first(ticket: dict[str, Any]) -> bool:
    """Only where not all can be shown does the order matter; `sorted` keeps the rest as it is."""
    return ticket["status"] not in ("erro", "timeout")


def brokers(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        document = client.brokers()
    if json:
        emit(document)
        return
    table(
        ("broker", "ok", "publica", "durabilidade", "sonda_ms", "reconexoes", "aguardando", "erro"),
        (
            (
                one["nome"],
                {True: "✓", False: "✖", None: "…"}[one["ok"]],
                t("yes") if one["publica"] else t("draining") if one["drenando"] else "",
                one["durabilidade"],
                one["sonda_ms"],
                one["reconexoes"],
                ", ".join(f"{queue} {count}" for queue, count in one["aguardando"].items()),
                one["erro"],
            )
            for one in document["brokers"]
        ),
    )
    for event in document["eventos"]:
        note(f"{instant(event['em'])}  {event.get('de')} → {event.get('para')}: {event.get('motivo')}")


def replicas(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        document = client.replicas()
    if json:
        emit(document)
        return
    table(
        ("replica", "vaga", "epoca", "desde", "ate", "esta"),
        (
            (
                one["nome"],
                one["vaga"],
                one["epoca"],
                instant(one["desde"]),
                instant(one["ate"]),
                "✓" if one["esta"] else "",
            )
            for one in document["replicas"]
        ),
    )


def workers(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        document = client.workers()
    if json:
        emit(document)
        return
    table(
        ("worker", "transporte", "filas", "em_andamento", "respondidas", "visto_em"),
        (
            (
                one["nome"],
                one["transporte"],
                ", ".join(one["filas"]),
                one["em_andamento"],
                one["respondidas"],
                instant(one["visto_em"]),
            )
            for one in document["workers"]
        ),
    )
    if document["filas"]:
        say("")
        table(
            ("fila", "aguardando", "em_andamento"),
            ((one["fila"], one["aguardando"], one["em_andamento"]) for one in document["filas"]),
        )
