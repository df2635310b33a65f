"""Answers in English words, for callers that ask with `?words=en` or the header `Oraculo-Words: en`.

Routes know Portuguese words only. What they answer is translated here on its way out, problem documents and events of
streams included; callers that do not ask pay for nothing. The words themselves are in `oraculo.plans.words`.
"""

from __future__ import annotations

from urllib.parse import unquote_plus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oraculo.api import paths, problems
from oraculo.plans.words import in_english
from oraculo.wire import strict_json

HEADER = "Oraculo-Words"
PARAMETER = "words"
ASKED = "oraculo.words_parameter"  # in the scope: what the address asked for
_ASKING = f"{PARAMETER}=".encode()
_HEADER_NAME = HEADER.lower().encode()
_ALLOWED = ("pt", "en")
_JSON = (b"application/json", problems.MEDIA_TYPE.encode())
_UNTRANSLATED = f"{paths.API}/order-data/"  # data of workers
_PARTS = f"{paths.API}/"

_DESCRIPTION = "the words of the answer: `pt` (default) or `en`. The schemas here are those of `pt`"
_SCHEMA = {"type": "string", "enum": list(_ALLOWED)}
PARAMETERS = [  # of every route of the API, in its OpenAPI document
    {"name": PARAMETER, "in": "query", "required": False, "description": _DESCRIPTION, "schema": _SCHEMA},
    {"name": HEADER, "in": "header", "required": False, "description": _DESCRIPTION, "schema": _SCHEMA},
]


class AnswerWords:
    """Translates answers of the API; refuses a vocabulary that there is not."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _may_ask(scope):
            await self.app(scope, receive, send)
            return
        try:
            scope, words = _asked(scope)
        except problems.ProblemError as problem:
            await problems.response(problem, scope["path"])(scope, receive, send)
            return
        await self.app(scope, receive, _Translating(send) if words == "en" else send)


def translates(path: str) -> bool:
    """Whether the answers of a path have words that are ours."""
    return path.startswith(_PARTS) and not path.startswith(_UNTRANSLATED)


def _may_ask(scope: Scope) -> bool:
    return translates(scope["path"]) and _asks(scope)


def _asks(scope: Scope) -> bool:
    return _ASKING in scope.get("query_string", b"") or any(name == _HEADER_NAME for name, _ in scope["headers"])


def _asked(scope: Scope) -> tuple[Scope, str]:
    """The scope without the parameter, which routes do not know, and the vocabulary. The address wins over the
    header."""
    query = scope.get("query_string", b"").split(b"&")
    in_address = [unquote_plus(part[len(_ASKING) :].decode("latin-1")) for part in query if part.startswith(_ASKING)]
    in_header = [value.decode("latin-1") for name, value in scope["headers"] if name == _HEADER_NAME]
    words = "pt"
    for where, given in ((HEADER, in_header), (f"query.{PARAMETER}", in_address)):
        if len(given) > 1:
            raise problems.invalid(where, f"it came {len(given)} times; give it once")
        if given:
            words = given[0].strip().lower()
            if words not in _ALLOWED:
                raise problems.invalid(where, f"unknown words {given[0][:40]!r}; allowed: {', '.join(_ALLOWED)}")
    if in_address:
        left = b"&".join(part for part in query if not part.startswith(_ASKING))
        scope = {**scope, "query_string": left, ASKED: words}
    return scope, words


class _Translating:
    """Takes the messages of one answer: JSON is held back until it is whole, events of a stream go on one by one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._parts: list[bytes] = []
        self._streams = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = dict(message["headers"]).get(b"content-type", b"")
            self._streams = kind.startswith(b"text/event-stream")
            if kind.partition(b";")[0] in _JSON:
                self._start = message
                return
        elif message["type"] == "http.response.body":
            if self._start is not None:
                await self._body(self._start, message)
                return
            if self._streams:
                message = {**message, "body": _event_in_english(message.get("body", b""))}
        await self._send(message)

    async def _body(self, start: Message, message: Message) -> None:
        self._parts.append(message.get("body", b""))
        if message.get("more_body"):
            return
        whole = b"".join(self._parts)
        body = _json_in_english(whole) if whole else whole
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        self._start = None
        await self._send({**start, "headers": [*headers, (b"content-length", b"%d" % len(body))]})
        await self._send({**message, "body": body})


def _json_in_english(body: bytes) -> bytes:
    return strict_json.dumps(in_english(strict_json.loads_trusted(body)))


def _event_in_english(frame: bytes) -> bytes:
    """One event of a stream; its data is one line."""
    before, data, after = frame.partition(b"data: ")
    text, end, rest = after.partition(b"\n")
    return before + data + _json_in_english(text) + end + rest if data else frame
