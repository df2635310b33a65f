"""Data → YAML that means the same to tools of YAML 1.1 and 1.2, and to the reader here."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from oraculo.plans.model import Json
from oraculo.plans.source.yaml_events import load_yaml
from oraculo.plans.source.yaml_scalars import is_plain_text

_NEVER_FOLDED = 2**31
_LINE_ENDS = re.compile("[\r\x85\u2028\u2029]")  # a text in other quotes would be folded at these
_TEXT_TAG = "tag:yaml.org,2002:str"


def to_yaml(data: Json) -> str:
    """The data as one document in block form, in the order of its keys."""
    yaml = load_yaml()
    text: str = yaml.dump(data, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=_NEVER_FOLDED)
    return text


@lru_cache(1)
def _dumper() -> Any:
    base: Any = load_yaml().SafeDumper

    class PlanDumper(base):  # type: ignore[misc]  # PyYAML has no types
        """Writes no anchors: a list that stands twice is written twice."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = None if is_plain_text(value) else "'"
        if _LINE_ENDS.search(value):
            style = '"'
        elif "\n" in value and all(line == line.strip() for line in value.split("\n")) and value.strip():
            style = "|"
        return dumper.represent_scalar(_TEXT_TAG, value, style=style)

    def number(dumper: Any, value: float) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:float", _real(value))

    PlanDumper.add_representer(str, text)
    PlanDumper.add_representer(float, number)
    return PlanDumper


def _real(value: float) -> str:
    """With a point, without which YAML 1.1 takes 1e100 for a text."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if e and "." not in mantissa:
        mantissa += ".0"
    return mantissa + (f"e{exponent if exponent[0] in '+-' else '+' + exponent}" if e else "")
