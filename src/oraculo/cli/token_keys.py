"""`oraculo token-keys`: list and replace the keys that sign tokens of orders, in the store itself."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Any

import typer

from oraculo.adapters.clock import MonotonicClock
from oraculo.bootstrap.adapters import token_ring
from oraculo.cli import inputs
from oraculo.cli.journal import opened
from oraculo.cli.output import AsJson, emit, instant, say, table
from oraculo.cli.texts import t
from oraculo.core.access import LOCAL
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.token_keys import StoredTokenKey
from oraculo.settings import settings
from oraculo.wire import strict_json

OVERLAP = timedelta(days=7)


def ls(json: AsJson = False) -> None:
    found = asyncio.run(_listed())
    if json:
        emit({"keys": found})
        return
    columns = ("criada_em", "assina_desde", "vale_ate")
    table(("kid", *columns), ((one["kid"], *(instant(one[name]) for name in columns)) for one in found))


def rotate(
    overlap: Annotated[str | None, typer.Option(help=t("o.token-overlap"), metavar="AGE", show_default=False)] = None,
    json: AsJson = False,
) -> None:
    made = asyncio.run(_rotated(OVERLAP if overlap is None else inputs.age(overlap)))
    if json:
        emit(made)
    else:
        say(t("token-key-made", kid=made["kid"], at=instant(made["assina_desde"])))


async def _listed() -> list[dict[str, Any]]:
    async with opened(settings.load().store) as store:
        return [_document(key) for key in await store.token_keys()]


async def _rotated(overlap: timedelta) -> dict[str, Any]:
    clock = MonotonicClock()
    async with opened(settings.load().store) as store:
        key = await token_ring(store, clock, required=False).rotate(overlap)
        body = {"kid": key.kid, "ator": LOCAL.id}
        await store.record_system_event(SystemEvent("token_key_rotated", clock.now(), body))
        return _document(key)


def _document(key: StoredTokenKey) -> dict[str, Any]:
    """A key without what is secret of it, instants as text."""
    shown = {
        "kid": key.kid,
        "criada_em": key.created_at,
        "assina_desde": key.signs_from,
        "vale_ate": key.good_until,
    }
    document: dict[str, Any] = strict_json.loads(strict_json.dumps(shown))
    return document
