"""The reference of errors: problems of the API and exceptions of Python, from the code."""

from __future__ import annotations

from oraculo import errors
from oraculo.api.problems import PROBLEM_KINDS


def problems() -> str:
    """A row for each problem, in the order of statuses."""
    rows = sorted(PROBLEM_KINDS.items(), key=lambda one: (one[1].status, one[0]))
    return "\n".join(
        ["| code | status | title |", "|---|---|---|"]
        + [f"| `{code}` | {kind.status} | {kind.title} |" for code, kind in rows]
    )


def exceptions() -> str:
    """The tree that `oraculo.errors` draws."""
    lines = (errors.__doc__ or "").splitlines()
    drawn = [line[4:] for line in lines if line.startswith("    ")]
    return "\n".join(["```text", *drawn, "```"])


PARTS = {"problems": problems, "exceptions": exceptions}
