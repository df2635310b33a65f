"""Write the generated parts of the documentation:

    python -m tools.docs.generate

The JSON Schema of plans, which is shipped, is written with them.

A generated part stands between `<!-- generated: name -->` and `<!-- end -->`; everything else in a page is written by
hand and kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.docs import errors, llms, python, settings, words

from oraculo.plans.schema import plan_schema
from oraculo.plans.schema_file import PLANO_SCHEMA_FILE

DOCS = Path(__file__).parents[2] / "docs"
PLAN_SCHEMA = DOCS.parent / "src/oraculo/plans" / PLANO_SCHEMA_FILE
PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "settings.md": settings.TABLES,
    "python.md": python.PARTS,
    "glossario.md": words.TABLES,
    "errors.md": errors.PARTS,
}
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(name: str) -> str:
    """The page as it should be. KeyError when it asks for a part that does not exist, or leaves one out."""
    parts = dict(PAGES[name])
    text = (DOCS / name).read_text(encoding="utf-8")
    made = _PART.sub(lambda found: f"{found[1]}\n{parts.pop(found[2])()}\n\n{found[3]}", text)
    if parts:
        raise KeyError(f"{name} has no place for {', '.join(parts)}")
    return made


def plan_schema_text() -> str:
    """The JSON Schema of plans as it is shipped."""
    return json.dumps(plan_schema(), ensure_ascii=False, indent=1) + "\n"


def main() -> None:
    for name in PAGES:
        (DOCS / name).write_text(page(name), encoding="utf-8")
    PLAN_SCHEMA.write_text(plan_schema_text(), encoding="utf-8")
    (DOCS / "llms.txt").write_text(llms.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
