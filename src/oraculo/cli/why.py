"""`oraculo why`: every decision of a run or a ticket, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from oraculo.cli import inputs
from oraculo.cli.completing import Id
from oraculo.cli.output import AsJson, Url, emit, instant, note, say, when
from oraculo.cli.texts import t


def why(
    correlation_id: Id,
    ticket: Annotated[str | None, typer.Argument(metavar="TICKET", help=t("o.why-ticket"), show_default=False)] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        found = client.why(correlation_id, ticket)
    if json:
        emit(found)
        return
    say(found["resumo"], "bold")
    _forecast(found["previsao"])
    if ticket is None:
        for one in found["abertos"]:
            say(f"  {one['frase']}")
            _details(one["detalhes"], "    ")
        left = found["abertos_total"] - len(found["abertos"])
        if left > 0:
            note(t("why-more", n=left))
    say("")
    for decision in found["decisoes"]:
        say(f"{instant(decision['em'])}  {decision['frase']}")
        _details(decision["detalhes"], " " * 21)


def _details(lines: Sequence[str], indent: str) -> None:
    for line in lines:
        say(indent + line, "bright_black")


def _forecast(found: dict[str, Any] | None) -> None:
    """When the run should end, or why that cannot be said."""
    if found is None:
        return
    if found["fim_p50"] is None:
        say(found["frase"])
    else:
        say(f"{when(found['fim_p50'])} … {when(found['fim_p90'])} {found['frase']}")
