"""What depends on what: the names in `depende`, and every task that an expression names."""

from __future__ import annotations

from collections.abc import Iterator

from oraculo.errors import ExpressionError
from oraculo.expressions import parse_template
from oraculo.plans.model import PlanDocument
from oraculo.plans.sites import Site, sites_of


def dependencies(document: PlanDocument) -> dict[str, tuple[str, ...]]:
    """Task → what it waits for: first `depende`, then the tasks named in its expressions, each once. What undoes a task
    and the output of the plan wait for nothing."""
    found = {name: dict.fromkeys(node.options.needs) for name, node in document.tasks.items()}
    for site in sites_of(document):
        if site.scope.orders and site.task in found:
            for name in _names(site):
                if name in document.tasks and not (site.scope.own and name == site.task):
                    found[site.task][name] = None
    return {name: tuple(needs) for name, needs in found.items()}


def _names(site: Site) -> Iterator[str]:
    try:
        template = parse_template(site.text)
    except ExpressionError:
        return  # plan_check.py says what is wrong
    for expression in template.expressions if template else ():
        for use in expression.uses:
            if use.name != site.scope.item:
                yield use.name
