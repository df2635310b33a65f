"""`oraculo task-types`: names that stand for requests."""

from __future__ import annotations

from typing import Annotated

import typer

from oraculo.cli import inputs
from oraculo.cli.output import AsJson, Url, emit, in_words, out, say, table
from oraculo.cli.texts import t

Tipo = Annotated[str, typer.Argument(metavar="TIPO")]


def ls(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        known = client.task_types()
    if json:
        emit({"task_types": known})
        return
    table(
        ("tipo", "coletas", "execucoes", "tarefas"),
        (
            (
                tipo,
                ", ".join(one["fonte"] for one in request.get("coletas", ())),
                ", ".join(one["executador"] for one in request.get("execucoes", ())),
                ", ".join(request.get("tarefas", ())),
            )
            for tipo, request in known.items()
        ),
        "none.types",
    )


def get(tipo: Tipo, url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        request = client.task_type(tipo)
    if json or not out().is_terminal:
        emit(request)
    else:
        out().print_json(data=in_words(request))


def put(
    tipo: Tipo,
    file: Annotated[str, typer.Argument(help=t("o.file"), metavar="FILE|-")],
    url: Url = None,
    json: AsJson = False,
) -> None:
    request = inputs.request(file)
    with inputs.client(url) as client:
        kept = client.put_task_type(tipo, request)
    if json:
        emit(kept)
    else:
        say(tipo)


def rm(tipo: Tipo, url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        client.remove_task_type(tipo)
    if json:
        emit({"tipo": tipo})
    else:
        say(tipo)
