"""The records of Fluxo C as JSON Schema, made from their Avro schemas: what one writes who writes JSON."""

from __future__ import annotations

from typing import Any

from oraculo.wire.flow import schemas

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE: dict[str, dict[str, Any]] = {
    "null": {"type": "null"},
    "boolean": {"type": "boolean"},
    "int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "long": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "double": {"type": "number"},
    "string": {"type": "string"},
}


def json_schema(record: str) -> dict[str, Any]:
    made = {"$schema": DRAFT, "title": record, **_converted(schemas.schema(record))}
    if record == schemas.CONSOLIDATED_DECISION:  # in JSON, a plan may be an object too
        made["properties"]["cognitive_plan"]["anyOf"].append({"type": "object"})
    return made


def _converted(schema: Any) -> dict[str, Any]:
    if isinstance(schema, str):
        return dict(_SIMPLE[schema])
    if isinstance(schema, list):
        return {"anyOf": [_converted(one) for one in schema]}
    match schema["type"]:
        case "record":
            return _record(schema)
        case "enum":
            return {"enum": list(schema["symbols"])}
        case "array":
            return {"type": "array", "items": _converted(schema["items"])}
        case _:
            return {"type": "object", "additionalProperties": _converted(schema["values"])}


def _record(schema: dict[str, Any]) -> dict[str, Any]:
    """A field that has a default may be left out."""
    properties = {}
    for field in schema["fields"]:
        about = {
            name: field[other] for name, other in (("description", "doc"), ("default", "default")) if other in field
        }
        properties[field["name"]] = {**_converted(field["type"]), **about}
    about = {"description": schema["doc"]} if "doc" in schema else {}
    required = [field["name"] for field in schema["fields"] if "default" not in field]
    return {"type": "object", **about, "properties": properties, "required": required}
