"""Who got a ticket and why not the others, in `oraculo show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oraculo.cli.texts import language, t
from oraculo.core.allocation_words import method_said, reason_said

SHOWN_MAX_TICKETS = 20


def lines(tickets: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each ticket that was given to a worker by a choice, and one for each other candidate; the last ones
    first."""
    given = [one for one in tickets if one.get("alocacao")]
    given.sort(key=lambda one: str(one["alocacao"]["em"]), reverse=True)
    for one in given[:SHOWN_MAX_TICKETS]:
        chosen = one["alocacao"]
        yield t(
            "allocated",
            ticket=one["ticket_id"],
            n=chosen["tentativa"],
            worker=chosen["agent_id"],
            score=chosen["nota_worker"],
            priority=chosen["nota_prioridade"],
            how=method_said(chosen["metodo"], language()),
        )
        for other in chosen["candidatos"][1:]:
            why = reason_said(other["motivo"], language())
            yield f"  {other['agent_id']} {other['nota']}: {why}"
        more = chosen["avaliados"] - len(chosen["candidatos"])
        if more > 0:
            counts = ", ".join(f"{reason_said(why, language())} {n}" for why, n in chosen["recusados"].items())
            yield "  " + t("allocated-more", n=more, counts=counts)
    if len(given) > SHOWN_MAX_TICKETS:
        yield t("allocated-left", n=len(given) - SHOWN_MAX_TICKETS)
