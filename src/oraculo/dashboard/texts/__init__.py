"""What the pages say, in the language of the reader: the cookie's, else the browser's, else English."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oraculo.dashboard.texts import en, pt

LANGUAGES: dict[str, Mapping[str, str]] = {"en": en.TEXTS, "pt-BR": pt.TEXTS}
NAMES = {"en": "English", "pt-BR": "Português"}
SCRIPT = "js."  # texts that scripts need

Translate = Callable[..., str]


def chosen(cookie: str | None, accept: str) -> str:
    if cookie in LANGUAGES:
        return cookie
    best, wanted = "en", 0.0
    for part in accept.split(","):
        name, _, parameters = part.strip().partition(";")
        language = {"pt": "pt-BR", "en": "en"}.get(name.strip().lower().partition("-")[0])
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


def translator(language: str) -> Translate:
    texts = LANGUAGES[language]

    def t(key: str, **values: object) -> str:
        """`n` equal to 1 takes the text `key.one` where there is one."""
        if str(values.get("n")) == "1" and f"{key}.one" in texts:
            key = f"{key}.one"
        text = texts[key]
        return text.format(**values) if values else text

    return t


def script_texts(language: str) -> dict[str, str]:
    return {key[len(SCRIPT) :]: text for key, text in LANGUAGES[language].items() if key.startswith(SCRIPT)}
