"""One object of a plan: its fields in either vocabulary, read one by one, with a fault for each that is wrong.

`ObjectFields` knows which words may stand in its place. A field is asked for by its Portuguese word; faults name the
word that was sent. What is wrong reads as the default, so that reading goes on and finds the next fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from oraculo.expressions.template import OPENING
from oraculo.plans.faults import FaultCode, Faults, Path, did_you_mean, hint, nearest, shown
from oraculo.plans.json_values import is_json
from oraculo.plans.model import Json, Params
from oraculo.plans.words import FIELDS, FIELDS_TO_PORTUGUESE, VALUES, value_to_portuguese

EnumT = TypeVar("EnumT", bound=StrEnum)


class ObjectFields:
    """`what` names the place in messages. `elsewhere`: field that others may expect here →
    what to say of it."""

    def __init__(
        self,
        value: dict[object, object],
        path: Path,
        known: Iterable[str],
        faults: Faults,
        what: str,
        elsewhere: dict[str, str] | None = None,
    ) -> None:
        self.path = path
        self.faults = faults
        self._what = what
        self._sent: dict[str, str] = {}  # Portuguese → as sent
        self._values: dict[str, object] = {}
        self.misspelt: set[str] = set()  # fields that unknown words look like
        allowed = frozenset(known)
        english = faults.english
        for word, inner in value.items():
            field = FIELDS_TO_PORTUGUESE.get(word, word) if isinstance(word, str) else None
            if field not in allowed and isinstance(word, str) and word in allowed:
                field = word
            if field is None or field not in allowed:
                self._unknown(word, allowed, elsewhere or {}, english)
            elif field in self._sent:
                message = f"{word} and {self._sent[field]} say the same; keep one of them"
                self.faults.add((*path, str(word)), FaultCode.TWICE, message)
            else:
                self._sent[field], self._values[field] = str(word), inner
                english = english or word != field

    def _unknown(self, word: object, allowed: frozenset[str], elsewhere: dict[str, str], english: bool) -> None:
        at = (*self.path, str(word)[:100])
        if self.faults.full or not isinstance(word, str):
            self.faults.add(at, FaultCode.UNKNOWN_FIELD, f"a key is a text, not {shown(word)}")
            return
        there = elsewhere.get(FIELDS_TO_PORTUGUESE.get(word, word), "")
        if there:
            self.faults.add(at, FaultCode.UNKNOWN_FIELD, f"{word} {there}")
            return
        choices = [FIELDS.get(field, field) for field in allowed] if english else list(allowed)
        meant = nearest(word, {*allowed, *(FIELDS.get(field, field) for field in allowed)})
        near = did_you_mean(meant)
        if meant:
            self.misspelt.add(meant if meant in allowed else FIELDS_TO_PORTUGUESE[meant])
        self.faults.add(
            at,
            FaultCode.UNKNOWN_FIELD,
            f"{self._what} has no field {shown(word)}; {near}allowed: {', '.join(sorted(choices))}",
        )

    # -- asking ------------------------------------------------------------------------------------------------------

    def __contains__(self, field: str) -> bool:
        return field in self._sent

    def word(self, field: str) -> str:
        """The word that was sent for the field, or its Portuguese one."""
        return self._sent.get(field, field)

    def at(self, field: str) -> Path:
        return (*self.path, self.word(field))

    def raw(self, field: str) -> object:
        return self._values.get(field)

    def given(self, fields: Iterable[str]) -> list[str]:
        """Which of the fields are there, as they were sent."""
        return [self._sent[field] for field in fields if field in self._sent]

    def fault(self, field: str, code: FaultCode, message: str, column: int | None = None) -> None:
        self.faults.add(self.at(field), code, message, column)

    def wrong(self, field: str, allowed: str) -> None:
        self.fault(field, FaultCode.WRONG_KIND, f"{self.word(field)} is {allowed}, not {shown(self.raw(field))}")

    def need(self, *fields: str) -> None:
        for field in fields:
            if self._values.get(field) is None:
                named = f"{field} ({FIELDS[field]})" if field in FIELDS else field
                self.faults.add(self.path, FaultCode.MISSING, f"{self._what} needs {named}")

    # -- kinds of values ---------------------------------------------------------------------------------------------

    def mapping(self, field: str) -> dict[object, object] | None:
        value = self._values.get(field)
        if isinstance(value, dict):
            return value
        if field in self:
            self.wrong(field, "an object")
        return None

    def sequence(self, field: str) -> list[object] | None:
        value = self._values.get(field)
        if isinstance(value, list):
            return value
        if field in self:
            self.wrong(field, "a list")
        return None

    def params(self, field: str) -> Params:
        """A JSON object that belongs to the user; empty when there is none."""
        value: object = self.mapping(field)
        return value if is_json(value, self.at(field), self.faults) and isinstance(value, dict) else {}

    def json(self, field: str) -> Json:
        value = self._values.get(field)
        return value if is_json(value, self.at(field), self.faults) else None

    def number(self, field: str, most: float, least: float = 0.0, *, above: bool = True) -> float | None:
        """A finite number; `above`: greater than `least`, not equal to it."""
        value = self._values.get(field)
        if field not in self or value is None:
            return None
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(value, int | float) and numeric and least <= value <= most and not (above and value == least):
            return value
        start = f"above {least:g}" if above else f"at least {least:g}"
        self.wrong(field, f"a number {start} and at most {most:.0f}")
        return None

    def integer(self, field: str, least: int, most: int) -> int | None:
        value = self._values.get(field)
        if field not in self or value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.wrong(field, f"a whole number from {least} to {most}")
        return None

    def boolean(self, field: str) -> bool:
        value = self._values.get(field)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.wrong(field, "true or false")
        return False

    def text(self, field: str, pattern: re.Pattern[str], allowed: str) -> str | None:
        value = self._values.get(field)
        if field not in self or value is None:
            return None
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        self.wrong(field, allowed)
        return None

    def texts(self, field: str, pattern: re.Pattern[str], allowed: str, most: int) -> tuple[str, ...]:
        """A list of different texts."""
        values = self.sequence(field) if self._values.get(field) is not None else None
        if values is None:
            return ()
        if len(values) > most:
            self.fault(field, FaultCode.TOO_MUCH, f"{self.word(field)} has {len(values)} entries; at most {most}")
            return ()
        found: dict[str, None] = {}
        for number, one in enumerate(values):
            at = (*self.at(field), number)
            if not isinstance(one, str) or not pattern.fullmatch(one):
                self.faults.add(at, FaultCode.WRONG_KIND, f"{allowed}, not {shown(one)}")
            elif one in found:
                self.faults.add(at, FaultCode.TWICE, f"{one!r} stands here twice")
            else:
                found[one] = None
        return tuple(found)

    def choice(self, field: str, kind: type[EnumT], default: EnumT, allowed: Iterable[EnumT] = ()) -> EnumT:
        """A word of an enumeration, in either vocabulary."""
        value = self._values.get(field)
        if field not in self or value is None:
            return default
        choices = list(allowed) or list(kind)
        if isinstance(value, str) and value_to_portuguese(field, value) in choices:
            return kind(value_to_portuguese(field, value))
        english = VALUES.get(field, {})
        shown_choices = [f"{one} ({english[one]})" if one in english else one.value for one in choices]
        near = hint(value, [*choices, *(english.get(one, one) for one in choices)]) if isinstance(value, str) else ""
        self.fault(
            field,
            FaultCode.NOT_ALLOWED,
            f"{self.word(field)} is {shown(value)}; {near}allowed: {', '.join(shown_choices)}",
        )
        return default

    def expression(self, field: str, allowed: str) -> str | None:
        """A text that is nothing but one expression in `${{ }}`; whether it is one is checked with the names."""
        value = self._values.get(field)
        if isinstance(value, str) and OPENING in value:
            is_json(value, self.at(field), self.faults)
            return value
        if isinstance(value, str) and value.strip() and OPENING not in value:
            self.fault(
                field,
                FaultCode.WRONG_KIND,
                f"{self.word(field)} is {allowed}, not plain text; write ${{{{ {shown(value)[1:-1]} }}}}",
            )
        elif field in self:
            self.wrong(field, allowed)
        return None
