"""Texts with `${{ … }}` in them. One that is nothing else keeps its value's type; beside other text it becomes text.
`$${{` writes `${{`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oraculo.errors import ExpressionError
from oraculo.expressions.expression import EVALUATION_MAX_UNITS, Expression, compile_expression
from oraculo.expressions.lexer import token_at
from oraculo.expressions.output import as_json, as_text
from oraculo.expressions.parser import SOURCE_MAX_CHARS
from oraculo.expressions.values import Value

OPENING, ESCAPED, CLOSING = "${{", "$${{", "}}"
EXPRESSION_MAX_CHARS = 2 * SOURCE_MAX_CHARS  # with the space around it


@dataclass(frozen=True, slots=True)
class Template:
    """A text cut at its expressions."""

    parts: tuple[str | Expression, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(part for part in self.parts if isinstance(part, Expression))

    @property
    def alone(self) -> Expression | None:
        """The expression, when there is nothing else."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Expression) else None

    def evaluate(self, names: Mapping[str, Value], units: int = EVALUATION_MAX_UNITS) -> Value:
        """What the text is over these names, as JSON. All its expressions share the `units`."""
        return self.measured(names, units)[0]

    def measured(self, names: Mapping[str, Value], units: int = EVALUATION_MAX_UNITS) -> tuple[Value, int]:
        """What the text is, and the units that it took."""
        if self.alone is not None:
            value, spent = self.alone.measured(names, units)
            return as_json(value), spent
        pieces: list[str] = []
        left = units
        for part in self.parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            value, spent = part.measured(names, left)
            left -= spent
            pieces.append(as_text(value))
        return as_json("".join(pieces)), units - left


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text: the source of an expression without the space around it, or plain text with `$${{` undone.
    `position`: where it begins in the text."""

    text: str
    position: int
    is_expression: bool


def pieces_of(text: str) -> Iterator[Piece]:
    """The text cut at its expressions, which are not read yet. ExpressionError where one is not closed."""
    plain: list[str] = []
    position = begin = 0
    while (found := text.find(OPENING, position)) >= 0:
        if found > 0 and text[found - 1] == "$":
            plain.append(text[position : found - 1] + OPENING)
            position = found + len(OPENING)
            continue
        plain.append(text[position:found])
        if joined := "".join(plain):
            yield Piece(joined, begin, False)
        plain.clear()
        start = found + len(OPENING)
        end = _closing(text, start)
        source = text[start:end]
        yield Piece(source.strip(), start + len(source) - len(source.lstrip()), True)
        position = begin = end + len(CLOSING)
    plain.append(text[position:])
    if joined := "".join(plain):
        yield Piece(joined, begin, False)


def parse_template(text: str) -> Template | None:
    """None when the text has no expression and no escape: it stands for itself."""
    if OPENING not in text:
        return None
    return Template(
        tuple(compile_expression(piece.text) if piece.is_expression else piece.text for piece in pieces_of(text))
    )


def _closing(text: str, start: int) -> int:
    """Where the braces of the expression end; those of maps and of texts inside it do not count."""
    depth = 0
    position = start
    while (token := token_at(text, position)) is not None:
        if token.end - start > EXPRESSION_MAX_CHARS:
            raise ExpressionError(f"an expression has at most {SOURCE_MAX_CHARS} characters", start)
        if token.kind == "sign" and token.value == "{":
            depth += 1
        elif token.kind == "sign" and token.value == "}":
            if depth == 0:
                if text.startswith(CLOSING, token.position):
                    return token.position
                raise ExpressionError("}} is expected, not }", token.position, text)
            depth -= 1
        position = token.end
    raise ExpressionError("${{ is not closed by }}", max(start - len(OPENING), 0), text)
