"""`oraculo users`: people who log in at the dashboard with a password. In the store itself."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.identity.argon2 import Argon2Hasher
from oraculo.bootstrap.adapters import sqlite_path, store_of
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import existing
from oraculo.cli.output import AsJson, emit, instant, say, table
from oraculo.cli.texts import t
from oraculo.core.access import LOCAL, AccessRole
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.errors import WireError
from oraculo.ports.users import LocalUser
from oraculo.runtime.local_users import UserDirectory
from oraculo.settings import settings
from oraculo.settings.settings import Settings
from oraculo.wire.views import instant as instant_text

T = TypeVar("T")
Name = Annotated[str, typer.Argument(metavar="NAME")]


def add(
    name: Name,
    role: Annotated[list[AccessRole], typer.Option(help=t("o.user-role"))],
    tenant: Annotated[str, typer.Option(help=t("o.user-tenant"))] = DEFAULT_TENANT,
    json: AsJson = False,
) -> None:
    password = _password(twice=True)
    _told(_on_store(lambda users: users.add(name, password, role, by=LOCAL, tenant=tenant), may_create=True), json)


def ls(json: AsJson = False) -> None:
    found = [_document(user) for user in _on_store(UserDirectory.all)]
    if json:
        emit({"users": found})
        return
    table(
        ("nome", "roles", "tenant", "situacao", "criado_em"),
        (
            (one["nome"], ", ".join(one["roles"]), one["tenant"], one["situacao"], instant(one["criado_em"]))
            for one in found
        ),
        "none.users",
    )


def passwd(name: Name, json: AsJson = False) -> None:
    password = _password(twice=True)
    _told(_on_store(lambda users: users.set_password(name, password, by=LOCAL)), json)


def disable(name: Name, json: AsJson = False) -> None:
    _told(_on_store(lambda users: users.disable(name, by=LOCAL)), json)


def enable(name: Name, json: AsJson = False) -> None:
    _told(_on_store(lambda users: users.enable(name, by=LOCAL)), json)


def rm(name: Name, json: AsJson = False) -> None:
    _on_store(lambda users: users.remove(name, by=LOCAL))
    if json:
        emit({"nome": name})
    else:
        say(t("user-removed", name=name))


def has_administrator(chosen: Settings) -> bool:
    """True if the store of the settings has a user who administers. A database that is not there is not made."""
    if chosen.store.startswith("sqlite:") and not Path(sqlite_path(chosen.store)).is_file():
        return False
    return asyncio.run(_with_users(chosen, UserDirectory.has_administrator))


def _password(*, twice: bool) -> str:
    """Ask for a password where there is a terminal; else it is the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    given = getpass.getpass(t("user-password"))
    if twice and getpass.getpass(t("user-password-again")) != given:
        raise CommandError(t("user-password-differs"), Exit.USAGE)
    return given


def _told(user: LocalUser, json: bool) -> None:
    if json:
        emit(_document(user))
    else:
        document = _document(user)
        say(t("user-kept", name=user.name, roles=", ".join(document["roles"]), status=document["situacao"]))


def _document(user: LocalUser) -> dict[str, Any]:
    return {
        "nome": user.name,
        "roles": [role.value for role in user.roles],
        "tenant": user.tenant,
        "situacao": "ativo" if user.disabled_at is None else "desativado",
        "criado_em": instant_text(user.created_at),
        "mudado_em": instant_text(user.changed_at),
    }


def _on_store(work: Callable[[UserDirectory], Awaitable[T]], *, may_create: bool = False) -> T:
    """Do it on the store of the settings. Only the first user may make a database that is not there."""
    chosen = settings.load()
    inputs.show_warnings(chosen)
    if chosen.store.startswith("sqlite:") and not may_create:
        existing(chosen.store)
    try:
        return asyncio.run(_with_users(chosen, work))
    except WireError as error:
        raise CommandError(error.detail, Exit.USAGE) from None


async def _with_users(chosen: Settings, work: Callable[[UserDirectory], Awaitable[T]]) -> T:
    store = store_of(chosen.store, may_migrate=chosen.migrate_at_start)
    try:
        return await work(UserDirectory(await store.open(), MonotonicClock(), Argon2Hasher()))
    finally:
        await store.close()
