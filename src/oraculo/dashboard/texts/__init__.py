"""What the pages say, in the language of the reader: the cookie's, else the browser's, else English."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oraculo.api.languages import preferred_language
from oraculo.core.sentences import Language
from oraculo.dashboard.texts import (
    codes,
    en,
    foresight,
    lists,
    overview,
    pauses,
    plans,
    policies,
    pt,
    run_page,
    tools,
    workers,
)

LANGUAGES: dict[str, Mapping[str, str]] = {
    "en": en.TEXTS
    | codes.EN
    | pauses.EN
    | foresight.EN
    | plans.EN
    | policies.EN
    | workers.EN
    | overview.EN
    | lists.EN
    | run_page.EN
    | tools.EN,
    "pt-BR": pt.TEXTS
    | codes.PT
    | pauses.PT
    | foresight.PT
    | plans.PT
    | policies.PT
    | workers.PT
    | overview.PT
    | lists.PT
    | run_page.PT
    | tools.PT,
}
_PAGE_LANGUAGE: dict[Language, str] = {"en": "en", "pt": "pt-BR"}
NAMES = {"en": "English", "pt-BR": "Português"}
SCRIPT_TEXT_PREFIX = "js."  # texts that scripts need

Translate = Callable[..., str]


def chosen(cookie: str | None, accept: str) -> str:
    if cookie in LANGUAGES:
        return cookie
    return _PAGE_LANGUAGE[preferred_language(accept, "en")]


def translator(language: str) -> Translate:
    texts = LANGUAGES[language]

    def t(key: str, **values: object) -> str:
        """`n` equal to 1 takes the text `key.one` where there is one."""
        if str(values.get("n")) == "1" and f"{key}.one" in texts:
            key = f"{key}.one"
        text = texts[key]
        return text.format(**values) if values else text

    return t


def words_of_codes(language: str) -> Callable[[str, object], object]:
    """`word(kind, code)`: what a code is called, or the code itself."""
    texts = LANGUAGES[language]
    return lambda kind, code: texts.get(f"{kind}.{code}", code)


def script_texts(language: str) -> dict[str, str]:
    return {
        key[len(SCRIPT_TEXT_PREFIX) :]: text
        for key, text in LANGUAGES[language].items()
        if key.startswith(SCRIPT_TEXT_PREFIX)
    }
