"""The way in through an identity provider: away to it, and back with a code.

What belongs to one attempt is in a cookie of that browser, so any process may take it back. The cookie is there for ten
minutes and for the page of the login only.
"""

from __future__ import annotations

import base64

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from oraculo.api import session
from oraculo.api.cookies import cookies_of
from oraculo.api.problems import ProblemError
from oraculo.dashboard.frame import local_path, render
from oraculo.errors import IdentityUnavailableError
from oraculo.ports.identity import IdentityProvider, LoginAttempt
from oraculo.service import Oraculo

ATTEMPT_COOKIE = "oraculo_login"
ATTEMPT_LIFE_S = 600
CODE_MAX_CHARS = 4096
NEXT_MAX_CHARS = 1000
_SEPARATOR = "."  # in none of the parts


def login_page(request: Request, to: str, wrong: str = "") -> Response:
    """The page where a key is given, or the provider is chosen; `wrong` names the text of what did not work."""
    provider = request.app.state.identity is not None
    users = request.app.state.oraculo.settings.local_users
    return render(request, "login.html", 403 if wrong else 200, next=to, wrong=wrong, provider=provider, users=users)


def concerns(request: Request) -> bool:
    """True if the browser goes to the provider, or comes back from it."""
    return any(name in request.query_params for name in ("provider", "state", "code", "error"))


async def answer(request: Request) -> Response:
    try:
        if "provider" in request.query_params:
            return await _leave(request)
        return await _come_back(request)
    except IdentityUnavailableError as error:
        request.state.error = error
        return login_page(request, "/", "away")


async def _leave(request: Request) -> Response:
    provider: IdentityProvider = request.app.state.identity
    address, attempt = await provider.begin()
    wanted = local_path(request.query_params.get("next", "/"))
    to = base64.urlsafe_b64encode((wanted if len(wanted) <= NEXT_MAX_CHARS else "/").encode()).decode().rstrip("=")
    response = RedirectResponse(address, 303)
    response.set_cookie(
        ATTEMPT_COOKIE,
        _SEPARATOR.join((attempt.state, attempt.nonce, attempt.verifier, to)),
        max_age=ATTEMPT_LIFE_S,
        path="/login",
        httponly=True,
        samesite="lax",  # it has to come along when the provider sends the browser back
        secure=request.url.scheme == "https",
    )
    return response


async def _come_back(request: Request) -> Response:
    provider: IdentityProvider = request.app.state.identity
    oraculo: Oraculo = request.app.state.oraculo
    query = request.query_params
    parts = cookies_of(request.headers).get(ATTEMPT_COOKIE, "").split(_SEPARATOR)
    code = query.get("code", "")
    user = None
    if len(parts) == 4 and all(parts) and 0 < len(code) <= CODE_MAX_CHARS:
        user = await provider.finish(LoginAttempt(*parts[:3]), query.get("state", ""), code, query.get("iss"))
    if user is None:
        response = login_page(request, "/", "refused")
    elif not user.scopes:
        response = login_page(request, "/", "no-role")
    else:
        if not oraculo.is_open:
            raise ProblemError("not_ready", "see /ready")
        try:
            to = local_path(base64.urlsafe_b64decode(parts[3] + "==").decode())
        except ValueError:
            to = "/"
        # A page of ours goes on from here: a cookie for this site alone is not sent along on the way from another.
        response = render(request, "login_done.html", next=to)
        session.remember(response, request, await oraculo.keys.begin_user_session(user))
    response.delete_cookie(ATTEMPT_COOKIE, path="/login", httponly=True, samesite="lax")
    return response
