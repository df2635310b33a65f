"""`oraculo acl export`: users with least rights for a broker."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from oraculo.cli import acl_forms
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, note
from oraculo.cli.texts import t
from oraculo.settings import settings
from oraculo.settings.declare import values_of
from oraculo.wire import names


class AclServer(StrEnum):
    RABBITMQ = "rabbitmq"
    REDIS = "redis"
    NATS = "nats"


def export(
    server: Annotated[AclServer, typer.Argument(show_default=False)],
    queue: Annotated[list[str], typer.Option(help=t("o.acl-queue"), show_default=False)],
    notice: Annotated[list[str] | None, typer.Option(help=t("o.acl-notice"), show_default=False)] = None,
    vhost: Annotated[str, typer.Option(help=t("o.acl-vhost"))] = "/",
    json: AsJson = False,
) -> None:
    known = settings.load()
    for one in (*queue, *(notice or ())):
        if not names.is_queue_name(one):
            raise CommandError(f"{one[:80]!r}: {names.QUEUE_PATTERN}", Exit.USAGE)
    topics = [str(topic) for _, topic in values_of(known.kafka.topics)] if known.flow_c.mode == "on" else []
    users = acl_forms.users_of(list(dict.fromkeys(queue)), list(dict.fromkeys(notice or ())), topics)
    if server is AclServer.RABBITMQ:
        text = acl_forms.rabbitmq(users, vhost)
    else:
        text = acl_forms.redis(users) if server is AclServer.REDIS else acl_forms.nats(users)
    if json:
        shown = [{"user": user.name, "password": user.password, "queues": list(user.takes)} for user in users]
        emit({"server": server.value, "users": shown, "text": text})
        return
    sys.stdout.write(text)
    note(t("acl-once"))
    for user in users:
        note(f"{user.name}:{user.password}")
