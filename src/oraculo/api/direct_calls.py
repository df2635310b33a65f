"""Routes whose arguments are simple, called without what FastAPI puts between a request and its endpoint.

For each request FastAPI makes two exit stacks, walks a tree of dependencies and reads every argument by a model of its
own: about a tenth of a millisecond, as much as everything else that HTTP costs here. The endpoints of this API take
the request, the orchestrator, texts of the path and models of the query, and read bodies themselves, so `direct_call`
fills in exactly that. A route stays a route: in OpenAPI, in the tests that look at all of them, with the scope
that it declares. A query that is not acceptable is left to FastAPI, which says what is wrong with it, and what an
endpoint raises goes to the handlers of the application, as ever.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from fastapi import params
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from oraculo.api.access import GuardedRoute
from oraculo.api.languages import header_language, reader_language
from oraculo.api.serving import running

DirectCall = Callable[[Scope, Receive, Send], Awaitable[None]]
Argument = Callable[[Request], Any]


class _LeftToFastApiError(Exception):
    """An argument is not acceptable."""


async def _language(request: Request) -> Any:
    return reader_language(request)


_DEPENDENCIES: Mapping[Callable[..., Any], Callable[[Request], Awaitable[Any]]] = {
    running: running,
    header_language: _language,
}


def direct_call(route: GuardedRoute) -> DirectCall | None:
    """The application of a route, None when it takes something that only FastAPI can give it."""
    endpoint: Any = route.endpoint
    if not inspect.iscoroutinefunction(endpoint):
        return None
    try:
        hints = get_type_hints(endpoint, include_extras=True)
    except NameError:
        return None
    answers = hints.pop("return", None)
    if not (isinstance(answers, type) and issubclass(answers, Response)):
        return None
    awaited: dict[str, Callable[[Request], Awaitable[Any]]] = {}
    read: dict[str, Argument] = {}
    for name in inspect.signature(endpoint).parameters:
        hint = hints.get(name)
        dependency = _dependency_in(hint)
        reader = _reader_of(name, hint, route)
        if dependency is not None:
            awaited[name] = dependency
        elif reader is not None:
            read[name] = reader
        else:
            return None

    left_to_fastapi = AsyncExitStackMiddleware(route.handle)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        route.refuse(scope)
        request = Request(scope, receive, send)
        try:
            arguments = {name: argument(request) for name, argument in read.items()}
        except _LeftToFastApiError:
            await left_to_fastapi(scope, receive, send)
            return
        for name, dependency in awaited.items():
            arguments[name] = await dependency(request)
        response = await endpoint(**arguments)
        await response(scope, receive, send)

    return app


def _dependency_in(hint: Any) -> Callable[[Request], Awaitable[Any]] | None:
    """What gives the argument, when that is one of the dependencies that are known here."""
    if get_origin(hint) is not Annotated:
        return None
    marks = get_args(hint)[1:]
    if len(marks) != 1 or not isinstance(marks[0], params.Depends) or marks[0].dependency is None:
        return None
    return _DEPENDENCIES.get(marks[0].dependency)


def _reader_of(name: str, hint: Any, route: GuardedRoute) -> Argument | None:
    if hint is Request:
        return lambda request: request
    if get_origin(hint) is not Annotated:
        return _path_text(name) if hint is str and name in route.param_convertors else None
    kind, *marks = get_args(hint)
    if len(marks) != 1:
        return None
    if kind is str and isinstance(marks[0], params.Path) and not marks[0].metadata and not marks[0].alias:
        return _path_text(name)
    if isinstance(marks[0], params.Query) and isinstance(kind, type) and issubclass(kind, BaseModel):
        return _query(kind)
    return None


def _path_text(name: str) -> Argument:
    def text(request: Request) -> Any:
        return request.scope["path_params"][name]

    return text


def _query(model: type[BaseModel]) -> Argument:
    """The query as a model; whatever is unusual about it is for FastAPI."""

    def parameters(request: Request) -> BaseModel:
        pairs = request.query_params.multi_items() if request.scope["query_string"] else []
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _LeftToFastApiError
        try:
            return model.model_validate(found)
        except ValidationError:
            raise _LeftToFastApiError from None

    return parameters
