"""`schedules`: what is started by a calendar."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from oraculo.cli import inputs
from oraculo.cli.api_documents import Nome, call, object_in, remove
from oraculo.cli.exits import Exit, line_of
from oraculo.cli.output import AsJson, Url, emit, instant, note, pairs, say, table
from oraculo.cli.texts import t
from oraculo.client.calls import path_segment, refusal

PAGE = 500


def _path(nome: str, verb: str = "") -> str:
    return f"/schedules/{path_segment(nome)}{verb}"


def ls(url: Url = None, json: AsJson = False) -> None:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = call(url, "GET", "/schedules", query={"limit": PAGE, "cursor": cursor})
        found += page["agendas"]
        cursor = page["next"]
    if json:
        emit({"agendas": found})
        return
    rows = ((one["nome"], _calendar(one), one["sobreposicao"], _next(one), one["ultima"]) for one in found)
    table(("nome", "calendario", "sobreposicao", "proximo", "ultima"), rows, "none.schedules")


def _calendar(one: dict[str, Any]) -> str:
    return f"{one['cron']} ({one['fuso']})" if "cron" in one else f"{one['intervalo_s']} s"


def _next(one: dict[str, Any]) -> str:
    paused = one["pausada"]
    if paused is not None:
        return t("schedule-paused", by=paused["por"], reason=paused["motivo"])
    return instant(one["proximos"][0]) if one["proximos"] else ""


def show(nome: Nome, url: Url = None, json: AsJson = False) -> None:
    _show(call(url, "GET", _path(nome)), json)


def _show(one: dict[str, Any], json: bool) -> None:
    if json:
        emit(one)
        return
    outcomes = ", ".join(f"{word} {count}" for word, count in one["instantes"].items())
    pairs(
        (
            ("nome", one["nome"]),
            ("calendario", _calendar(one)),
            ("sobreposicao", one["sobreposicao"]),
            ("recuperar_s", one["recuperar_s"]),
            ("jitter_s", one["jitter_s"] or None),
            ("fim", one.get("fim")),
            ("pausada", None if one["pausada"] is None else _next(one)),
            ("ator", one["ator"]),
            ("ultima", one["ultima"]),
            ("em_fila", one["em_fila"] or None),
            ("instantes", outcomes or None),
            ("erro", one["erro"]),
            *(("proximo" if not number else "", instant(at)) for number, at in enumerate(one["proximos"])),
        )
    )


def put(
    nome: Nome,
    file: Annotated[str, typer.Argument(help=t("o.schedule-file"), metavar="FILE|-")],
    url: Url = None,
    json: AsJson = False,
) -> None:
    _show(call(url, "PUT", _path(nome), body=object_in(file)), json)


def rm(nome: Nome, url: Url = None, json: AsJson = False) -> None:
    remove(url, _path(nome), nome, "removida", json=json)


def pause(
    nome: Nome,
    motivo: Annotated[str, typer.Option(help=t("o.schedule-reason"), show_default=False)] = "",
    url: Url = None,
    json: AsJson = False,
) -> None:
    _show(call(url, "POST", _path(nome, "/pause"), body={"motivo": motivo}), json)


def resume(nome: Nome, url: Url = None, json: AsJson = False) -> None:
    _show(call(url, "POST", _path(nome, "/resume")), json)


def trigger(nome: Nome, url: Url = None, json: AsJson = False) -> None:
    started = call(url, "POST", _path(nome, "/trigger"))
    if json:
        emit(started)
    else:
        say(started["correlation_id"])


def backfill(
    nome: Nome,
    de: Annotated[str, typer.Option(help=t("o.schedule-de"), show_default=False)],
    ate: Annotated[str | None, typer.Option(help=t("o.schedule-ate"), show_default=False)] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    until = inputs.since(ate) or inputs.since("1s")
    span = {"de": inputs.since(de), "ate": until}
    told = call(url, "POST", _path(nome, "/backfill"), body={word: at.isoformat() for word, at in span.items() if at})
    refused = [one for one in told["itens"] if one["status"] >= 400]
    if json:
        emit(told)
    else:
        say(t("schedule-started", new=told["iniciadas"], old=len(told["itens"]) - told["iniciadas"] - len(refused)))
        for one in refused:
            note(f"{one['instante']}: {line_of(refusal(one['status'], one))}")
    if refused:
        raise typer.Exit(Exit.FAILED)


def upcoming(
    nome: Nome,
    n: Annotated[int, typer.Option("-n", help=t("o.schedule-n"), min=1, max=1000)] = 10,
    url: Url = None,
    json: AsJson = False,
) -> None:
    found = call(url, "GET", _path(nome, "/upcoming"), query={"n": n})
    if json:
        emit(found)
        return
    for at in found["instantes"]:
        say(instant(at))
