"""`submit`, `watch`, `cancel` and `retry`: hand in, follow to the end, call off, try again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.live import Live

from oraculo.cli import inputs
from oraculo.cli.completing import Id
from oraculo.cli.exits import CommandError, Exit, code_of_status
from oraculo.cli.output import AsJson, Url, emit, err, in_words, note, out, safe, say, status_word
from oraculo.cli.picture import Picture
from oraculo.cli.submit_lines import is_lines, labelled, submit_lines
from oraculo.cli.texts import t
from oraculo.client.client import Client
from oraculo.wire import strict_json

Strict = Annotated[bool, typer.Option("--strict", help=t("o.strict"))]


def submit(
    file: Annotated[str, typer.Argument(help=t("o.file"), metavar="FILE|-")],
    watch: Annotated[bool, typer.Option("--watch", "-w", help=t("o.watch"))] = False,
    wait: Annotated[float | None, typer.Option(help=t("o.wait"), show_default=False, min=0)] = None,
    idempotency_key: Annotated[str | None, typer.Option(help=t("o.key"), show_default=False)] = None,
    ndjson: Annotated[bool, typer.Option("--ndjson", help=t("o.ndjson"))] = False,
    label: Annotated[list[str] | None, typer.Option(help=t("o.label"), show_default=False)] = None,
    strict: Strict = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    if watch and wait is not None:
        raise CommandError("--watch --wait: give one of them", Exit.USAGE)
    if ndjson or is_lines(file):
        if watch or wait is not None:
            raise CommandError("--watch, --wait: not with many requests", Exit.USAGE)
        submit_lines(file, idempotency_key, url, json, label or ())
        return
    request = labelled(inputs.request(file), label or ())
    with inputs.client(url) as client:
        accepted = client.submit(request, idempotency_key)
        name = accepted.correlation_id
        if not name:  # a decision to reject
            _rejected(accepted.document, json)
        if watch:
            _follow(client, name, 0, strict, json)
        if wait is not None:
            _await(client, name, wait, strict, json)
    if json:
        emit(accepted.document)
        return
    say(name)
    if accepted.merged:
        note(t("merged"))
    if sys.stdout.isatty():
        note(f"{t('accepted')}; {t('next')}: oraculo watch {name}")


def _rejected(document: dict[str, Any], json: bool) -> None:
    if json:
        emit(document)
    else:
        note(t("rejected", plan=document["plan_id"], reason=document.get("motivo") or ""))
    raise typer.Exit(Exit.FAILED)


def watch(
    correlation_id: Id,
    after: Annotated[int, typer.Option(help=t("o.after"), min=0)] = 0,
    strict: Strict = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        _follow(client, correlation_id, after, strict, json)


def cancel(
    correlation_id: Id,
    motivo: Annotated[str, typer.Option("--reason", "--motivo", help=t("o.motivo"), show_default=False)] = "",
    undo: Annotated[bool, typer.Option("--undo", help=t("o.undo"))] = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        document = client.cancel(correlation_id, motivo, undo=undo)
    if json:
        emit(document)
    elif document["cancelada"]:
        say(f"{correlation_id} {t('cancelled')}")
    else:
        say(f"{correlation_id} {t('already-over', status=status_word(document['status']))}")


def retry(
    correlation_id: Id,
    start: Annotated[
        str | None, typer.Option("--from", help=t("o.retry-from"), show_default=False, metavar="falhas|inicio")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help=t("o.retry-task"), show_default=False)] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help=t("o.watch"))] = False,
    idempotency_key: Annotated[str | None, typer.Option(help=t("o.key"), show_default=False)] = None,
    strict: Strict = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    if start is not None and task is not None:
        raise CommandError("--from --task: give one of them", Exit.USAGE)
    with inputs.client(url) as client:
        accepted = client.retry(correlation_id, start=start, task=task, idempotency_key=idempotency_key)
        name = accepted.correlation_id
        if watch:
            _follow(client, name, 0, strict, json)
    if json:
        emit(accepted.document)
        return
    say(name)
    if sys.stdout.isatty():
        note(f"{t('accepted')}; {t('next')}: oraculo watch {name}")


def _await(client: Client, name: str, wait: float, strict: bool, json: bool) -> None:
    result = client.result(name, wait)
    if result is None:
        if json:
            emit({"correlation_id": name, "status": "em_execucao"})
        else:
            say(name)
        raise CommandError(t("not-yet", id=name, wait=wait), Exit.TIMEOUT)
    if json or not sys.stdout.isatty():
        emit(result)
    else:
        out().print_json(data=in_words(result))
    raise typer.Exit(code_of_status(result["status"], strict))


def _follow(client: Client, name: str, after: int, strict: bool, json: bool) -> None:
    """Show every event until the end, as JSON lines, as plain lines, or as a picture that moves; then exit."""
    events = client.stream(name, after)
    try:
        if json:
            status = _each(events, emit)
        elif out().is_terminal and not out().is_dumb_terminal:
            status = _picture(client, name)
        else:
            status = _each(events, _line)
    except KeyboardInterrupt:
        if not json:
            note(t("still-running", id=name))
        raise
    status = status or client.get(name)["status"]
    if not json:
        note(t("ended", id=name, status=status_word(status)))
        _output(client, name)
    raise typer.Exit(code_of_status(status, strict))


def _output(client: Client, name: str) -> None:
    """What a plan gave, where it gives something."""
    result = client.result(name)
    if result is None or result.get("saida") is None:
        return
    if out().is_terminal:
        out().print_json(data=result["saida"])
    else:
        emit(result["saida"], as_it_is=True)


def _each(events: Iterator[dict[str, Any]], show: Any) -> str | None:
    status = None
    for event in events:
        show(event)
        if event["evento"] == "orchestration_closed":
            status = event["status"]
    return status


def _line(event: dict[str, Any]) -> None:
    """Name, number and what is short; the data itself is in `show` and in --json."""
    about = []
    for key, value in in_words(event).items():
        if key in ("seq", "em", "evento", "dados", "data") or value in (None, "", []):
            continue
        if isinstance(value, list):
            value = "; ".join(_messages(value)) if key in ("erros", "errors") else len(value)
        elif isinstance(value, bool | dict):
            value = strict_json.dumps(value).decode()
        about.append(f"{key}={value}")
    out().print(safe(f"{event['em']} {event['seq']} {event['evento']} {' '.join(about)}".rstrip()), markup=False)


def _messages(erros: list[dict[str, Any]]) -> list[str]:
    return [str(one.get("mensagem", one.get("message"))) for one in erros]


def _picture(client: Client, name: str) -> str | None:
    picture = Picture(client.get(name))
    if picture.ended:
        out().print(picture)
        return picture.status
    with Live(picture, console=out(), refresh_per_second=8, transient=False) as live:
        for event in client.stream(name, picture.version):
            picture.apply(event)
        picture.settle(client.get(name))
        live.refresh()
    err().file.flush()
    return picture.status
