"""Ids in paths. A correlation_id may be any text, `a/b` and `..` and `health` included; it arrives percent-encoded.

Servers decode the path before routing, and then `a%2Fb` cannot be told from `a/b`. So routing works on the encoded
path: each segment is decoded strictly and encoded again in one canonical way, and the convertor `segment` decodes what
it caught.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, unquote, unquote_to_bytes

from fastapi import Path
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

from oraculo.api import problems

API = "/api/v1"
ORCHESTRATIONS = f"{API}/orchestrations"


class SegmentConvertor(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return segment(value)


register_url_convertor("segment", SegmentConvertor())

CorrelationId = Annotated[
    str,
    Path(
        description="any text of 1 to 128 characters, percent-encoded",
        json_schema_extra={"minLength": 1, "maxLength": 128},
        examples=["abc123"],
    ),
]


def segment(text: str) -> str:
    """One path segment, whatever is in it; the two that clients would resolve are encoded all the way."""
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def orchestration(correlation_id: str) -> str:
    return f"{ORCHESTRATIONS}/{segment(correlation_id)}"


class CanonicalPath:
    """ASGI middleware: `scope["path"]` becomes the encoded path. What is not UTF-8 is refused."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
            if b"%" in raw or not raw.isascii():
                try:
                    path = "/".join(
                        quote(unquote_to_bytes(part).decode("utf-8"), safe="")
                        for part in raw.split(b"?")[0].split(b"/")
                    )
                except UnicodeDecodeError:
                    problem = problems.ProblemError("invalid_path", "a segment is not UTF-8 when it is decoded")
                    await problems.response(problem, quote(raw))(scope, receive, send)
                    return
                scope = {**scope, "path": path, "raw_path": path.encode()}
        await self.app(scope, receive, send)
