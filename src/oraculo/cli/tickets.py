"""`oraculo tickets`: tickets of Fluxo C, as the original's ticket service shows and takes them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from oraculo.cli import inputs
from oraculo.cli.api_documents import object_in
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, Url, duration, emit, note, pairs, say, table
from oraculo.cli.texts import t

TicketId = Annotated[str, typer.Argument(metavar="TICKET_ID", show_default=False)]
Said = Annotated[str, typer.Argument(help=t("o.ticket-status"), metavar="STATUS", show_default=False)]
COLUMNS = ("ticket_id", "plan_id", "task_id", "task_type", "status", "priority", "retry_count", "duration")


def ls(
    plan: Annotated[str | None, typer.Option("--plan", help=t("o.ticket-plan"), show_default=False)] = None,
    intent: Annotated[str | None, typer.Option("--intent", help=t("o.ticket-intent"), show_default=False)] = None,
    status: Annotated[str | None, typer.Option("--status", help=t("o.ticket-filter"), show_default=False)] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help=t("o.limit"), min=1, max=1000)] = 100,
    offset: Annotated[int, typer.Option("--offset", help=t("o.ticket-offset"), min=0)] = 0,
    cursor: Annotated[str | None, typer.Option("--cursor", help=t("o.ticket-cursor"), show_default=False)] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        found = client.tickets(
            plan_id=plan, intent_id=intent, status=status and status.upper(), limit=limit, offset=offset, cursor=cursor
        )
    if json:
        emit(found)
        return
    rows = (
        tuple(duration(one["actual_duration_ms"]) if name == "duration" else one[name] for name in COLUMNS)
        for one in found["tickets"]
    )
    table(COLUMNS, rows, "none.tickets")
    if found["next"]:
        note(f"--cursor {found['next']}")


def submit(
    file: Annotated[str, typer.Argument(help=t("o.ticket-file"), metavar="FILE|-", show_default=False)],
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        _show(client.submit_ticket(object_in(file)), json)


def status(
    ticket: TicketId,
    said: Said,
    error: Annotated[str | None, typer.Option("--error", help=t("o.ticket-error"), show_default=False)] = None,
    duration_ms: Annotated[
        int | None, typer.Option("--duration-ms", help=t("o.ticket-duration"), min=0, show_default=False)
    ] = None,
    token: Annotated[str | None, typer.Option("--token", help=t("o.ticket-token"), show_default=False)] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        _show(client.tell_ticket(ticket, said.upper(), error=error, duration_ms=duration_ms, token=token), json)


def compensate(
    ticket: TicketId,
    reason: Annotated[str, typer.Option("--motivo", "--reason", help=t("o.ticket-reason"), show_default=False)],
    action: Annotated[str, typer.Option("--action", help=t("o.ticket-action"))] = "rollback",
    parameter: Annotated[
        list[str] | None, typer.Option("--param", help=t("o.ticket-param"), metavar="NAME=VALUE", show_default=False)
    ] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    given = dict(_parameter(one) for one in parameter or ())
    with inputs.client(url) as client:
        started = client.compensate_ticket(ticket, reason, action=action, parameters=given)
    if json:
        emit(started)
    else:
        pairs(tuple(started.items()))


def _parameter(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise CommandError(f"{text!r} is not NAME=VALUE", Exit.USAGE)
    return name, value


def token(ticket: TicketId, url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        found = client.ticket_token(ticket)
    if json:
        emit(found)
    else:
        say(found["access_token"])


def _show(one: dict[str, Any], json: bool) -> None:
    if json:
        emit(one)
        return
    names = ("ticket_id", "plan_id", "task_id", "task_type", "status", "priority", "error_message")
    pairs(tuple((name, one[name]) for name in names))
