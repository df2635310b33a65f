"""`oraculo replay`: what happened, step by step, and the proof that the rules give the same again.

Every step of a journal begins with an event that mirrors its command. Each command is put through `core.step` again, at
its recorded instant, on the state that the steps before it made. The events must be those of the journal, exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.text import Text

from oraculo.cli import inputs
from oraculo.cli.completing import Id
from oraculo.cli.exits import CommandError
from oraculo.cli.journal import recorded
from oraculo.cli.output import AsJson, Url, duration, emit, note, out, safe, status_text, symbol
from oraculo.cli.texts import language, t
from oraculo.core.replay import rebuild, replay_step
from oraculo.core.sentences import DEFAULT_LANGUAGE, Language
from oraculo.core.state import Orchestration
from oraculo.ports.journal import Recorded
from oraculo.settings import settings
from oraculo.wire import event_views, records, views


@dataclass(slots=True)
class Played:
    number: int
    at: datetime
    cause: str
    events: list[dict[str, Any]]
    state: dict[str, Any] | None  # None: read from the API, which does not tell
    same: bool | None
    instead: list[dict[str, Any]] | None = None  # what the rules give, when that is something else

    def document(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "passo": self.number,
            "em": self.at,
            "causa": self.cause,
            "eventos": self.events,
            "estado": self.state,
            "confere": self.same,
        }
        return shown if self.instead is None else {**shown, "em_vez": self.instead}


def replay(
    correlation_id: Id,
    until: Annotated[int | None, typer.Option(help=t("o.until"), show_default=False, min=1)] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    if url is None:
        played = play(recorded(settings.load().store, correlation_id), language())
    else:
        with inputs.client(url) as client:
            played = told(client.events(correlation_id))
    steps = events = 0
    began: datetime | None = None
    for one in played:
        if until is not None and one.events[0]["seq"] > until:
            break
        began = began or one.at
        steps, events = steps + 1, events + len(one.events)
        if json:
            emit(one.document())
        else:
            _show(one, began)
        if one.same is False:
            raise CommandError(t("differs", step=one.number))
    if not json:
        note(t("shown", events=events) if url else t("same", steps=steps, events=events))


def play(recorded: list[Recorded], spoken: Language = DEFAULT_LANGUAGE) -> Iterator[Played]:
    state: Orchestration | None = None
    for number, one in enumerate(recorded, 1):
        kept = records.encode(one.events)
        cause = type(one.events[0]).__name__
        instead = None
        try:
            done = replay_step(state, one)
            cause = type(done.cause).__name__
            same = records.encode(done.events) == kept
            state = done.state
            if not same:
                again = Recorded(one.run, one.first, one.at, done.events)
                instead = list(event_views.events(one.run, state.plan, again, language=spoken))
        except Exception as error:  # a journal that the rules cannot even read differs, too
            same, instead = False, [{"evento": type(error).__name__, "detalhe": str(error)}]
        if not same:
            state = rebuild(recorded[:number])
        assert state is not None
        shown = list(event_views.events(one.run, state.plan, one, language=spoken))
        yield Played(number, one.at, cause, shown, _summary(state), same, instead)


def told(events: list[dict[str, Any]]) -> Iterator[Played]:
    """The events of one instant belong to one step, as far as the API lets us know."""
    for number, (at, group) in enumerate(groupby(events, key=lambda event: event["em"]), 1):
        shown = list(group)
        yield Played(number, datetime.fromisoformat(at), shown[0]["evento"], shown, None, None)


def _summary(state: Orchestration) -> dict[str, Any]:
    return {
        "status": state.status.value,
        "versao": state.version,
        "tickets": dict(Counter(ticket.status.value for ticket in state.tickets)),
        "abertos": state.open,
        "a_publicar": len(state.owed),
        "acordar_em": state.wake_at(),
    }


def _show(one: Played, began: datetime) -> None:
    mark = {True: "concluida", False: "erro", None: "pendente"}[one.same]
    after = duration((one.at - began).total_seconds() * 1000)
    style = {"concluida": "green", "erro": "red"}.get(mark, "")
    out().print(
        Text.assemble(
            (f"{symbol(mark)} ", style),
            (f"{one.number}", "bold"),
            f"  {views.instant(one.at)}  ",
            (f"+{after}  ", "bright_black"),
            (one.cause, "bold"),
        )
    )
    for event in one.events:
        out().print(Text(f"    {event['seq']:>4} {event['evento']} {_about(event)}".rstrip()))
    for event in one.instead or ():
        out().print(Text(f"    ≠ {safe(event['evento'])} {_about(event)}".rstrip(), style="red"))
    if one.state is not None:
        counts = "  ".join(f"{name} {count}" for name, count in one.state["tickets"].items())
        out().print(Text.assemble("       → ", status_text(one.state["status"]), (f"  {counts}", "bright_black")))


def _about(event: dict[str, Any]) -> str:
    words = []
    for name in ("destino", "tentativa", "status", "causa", "motivo", "atendido", "detalhe"):
        if event.get(name) not in (None, ""):
            words.append(f"{name}={event[name]}")
    if "tickets" in event:
        words.append(f"tickets={len(event['tickets'])}")
    if event.get("erros"):
        words.append("; ".join(str(one.get("mensagem")) for one in event["erros"]))
    return safe(" ".join(words))[:300]
