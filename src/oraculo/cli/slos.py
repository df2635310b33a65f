"""`slos`: objectives of service levels, their budgets, and the alerts that were told."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from oraculo.cli.api_documents import Nome, call, object_in, remove
from oraculo.cli.output import AsJson, Url, emit, instant, note, pairs, table
from oraculo.cli.texts import t
from oraculo.client.calls import path_segment


def _path(nome: str) -> str:
    return f"/slos/{path_segment(nome)}"


def ls(url: Url = None, json: AsJson = False) -> None:
    found = call(url, "GET", "/slos")
    if json:
        emit(found)
        return
    if not found["medidos"]:
        note(t("sla-off"))
    rows = (
        (one["nome"], one["indicador"], f"{one['objetivo']:.2%}", _left(one), _burn(one), _state(one))
        for one in found["slos"]
    )
    table(("nome", "indicador", "objetivo", "restante", "queima_1h", "status"), rows, "none.slos")


def _left(one: dict[str, Any]) -> str:
    left = None if one["orcamento"] is None else one["orcamento"]["restante"]
    return "–" if left is None else f"{left:.1%}"


def _burn(one: dict[str, Any]) -> str:
    rate = None if one["orcamento"] is None else one["orcamento"]["queimas"][0]["taxa"]
    return "–" if rate is None else f"{rate:.1f}"


def _state(one: dict[str, Any]) -> str:
    status = "" if one["orcamento"] is None else one["orcamento"]["status"]
    return f"{status} ({t('sla-frozen')})" if one["congelado"] else status


def show(nome: Nome, url: Url = None, json: AsJson = False) -> None:
    _show(call(url, "GET", _path(nome)), json)


def _show(one: dict[str, Any], json: bool) -> None:
    if json:
        emit(one)
        return
    budget = one["orcamento"] or {"bons": None, "ruins": None, "queimas": [], "disparos": []}
    pairs(
        (
            ("nome", one["nome"]),
            ("indicador", one["indicador"]),
            ("objetivo", f"{one['objetivo']:.2%}"),
            ("janela_dias", one["janela_dias"]),
            ("tipo", one.get("tipo")),
            ("destino", one.get("destino")),
            ("limite_s", one.get("limite_s")),
            ("restante", _left(one)),
            ("status", _state(one) or None),
            ("bons", budget["bons"]),
            ("ruins", budget["ruins"]),
            *((f"queima_{burn['horas']}h", burn["taxa"]) for burn in budget["queimas"]),
            ("disparos", ", ".join(budget["disparos"]) or None),
            ("ator", one["ator"]),
        )
    )


def put(
    nome: Nome,
    file: Annotated[str, typer.Argument(help=t("o.slo-file"), metavar="FILE|-")],
    url: Url = None,
    json: AsJson = False,
) -> None:
    _show(call(url, "PUT", _path(nome), body=object_in(file)), json)


def rm(nome: Nome, url: Url = None, json: AsJson = False) -> None:
    remove(url, _path(nome), nome, "removido", json=json)


def alerts(
    limit: Annotated[int, typer.Option("--limit", "-n", help=t("o.limit"), min=1, max=500)] = 50,
    url: Url = None,
    json: AsJson = False,
) -> None:
    found = call(url, "GET", "/sla/alerts", query={"limit": limit})
    if json:
        emit(found)
        return
    rows = ((instant(one["em"]), one["tipo"], _subject(one["registro"]), one["id"]) for one in found["alertas"])
    table(("em", "tipo", "sujeito", "id"), rows, "none.alerts")


def _subject(record: dict[str, Any]) -> str:
    """The run, ticket or objective that an alert is about."""
    context = {**record, **record.get("context", {})}
    return str(context.get("ticket_id") or context.get("correlation_id") or context.get("slo_id") or "")
