"""Language and theme, and the way in and out where a key is needed."""

from __future__ import annotations

import hmac

from fastapi import APIRouter, Request, Response

from oraculo.api import session
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.auth import address_of
from oraculo.api.credentials import API_KEY_MIN_CHARS, asks_for_key
from oraculo.api.guessing import GuessLimiter
from oraculo.core.access import Scope
from oraculo.dashboard import forms, provider_login, texts
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, YEAR_S, elsewhere, sessions_of
from oraculo.dashboard.provider_login import login_page
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.post("/ui/preferences")
@needs(Scope.DOCS_READ)
async def preferences(request: Request, fields: Form) -> Response:
    response = elsewhere(request, fields.get("back") or "/")
    for name, allowed in ((LANGUAGE_COOKIE, tuple(texts.LANGUAGES)), (THEME_COOKIE, THEMES)):
        value = fields.get(name)
        if value in allowed:
            response.set_cookie(name, value, max_age=YEAR_S, path="/", samesite="strict")
    return response


@router.get("/login")
async def login(request: Request) -> Response:
    if not asks_for_key(request.app.state.oraculo.settings):
        return elsewhere(request, "/")
    if request.app.state.identity is not None and provider_login.concerns(request):
        return await provider_login.answer(request)
    return login_page(request, request.query_params.get("next", "/"))


@router.post("/login")
async def logged_in(request: Request) -> Response:
    forms.same_site(request)
    fields = await forms.read(request, forms.LOGIN_MAX_BYTES)
    user = fields.get("user").strip()
    if user:
        cookie = await _session_of_user(request, user, fields.get("password"))
    else:
        cookie = await _session_of(request, fields.get("key").strip())
    if cookie is None and user:
        return login_page(request, fields.get("next", "/"), "wrong-user")
    if cookie is None:
        return login_page(request, fields.get("next", "/"), "wrong")
    response = elsewhere(request, fields.get("next") or "/")
    session.remember(response, request, cookie)
    return response


async def _session_of(request: Request, given: str) -> str | None:
    """The cookie of a new session for the key that was given; None when it is not one that is good."""
    oraculo: Oraculo = request.app.state.oraculo
    guesses: GuessLimiter = request.app.state.guesses
    address = address_of(request.scope)
    refusal = guesses.refusal(address)
    key = oraculo.settings.api_key
    right = bool(key) and hmac.compare_digest(given.encode(), key.encode())
    if right and (refusal is None or len(key) >= API_KEY_MIN_CHARS):
        return sessions_of(request).issue()
    cookie = await oraculo.keys.begin_session(given) if oraculo.is_open else None
    if cookie is None:
        guesses.failed(address)
        if refusal is not None:
            raise refusal
    return cookie


async def _session_of_user(request: Request, name: str, password: str) -> str | None:
    """The cookie of a new session for a local user; None when the password is not right. A password can be guessed, so
    an address that gave too many wrong credentials is not heard at all."""
    oraculo: Oraculo = request.app.state.oraculo
    guesses: GuessLimiter = request.app.state.guesses
    address = address_of(request.scope)
    if (refusal := guesses.refusal(address)) is not None:
        raise refusal
    users = oraculo.users if oraculo.is_open else None
    actor = None if users is None else await users.check(name, password)
    if actor is None:
        guesses.failed(address)
        return None
    return await oraculo.keys.begin_local_session(name)


@router.post("/ui/logout")
@needs(Scope.DOCS_READ)
async def logout(request: Request, fields: Form) -> Response:
    oraculo: Oraculo = request.app.state.oraculo
    sessions = sessions_of(request)
    cookie = session.cookie_of(sessions, request.headers) or ""
    sessions.end(cookie)
    await oraculo.keys.end_session(cookie)
    response = elsewhere(request, "/login")
    session.forget(response)
    return response
