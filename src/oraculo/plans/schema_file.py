"""The JSON Schema of requests of any shape as it is shipped: `plano_schema.json`, which `make docs` writes."""

from __future__ import annotations

from importlib.resources import files

PLANO_SCHEMA_FILE = "plano_schema.json"


def schema_text() -> bytes:
    """The text of the schema."""
    return files("oraculo.plans").joinpath(PLANO_SCHEMA_FILE).read_bytes()
