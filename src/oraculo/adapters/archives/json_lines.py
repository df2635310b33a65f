"""Archived orchestrations as JSON lines: one file for each tenant and day of their ends, one line for each record of
the audit chain, with its whole body. So `oraculo audit archive` can tell whether a file is whole, without any store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from oraculo.ports.ended_runs import EndedRun
from oraculo.ports.journal import Recorded
from oraculo.wire import audit, records


class JsonLinesArchive:
    """`JsonLinesArchive("/var/lib/oraculo/archive")`; the folder is made. Lines are appended, and flushed to the disk
    before `keep` returns. After a crash in between lines may stand twice, with the same bytes."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    async def keep(self, runs: Sequence[tuple[EndedRun, Sequence[Recorded]]]) -> None:
        await asyncio.to_thread(self._write, runs)

    def _write(self, runs: Sequence[tuple[EndedRun, Sequence[Recorded]]]) -> None:
        files: dict[Path, list[bytes]] = {}
        for one, steps in runs:
            path = self._folder / one.tenant / f"{one.closed_at:%Y-%m-%d}.jsonl"
            files.setdefault(path, []).extend(_lines(steps))
        for path, lines in files.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())


def _lines(steps: Sequence[Recorded]) -> Iterator[bytes]:
    for step, record in zip(steps, audit.chain(steps), strict=True):
        body = step.text or records.encode(step.events).decode()
        yield orjson.dumps({**record, "body": body}) + b"\n"
