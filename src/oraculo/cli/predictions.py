"""`oraculo predictions`: how long tasks take, by what was seen of them; learn all of it again."""

from __future__ import annotations

from oraculo.cli import inputs
from oraculo.cli.journal import rebuild_projection
from oraculo.cli.output import AsJson, Url, duration, emit, note, table
from oraculo.cli.texts import t
from oraculo.client.calls import API, HttpCall
from oraculo.runtime.durations.learning import PROJECTION


def ls(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        found = client.call(HttpCall("GET", f"{API}/predictions")).body
    if json:
        emit(found)
        return
    if not found["ativas"]:
        note(t("predictions-off"))
    table(
        ("tipo", "destino", "p50", "p90", "amostras", "confianca", "cobertura", "deriva"),
        (
            (
                one["tipo"],
                one["destino"],
                duration(one["p50_ms"]),
                duration(one["p90_ms"]),
                one["amostras"],
                f"{one['confianca']:.0%}",
                f"{one['cobertura']:.0%}",
                t("yes") if one["deriva"] else "",
            )
            for one in found["previsoes"]
        ),
        "none.predictions",
    )


def rebuild(json: AsJson = False) -> None:
    rebuild_projection(PROJECTION, "predictions-rebuild", json)
