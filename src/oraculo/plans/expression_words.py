"""Texts with expressions from one vocabulary to the other: `entrada`, `indice`, `feito` and the first field that is
asked of a task, found in the tree of the expression and never by searching its text."""

from __future__ import annotations

from collections.abc import Collection

from oraculo.errors import ExpressionError
from oraculo.expressions import compile_expression
from oraculo.expressions.template import OPENING, pieces_of
from oraculo.plans.model import Json
from oraculo.plans.words import (
    EXPRESSION_NAMES,
    OFFERED,
    Words,
    field_in,
    name_to_portuguese,
    offered_to_portuguese,
)


def value_in_words(value: Json, words: Words, tasks: Collection[str]) -> Json:
    """The value with the expressions in its texts written in one vocabulary."""
    match value:
        case str():
            return text_in_words(value, words, tasks)
        case list():
            return [value_in_words(inner, words, tasks) for inner in value]
        case dict():
            return {key: value_in_words(inner, words, tasks) for key, inner in value.items()}
        case _:
            return value


def text_in_words(text: str, words: Words, tasks: Collection[str]) -> str:
    """The text with its expressions in one vocabulary; as it is when one of them cannot be read."""
    if OPENING not in text:
        return text
    written: list[str] = []
    position = 0
    try:
        for piece in pieces_of(text):
            if piece.is_expression:
                written += [text[position : piece.position], _source_in(piece.text, words, tasks)]
                position = piece.position + len(piece.text)
    except ExpressionError:
        return text
    return "".join([*written, text[position:]])


def _source_in(source: str, words: Words, tasks: Collection[str]) -> str:
    expression = compile_expression(source)
    changes: dict[int, tuple[str, str]] = {}  # position → word there, word instead
    for use in expression.uses:
        meant = name_to_portuguese(use.name)
        if meant in EXPRESSION_NAMES and use.name not in tasks:
            changes[use.position] = (use.name, field_in(words, meant))
        elif use.name in tasks and use.field:
            meant = offered_to_portuguese(use.field)
            if meant in OFFERED:
                changes[use.field_position] = (use.field, field_in(words, meant))
    translated = source
    for position in sorted(changes, reverse=True):
        old, new = changes[position]
        if translated.startswith(old, position):  # not where it is quoted: x.`dados`
            translated = translated[:position] + new + translated[position + len(old) :]
    return translated if translated == source or _same_names(source, translated, tasks) else source


def _same_names(source: str, translated: str, tasks: Collection[str]) -> bool:
    """Whether no variable of a macro has caught a name that was translated into its own."""
    return _meant(source, tasks) == _meant(translated, tasks)


def _meant(source: str, tasks: Collection[str]) -> list[tuple[str, str]]:
    try:
        uses = compile_expression(source).uses
    except ExpressionError:  # it may have become too long
        return [("", source)]
    return [
        (use.name, offered_to_portuguese(use.field)) if use.name in tasks else (name_to_portuguese(use.name), use.field)
        for use in uses
    ]
