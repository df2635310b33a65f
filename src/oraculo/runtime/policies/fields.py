"""Which parts of the input the policies read, found in their texts.

Only those are sent, and only those tell one question from another: a policy that does not read the id of a ticket says
the same of the next one. What cannot be told from the text (`input` as a whole, a computed name) counts as everything
below it, so that the answer is never found in too few parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Path = tuple[str, ...]
EVERYTHING: Path = ()

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*')
_GET = re.compile(r'\bobject\.get\(\s*input((?:\.[A-Za-z_]\w*)*)\s*,\s*"([A-Za-z_]\w*)"\s*,')
_INPUT = re.compile(r'(?<![\w.])input((?:\.[A-Za-z_]\w*|\["[^"\\]*"\])*)')
_STEP = re.compile(r'\.([A-Za-z_]\w*)|\["([^"\\]*)"\]')


def paths_in(sources: Iterable[str]) -> frozenset[Path]:
    """The paths below `input` that these modules read; EVERYTHING among them: all of it."""
    found: set[Path] = set()
    for source in sources:
        text = _COMMENT.sub(lambda match: "" if match[0].startswith("#") else match[0], source)
        text = _GET.sub(r"(input\1.\2,", text)
        for match in _INPUT.finditer(text):
            found.add(tuple(step[1] or step[2] for step in _STEP.finditer(match[1])))
    return _outermost(found)


def _outermost(found: set[Path]) -> frozenset[Path]:
    """Without those below another one."""
    return frozenset(path for path in found if not any(path[:length] in found for length in range(len(path))))


def reads(paths: frozenset[Path], path: Path) -> bool:
    """True when a value at `path`, or a part of it, is read."""
    return any(path[: len(one)] == one or one[: len(path)] == path for one in paths)
