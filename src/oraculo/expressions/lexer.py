"""Text → tokens with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from oraculo.errors import ExpressionError

_RESERVED = "as break const continue else for function if import let loop package namespace return var void while"
RESERVED = frozenset(_RESERVED.split())  # words that CEL keeps for later
WORDS = frozenset({"true", "false", "null", "in"})
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
NUMBER_MAX_CHARS = 4096  # Python refuses to convert much longer ones

_LONG = r"\"\"\"(?:{0}|\"(?!\"\"))*\"\"\"|'''(?:{1}|'(?!''))*'''"
_RAW = _LONG.format(r"[^\"]", r"[^']") + r"|\"[^\"\r\n]*\"|'[^'\r\n]*'"
_PLAIN = _LONG.format(r"[^\\\"]|\\.", r"[^\\']|\\.") + r"|\"(?:[^\\\"\r\n]|\\.)*\"|'(?:[^\\'\r\n]|\\.)*'"
_TOKEN = re.compile(
    rf"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<bytes>(?:[bB][rR]?|[rR][bB])(?=["']))
  | (?P<raw>[rR](?:{_RAW}))
  | (?P<text>{_PLAIN})
  | (?P<double>(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<quoted>`[A-Za-z0-9_./\ -]+`)
  | (?P<sign>\|\||&&|==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{{}}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: text, double, int, name, quoted, sign or end; `value` is what a literal means, else the text itself."""

    kind: str
    value: str | int | float
    position: int
    end: int


def token_at(source: str, position: int) -> Token | None:
    """The token at `position`, white space and comments passed over; None at the end of the text."""
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None:
            raise ExpressionError(_unreadable(source[position]), position)
        kind = found.lastgroup or ""
        if kind != "space":
            return Token(*_meaning(kind, found[0], position), position, found.end())
        position = found.end()
    return None


def tokens_of(source: str) -> list[Token]:
    """All of them, closed by one of the kind `end`."""
    found: list[Token] = []
    position = 0
    while (token := token_at(source, position)) is not None:
        found.append(token)
        position = token.end
    return [*found, Token("end", "", len(source), len(source))]


def _unreadable(character: str) -> str:
    if character in "\"'":
        return "a text is not closed"
    return f"{character!r} is not part of the language"


def _meaning(kind: str, text: str, position: int) -> tuple[str, str | int | float]:
    match kind:
        case "int" if len(text) > NUMBER_MAX_CHARS:
            raise ExpressionError(f"a number has at most {NUMBER_MAX_CHARS} digits", position)
        case "int":
            return "int", int(text, 16) if text.startswith("0x") else int(text)
        case "double":
            return "double", float(text)
        case "raw":
            return "text", _inside(text[1:])
        case "quoted":
            return "quoted", text[1:-1]
        case "bytes":
            raise ExpressionError("bytes are not part of this profile; write a plain text", position)
        case "text":
            return "text", _unescaped(_inside(text), position)
        case _:
            return kind, text


def _inside(quoted: str) -> str:
    width = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    return quoted[width:-width]


def _unescaped(text: str, position: int) -> str:
    if "\\" not in text:
        return text

    def meant(found: re.Match[str]) -> str:
        *digits, octal, other = found.groups()
        number = next((int(one, 16) for one in digits if one is not None), None)
        if octal is not None:
            number = int(octal, 8)
        if number is None:
            if other not in _SIMPLE:
                raise ExpressionError(f"\\{other} is no escape", position)
            return _SIMPLE[other]
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise ExpressionError(f"{found[0]} is no character", position)
        return chr(number)

    return _ESCAPE.sub(meant, text)
