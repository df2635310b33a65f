"""What every call begins and ends with: who asks, what that needs, and refusals as statuses of gRPC."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import unquote

import grpc
import structlog
from fastapi import FastAPI
from pydantic import BaseModel, ValidationError

from oraculo.api.credentials import CredentialJudge
from oraculo.api.problems import ProblemError, problem_of
from oraculo.apps.grpc_api.messages import RpcMethod, methods
from oraculo.core.access import STRANGER, Actor, Scope
from oraculo.errors import OraculoError
from oraculo.service import Oraculo
from oraculo.wire import requests

log = structlog.get_logger("oraculo.grpc")

_STATUSES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    410: grpc.StatusCode.FAILED_PRECONDITION,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
_AGAIN_LATER = frozenset({"flow_c_off", "tokens_off"})  # are 409 over HTTP: what was asked for is not there at all


class NotServedError(Exception):
    """What the services of the original have and this server does not."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, the orchestrator as its tenant sees it, and what came as metadata beside the message."""

    oraculo: Oraculo
    actor: Actor
    metadata: dict[str, str]


Answer = Callable[[Caller, Any], Awaitable[Any] | AsyncIterator[Any]]


@dataclass(frozen=True, slots=True)
class Deed:
    """What a method does, and the scope that it needs; None: it asks for no credential."""

    scope: Scope | None
    answer: Answer


class Calls:
    """Makes handlers of gRPC from deeds."""

    def __init__(self, app: FastAPI) -> None:
        self._oraculo: Oraculo = app.state.oraculo
        self._judge: CredentialJudge = app.state.judge

    def handler(self, service: str, deeds: dict[str, Deed]) -> Any:
        """The handler of a service. KeyError: a method has no deed."""
        found = {method.name: self._method(method, deeds[method.name]) for method in methods(service)}
        return grpc.method_handlers_generic_handler(service, found)

    def _method(self, method: RpcMethod, deed: Deed) -> Any:
        async def one(request: Any, context: Any) -> Any:
            try:
                answered = deed.answer(await self._caller(deed, context), request)
                assert inspect.isawaitable(answered)
                return await answered
            except Exception as error:
                await refuse(context, method.name, error)

        async def many(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                answered = deed.answer(await self._caller(deed, context), request)
                assert isinstance(answered, AsyncIterator)
                async for each in answered:
                    yield each
            except Exception as error:
                await refuse(context, method.name, error)

        make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
        return make(many if method.streams else one, method.request.FromString, method.answer.SerializeToString)

    async def _caller(self, deed: Deed, context: Any) -> Caller:
        metadata = {name: value for name, value in context.invocation_metadata() or () if isinstance(value, str)}
        if deed.scope is None:
            return Caller(self._oraculo, STRANGER, metadata)
        if not self._oraculo.is_ready():
            raise ProblemError("not_ready", "see /ready")
        found = await self._judge.caller(_credentials(metadata), address_of(context.peer()))
        if isinstance(found, ProblemError):
            raise found
        if deed.scope not in found.scopes:
            raise ProblemError("forbidden", f"the scope {deed.scope} is needed", scope=deed.scope)
        return Caller(self._oraculo.within(found.tenant), found, metadata)


def _credentials(metadata: dict[str, str]) -> list[bytes]:
    """Every key that a call carries, in the metadata that HTTP has as headers."""
    given = [metadata["x-api-key"]] if "x-api-key" in metadata else []
    bearer = metadata.get("authorization", "")
    if bearer[:7].lower() == "bearer ":
        given.append(bearer[7:].strip())
    return [one.encode("latin-1", "replace") for one in given]


def address_of(peer: str) -> str:
    """The address in the name that gRPC gives a peer: `ipv4:127.0.0.1:50000`, `ipv6:%5B::1%5D:50000`."""
    kind, _, rest = unquote(peer).partition(":")
    return rest.rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else peer


def asked(model: type[BaseModel], **said: Any) -> Any:
    """What a message says as the body that the same command has over HTTP; ProblemError names every fault."""
    try:
        return model.model_validate(said)
    except ValidationError as error:
        raise problem_of(requests.invalid(error, model=model)) from None


async def refuse(context: Any, method: str, error: Exception) -> NoReturn:
    """End a call as the problem that it would be over HTTP."""
    if isinstance(error, NotServedError):
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, str(error))
    if not isinstance(error, ProblemError | OraculoError):
        log.exception("call failed", method=method)
    problem = problem_of(error)
    status = _STATUSES.get(problem.status, grpc.StatusCode.INTERNAL)
    if problem.code in _AGAIN_LATER:
        status = grpc.StatusCode.UNIMPLEMENTED
    context.set_trailing_metadata((("oraculo-code", problem.code),))
    await context.abort(status, problem.detail)
    raise AssertionError("abort raises")
