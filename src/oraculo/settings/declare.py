"""How a setting is declared: one field of a group, with its variable, default, reader and help in one place.

    @dataclass(frozen=True, slots=True)
    class Postgres:
        port: int = setting("POSTGRES_PORT", "5432", readers.whole(1, 65535), "Its port")

The type checker sees the reader's type as the field's type. Everything else (reading, showing, the page of the
documentation) walks over the declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from oraculo import redaction
from oraculo.errors import SettingsError
from oraculo.settings.readers import Reader
from oraculo.settings.references import is_reference

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    G = TypeVar("G", bound=DataclassInstance)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name, its default as written, its reader and what it is for."""

    name: str
    default: str
    reader: Reader[Any]
    help: str
    secret: bool = False

    @property
    def by_reference(self) -> bool:
        """True if its value may stand elsewhere (`references.py`): it is a secret, or may have one in it."""
        return self.secret or self.reader.address

    def read(self, text: str, dereferenced: Callable[[str, str], str]) -> Any:
        """Return the value of this text, with references followed. SettingsError shows those, not where they led."""
        followed = self._followed(text, dereferenced) if self.by_reference else text
        try:
            return self.reader(self.name, followed)
        except SettingsError as error:
            if followed == text and not self.secret:
                raise
            if followed == text:
                raise SettingsError(self.name, self.shown(text), error.allowed) from None
            raise SettingsError(self.name, self.shown(text), f"what it leads to has to be {error.allowed}") from None

    def shown(self, text: str) -> str:
        """The text as it may be shown: references as they are, everything else without secrets."""
        parts = self._parts(text)
        return ",".join(part if is_reference(part) else self._hidden(part) for part in parts)

    def _followed(self, text: str, dereferenced: Callable[[str, str], str]) -> str:
        parts = self._parts(text)
        return ",".join(dereferenced(self.name, part) if is_reference(part) else part for part in parts)

    def _parts(self, text: str) -> list[str]:
        """The text in parts when it is a list with a reference in it; else the text."""
        parts = [part.strip() for part in text.split(",")] if self.reader.list else [text]
        return parts if any(map(is_reference, parts)) else [text]

    def _hidden(self, text: str) -> str:
        return redaction.HIDDEN if self.secret and text else redaction.urls(text)


def setting(name: str, default: str, reader: Reader[T], help: str, *, secret: bool = False) -> T:
    """Declare a field that is read from the variable `name`. The value of a `secret` one is never shown."""
    variable = Variable(name, default, reader, help, secret or reader.secret)
    return field(default=reader(name, default), metadata={"variable": variable})


def group(kind: type[G], title: str) -> G:
    """Declare a field that holds a group of settings; `title` is its heading in the documentation."""
    return field(default_factory=kind, metadata={"group": kind, "title": title})


def variable_of(declared: Field[Any]) -> Variable | None:
    return declared.metadata.get("variable")


def variables_of(kind: type[DataclassInstance]) -> Iterator[Variable]:
    """Every variable of a group and of the groups inside it, in the order of their declaration."""
    for declared in fields(kind):
        if (variable := variable_of(declared)) is not None:
            yield variable
        elif "group" in declared.metadata:
            yield from variables_of(declared.metadata["group"])


def values_of(settings: DataclassInstance) -> Iterator[tuple[Variable, Any]]:
    """Every variable with its value, in the same order."""
    for declared in fields(settings):
        value = getattr(settings, declared.name)
        if (variable := variable_of(declared)) is not None:
            yield variable, value
        elif "group" in declared.metadata:
            yield from values_of(value)


def read_group(kind: type[G], given: Mapping[str, str], dereferenced: Callable[[str, str], str]) -> G:
    """A group made of what is given, and of defaults; SettingsError for a value that is not allowed. `dereferenced` is
    called with the name of a variable and a reference, and gives what that leads to."""
    values = {}
    for declared in fields(kind):
        if (variable := variable_of(declared)) is not None:
            values[declared.name] = variable.read(given.get(variable.name, variable.default).strip(), dereferenced)
        elif "group" in declared.metadata:
            values[declared.name] = read_group(declared.metadata["group"], given, dereferenced)
    return kind(**values)
