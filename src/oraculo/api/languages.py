"""The language of a reader: the one that `Accept-Language` asks for most, of those that there are sentences in."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Request

from oraculo.core.sentences import DEFAULT_LANGUAGE, Language

_SPOKEN: dict[str, Language] = {"pt": "pt", "en": "en"}


def preferred_language(accept: str, default: Language) -> Language:
    """The language that a header `Accept-Language` prefers; `default` when it names none of ours."""
    best, wanted = default, 0.0
    for part in accept.split(","):
        tag, _, parameters = part.partition(";")
        language = _SPOKEN.get(tag.strip().lower().partition("-")[0])
        quality = _quality(parameters)
        if language is not None and quality > wanted:
            best, wanted = language, quality
    return best


def _quality(parameters: str) -> float:
    _, _, value = parameters.partition("q=")
    try:
        return min(1.0, float(value)) if value else 1.0
    except ValueError:
        return 0.0


async def header_language(
    accept_language: Annotated[str, Header(description="language of sentences: `pt` (default) or `en`")] = "",
) -> Language:
    return preferred_language(accept_language, DEFAULT_LANGUAGE)


def reader_language(request: Request) -> Language:
    """The language that a request asks for."""
    return preferred_language(request.headers.get("accept-language", ""), DEFAULT_LANGUAGE)


ReaderLanguage = Annotated[Language, Depends(header_language)]
