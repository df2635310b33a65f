"""`pause`, `resume` and `pauses`: hold back what goes out, of one run, to one destination or all of it; `prioritise`:
who goes first."""

from __future__ import annotations

from typing import Annotated

import typer

from oraculo.cli import inputs
from oraculo.cli.completing import ids
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, Url, emit, instant, say, table
from oraculo.cli.texts import t
from oraculo.client.client import Client
from oraculo.client.pause_results import DestinationPauseAnswer, PauseAnswer

Motivo = Annotated[str, typer.Option("--reason", "--motivo", help=t("o.motivo"), show_default=False)]
Run = Annotated[
    str | None, typer.Argument(help=t("o.pause-id"), metavar="[ID]", autocompletion=ids, show_default=False)
]
Queue = Annotated[str | None, typer.Option("--queue", "--fila", help=t("o.pause-queue"), show_default=False)]
All = Annotated[bool, typer.Option("--all", help=t("o.pause-all"))]


def pause(
    correlation_id: Run = None,
    queue: Queue = None,
    everything: All = False,
    motivo: Motivo = "",
    url: Url = None,
    json: AsJson = False,
) -> None:
    _check(correlation_id, queue, everything)
    with inputs.client(url) as client:
        _tell(_pause(client, correlation_id, queue, motivo), json)


def resume(
    correlation_id: Run = None,
    queue: Queue = None,
    everything: All = False,
    motivo: Motivo = "",
    url: Url = None,
    json: AsJson = False,
) -> None:
    _check(correlation_id, queue, everything)
    with inputs.client(url) as client:
        _tell(_resume(client, correlation_id, queue, motivo), json)


def prioritise(
    correlation_id: Annotated[str, typer.Argument(metavar="ID", autocompletion=ids, show_default=False)],
    priority: Annotated[int, typer.Argument(help=t("o.priority"), metavar="1-9", min=1, max=9, show_default=False)],
    motivo: Motivo = "",
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        document = client.prioritise(correlation_id, priority, motivo)
    if json:
        emit(document)
    else:
        say(t("priority.is", id=document["correlation_id"], n=document["prioridade"]))


def pauses(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        found = client.pauses()
    if json:
        emit({"pausas": found})
        return
    table(
        ("fila", "ator", "desde", "motivo"),
        ((one["fila"] or t("pause.everything"), one["ator"], instant(one["desde"]), one["motivo"]) for one in found),
        "none.pauses",
    )


def _check(correlation_id: str | None, queue: str | None, everything: bool) -> None:
    if (correlation_id is not None) + (queue is not None) + everything != 1:
        raise CommandError(t("pause.one-of"), Exit.USAGE)


def _pause(client: Client, run: str | None, queue: str | None, reason: str) -> PauseAnswer | DestinationPauseAnswer:
    return client.pause_queue(queue, reason) if run is None else client.pause(run, reason)


def _resume(client: Client, run: str | None, queue: str | None, reason: str) -> PauseAnswer | DestinationPauseAnswer:
    return client.resume_queue(queue, reason) if run is None else client.resume(run, reason)


def _tell(document: PauseAnswer | DestinationPauseAnswer, json: bool) -> None:
    if json:
        emit(document)
        return
    what = document.get("correlation_id") or document.get("fila")
    say(f"{what or t('pause.everything')} {t('pause.is' if document['pausada'] else 'pause.goes-on')}")
