"""Bytes of a file → the typed document, with every fault at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from oraculo.plans import limits
from oraculo.plans.faults import FaultCode
from oraculo.plans.model import Json, RequestDocument
from oraculo.plans.reader import read
from oraculo.plans.source.events import PlacedFault, SourceText
from oraculo.plans.source.json_events import json_events
from oraculo.plans.source.placing import place
from oraculo.plans.source.tree import TreeBuilder
from oraculo.plans.source.yaml_events import yaml_events

_BYTE_ORDER_MARK = "\ufeff"


class SourceFormat(StrEnum):
    """How a plan is written. Python is no text to be read: it is run (plans/python)."""

    JSON = "json"
    YAML = "yaml"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class SourceReading:
    """`request` is None when there are faults; `data` is what stands in the file, None when it could not be read to its
    end. `fault_count` counts those beyond the ones that are kept, too."""

    request: RequestDocument | None
    data: Json
    faults: tuple[PlacedFault, ...]
    warnings: tuple[PlacedFault, ...]
    fault_count: int


def read_text(raw: bytes, format: SourceFormat) -> SourceReading:
    """Read a request in JSON or YAML. Raises nothing but MissingExtraError, for YAML without PyYAML."""
    source, builder = read_data(raw, format)
    if not builder.complete or builder.root is None:
        return SourceReading(None, None, tuple(source.placed), (), source.faults.count)
    reading = read(builder.value)
    found = [*source.placed, *(place(fault, source, builder.root) for fault in reading.faults)]
    warnings = [place(fault, source, builder.root) for fault in reading.warnings]
    count = source.faults.count + reading.fault_count
    return SourceReading(
        reading.request if not count else None, builder.value, _in_order(found), _in_order(warnings), count
    )


def read_source(raw: bytes, format: SourceFormat) -> SourceReading:
    """Read data without asking whether it is a request: only what is wrong with the text is a fault."""
    source, builder = read_data(raw, format)
    data = builder.value if builder.complete else None
    return SourceReading(None, data, tuple(source.placed), (), source.faults.count)


def read_data(raw: bytes, format: SourceFormat) -> tuple[SourceText, TreeBuilder]:
    """The data in the bytes and where it stands, whatever it means."""
    source = SourceText("")
    builder = TreeBuilder(source)
    if len(raw) > limits.SOURCE_MAX_BYTES:
        message = f"{len(raw)} bytes; a request has at most {limits.SOURCE_MAX_BYTES}"
        source.add(0, FaultCode.TOO_MUCH, message)
        return source, builder
    try:
        source.text = raw.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        source.text = raw[: error.start].decode()
        source.add(len(source.text), FaultCode.SYNTAX, "the file is not UTF-8 from here on")
        return source, builder
    builder.build(yaml_events(source) if format is SourceFormat.YAML else json_events(source))
    if builder.root is None and not source.faults.count:
        source.add(0, FaultCode.MISSING, "the file is empty")
    return source, builder


def _in_order(found: list[PlacedFault]) -> tuple[PlacedFault, ...]:
    return tuple(sorted(found, key=lambda one: (one.line, one.column)))
