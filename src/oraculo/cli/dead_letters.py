"""`oraculo dlq`: browse, hand in again, discard."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, Url, Yes, emit, err, instant, note, pairs, say, table
from oraculo.cli.texts import t
from oraculo.client.client import Client
from oraculo.client.results import DeadLetterCount, DeadLetterDetails

Fila = Annotated[str | None, typer.Option(help=t("o.fila"), show_default=False)]
Motivo = Annotated[str | None, typer.Option("--reason", "--motivo", help=t("o.reason"), show_default=False)]
Ids = Annotated[list[int] | None, typer.Argument(metavar="ID…", show_default=False)]
All = Annotated[bool, typer.Option("--all", help=t("o.all"))]
DEAD_LETTERS_PER_PAGE = 200


def ls(
    fila: Fila = None,
    motivo: Motivo = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help=t("o.limit"), min=1)] = 50,
    url: Url = None,
    json: AsJson = False,
) -> None:
    found: list[DeadLetterDetails] = []
    groups: list[DeadLetterCount] = []
    cursor: str | None = None
    with inputs.client(url) as client:
        while len(found) < limit:
            page = client.dead_letters(
                queue=fila, reason=motivo, limit=min(DEAD_LETTERS_PER_PAGE, limit - len(found)), cursor=cursor
            )
            found += page.items
            groups, cursor = page.groups, page.cursor
            if cursor is None:
                break
    if json:
        emit({"dead_letters": found, "groups": groups, "more": cursor is not None})
        return
    table(
        ("id", "fila", "motivo", "correlation_id", "recebida_em", "detalhe"),
        (
            (
                one["id"],
                one["fila"],
                one["motivo"],
                one["correlation_id"],
                instant(one["recebida_em"]),
                one["detalhe"][:200],
            )
            for one in found
        ),
        "none.dead",
    )
    for group in groups:
        note(f"{group['total']} × {group['fila']} {group['motivo']}")


def show(id: Annotated[int, typer.Argument(metavar="ID")], url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        document = client.dead_letter(id)
    if json:
        emit(document)
        return
    shown = {**document, "recebida_em": instant(document["recebida_em"])}
    body = shown.pop("corpo")
    pairs((name, value) for name, value in shown.items() if value)
    say("")
    say(body)


def requeue(
    ids: Ids = None,
    all: All = False,
    fila: Fila = None,
    motivo: Motivo = None,
    yes: Yes = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        if ids and not all:
            told = [client.requeue_dead_letter(id) for id in ids]
            gone = sum(one["removida"] for one in told)
            document: dict[str, Any] = {"reenviadas": gone, "mantidas": len(told) - gone, "mensagens": told}
        else:
            document = {"reenviadas": 0, "mantidas": 0}
            for chosen in _chosen(client, ids, all, fila, motivo, yes, "requeue"):
                answer = client.requeue_dead_letters(**chosen)
                document["reenviadas"] += answer["reenviadas"]
                document["mantidas"] += answer["mantidas"]
    if json:
        emit(document)
    else:
        say(t("requeued", count=document["reenviadas"]))
        for one in document.get("mensagens", ()):
            if not one["removida"]:
                note(f"{one['id']}: {one['situacao']} {one['motivo']}")
    if document["mantidas"]:
        raise typer.Exit(Exit.FAILED)  # refused again: they are dead letters still


def discard(
    ids: Ids = None,
    all: All = False,
    fila: Fila = None,
    motivo: Motivo = None,
    razao: Annotated[str, typer.Option(help=t("o.razao"), show_default=False)] = "",
    yes: Yes = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    gone = 0
    with inputs.client(url) as client:
        if ids and not all:
            _confirm(len(ids), yes, "discard")
            for id in ids:
                client.discard_dead_letter(id, razao)
                gone += 1
        else:
            for chosen in _chosen(client, ids, all, fila, motivo, yes, "discard"):
                gone += client.discard_dead_letters(**chosen, note=razao)["descartadas"]
    if json:
        emit({"descartadas": gone})
    else:
        say(t("discarded", count=gone))


def _chosen(
    client: Client, ids: list[int] | None, all: bool, fila: str | None, motivo: str | None, yes: bool, what: str
) -> list[dict[str, str | None]]:
    """The filters to give to the server, after asking. Without a filter: one for every queue that has dead letters."""
    if ids or not all:
        raise CommandError(t("ids-or-all"), Exit.USAGE)
    groups = client.dead_letters(limit=1).groups
    wanted = [one for one in groups if fila in (None, one["fila"]) and motivo in (None, one["motivo"])]
    if not wanted:
        return []
    _confirm(sum(one["total"] for one in wanted), yes, what)
    if fila is not None or motivo is not None:
        return [{"queue": fila, "reason": motivo}]
    return [{"queue": queue} for queue in dict.fromkeys(one["fila"] for one in wanted)]


def _confirm(count: int, yes: bool, what: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        if what == "discard":
            raise CommandError(t("need-yes"), Exit.USAGE)
        return
    err().print(t("confirm", what=what, count=count), end=" ")
    typer.confirm("", abort=True, err=True, prompt_suffix="")
