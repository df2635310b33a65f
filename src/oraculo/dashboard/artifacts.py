"""Files that results name. A result is a message, so its word is not enough: only a regular file inside the folder of
`ORACULO_ARTEFATOS` is handed out, by its number in the result and never by a path, and always as a download."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import orjson
from fastapi import Response
from fastapi.responses import StreamingResponse

from oraculo.core.state import Orchestration
from oraculo.core.tenants import DEFAULT_TENANT, tenant_of

ARTIFACT_KEYS = ("arquivo", "arquivos", "artefato", "artefatos")
ARTIFACTS_SHOWN = 50
MOST_BYTES = 256 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
TENANT_FOLDER = "espaco_"  # with the name of a tenant: the folder inside that holds its files


@dataclass(frozen=True, slots=True)
class Artifact:
    named: str  # as the result names it
    ticket: int
    path: Path | None  # None: not to be had here
    size: int = 0


def artifacts_of(state: Orchestration, folder: str) -> list[Artifact]:
    found: dict[str, Artifact] = {}
    tenant = tenant_of(state.correlation_id)
    if folder and tenant != DEFAULT_TENANT:
        folder = os.path.join(folder, TENANT_FOLDER + tenant)
    for position, ticket in enumerate(state.tickets):
        if len(ticket.dados) > 2 and any(key.encode() in ticket.dados for key in ARTIFACT_KEYS):
            for name in _names(orjson.loads(ticket.dados)):
                if len(found) < ARTIFACTS_SHOWN:
                    found.setdefault(name, _looked_up(name, position, folder))
    return list(found.values())


def _names(answer: Any) -> Iterator[str]:
    if not isinstance(answer, dict):
        return
    for key in ARTIFACT_KEYS:
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
        inside = path.is_relative_to(root) and not path.relative_to(root).parts[0].startswith(TENANT_FOLDER)
        if inside and stat.S_ISREG(about.st_mode) and about.st_size <= MOST_BYTES:
            return Artifact(name, ticket, path, about.st_size)
    return Artifact(name, ticket, None)


def download(artifact: Artifact) -> Response:
    assert artifact.path is not None
    file = os.fdopen(os.open(artifact.path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
    size = os.fstat(file.fileno()).st_size
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(artifact.path.name, safe='')}",
        "Content-Length": str(size),
    }
    return StreamingResponse(_chunks(file, size), 200, headers, "application/octet-stream")


async def _chunks(file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """Read as it is sent, off the event loop. Exactly `size` bytes, also of a file that grows meanwhile."""
    with file:
        while size > 0 and (chunk := await asyncio.to_thread(file.read, min(CHUNK_BYTES, size))):
            size -= len(chunk)
            yield chunk
