"""`breakers`: destinations whose orders wait because they failed again and again; `--probe` tries one now."""

from __future__ import annotations

from typing import Annotated

import typer

from oraculo.cli import inputs
from oraculo.cli.output import AsJson, Url, emit, instant, say, table
from oraculo.cli.texts import t

Probe = Annotated[str | None, typer.Option("--probe", "--sondar", help=t("o.breaker-probe"), show_default=False)]


def breakers(probe: Probe = None, url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        probed = None if probe is None else client.probe_queue(probe)
        found = client.breakers()
    if json:
        emit(probed if probed is not None else {"disjuntores": found})
        return
    if probed is not None:
        say(t("breaker.probing" if probed["mudou"] else "breaker.unchanged", queue=probed["fila"]))
    table(
        ("fila", "desde", "falhas", "sondas", "proxima_sonda", "erro"),
        (
            (
                one["fila"],
                instant(one["desde"]),
                one["falhas"],
                one["sondas"],
                t("breaker.out") if one["sondando"] else instant(one["proxima_sonda"]),
                one["erro"],
            )
            for one in found
        ),
        "none.breakers",
    )
