"""What every page begins and ends with: the frame around it, its language, theme and session, and its policy."""

from __future__ import annotations

import base64
import binascii
import gzip
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from oraculo import __version__
from oraculo.api.cookies import cookies_of
from oraculo.api.credentials import asks_for_key
from oraculo.api.paths import segment
from oraculo.api.problems import ProblemError
from oraculo.api.session import Sessions, identity_of, remember
from oraculo.core.access import Actor, Scope
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.dashboard import assets, formats, texts
from oraculo.dashboard.texts import details
from oraculo.errors import WireError
from oraculo.wire import strict_json

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types default"
)
LANGUAGE_COOKIE, THEME_COOKIE, FLASH_COOKIE = "oraculo_lang", "oraculo_theme", "oraculo_flash"
THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 3600
FAILED_STATUSES = ("erro", "timeout", "parcial")
STATUSES = ("pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada")

_LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")  # of this server, whatever a browser makes of it
_URL_CHARACTERS = "/?#[]@!$&'()*+,;=:%~-._"

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
    sessions: Sessions = request.app.state.sessions
    return sessions


def language_of(request: Request) -> str:
    return texts.chosen(cookies_of(request.headers).get(LANGUAGE_COOKIE), request.headers.get("accept-language", ""))


def is_fragment(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def render(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """A page or a part of one."""
    language = language_of(request)
    sessions = sessions_of(request)
    keyed = asks_for_key(request.app.state.oraculo.settings)
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
        word=texts.words_of_codes(language),
        detail=lambda text: details.detail_in(language, text),
        lang=language,
        theme=_theme(request),
        here=request.scope["path"] + (f"?{query}" if query else ""),
        path=request.scope["path"],
        csrf=sessions.token(identity) if identity else "",
        keyed=keyed,
        may_audit=_may_audit(request),
        tenant=_actor(request).tenant or DEFAULT_TENANT,
        fragment=is_fragment(request),
        flash=t(f"flash.{flash[0]}", **flash[1]) if flash else None,
        flash_bad=flash is not None and nothing_done(flash[1]),
        script_texts=texts.script_texts(language),
        num=lambda value, digits=None: formats.number(value, language, digits),
        duration=lambda value: formats.duration(value, language),
        now=request.app.state.oraculo.clock.now(),
        **values,
    )
    response = Response(html, status, {"Content-Security-Policy": CONTENT_SECURITY_POLICY}, "text/html; charset=utf-8")
    if fresh is not None:
        remember(response, request, fresh)
    if flash is not None:
        response.delete_cookie(FLASH_COOKIE, path="/")
    return response


def _actor(request: Request) -> Actor:
    actor: Actor = request.scope["state"]["actor"]
    return actor


def _may_audit(request: Request) -> bool:
    return _actor(request).may(Scope.AUDIT_READ)


def data(request: Request, document: Any) -> Response:
    """JSON for a script of ours, compressed when it is long."""
    body = strict_json.dumps(document)
    headers = {"Vary": "Accept-Encoding"}
    if len(body) > 2048 and "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
    return Response(body, 200, headers, "application/json")


def elsewhere(request: Request, where: str, flash: str | None = None, **values: object) -> Response:
    """After an action: go there, and say what was done."""
    where = local_path(where)
    response = Response(status_code=204 if is_fragment(request) else 303)
    response.headers["HX-Redirect" if is_fragment(request) else "Location"] = where
    if flash is not None:
        told = base64.urlsafe_b64encode(strict_json.dumps([flash, values])).decode().rstrip("=")
        response.set_cookie(FLASH_COOKIE, told, max_age=60, path="/", httponly=True, samesite="strict")
    return response


def local_path(where: str) -> str:
    """The path as a browser may be sent there; `/` for what is not of this server."""
    return quote(where, safe=_URL_CHARACTERS) if _LOCAL_PATH.fullmatch(where) else "/"


def _flash(request: Request) -> tuple[str, dict[str, Any]] | None:
    if is_fragment(request):
        return None
    try:
        told = cookies_of(request.headers).get(FLASH_COOKIE, "")
        key, values = strict_json.loads(base64.urlsafe_b64decode(told + "=" * (-len(told) % 4)), max_bytes=2000)
        texts.LANGUAGES["en"][f"flash.{key}"].format(**values)
        if "key" in values:  # would be taken for the text's own
            return None
    except (WireError, binascii.Error, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None
    return key, values


def nothing_done(values: Mapping[str, Any]) -> bool:
    """True if an action that was said to many was done to none, and refused by some."""
    return values.get("n") == 0 and any(values.get(name) for name in ("kept", "refused"))


def _theme(request: Request) -> str:
    theme = cookies_of(request.headers).get(THEME_COOKIE, "auto")
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
