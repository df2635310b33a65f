"""YAML text → events. One document of plain data: no anchors, aliases, tags or merge keys, so nothing grows.

PyYAML only cuts the text into parts here, in C where it has libyaml; it builds no object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from oraculo.errors import MissingExtraError
from oraculo.plans.faults import FaultCode
from oraculo.plans.source.events import Part, Quoting, SourceEvent, SourceText
from oraculo.plans.source.yaml_scalars import plain_value

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTING = {"'": Quoting.SINGLE, '"': Quoting.ESCAPES, "|": Quoting.LITERAL, ">": Quoting.FOLDED}
_NO_NODES = "anchors and aliases (& and *) are not allowed: write the value where it is needed"


def load_yaml() -> Any:
    """The module `yaml`; MissingExtraError where it is not installed."""
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MissingExtraError("YAML", "yaml") from error
    return yaml


def yaml_events(source: SourceText, *, in_c: bool = True) -> Iterator[SourceEvent]:
    """The parts of the text; ends early, with a fault, where it is no YAML. `in_c`: use libyaml where it is there."""
    yaml = load_yaml()
    text = source.text
    if found := _UNPRINTABLE.search(text):
        code = f"U+{ord(found[0]):04X}"
        source.add(found.start(), FaultCode.SYNTAX, f"not YAML: the character {code} has to be written as an escape")
        return
    loader = (in_c and getattr(yaml, "CSafeLoader", None)) or yaml.SafeLoader
    documents = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    source.add(event.start_mark.index, FaultCode.SYNTAX, "a file holds one plan; here begins a second")
                    return
                if event.tags:
                    source.add(event.start_mark.index, FaultCode.SYNTAX, "tags are not allowed")
            elif (made := _event(yaml, event, source)) is not None:
                yield made
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        index = min(mark.index, len(text)) if mark else 0
        source.add(index, FaultCode.SYNTAX, f"not YAML: {_explained(error, text, index)}")
    except yaml.YAMLError as error:
        source.add(0, FaultCode.SYNTAX, f"not YAML: {str(error).splitlines()[0]}")


def _event(yaml: Any, event: Any, source: SourceText) -> SourceEvent | None:
    start, end = event.start_mark.index, event.end_mark.index
    match event:
        case yaml.AliasEvent():
            return SourceEvent(Part.SCALAR, start, end, fault=(FaultCode.SYNTAX, _NO_NODES))
        case yaml.ScalarEvent() | yaml.MappingStartEvent() | yaml.SequenceStartEvent():
            if event.anchor is not None:
                source.add(start, FaultCode.SYNTAX, _NO_NODES)
            if event.tag is not None:
                source.add(start, FaultCode.SYNTAX, f"tags are not allowed: {str(event.tag)[:60]}")
        case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
            return SourceEvent(Part.END, start, end)
        case _:
            return None
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event, start, end)
    return SourceEvent(Part.OBJECT if isinstance(event, yaml.MappingStartEvent) else Part.LIST, start, end)


def _scalar(event: Any, start: int, end: int) -> SourceEvent:
    text = event.value
    quoting = _QUOTING.get(event.style, Quoting.PLAIN)
    if quoting is not Quoting.PLAIN:
        return SourceEvent(Part.SCALAR, start, end, text, text, quoting)
    value, fault = plain_value(text)
    return SourceEvent(Part.SCALAR, start, end, value, text, quoting, fault)


def _explained(error: Any, text: str, index: int) -> str:
    if text[index : index + 1] == "\t":
        return "lines begin with spaces, not with tabs"
    if text[index : index + 1] == "%" or text[index : index + 1] == "@":
        return f"a value cannot begin with {text[index]}; write it in quotes"
    problem = str(error.problem or "it cannot be read")
    return f"{problem} ({error.context})" if error.context else problem
