"""The table of words of docs/glossario.md, made from the one table that the code has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oraculo.plans.words import FIELDS, VALUES

COLUMNS = 3


def words() -> str:
    """Fields, then the values of those that have words of their own."""
    pairs = [f"`{portuguese}` | `{english}`" for portuguese, english in FIELDS.items()]
    pairs += [" | "] * (-len(pairs) % COLUMNS)
    rows = ["| pt | en " * COLUMNS + "|", "|---|---" * COLUMNS + "|"]
    rows += [f"| {' | '.join(pairs[at : at + COLUMNS])} |" for at in range(0, len(pairs), COLUMNS)]
    values = ["| values of | pt → en |", "|---|---|"]
    values += [
        f"| `{field}` | {', '.join(f'`{portuguese}` → `{english}`' for portuguese, english in known.items())} |"
        for field, known in VALUES.items()
    ]
    return "\n".join([*rows, "", *values])


TABLES: Mapping[str, Callable[[], str]] = {"words": words}
