"""Secrets by reference: a setting says where its value is (`file:/run/secrets/key`, `env:NAME`, or
`vault:path#field`) instead of having it.

The place is read once, at the start. Errors and everything that is shown name the reference, never what it led to.

A file `.env` may come with a folder of a stranger, and another line of it could send what was read to a server of
theirs: references in it lead to files of that folder only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from oraculo.errors import SettingsError
from oraculo.settings.vault import VAULT

CONTENT_MAX_BYTES = 65_536
FILE, ENV = "file:", "env:"


def is_reference(value: str) -> bool:
    """True if the value only says where the value is. `file://` begins a URL."""
    return (value.startswith(FILE) and not value.startswith("file://")) or value.startswith((ENV, VAULT))


def dereferenced(
    name: str,
    value: str,
    environment: Mapping[str, str],
    folder: Path | None = None,
    vault: Callable[[str], str] | None = None,
) -> str:
    """What the reference leads to, without space around it. `folder` is that of the `.env` that it stands in; `vault`
    reads what is there. SettingsError names the setting, the reference and what is wrong."""
    where = value.partition(":")[2].strip()
    if not where:
        raise SettingsError(name, value, "file:/path, env:NAME or vault:path#field")
    try:
        if value.startswith(VAULT):
            content = _of_vault(where, vault, folder)
        elif not value.startswith(FILE):
            content = _of_variable(where, environment, folder)
        else:
            content = _of_file(Path(where).expanduser(), folder)
    except ValueError as refusal:
        raise SettingsError(name, value, str(refusal)) from None
    if not content:
        raise SettingsError(name, value, "it leads to nothing: there is no text there")
    if not content.isprintable():
        raise SettingsError(name, value, "it has to lead to one line of text")
    return content


def _of_vault(where: str, vault: Callable[[str], str] | None, folder: Path | None) -> str:
    if folder is not None:
        raise ValueError("in .env only files beside it may be referred to, not secrets in Vault")
    if vault is None:
        raise ValueError("this one cannot be in Vault; file:/path and env:NAME are allowed")
    return vault(where)


def _of_variable(where: str, environment: Mapping[str, str], folder: Path | None) -> str:
    if folder is not None:
        raise ValueError("in .env only files beside it may be referred to, not variables of the environment")
    if where not in environment:
        raise ValueError(f"there is no variable {where} in the environment")
    return environment[where].strip()


def _of_file(path: Path, folder: Path | None) -> str:
    try:
        if folder is not None:
            path = (folder / path).resolve()
            if not path.is_relative_to(folder.resolve()):
                raise ValueError(f"in .env only files below its folder {folder.resolve()} may be referred to")
        if not path.is_file():
            raise ValueError("there is no such file" if not path.exists() else "it is not a file")
        with path.open("rb") as file:
            content = file.read(CONTENT_MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror or type(error).__name__}") from None
    if len(content) > CONTENT_MAX_BYTES:
        raise ValueError(f"the file has more than {CONTENT_MAX_BYTES} bytes")
    try:
        return content.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8 text") from None
