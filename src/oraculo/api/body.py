"""Request bodies: read with a limit while they arrive, parsed strictly, never trusted to be what their headers say."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from oraculo.api.problems import ProblemError
from oraculo.wire import requests, strict_json

MAX_BYTES = strict_json.MAX_BYTES
M = TypeVar("M", bound=BaseModel)


async def read(request: Request, limit: int = MAX_BYTES) -> bytes:
    """All of the body, or the problem as soon as it is one: 408, 413 or 415."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise ProblemError("unsupported_content_encoding", f"Content-Encoding {encoding[:40]!r}; send it as it is")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and (len(declared) > 15 or int(declared) > limit):
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(request.app.state.body_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
    except TimeoutError:
        problem = f"{size} bytes came within {request.app.state.body_seconds:g} s"
        raise ProblemError("body_too_slow", problem, headers={"Connection": "close"}) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> ProblemError:
    return ProblemError("too_large", f"at most {limit} bytes are allowed", headers={"Connection": "close"})


async def value(request: Request, limit: int = MAX_BYTES) -> tuple[Any, bytes]:
    """(the JSON value, its bytes)."""
    raw = await read(request, limit)
    _check_type(request)
    return strict_json.loads(raw, max_bytes=limit), raw


async def optional(request: Request, model: type[M]) -> M:
    """The body as `model`; no body at all stands for `{}`."""
    raw = await read(request)
    if not raw:
        return model()
    _check_type(request)
    try:
        return model.model_validate(strict_json.loads(raw))
    except ValidationError as error:
        raise requests.invalid(error) from None


def _check_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
    kind, _, rest = given.partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"') if "charset=" in rest.lower() else "utf-8"
    if kind.strip().lower() != "application/json" or charset not in ("utf-8", "utf8", "us-ascii"):
        sent = f"Content-Type {given[:80]!r}" if given else "no Content-Type"
        raise ProblemError("unsupported_media_type", f"{sent}; send Content-Type: application/json")


def documented(model: type[BaseModel] | str, *, required: bool = True, examples: Any = None) -> dict[str, Any]:
    """`openapi_extra` for a route whose body is read here."""
    name = model if isinstance(model, str) else model.__name__
    media: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{name}"}}
    if examples:
        media["examples"] = {title: {"value": example} for title, example in examples.items()}
    return {"requestBody": {"required": required, "content": {"application/json": media}}}
