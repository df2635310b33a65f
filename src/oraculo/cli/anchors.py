"""`oraculo audit anchor`: where every chain of the journal stands, signed; and a journal compared with that."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.signing.ed25519 import private_key, verify
from oraculo.cli import audit_documents
from oraculo.cli.audit_journal import Verdict, chains_of, is_erased, progress_bar, pruned_before, total_of
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import opened
from oraculo.cli.output import AsJson, emit, note
from oraculo.cli.texts import t
from oraculo.core.events import OrchestrationClosed
from oraculo.errors import WireError
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.settings import settings
from oraculo.wire import audit
from oraculo.wire.anchors import Anchor, AnchorReader, AnchorWriter, anchor_of
from oraculo.wire.audit import Problem
from oraculo.wire.signatures import KEY_BYTES, decoded, read_signing_key

ANCHORS_PER_PAGE = 200


def anchor(
    to: Annotated[Path, typer.Option(help=t("o.anchor-to"))],
    json: AsJson = False,
) -> None:
    known = settings.load()
    key = read_signing_key(known.signatures.key)
    if key is None:
        raise CommandError(t("anchor-no-key"), Exit.USAGE)
    partial = to.with_name(f"{to.name}.part")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            writer = AnchorWriter(file)
            asyncio.run(_written(known.store, writer))
            writer.finish(MonotonicClock().now(), key[0], private_key(key[1]).sign)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(to)
    except OSError as error:
        raise CommandError(f"{to}: {error.strerror or error}", Exit.USAGE) from None
    if json:
        emit({"to": str(to), "orchestrations": writer.count, "key": key[0]})
    else:
        note(t("anchor-written", count=writer.count, to=to, by=key[0]))


async def _written(url: str, writer: AnchorWriter) -> None:
    async with opened(url) as store:
        with progress_bar() as progress:
            task = progress.add_task("", total=await total_of(store, None))
            async for steps in chains_of(store, None):
                if isinstance(steps, Problem):
                    raise CommandError(f"{steps.correlation_id} {steps.run}:{steps.seq}: {steps.detail}", Exit.FAILED)
                writer.add(anchor_of(list(audit.chain(steps)), _ended(steps)))
                progress.advance(task)


def read_anchor(path: Path, public_key: str | None) -> AnchorReader:
    """The anchors of a file whose signature is right. CommandError when it cannot be trusted."""
    public = decoded(public_key or "")
    if public is None or len(public) != KEY_BYTES:
        raise CommandError(t("anchor-no-public"), Exit.USAGE)
    try:
        found = AnchorReader(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", Exit.USAGE) from None
    except WireError as error:
        raise CommandError(f"{path}: {error.detail}", Exit.FAILED) from None
    if not verify(public, found.signature.value, found.signature.over):
        raise CommandError(t("anchor-wrong", path=path), Exit.FAILED)
    return found


async def compare(store: Store, anchors: AnchorReader, found: Verdict) -> None:
    """Add what the journal has in another way than it was anchored."""
    pruned, every = await pruned_before(store), iter(anchors)
    while some := list(islice(every, ANCHORS_PER_PAGE)):
        loaded = await _loaded(store, [one.run for one in some])
        readable = []
        for one in some:
            if one.run not in loaded and await is_erased(store, one.run):
                found.erased += 1
            else:
                readable.append(one)
        for problem in _problems(readable, loaded, pruned, found):
            found.add(problem)


async def _loaded(store: Store, runs: list[int]) -> dict[int, list[Recorded]]:
    """The journals of these runs; one that cannot be read has no steps."""
    try:
        return await store.load(runs)
    except audit_documents.READ_ERRORS:
        if len(runs) == 1:
            return {runs[0]: []}
    found: dict[int, list[Recorded]] = {}
    for run in runs:
        found |= await _loaded(store, [run])
    return found


def _problems(
    some: list[Anchor], loaded: dict[int, list[Recorded]], pruned: datetime | None, found: Verdict
) -> Iterator[Problem]:
    for one in some:
        found.anchored += 1
        steps = loaded.get(one.run)
        if steps is not None:
            problem = one.problem(list(audit.chain(steps)) if steps else [])
            if problem is not None:
                yield problem
        elif pruned is None or one.ended_at is None or datetime.fromisoformat(one.ended_at) >= pruned:
            yield one.lost()


def _ended(steps: list[Recorded]) -> datetime | None:
    ends = (step.at for step in reversed(steps) if any(isinstance(one, OrchestrationClosed) for one in step.events))
    return next(ends, None)
