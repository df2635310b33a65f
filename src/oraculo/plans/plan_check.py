"""What the structure alone does not say: names in scope, what a task offers, cycles, fan-ins that cannot pass, ids of
children. Every fault is added; nothing is raised. Linear in the size of the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oraculo.core.plan import find_cycle
from oraculo.core.vocabulary import Kind
from oraculo.errors import ExpressionError
from oraculo.expressions import Expression, compile_expression
from oraculo.expressions.expression import Use
from oraculo.expressions.template import Piece, pieces_of
from oraculo.plans import limits
from oraculo.plans.faults import FaultCode, Faults, Path, hint, listed
from oraculo.plans.graph import dependencies
from oraculo.plans.model import (
    CallNode,
    ChildNode,
    JoinMode,
    LoopNode,
    MapNode,
    Node,
    PlanDocument,
    RequestDocument,
    WaitNode,
)
from oraculo.plans.sites import Site, Wanted, sites_of
from oraculo.plans.words import FIELDS, name_to_portuguese, offered_to_portuguese

MESSAGE_MAX_CHARS = 300
CYCLES_SHOWN = 10
CYCLE_TASKS_SHOWN = 20
_ALWAYS = ("status", "ok", "erros", "tentativas")
_ANYTHING = ("dados", "resultado", "resultados", "total", "falhas")

Broken = Mapping[int, frozenset[str]]


def check(request: RequestDocument, broken: Broken, faults: Faults, warnings: Faults) -> None:
    """Look at the request and at every plan inside of it. `broken`: see reader.py."""
    longest = len(request.options.correlation_id or "") or limits.GENERATED_ID_CHARS
    stack: list[tuple[RequestDocument, Path, int]] = [(request, (), longest)]
    while stack:
        one, at, id_chars = stack.pop()
        if not isinstance(one, PlanDocument):
            continue
        found, noted = Faults(faults.english), Faults(faults.english)
        _PlanCheck(one, broken.get(id(one), frozenset()), found, noted).run()
        faults.take(found, at)
        warnings.take(noted, at)
        for name, child, path, suffix in _children(one):
            chars = id_chars + 1 + len(name) + suffix
            if chars > limits.CORRELATION_ID_MAX_CHARS:
                message = (
                    f"the id of the child, <correlation_id>/{name}, can have {chars} characters;"
                    f" at most {limits.CORRELATION_ID_MAX_CHARS}"
                )
                faults.add((*at, *path), FaultCode.TOO_MUCH, message)
            stack.append((child.request, (*at, *path), chars))


def offers(node: Node | None) -> tuple[str, ...]:
    """The fields that expressions may ask of a task; None: it could not be read, so any of them."""
    match node:
        case None:
            return (*_ALWAYS, *_ANYTHING)
        case MapNode():
            return (*_ALWAYS, "resultados", "total", "falhas")
        case WaitNode() | CallNode(kind=Kind.COLETA):
            return (*_ALWAYS, "dados")
        case _:
            return (*_ALWAYS, "resultado")


def _children(document: PlanDocument) -> Iterator[tuple[str, ChildNode, Path, int]]:
    """Children, their paths, and how many characters the numbers of item, round and attempt add to their ids."""
    for name, node in document.tasks.items():
        match node:
            case ChildNode():
                yield name, node, ("tarefas", name, "filha"), _attempt_chars(node)
            case MapNode(do=ChildNode() as child):
                yield name, child, ("tarefas", name, "faz", "filha"), 1 + len("49999") + _attempt_chars(child)
            case LoopNode(do=ChildNode() as child):
                digits = len(str(node.at_most - 1))
                yield name, child, ("tarefas", name, "repete", "faz", "filha"), 1 + digits + _attempt_chars(child)


def _attempt_chars(node: ChildNode) -> int:
    most = node.options.max_attempts or 1
    return 0 if most == 1 else 1 + len(str(most))


class _PlanCheck:
    def __init__(self, document: PlanDocument, broken: frozenset[str], faults: Faults, warnings: Faults) -> None:
        self._document = document
        self._broken = broken
        self._names = {*document.tasks, *broken}
        self._faults = faults
        self._warnings = warnings

    def run(self) -> None:
        for name, node in self._document.tasks.items():
            self._check_needs(name, node)
            if isinstance(node, MapNode):
                self._check_item_name(name, node)
        for site in sites_of(self._document):
            self._check_site(site)
        needs = dependencies(self._document)
        self._check_graph(needs)
        self._warn()

    # -- names -------------------------------------------------------------------------------------------------------

    def _check_needs(self, name: str, node: Node) -> None:
        for number, need in enumerate(node.options.needs):
            if need not in self._names:
                message = f"task {name!r} depends on {need!r}, which does not exist; {self._near(need)}"
                self._faults.add(("tarefas", name, "depende", number), FaultCode.UNKNOWN_NAME, message)

    def _near(self, word: str) -> str:
        return "" if self._faults.full else f"{hint(word, self._names)}tasks: {listed(self._names_in_order())}"

    def _names_in_order(self) -> list[str]:
        return [*self._document.tasks, *sorted(self._broken)]

    def _check_item_name(self, name: str, node: MapNode) -> None:
        at: Path = ("tarefas", name, "como")
        if node.as_ in self._names:
            message = f"{node.as_!r} is the name of a task; give the item another with como (as)"
            self._faults.add(at, FaultCode.BAD_NAME, message)
        elif node.as_ in limits.RESERVED_NAMES:
            message = f"{node.as_!r} is no name for an item: it means something else in expressions"
            self._faults.add(at, FaultCode.BAD_NAME, message)

    # -- expressions -------------------------------------------------------------------------------------------------

    def _check_site(self, site: Site) -> None:
        try:
            pieces = list(pieces_of(site.text))
        except ExpressionError as error:
            self._bad(site, error.message, error.position)
            return
        if site.wanted is not Wanted.ANY and not (len(pieces) == 1 and pieces[0].is_expression):
            self._bad(site, f"{site.wanted.value} is one expression in ${{{{ }}}} and nothing else", 0)
        for piece in pieces:
            expression = self._compiled(site, piece) if piece.is_expression else None
            for use in expression.uses if expression is not None else ():
                self._check_use(site, use, piece.position)

    def _compiled(self, site: Site, piece: Piece) -> Expression | None:
        try:
            return compile_expression(piece.text)
        except ExpressionError as error:
            self._bad(site, error.message, piece.position + error.position)
            return None

    def _bad(self, site: Site, message: str, column: int, code: FaultCode = FaultCode.EXPRESSION) -> None:
        if len(message) > MESSAGE_MAX_CHARS:
            message = message[:MESSAGE_MAX_CHARS] + "…"
        self._faults.add(site.path, code, f"{message} (column {column + 1})", column)

    def _check_use(self, site: Site, use: Use, offset: int) -> None:
        name, scope = use.name, site.scope
        meant = name_to_portuguese(name)
        if name == scope.item or meant == "entrada":
            return
        if (meant == "indice" and scope.index) or (meant == "feito" and scope.done):
            return
        if name in self._names:
            self._check_field(site, use, offset)
            return
        self._bad(site, self._unknown(site, name, meant), offset + use.position, FaultCode.UNKNOWN_NAME)

    def _unknown(self, site: Site, name: str, meant: str) -> str:
        if self._faults.full:
            return ""
        if meant == "indice":
            return f"{name} is there in faz (do) and pare_quando (stop_when) only"
        if meant == "feito":
            return f"{name} is there in desfaz (undo) only"
        scope = site.scope
        extra = [scope.item] if scope.item else []
        extra += ["indice"] if scope.index else []
        extra += ["feito"] if scope.done else []
        known = ["entrada", *extra, *self._names_in_order()]
        return f"there is no {name!r} here; {hint(name, known)}known: {listed(known)}"

    def _check_field(self, site: Site, use: Use, offset: int) -> None:
        if use.name == site.task and not site.scope.own:
            return  # a cycle of one, found with the others
        offered = offers(self._document.tasks.get(use.name))
        words = [FIELDS.get(field, field) if self._faults.english else field for field in offered]
        if not use.field:
            fields = ", ".join(f"{use.name}.{word}" for word in words)
            message = f"{use.name} is a task; ask for one of its fields: {fields}"
            self._bad(site, message, offset + use.position, FaultCode.UNKNOWN_NAME)
        elif offered_to_portuguese(use.field) not in offered:
            near = hint(use.field, [*offered, *(FIELDS.get(field, field) for field in offered)])
            message = f"task {use.name!r} offers no {use.field!r}; {near}it offers {', '.join(words)}"
            self._bad(site, message, offset + use.field_position, FaultCode.UNKNOWN_NAME)

    # -- the graph ---------------------------------------------------------------------------------------------------

    def _check_graph(self, needs: dict[str, tuple[str, ...]]) -> None:
        total = sum(map(len, needs.values()))
        if total > limits.MAX_DEPENDENCIES:
            message = f"{total} dependencies; a plan has at most {limits.MAX_DEPENDENCIES}"
            self._faults.add(("tarefas",), FaultCode.TOO_MUCH, message)
            return
        for name, node in self._document.tasks.items():
            self._check_join(name, node, len(needs[name]))
        left = {name: [need for need in found if need in needs] for name, found in needs.items()}
        for _ in range(CYCLES_SHOWN):
            cycle = find_cycle(left)
            if not cycle:
                return
            path = cycle if len(cycle) <= CYCLE_TASKS_SHOWN else [*cycle[: CYCLE_TASKS_SHOWN - 1], "…", cycle[-1]]
            message = "the tasks wait for each other: " + " → ".join(path)
            self._faults.add(("tarefas", cycle[0]), FaultCode.CYCLE, message)
            left[cycle[-2]] = [need for need in left[cycle[-2]] if need != cycle[-1]]

    def _check_join(self, name: str, node: Node, inputs: int) -> None:
        rule = node.options.fan_in
        if rule is None or isinstance(node, MapNode):
            return
        at: Path = ("tarefas", name, "fan_in")
        if not inputs:
            message = f"fan_in counts what a task depends on, and {name!r} depends on nothing"
            self._faults.add(at, FaultCode.NOT_ALLOWED, message)
        elif rule.mode is JoinMode.QUORUM and (rule.at_least or 1) > inputs:
            message = f"fan_in needs {rule.at_least} of the {inputs} tasks that {name!r} depends on"
            self._faults.add((*at, "minimo"), FaultCode.NOT_ALLOWED, message)

    # -- warnings ----------------------------------------------------------------------------------------------------

    def _warn(self) -> None:
        """Destinations that may have two open tickets at once: workers that echo no ticket_id cannot be told apart."""
        seen: dict[tuple[Kind, str], str] = {}
        for name, node in self._document.tasks.items():
            call = node.do if isinstance(node, MapNode) else node
            if not isinstance(call, CallNode):
                continue
            key = (call.kind, call.destination)
            other = name if isinstance(node, MapNode) else seen.get(key)
            if other is not None:
                message = (
                    f"{call.destination} may get several orders at once ({other}"
                    f"{'' if other == name else ', ' + name}): its worker has to echo ticket_id"
                )
                self._warnings.add(("tarefas", name), FaultCode.AMBIGUOUS, message)
            seen.setdefault(key, name)
