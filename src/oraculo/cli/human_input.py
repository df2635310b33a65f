"""`signal`, `approve` and `reject`: what a run waits for."""

from __future__ import annotations

from getpass import getuser
from typing import Annotated, Any

import orjson
import typer

from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, Url, emit, say
from oraculo.cli.texts import t

Id = Annotated[str, typer.Argument(metavar="ID")]
By = Annotated[str, typer.Option("--by", "--por", help=t("o.por"), show_default=False)]
Reason = Annotated[str, typer.Option("--reason", "--motivo", help=t("o.motivo"), show_default=False)]
Task = Annotated[str | None, typer.Option("--task", "--tarefa", help=t("o.decided-task"), show_default=False)]


def signal(
    correlation_id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help=t("o.signal-name"))],
    data: Annotated[str | None, typer.Option("--data", "--dados", help=t("o.signal-data"), show_default=False)] = None,
    idempotency_key: Annotated[str | None, typer.Option(help=t("o.signal-key"), show_default=False)] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    value = None if data is None else _value(data)
    with inputs.client(url) as client:
        answer = client.signal(correlation_id, name, value, idempotency_key=idempotency_key)
    if json:
        emit(answer)
    elif answer["tarefa"] is None:
        say(f"{correlation_id} {t('signal-kept', name=name)}")
    else:
        say(f"{correlation_id} {t('signal-taken', name=name, task=answer['tarefa'])}")


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise CommandError(f"--data: {t('signal-not-json', error=error)}", Exit.USAGE) from None


def approve(
    correlation_id: Id, por: By = "", motivo: Reason = "", task: Task = None, url: Url = None, json: AsJson = False
) -> None:
    _decide(correlation_id, True, por, motivo, task, url, json)


def reject(
    correlation_id: Id, por: By = "", motivo: Reason = "", task: Task = None, url: Url = None, json: AsJson = False
) -> None:
    _decide(correlation_id, False, por, motivo, task, url, json)


def _whoever() -> str:
    """The name that this machine knows the person by; a decision without a name says nothing afterwards."""
    try:
        return getuser()
    except (KeyError, OSError, ImportError):  # no name in the environment, and none in the system
        return ""


def _decide(
    correlation_id: str, approved: bool, por: str, motivo: str, task: str | None, url: str | None, json: bool
) -> None:
    with inputs.client(url) as client:
        document = client.decide(correlation_id, approved, por or _whoever(), motivo, task=task)
    if json:
        emit(document)
    elif document["aplicada"]:
        say(f"{correlation_id} {t('approved') if approved else t('refused')}")
    else:
        say(f"{correlation_id} {t('not-waiting', status=document['status'])}")
