"""An outline as a Mermaid flowchart, for pages and pull requests."""

from __future__ import annotations

from collections.abc import Iterator

from oraculo.plans.drawing.outline import PlanOutline

# Kind of a task → what its box looks like.
SHAPES = {
    "fonte": ("([", "])"),
    "executador": ("[", "]"),
    "para_cada": ("[/", "/]"),
    "espera": ("{{", "}}"),
    "filha": ("[[", "]]"),
    "repete": (">", "]"),
    "tipo": ("[[", "]]"),
}
# What Mermaid or HTML would take for its own; `#` begins an escape, so it is written as one, too.
_ESCAPES = str.maketrans({letter: f"#{ord(letter)};" for letter in '#"<>&`\\[]{}|'} | {"\n": " ", "\r": " ", "\t": " "})


def mermaid(plan: PlanOutline) -> str:
    """The text of the flowchart, which ends with a line break."""
    return "\n".join(["flowchart TD", *_lines(plan, "t", "  ")]) + "\n"


def _lines(plan: PlanOutline, prefix: str, indent: str) -> Iterator[str]:
    ids = {task.id: f"{prefix}{number}" for number, task in enumerate(plan.tasks)}
    for task in plan.tasks:
        opening, closing = SHAPES[task.kind]
        texts = [task.name, task.detail, *task.notes]
        label = "<br>".join(text.translate(_ESCAPES) for text in texts)
        yield f'{indent}{ids[task.id]}{opening}"{label}"{closing}'
        if task.child is not None:
            inner = f"{ids[task.id]}_"
            yield f'{indent}subgraph {inner}["{task.name.translate(_ESCAPES)}"]'
            yield from _lines(task.child, inner, indent + "  ")
            yield f"{indent}end"
            yield f"{indent}{ids[task.id]} -.- {inner}"
    for task in plan.tasks:
        for need in task.needs:
            yield f"{indent}{ids[need]} --> {ids[task.id]}"
