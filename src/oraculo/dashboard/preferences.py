"""Language and theme, and the way in and out where a key is needed."""

from __future__ import annotations

import hmac

from fastapi import APIRouter, Request, Response

from oraculo.api import session
from oraculo.dashboard import forms, texts
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import LANGUAGE, THEME, THEMES, YEAR_S, elsewhere, render, sessions_of

router = APIRouter(include_in_schema=False)


@router.post("/ui/preferences")
async def preferences(request: Request, fields: Form) -> Response:
    response = elsewhere(request, fields.get("back") or "/")
    for name, allowed in ((LANGUAGE, tuple(texts.LANGUAGES)), (THEME, THEMES)):
        value = fields.get(name)
        if value in allowed:
            response.set_cookie(name, value, max_age=YEAR_S, path="/", samesite="strict")
    return response


@router.get("/login")
async def login(request: Request) -> Response:
    if not request.app.state.oraculo.settings.api_key:
        return elsewhere(request, "/")
    return render(request, "login.html", next=request.query_params.get("next", "/"), wrong=False)


@router.post("/login")
async def logged_in(request: Request) -> Response:
    forms.same_site(request)
    fields = await forms.read(request)
    key: str = request.app.state.oraculo.settings.api_key
    if not key or not hmac.compare_digest(fields.get("key").strip().encode(), key.encode()):
        return render(request, "login.html", 403, next=fields.get("next", "/"), wrong=True)
    response = elsewhere(request, fields.get("next") or "/")
    session.remember(response, request, sessions_of(request).issue())
    return response


@router.post("/ui/logout")
async def logout(request: Request, fields: Form) -> Response:
    response = elsewhere(request, "/login")
    session.forget(response)
    return response
