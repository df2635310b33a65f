"""Secrets are not shown: by the name of a field, by the shape of a text, and by value once they are known.

Everything that leaves the process for people to read (logs, spans, errors) goes through here. It prefers hiding a
harmless word to showing a secret. Its time is linear in the text, and of a long text only the beginning is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
KNOWN_MIN_CHARS = 6  # a known secret that is shorter would hide ordinary text
TEXT_MAX_CHARS = 65_536  # of a text that is redacted; the rest is cut off
NAME_MAX_CHARS = 64  # of the end of a field's name; what is before it tells nothing
READ_PER_SHOWN = 4  # characters that are looked at for each one that is shown

_NAMES = (
    r"(?:api[_-]?key|access[_-]?key|private[_-]?key|password|passwd|passphrase|pwd|senha|secret|token|authorization"
    r"|cookie|credential)s?"
)
_SECRET_NAME = re.compile(rf"(?i)(?:^|[._-])(?:\w*{_NAMES})$")
_SECRET_OPTION = re.compile(r"(?i)pass(?:word|wd|phrase)?$|pwd$|senha$|secret$|token$|api_?key$|credentials?$")
_URL_IN_TEXT = re.compile(r"(://[^/?#@,:\s]*:)[^/?#\s]*@")
_SCHEME = re.compile(r"(?i)\b(bearer|basic)(\s+|%20)[\w.~+/=%-]{4,}")
_NAMED = re.compile(rf"(?i)({_NAMES}[\"']?\s*[:=]\s*[\"']?)(?!\*)[^\s\"',;&}}\])]+")
_FORMS = re.compile(
    r"\bwhsec_[\w+/=-]+"
    r"|(?<![\w-])eyJ[\w-]{5,4096}\.[\w-]{1,8192}(?:\.[\w-]{0,4096})?"
    r"|\b(?:ghp|gho|ghs|github_pat)_\w{16,256}"
    r"|\borcs?_[\w-]{16,256}"
    r"|\bAKIA[A-Z0-9]{16}\b"
    r"|-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,32}PRIVATE KEY-----)?"
)
_HINTS = (
    *("://", "bearer", "basic", "key", "passw", "passp", "pwd", "senha", "secret", "token", "authoriz", "cookie"),
    *("cred", "whsec", "eyj", "ghp_", "gho_", "ghs_", "github_pat", "orc_", "orcs_", "akia"),
)

_known: dict[str, None] = {}


def know(secrets: Iterable[str]) -> None:
    """Hide these values from now on, wherever they turn up."""
    for secret in secrets:
        for form in (secret, unquote(secret)):
            if len(form) >= KNOWN_MIN_CHARS:
                _known[form] = None


# -- URLs of settings ------------------------------------------------------------------------------------------------

_EACH_URL = re.compile(r",(?=[A-Za-z][\w+.-]*://)")
_WEB = ("http", "https", "ws", "wss")
_NAMED_USERS = ("postgresql", "postgres", "mongodb", "mongodb+srv", "amqp", "amqps", "pyamqp", "kafka")
"""Schemes where a user without a password is a name; elsewhere, as with NATS, it may be a token."""


def urls(text: str) -> str:
    """A URL, or several with commas between, without passwords, tokens that stand for a user, and secret options."""
    return ",".join(_shown(url) for url in _EACH_URL.split(text))


def passwords_of(text: str) -> list[str]:
    """The secrets in a URL, or in several with commas between: passwords, tokens that stand for a user, options."""
    return [secret for url in _EACH_URL.split(text) for secret in _secrets(url) if secret]


def _shown(url: str) -> str:
    scheme, mark, user, password, rest = _split(url)
    if not mark:
        return url
    address, question, query = rest.partition("?")
    if user is not None:
        shown = user if scheme.lower() in _NAMED_USERS else HIDDEN
        address = f"{shown if password is None else f'{user}:{HIDDEN}'}@{address}"
    options, sharp, fragment = query.partition("#")
    return f"{scheme}{mark}{address}{question}{'&'.join(map(_option, options.split('&')))}{sharp}{fragment}"


def _option(option: str) -> str:
    name, sign, value = option.partition("=")
    return f"{name}={HIDDEN}" if sign and value and _SECRET_OPTION.search(name) else option


def _secrets(url: str) -> Iterator[str]:
    scheme, mark, user, password, rest = _split(url)
    if not mark:
        return
    if password is not None:
        yield password
    elif user is not None and scheme.lower() not in _NAMED_USERS:
        yield user
    for option in rest.partition("?")[2].partition("#")[0].split("&"):
        name, _, value = option.partition("=")
        if _SECRET_OPTION.search(name):
            yield value


def _split(url: str) -> tuple[str, str, str | None, str | None, str]:
    """Scheme, "://", user, password, the rest. A password may have been written with `/`, `?` or `#` in it, which is
    not allowed, and is to be hidden all the same: what is before the last `@` is taken for it, but on the web, where an
    `@` in the path is ordinary."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url, "", None, None, ""
    authority = re.match(r"[^/?#]*", rest)
    assert authority is not None
    end = rest.rfind("@", 0, authority.end())
    if end < 0 and scheme.lower() not in _WEB:
        path = rest.partition("?")[0]
        end = path.rfind("@") if "@" in path else _at_of_user(rest)
    if end < 0:
        return scheme, mark, None, None, rest
    user, colon, password = rest[:end].partition(":")
    return scheme, mark, user, password if colon else None, rest[end + 1 :]


def _at_of_user(rest: str) -> int:
    """The last `@` of an address whose password has a question mark in it; -1 when it stands in an option."""
    before = rest.rpartition("@")[0]
    return len(before) if before and ":" in before.partition("?")[0] and "=" not in before.partition("?")[2] else -1


# -- texts -----------------------------------------------------------------------------------------------------------


def redact(text: str, shown: int = TEXT_MAX_CHARS) -> str:
    """The text without what looks like a secret or is known to be one, at most `shown` characters of it."""
    most = min(shown * READ_PER_SHOWN, TEXT_MAX_CHARS)
    if len(text) > most:
        text = text[:most]
    for secret in _known:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    lower = text.lower()
    for hint in _HINTS:  # many times quicker than one expression for all
        if hint in lower:
            text = _hidden(text)
            break
    return text[:shown]


def _hidden(text: str) -> str:
    text = _URL_IN_TEXT.sub(rf"\1{HIDDEN}@", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    return _FORMS.sub(HIDDEN, text)


def clean(value: Any, name: str = "") -> Any:
    """The same value with every text in it redacted; the value of a field with a telling name is hidden whole."""
    if name and isinstance(value, str | bytes) and value and _SECRET_NAME.search(name[-NAME_MAX_CHARS:]):
        return HIDDEN
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: clean(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(item) for item in value]
    if isinstance(value, BaseException):
        return redact(str(value))
    if isinstance(value, bytes):
        return redact(value[: 4 * TEXT_MAX_CHARS].decode("utf-8", "replace"))
    return value
