"""Request bodies: read with a limit while they arrive, parsed strictly, never trusted to be what their headers say."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from oraculo.api.access import actor_of
from oraculo.api.problems import RETRY_AFTER_S, ProblemError
from oraculo.service import Oraculo
from oraculo.wire import requests, strict_json

MAX_BYTES = strict_json.MAX_BYTES
BODIES_MAX_BYTES = 256 * 1024 * 1024  # of all requests together, while they arrive
M = TypeVar("M", bound=BaseModel)


class BodyBudget:
    """How many bytes of unfinished bodies there are, over all connections."""

    def __init__(self, limit: int = BODIES_MAX_BYTES) -> None:
        self.limit = limit
        self.used = 0

    def take(self, size: int) -> None:
        """Raise the problem `busy` when there is no room for so many more."""
        if self.used + size > self.limit:
            raise ProblemError(
                "busy",
                f"bodies of {self.limit} bytes are arriving already",
                headers={"Retry-After": str(RETRY_AFTER_S), "Connection": "close"},
            )
        self.used += size


async def read(request: Request, limit: int = MAX_BYTES) -> bytes:
    """All of the body, or the problem as soon as it is one: 408, 413 or 415."""
    headers = request.headers
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise ProblemError("unsupported_content_encoding", f"Content-Encoding {encoding[:40]!r}; send it as it is")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 15 or int(declared) > limit):
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    budget: BodyBudget = request.app.state.body_budget
    try:
        async with asyncio.timeout(request.app.state.body_seconds):
            async for chunk in request.stream():
                if size + len(chunk) > limit:
                    raise _too_large(limit)
                budget.take(len(chunk))
                size += len(chunk)
                chunks.append(chunk)
    except TimeoutError:
        problem = f"{size} bytes came within {request.app.state.body_seconds:g} s"
        raise ProblemError("body_too_slow", problem, headers={"Connection": "close"}) from None
    finally:
        budget.used -= size
    oraculo: Oraculo = request.app.state.oraculo
    if oraculo.is_open:
        oraculo.requests.quotas.spend_bytes(actor_of(request), size)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> ProblemError:
    return ProblemError("too_large", f"at most {limit} bytes are allowed", headers={"Connection": "close"})


async def typed(request: Request, limit: int = MAX_BYTES) -> bytes:
    """All of the body, which says that it is JSON."""
    raw = await read(request, limit)
    _check_type(request)
    return raw


async def of_types(request: Request, allowed: Sequence[str], limit: int) -> tuple[str, bytes]:
    """(which of the allowed types the body says it has, all of it)."""
    raw = await read(request, limit)
    return _check_type(request, allowed), raw


async def value(request: Request, limit: int = MAX_BYTES) -> tuple[Any, bytes]:
    """(the JSON value, its bytes)."""
    raw = await typed(request, limit)
    return strict_json.loads(raw, max_bytes=limit), raw


async def optional(request: Request, model: type[M]) -> M:
    """The body as `model`; no body at all stands for `{}`."""
    raw = await read(request)
    if not raw:
        return model()
    _check_type(request)
    return _validated(raw, model)


async def required(request: Request, model: type[M]) -> M:
    """The body as `model`; there must be one."""
    return _validated(await typed(request), model)


def _validated(raw: bytes, model: type[M]) -> M:
    try:
        return model.model_validate(strict_json.loads(raw))
    except ValidationError as error:
        raise requests.invalid(error, model=model) from None


def _check_type(request: Request, allowed: Sequence[str] = ("application/json",)) -> str:
    given = request.headers.get("content-type", "")
    kind, _, rest = given.partition(";")
    kind = kind.strip().lower()
    charset = rest.strip().lower().removeprefix("charset=").strip('"') if "charset=" in rest.lower() else "utf-8"
    if kind not in allowed or charset not in ("utf-8", "utf8", "us-ascii"):
        sent = f"Content-Type {given[:80]!r}" if given else "no Content-Type"
        raise ProblemError("unsupported_media_type", f"{sent}; send Content-Type: {' or '.join(allowed)}")
    return kind


def documented(model: type[BaseModel] | str, *, required: bool = True, examples: Any = None) -> dict[str, Any]:
    """`openapi_extra` for a route whose body is read here."""
    name = model if isinstance(model, str) else model.__name__
    media: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{name}"}}
    if examples:
        media["examples"] = {title: {"value": example} for title, example in examples.items()}
    return {"requestBody": {"required": required, "content": {"application/json": media}}}
