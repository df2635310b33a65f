"""`ls` and `show`: what there is, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from oraculo.cli import allocations, completing, inputs
from oraculo.cli.completing import Id
from oraculo.cli.output import (
    AsJson,
    Url,
    ago,
    duration,
    emit,
    instant,
    note,
    out,
    pairs,
    safe,
    say,
    status_text,
    table,
    when,
)
from oraculo.cli.picture import label
from oraculo.cli.texts import t
from oraculo.client.calls import HttpCall
from oraculo.client.results import RunSummary

RUNS_PER_PAGE = 500
EVENT_MAX_CHARS = 400
TICKETS_SHOWN = 200  # tickets shown one by one


def ls(
    status: Annotated[
        list[str] | None, typer.Option(help=t("o.status"), show_default=False, autocompletion=completing.statuses)
    ] = None,
    fonte: Annotated[str | None, typer.Option(help=t("o.fonte"), show_default=False)] = None,
    label: Annotated[str | None, typer.Option(help=t("o.label-filter"), show_default=False)] = None,
    since: Annotated[str | None, typer.Option(help=t("o.since"), show_default=False)] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help=t("o.limit"), min=1)] = 50,
    url: Url = None,
    json: AsJson = False,
) -> None:
    statuses = inputs.statuses(status)
    begun = inputs.since(since)
    found: list[RunSummary] = []
    cursor: str | None = None
    with inputs.client(url) as client:
        while len(found) < limit:
            page = client.list(
                status=statuses,
                source=fonte,
                label=label,
                since=begun,
                limit=min(RUNS_PER_PAGE, limit - len(found)),
                cursor=cursor,
            )
            found += page.items
            cursor = page.cursor
            if cursor is None:
                break
    if json:
        emit({"orchestrations": found, "more": cursor is not None})
        return
    table(
        ("correlation_id", "status", "tipo", "rotulos", "tickets", "inicio", "duracao"),
        (
            (
                one["correlation_id"],
                _status(one),
                one["tipo"],
                ", ".join(one["rotulos"]),
                _tickets(one),
                ago(one["inicio"]) if out().is_terminal else instant(one["inicio"]),
                duration(one["duracao_ms"]),
            )
            for one in found
        ),
        "none.runs",
    )
    if cursor is not None:
        note(f"… --limit {limit * 10}")


def _status(one: Mapping[str, Any]) -> Text:
    text = status_text(one["status"])
    return text.append(f" ({t('pause.is')})", style="yellow") if one["pausada"] else text


def _tickets(one: Mapping[str, Any]) -> Text:
    text = Text(f"{one['tickets_total'] - one['tickets_abertos']}/{one['tickets_total']}")
    if one["tickets_com_falha"]:
        text.append(f" ({one['tickets_com_falha']} ✖)" if out().encoding.startswith("utf") else " (x)", style="red")
    return text


def show(correlation_id: Id, url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        document = client.get(correlation_id)
    if json:
        emit(document)
        return
    pairs(
        (
            ("correlation_id", document["correlation_id"]),
            ("status", _status(document)),
            ("tipo", document["tipo"]),
            ("rotulos", ", ".join(document["rotulos"]) or None),
            ("inicio", when(document["inicio"])),
            ("fim", when(document["fim"]) or None),
            ("prazo", (when(document["prazo"]) or None) if document["fim"] is None else None),
            ("duracao", duration(document["duracao_ms"]) or None),
            *_forecast(document.get("previsao")),
            ("fan_in", _fan_in(document["fan_in"]) if document["fan_in"] else None),
            (t("waiting"), document["espera"]),
            ("desfecho", status_text(document["desfazendo"]["desfecho"]) if document["desfazendo"] else None),
            *_merges(document.get("juntadas")),
            (t("parent"), (document.get("pai") or {}).get("correlation_id")),
            ("motivo", document["motivo_cancelamento"]),
            ("ator", document.get("ator")),
            ("origem", document.get("origem")),
            ("retentativas", ", ".join(document["retentativas"]) or None),
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
                _shown(one),
                status_text(one["status"]),
                f"{one['tentativas']}/{one['max_tentativas']}",
                duration(one["duracao_ms"]),
                one["ticket_id"],
                Text(safe(one["erro"] or one["motivo"] or "")[:300], style="red" if one["erro"] else ""),
            )
            for one in sorted(tickets, key=_failed_first)[:TICKETS_SHOWN]
        ),
        "none.tickets",
    )
    if len(tickets) > TICKETS_SHOWN:
        note(f"… {len(tickets) - TICKETS_SHOWN} {t('tickets')}: --json")
    for line in allocations.lines(tickets):
        say(safe(line))
    for one in tickets:
        if one["respostas_conflitantes"]:
            kept = len(one["respostas_conflitantes"])
            say(t("conflicting", n=kept, ticket=one["ticket_id"], destination=_shown(one)), "red")


def _merges(found: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """What was merged into a run whose request exists once."""
    if found is None or not found["total"]:
        return []
    last = found["recentes"][0]
    whose = " · ".join(text for text in (last["correlation_id"], last["ator"]) if text)
    return [(t("merges"), f"{found['total']} ({when(last['em'])}{f' · {whose}' if whose else ''})")]


def _forecast(found: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """When it ends, with its range, and whether that is in time; or why that cannot be said."""
    if found is None:
        return []
    if found["fim_p50"] is None:
        return [("previsao", found["frase"])]
    said = Text(f"{when(found['fim_p50'])} … {when(found['fim_p90'])}")
    if found["risco"] != "nenhum":
        said.append(f" {found['frase']}", style="red" if found["risco"] != "possivel" else "yellow")
    return [("previsao", said)]


def _flow(flow: dict[str, Any] | None) -> list[tuple[str, Any]]:
    if flow is None:
        return []
    named = {**flow, "priority_score": flow.get("priority_score_explanation")}
    names = ("plan_id", "intent_id", "decision_id", "risk_band", "priority", "priority_score")
    return [(name, named.get(name)) for name in (*names, "decidido_por", "compensacao")]


def _shown(ticket: Mapping[str, Any]) -> str:
    """What a ticket is called; of an item or a round its number, of a map how its items stand, of a loop how many
    rounds there are."""
    number, items = ticket.get("indice"), ticket.get("itens")
    place = "" if number is None else f" #{number}"
    if ticket.get("desfaz") is not None:
        place += f" ({t('undoing')})"
    if ticket.get("prioridade") is not None:
        place += f" {t('priority', n=ticket['prioridade'])}"
    word = "rounds" if ticket["tipo"] == "repete" else "items"
    return label(ticket) + place + ("" if items is None else t(word, **items))


def _fan_in(rule: dict[str, Any]) -> str:
    return f"{rule['modo']} {rule['minimo']}" if rule["modo"] == "quorum" else str(rule["modo"])


def _failed_first(ticket: Mapping[str, Any]) -> bool:
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
        "none.brokers",
    )
    for event in document["eventos"]:
        note(f"{instant(event['em'])}  {event.get('de')} → {event.get('para')}: {event.get('motivo')}")


def events(
    kind: Annotated[str, typer.Option("--tipo", "--type", help=t("events.type"))] = "",
    limit: Annotated[int, typer.Option(help=t("events.limit"), min=1, max=1000)] = 50,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        answer = client.call(HttpCall("GET", "/api/v1/system-events", {"limit": limit}))
    found = [one for one in answer.body["eventos"] if not kind or one["evento"] == kind]
    if json:
        emit({"eventos": found})
        return
    table(
        ("em", "evento", "detalhe"),
        ((instant(one["em"]), one["evento"], _told(one)[:EVENT_MAX_CHARS]) for one in found),
        "none.events",
    )


def _told(event: Mapping[str, Any]) -> str:
    """What an event says beside its name and its instant, in one line."""
    return "  ".join(
        f"{name}={value}" for name, value in event.items() if name not in ("em", "evento") and value not in (None, "")
    )


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
        "none.replicas",
    )
