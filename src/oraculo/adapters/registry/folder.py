"""Avro schemas of Fluxo C in files, which take the place of the shipped ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oraculo.errors import WireError
from oraculo.wire import strict_json
from oraculo.wire.flow import schemas

SCHEMA_MAX_BYTES = 1024 * 1024


def folder_schemas(folder: Path) -> dict[str, str]:
    """Record → text of its schema, for each file of a known name in a folder and those below it. ValueError: there is
    no such file, there are two of one name, or one is no schema of its record."""
    if not folder.is_dir():
        raise ValueError("a folder that exists")
    found: dict[str, str] = {}
    for record, name in schemas.FILES.items():
        files = sorted(folder.rglob(name))
        if len(files) > 1:
            raise ValueError(f"a folder with one {name}: there are {files[0]} and {files[1]}")
        for file in files:
            found[record] = _checked(record, file)
    if not found:
        raise ValueError(f"a folder with Avro schemas, such as {schemas.FILES[schemas.COGNITIVE_PLAN]}")
    return found


def _checked(record: str, file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
        said: Any = strict_json.loads(text.encode(), max_bytes=SCHEMA_MAX_BYTES)
    except (OSError, UnicodeDecodeError, WireError) as error:
        raise ValueError(f"a folder with schemas that can be read: {file}: {error}") from None
    name = said.get("name") if isinstance(said, dict) and said.get("type") == "record" else None
    if not isinstance(name, str) or name.rpartition(".")[2] != record:
        raise ValueError(f"a folder where {file.name} is the record {record}: {file}")
    return text
