"""Fields that a body has and its model has not: what was meant, and what is allowed."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel

from oraculo.plans.faults import hint, listed

EXTRA_FIELD = "extra_forbidden"  # pydantic's name of the fault


def unknown_field(model: type[BaseModel] | None, place: tuple[int | str, ...]) -> str:
    """The sentence about a field at `place` of a body of `model` that does not belong there."""
    inner = None if model is None else _model_at(model, place[:-1])
    if inner is None:
        return "unknown field"
    return f"unknown field; {hint(str(place[-1]), inner.model_fields)}allowed: {listed(inner.model_fields)}"


def _model_at(model: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel] | None:
    for part in path:
        if isinstance(part, int):
            continue  # an item of the list that the part before named
        field = model.model_fields.get(part)
        found = None if field is None else _model_in(field.annotation)
        if found is None:
            return None
        model = found
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for found in map(_model_in, get_args(annotation)) if found is not None), None)
