"""Files that results name. A result is a message, so its word is not enough: only a regular file inside the folder of
`ORACULO_ARTEFATOS` is handed out, by its number in the result and never by a path, and always as a download."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from fastapi import Response

from oraculo.core.state import Orchestration

KEYS = ("arquivo", "arquivos", "artefato", "artefatos")
MOST = 50
MOST_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Artifact:
    named: str  # as the result names it
    ticket: int
    path: Path | None  # None: not to be had here
    size: int = 0


def artifacts_of(state: Orchestration, folder: str) -> list[Artifact]:
    found: dict[str, Artifact] = {}
    for position, ticket in enumerate(state.tickets):
        if len(ticket.dados) > 2 and any(key.encode() in ticket.dados for key in KEYS):
            for name in _names(orjson.loads(ticket.dados)):
                if len(found) < MOST:
                    found.setdefault(name, _looked_up(name, position, folder))
    return list(found.values())


def _names(answer: Any) -> Iterator[str]:
    if not isinstance(answer, dict):
        return
    for key in KEYS:
        value = answer.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and 0 < len(one) <= 1000:
                yield one


def _looked_up(name: str, ticket: int, folder: str) -> Artifact:
    if folder and "\0" not in name:
        try:
            root = Path(folder).resolve(strict=True)
            path = (root / name).resolve(strict=True)
            about = path.stat()
        except (OSError, RuntimeError):
            return Artifact(name, ticket, None)
        if path.is_relative_to(root) and stat.S_ISREG(about.st_mode) and about.st_size <= MOST_BYTES:
            return Artifact(name, ticket, path, about.st_size)
    return Artifact(name, ticket, None)


def download(artifact: Artifact) -> Response:
    assert artifact.path is not None
    descriptor = os.open(artifact.path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        body = file.read(MOST_BYTES)
    disposition = f"attachment; filename*=UTF-8''{quote(artifact.path.name, safe='')}"
    return Response(body, 200, {"Content-Disposition": disposition}, "application/octet-stream")
