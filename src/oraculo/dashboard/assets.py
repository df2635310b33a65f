"""Static files: read once, named by a digest of them all, so that browsers may keep them for ever."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute
from oraculo.errors import UnknownIdError

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
FOR_EVER = "public, max-age=31536000, immutable"


@cache
def contents() -> dict[str, tuple[bytes, bytes]]:
    """Path → (bytes, the same compressed)."""
    found: dict[str, tuple[bytes, bytes]] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in sorted(folder.iterdir(), key=lambda one: one.name):
            if entry.is_dir():
                walk(entry, f"{prefix}{entry.name}/")
            else:
                body = entry.read_bytes()
                found[f"{prefix}{entry.name}"] = (body, gzip.compress(body, 9, mtime=0))

    walk(files("oraculo.dashboard") / "static", "")
    return found


@cache
def digest() -> str:
    whole = sha256()
    for name, (body, _) in contents().items():
        whole.update(f"{name}\0{len(body)}\0".encode() + body)
    return whole.hexdigest()[:16]


def address(name: str) -> str:
    assert name in contents(), name
    return f"/static/{digest()}/{name}"


@router.get("/static/{version}/{name:path}")
async def asset(request: Request, version: str, name: str) -> Response:
    """Answer an old version with the current file, which caches must not keep."""
    if name not in contents():
        raise UnknownIdError("asset", name)
    body, compressed = contents()[name]
    headers = {"Cache-Control": FOR_EVER if version == digest() else "no-store", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = compressed, "gzip"
    return Response(body, 200, headers, MEDIA_TYPES["." + name.rpartition(".")[2]])
