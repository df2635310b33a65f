"""Tokens → tree, within bounds: 4,096 characters, 500 parts, 40 levels of nesting."""

from __future__ import annotations

from collections.abc import Callable

from oraculo.errors import ExpressionError
from oraculo.expressions.lexer import INT_MAX, RESERVED, WORDS, Token, tokens_of
from oraculo.expressions.syntax import (
    Call,
    Chain,
    Conditional,
    Field,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Member,
    Method,
    Name,
    Node,
    Step,
    Unary,
)

SOURCE_MAX_CHARS = 4096
MAX_PARTS = 500
MAX_NESTING = 40
MACROS = {"all": (2,), "exists": (2,), "exists_one": (2,), "filter": (2,), "map": (2, 3)}  # name → arguments
NAMESPACES = frozenset({"math"})  # names that only go before a function
_RELATIONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


def parse(source: str) -> Node:
    """The tree of `source`; ExpressionError with a position where it is not in the language or beyond a bound."""
    if len(source) > SOURCE_MAX_CHARS:
        raise ExpressionError(f"an expression has at most {SOURCE_MAX_CHARS} characters, this one has {len(source)}", 0)
    return _Parser(tokens_of(source)).whole()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._parts = 0
        self._nesting = 0

    def whole(self) -> Node:
        if self._here.kind == "end":
            raise ExpressionError("the expression is empty", 0)
        found = self._expression()
        if self._here.kind != "end":
            raise self._unexpected("an operator or the end")
        return found

    # -- tokens ------------------------------------------------------------------------------------------------------

    @property
    def _here(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._here
        self._next += 1
        return token

    def _is(self, *signs: str) -> bool:
        return self._here.kind in ("sign", "name") and self._here.value in signs

    def _takes(self, sign: str) -> bool:
        if self._is(sign):
            self._next += 1
            return True
        return False

    def _needs(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._unexpected(repr(sign))

    def _unexpected(self, wanted: str) -> ExpressionError:
        token = self._here
        got = "the end" if token.kind == "end" else repr(token.value)
        return ExpressionError(f"{wanted} is expected, not {got}", token.position)

    def _part(self, position: int) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise ExpressionError(f"an expression has at most {MAX_PARTS} parts", position)

    # -- grammar -----------------------------------------------------------------------------------------------------

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise ExpressionError(f"an expression is at most {MAX_NESTING} levels deep", self._here.position)
        condition = self._or()
        if self._is("?"):
            position = self._take().position
            self._part(position)
            yes = self._or()
            self._needs(":")
            condition = Conditional(condition, yes, self._expression(), position)
        self._nesting -= 1
        return condition

    def _or(self) -> Node:
        return self._logic("||", self._and)

    def _and(self) -> Node:
        return self._logic("&&", self._relation)

    def _logic(self, sign: str, below: Callable[[], Node]) -> Node:
        first = below()
        if not self._is(sign):
            return first
        position = self._here.position
        operands = [first]
        while self._takes(sign):
            self._part(position)
            operands.append(below())
        return Logic(sign, tuple(operands), position)

    def _relation(self) -> Node:
        return self._chain(_RELATIONS, self._addition)

    def _addition(self) -> Node:
        return self._chain(frozenset("+-"), self._multiplication)

    def _multiplication(self) -> Node:
        return self._chain(frozenset("*/%"), self._unary)

    def _chain(self, signs: frozenset[str], below: Callable[[], Node]) -> Node:
        first = below()
        rest: list[tuple[str, Node, int]] = []
        while self._here.kind in ("sign", "name") and self._here.value in signs:
            token = self._take()
            self._part(token.position)
            rest.append((str(token.value), below(), token.position))
        return Chain(first, tuple(rest), rest[0][2]) if rest else first

    def _unary(self) -> Node:
        if not self._is("!", "-"):
            return self._member()
        token = self._take()
        sign, count = str(token.value), 1
        while self._takes(sign):
            count += 1
        self._part(token.position)
        number = self._here
        if sign == "-" and number.kind == "int" and number.value == INT_MAX + 1:  # its sign belongs to the number
            self._next += 1
            operand, count = self._steps(Literal(-int(number.value), number.position)), count - 1
        else:
            operand = self._member()
        return Unary(sign, count, operand, token.position) if count else operand

    def _member(self) -> Node:
        return self._steps(self._primary())

    def _steps(self, root: Node) -> Node:
        steps: list[Step] = []
        while self._is(".", "["):
            token = self._take()
            self._part(token.position)
            if token.value == "[":
                steps.append(Index(self._expression(), token.position))
                self._needs("]")
                continue
            quoted = self._here.kind == "quoted"
            name = self._take() if quoted else self._identifier(reserved=True)
            if quoted or not self._is("("):
                steps.append(Field(str(name.value), name.position))
            elif isinstance(root, Name) and root.name in NAMESPACES and not steps:
                root = Call(f"{root.name}.{name.value}", self._arguments(), name.position)
            else:
                steps.append(self._method(str(name.value), name.position))
        return Member(root, tuple(steps), root.position) if steps else root

    def _method(self, name: str, position: int) -> Step:
        arguments = self._arguments()
        if name not in MACROS or len(arguments) not in MACROS[name]:
            return Method(name, arguments, position)
        variable = arguments[0]
        if not isinstance(variable, Name):
            raise ExpressionError(f"the first argument of {name} is the name of a variable", position)
        return Macro(name, variable.name, arguments[1:], position)

    def _arguments(self) -> tuple[Node, ...]:
        self._needs("(")
        found: list[Node] = []
        while not self._is(")"):
            found.append(self._expression())
            if not self._takes(","):
                break
        self._needs(")")
        return tuple(found)

    def _identifier(self, *, reserved: bool = False) -> Token:
        token = self._here
        if token.kind != "name" or token.value in WORDS or (token.value in RESERVED and not reserved):
            raise self._unexpected("a name")
        return self._take()

    def _primary(self) -> Node:
        token = self._here
        self._part(token.position)
        match token.kind:
            case "int":
                return self._integer(self._take())
            case "double" | "text":
                self._next += 1
                return Literal(token.value, token.position)
            case "name":
                return self._named(token)
        if self._takes("("):
            inner = self._expression()
            self._needs(")")
            return inner
        if self._takes("["):
            return self._list(token.position)
        if self._takes("{"):
            return self._map(token.position)
        raise self._unexpected("a value")

    def _integer(self, token: Token) -> Literal:
        if int(token.value) > INT_MAX:
            raise ExpressionError(f"{token.value} is larger than 64 bits allow", token.position)
        after = self._here
        if after.kind == "name" and after.position == token.end:
            if after.value in ("u", "U"):
                raise ExpressionError("unsigned integers are not part of this profile; leave out the u", after.position)
            raise self._unexpected("an operator or the end")
        return Literal(token.value, token.position)

    def _named(self, token: Token) -> Node:
        constants: dict[str | int | float, bool | None] = {"true": True, "false": False, "null": None}
        if token.value in constants:
            self._next += 1
            return Literal(constants[token.value], token.position)
        name = str(self._identifier().value)
        if not self._is("("):
            return Name(name, token.position)
        arguments = self._arguments()
        if name != "has":
            return Call(name, arguments, token.position)
        inner = arguments[0] if len(arguments) == 1 else None
        last = inner.steps[-1] if isinstance(inner, Member) else None
        if not isinstance(inner, Member) or not isinstance(last, Field):
            raise ExpressionError("has() takes one field, as in has(videos.dados)", token.position)
        rest = inner.steps[:-1]
        asked = Member(inner.root, rest, inner.position) if rest else inner.root
        return Has(asked, last.name, last.position, token.position)

    def _list(self, position: int) -> Node:
        items: list[Node] = []
        while not self._is("]"):
            items.append(self._expression())
            if not self._takes(","):
                break
        self._needs("]")
        return ListOf(tuple(items), position)

    def _map(self, position: int) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self._is("}"):
            key = self._expression()
            self._needs(":")
            entries.append((key, self._expression()))
            if not self._takes(","):
                break
        self._needs("}")
        return MapOf(tuple(entries), position)
