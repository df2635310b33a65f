"""`oraculo trails`: what answers of workers left behind, and following all of it again."""

from __future__ import annotations

from oraculo.cli import inputs
from oraculo.cli.journal import rebuild_projection
from oraculo.cli.output import AsJson, Url, duration, emit, note, table, when
from oraculo.cli.texts import t
from oraculo.client.calls import API, HttpCall
from oraculo.runtime.trails import PROJECTION


def ls(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        found = client.call(HttpCall("GET", f"{API}/trails")).body
    if json:
        emit(found)
        return
    if not found["ativas"]:
        note(t("trails-off"))
    table(
        ("fila", "worker", "pontuacao", "fator", "sucesso", "aviso", "falha", "duracao", "em"),
        (
            (
                one["fila"],
                one["worker"] or "",
                one["pontuacao"],
                one["fator"],
                one["sucesso"],
                one["aviso"],
                one["falha"],
                duration(one["duracao_ms"]),
                when(one["em"]),
            )
            for one in found["trilhas"]
        ),
        "none.trails",
    )


def rebuild(json: AsJson = False) -> None:
    rebuild_projection(PROJECTION, "trails-rebuild", json)
