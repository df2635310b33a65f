"""What every page begins and ends with: the frame around it, its language, theme and session, and its policy."""

from __future__ import annotations

import base64
import binascii
import gzip
from datetime import datetime
from typing import Any

from fastapi import Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from oraculo import __version__
from oraculo.api.paths import segment
from oraculo.api.problems import ProblemError
from oraculo.api.session import Sessions, identity_of, remember
from oraculo.bootstrap import Oraculo
from oraculo.dashboard import assets, formats, texts
from oraculo.errors import WireError
from oraculo.wire import strict_json

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types default"
)
LANGUAGE, THEME, FLASH = "oraculo_lang", "oraculo_theme", "oraculo_flash"
THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 3600
FAILED = ("erro", "timeout", "parcial")
STATUSES = ("pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada")

_environment = Environment(
    loader=PackageLoader("oraculo.dashboard", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_environment.globals |= {
    "asset": assets.address,
    "version": __version__,
    "statuses": STATUSES,
    "themes": THEMES,
    "language_names": texts.NAMES,
    "iso": formats.iso,
    "absolute": formats.absolute,
    "size": formats.size,
    "tree": formats.tree,
    "segment": segment,
}
_environment.globals["m"] = _environment.get_template("macros.html").module


def sessions_of(request: Request) -> Sessions:
    oraculo: Oraculo = request.app.state.oraculo
    return Sessions(oraculo.settings.api_key)


def language_of(request: Request) -> str:
    return texts.chosen(request.cookies.get(LANGUAGE), request.headers.get("accept-language", ""))


def is_fragment(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def render(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """A page or a part of one."""
    language = language_of(request)
    sessions = sessions_of(request)
    keyed = bool(request.app.state.oraculo.settings.api_key)
    identity = identity_of(sessions, request.headers)
    fresh = None
    if identity is None and not keyed:
        fresh = sessions.issue()
        identity = sessions.read(fresh)
    query = request.scope.get("query_string", b"").decode("latin-1")
    flash = _flash(request)
    t = texts.translator(language)
    html = _environment.get_template(template).render(
        t=t,
        lang=language,
        theme=_theme(request),
        here=request.scope["path"] + (f"?{query}" if query else ""),
        path=request.scope["path"],
        csrf=sessions.token(identity) if identity else "",
        keyed=keyed,
        fragment=is_fragment(request),
        flash=t(f"flash.{flash[0]}", **flash[1]) if flash else None,
        script_texts=texts.script_texts(language),
        num=lambda value: formats.number(value, language),
        duration=lambda value: formats.duration(value, language),
        now=request.app.state.oraculo.clock.now(),
        **values,
    )
    response = Response(html, status, {"Content-Security-Policy": POLICY}, "text/html; charset=utf-8")
    if fresh is not None:
        remember(response, request, fresh)
    if flash is not None:
        response.delete_cookie(FLASH, path="/")
    return response


def data(request: Request, document: Any) -> Response:
    """JSON for a script of ours, compressed when it is long."""
    body = strict_json.dumps(document)
    headers = {"Vary": "Accept-Encoding"}
    if len(body) > 2048 and "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
    return Response(body, 200, headers, "application/json")


def elsewhere(request: Request, where: str, flash: str | None = None, **values: object) -> Response:
    """After an action: go there, and say what was done."""
    if not where.startswith("/") or where.startswith(("//", "/\\")):
        where = "/"
    response = Response(status_code=204 if is_fragment(request) else 303)
    response.headers["HX-Redirect" if is_fragment(request) else "Location"] = where
    if flash is not None:
        told = base64.urlsafe_b64encode(strict_json.dumps([flash, values])).decode()
        response.set_cookie(FLASH, told, max_age=60, path="/", httponly=True, samesite="strict")
    return response


def _flash(request: Request) -> tuple[str, dict[str, Any]] | None:
    if is_fragment(request):
        return None
    try:
        key, values = strict_json.loads(base64.urlsafe_b64decode(request.cookies.get(FLASH, "")), max_bytes=2000)
        texts.LANGUAGES["en"][f"flash.{key}"].format(**values)
    except (WireError, binascii.Error, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None
    return key, values


def _theme(request: Request) -> str:
    theme = request.cookies.get(THEME, "auto")
    return theme if theme in THEMES else "auto"


def wants_page(request: Request) -> bool:
    """A problem is for a person, not for a program."""
    return "text/html" in request.headers.get("accept", "") and not request.scope["path"].startswith("/api/")


def problem_page(request: Request, problem: ProblemError) -> Response:
    response = render(request, "problem.html", problem.status, problem=problem)
    response.headers.update(problem.headers)
    return response


def milliseconds(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)
