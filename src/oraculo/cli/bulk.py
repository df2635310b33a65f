"""`bulk`: cancel, retry, pause or resume every run that a filter names."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from oraculo.cli import completing, inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, Url, Yes, emit, err, say
from oraculo.cli.texts import t
from oraculo.client.bulk_calls import BulkAnswer

ACTIONS = ("cancel", "retry", "pause", "resume")


def bulk(
    action: Annotated[str, typer.Argument(help=t("o.bulk-action"), metavar="|".join(ACTIONS), show_default=False)],
    status: Annotated[
        list[str] | None, typer.Option(help=t("o.status"), show_default=False, autocompletion=completing.statuses)
    ] = None,
    fonte: Annotated[str | None, typer.Option(help=t("o.fonte"), show_default=False)] = None,
    executador: Annotated[str | None, typer.Option(help=t("o.executador"), show_default=False)] = None,
    label: Annotated[str | None, typer.Option(help=t("o.label-filter"), show_default=False)] = None,
    since: Annotated[str | None, typer.Option(help=t("o.since"), show_default=False)] = None,
    until: Annotated[str | None, typer.Option(help=t("o.until-began"), show_default=False)] = None,
    begins: Annotated[str | None, typer.Option(help=t("o.begins"), show_default=False)] = None,
    start: Annotated[
        str | None, typer.Option("--from", help=t("o.retry-from"), show_default=False, metavar="falhas|inicio")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help=t("o.undo"))] = False,
    motivo: Annotated[str, typer.Option("--reason", "--motivo", help=t("o.motivo"), show_default=False)] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help=t("o.bulk-dry-run"))] = False,
    yes: Yes = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    if action not in ACTIONS:
        raise CommandError(t("bulk.unknown", action=action, known=", ".join(ACTIONS)), Exit.USAGE)
    chosen = {
        "status": inputs.statuses(status) or None,
        "fonte": fonte,
        "executador": executador,
        "rotulo": label,
        "since": _instant(since),
        "until": _instant(until),
        "texto": begins,
    }
    chosen = {name: value for name, value in chosen.items() if value is not None}
    more: dict[str, Any] = {"reason": motivo, "undo": undo, "start": start}
    with inputs.client(url) as client:
        if not (dry_run or yes):
            _confirm(client.bulk(action, chosen, **more, dry_run=True)["total"], action)
        answer = client.bulk(action, chosen, **more, dry_run=dry_run)
    _tell(answer, json)
    if answer["recusadas"] or answer["parou"]:
        raise typer.Exit(Exit.FAILED)


def _instant(text: str | None) -> str | None:
    found = inputs.since(text)
    return None if found is None else found.isoformat()


def _confirm(count: int, action: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(t("need-yes"), Exit.USAGE)
    err().print(t("bulk.confirm", action=action, count=count), end=" ")
    typer.confirm("", abort=True, err=True, prompt_suffix="")


def _tell(answer: BulkAnswer, json: bool) -> None:
    if json:
        emit(answer)
        return
    if answer["simular"]:
        say(t("bulk.counted", count=answer["total"]))
        return
    counts = {name: answer[name] for name in ("feitas", "inalteradas", "recusadas", "restantes")}
    say(t("bulk.done", **counts))
    for one in answer["erros"]:
        err().print(f"{one['correlation_id']}: {one['mensagem']}", markup=False)
    if answer["parou"] is not None:
        err().print(answer["parou"]["mensagem"], markup=False)
