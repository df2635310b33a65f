"""Secrets are not shown: by the name of a field, by the shape of a text, and by value once they are known.

Everything that leaves the process for people to read (logs, spans, errors) goes through here. It prefers hiding a
harmless word to showing a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
SHORTEST = 6  # a known secret that is shorter would hide ordinary text

_NAMES = r"(?:api[_-]?key|access[_-]?key|password|passwd|pwd|senha|secret|token|authorization|cookie|credential)s?"
_SECRET_NAME = re.compile(rf"(?i)(?:^|[._-])(?:\w*{_NAMES})$")
_URLS = re.compile(r"(://[^/?#@,:]*:)[^/?#]*?@(?=[^@,/?#]*(?:[,/?#]|$))")
_PASSWORD_OPTION = re.compile(r"([?&](?:ssl)?password=)[^&#\s]*", re.IGNORECASE)
_URL_IN_TEXT = re.compile(r"(://[^/?#@,:\s]*:)[^/?#\s]*@")
_SCHEME = re.compile(r"(?i)\b(bearer|basic)(\s+|%20)[\w.~+/=%-]{4,}")
_NAMED = re.compile(rf"(?i)({_NAMES}[\"']?\s*[:=]\s*[\"']?)(?!\*)[^\s\"',;&}}\])]+")
_FORMS = re.compile(r"\bwhsec_[\w+/=-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]*")
_HINTS = (
    *("://", "bearer", "basic", "key", "passw", "pwd", "senha"),
    *("secret", "token", "authoriz", "cookie", "cred", "whsec", "eyj"),
)

_known: dict[str, None] = {}


def know(secrets: Iterable[str]) -> None:
    """These values are hidden from now on, wherever they turn up."""
    for secret in secrets:
        for form in (secret, unquote(secret)):
            if len(form) >= SHORTEST:
                _known[form] = None


def urls(text: str) -> str:
    """A URL, or several with commas between, without the passwords."""
    return _PASSWORD_OPTION.sub(rf"\1{HIDDEN}", _URLS.sub(rf"\1{HIDDEN}@", text))


def passwords_of(text: str) -> list[str]:
    """The passwords in a URL, or in several with commas between."""
    return [found[0].partition("://")[2].partition(":")[2][:-1] for found in _URLS.finditer(text)]


def redact(text: str) -> str:
    """The text without what looks like a secret or is known to be one."""
    for secret in _known:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    lower = text.lower()
    for hint in _HINTS:  # many times quicker than one expression for all
        if hint in lower:
            return _hidden(text)
    return text


def _hidden(text: str) -> str:
    text = _URL_IN_TEXT.sub(rf"\1{HIDDEN}@", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    return _FORMS.sub(HIDDEN, text)


def clean(value: Any, name: str = "") -> Any:
    """The same value with every text in it redacted; the value of a field with a telling name is hidden whole."""
    if name and isinstance(value, str | bytes) and value and _SECRET_NAME.search(name):
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
        return redact(value.decode("utf-8", "replace"))
    return value
