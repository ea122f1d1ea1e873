"""An expression over attributes: parsed once, typed for every combination of types that events bring."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headgate.core.casts import DAY
from headgate.core.values import PRESENT, flatten
from headgate.records.computed import value_of
from headgate.records.expressions import types
from headgate.records.expressions.arrays import MAX_STEPS
from headgate.records.expressions.bound import Bound, constant, fail, null, take_trouble
from headgate.records.expressions.casting import cast, incoming, outgoing
from headgate.records.expressions.functions import FUNCTIONS, OPERATORS
from headgate.records.expressions.model import Call, Cast, Lambda, Name, Value, Variable, names
from headgate.records.expressions.parse import check_size, parse_node
from headgate.records.expressions.printing import print_node, print_operand
from headgate.records.expressions.types import BOOL, DOUBLE, LONG, STRING, VOID, type_of
from headgate.records.language.model import Literal, LiteralType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headgate.core.values import Path
    from headgate.records.expressions.model import Node
    from headgate.records.expressions.types import Type

    Run = Callable[[Sequence[Any]], Any]

MAX_FORMS = 256
"""Combinations of types for which an expression is kept ready."""
_SIMPLE: dict[type, Type] = {type(None): VOID, bool: BOOL, int: LONG, float: DOUBLE, str: STRING}
_FIRST_SLOT = 1
"""Where the values of attributes begin in a row; before them stands how many steps are left."""


class _Binder:
    """Binds one tree; `size` is how long rows must be, `refused` what Spark refuses in it."""

    def __init__(self, given: Mapping[Path, Type], order: tuple[Path, ...]) -> None:
        self._given = given
        self._slot = {path: _FIRST_SLOT + place for place, path in enumerate(order)}
        self._variables: dict[str, tuple[int, Type]] = {}
        self.size = _FIRST_SLOT + len(order)
        self.refused = ""

    def bind(self, node: Node) -> Bound:
        """Bind a node; what Spark refuses for its types is NULL."""
        bound: Bound | None
        match node:
            case Value(literal, wide):
                bound = _literal(literal)
                return bound._replace(type=types.LONG) if wide else bound
            case Name(path):
                return self._read(self._slot[path], self._given[path])
            case Variable(name):
                return self._read(*self._variables[name])
            case Cast(child, to):
                bound = cast(self.bind(child), to)
            case Lambda(variable, body):
                return Bound(types.VOID, null, body=lambda kind: self._function(variable, body, kind))
            case Call(name, arguments):
                wanted = OPERATORS.get(name) or FUNCTIONS[name]
                bound = wanted.bind([self.bind(each) for each in arguments])
        return self._refuse(node) if bound is None else bound

    def _refuse(self, node: Node) -> Bound:
        name = node.name if isinstance(node, Call) else "cast"
        reason = f"{name} does not take these types"
        self.refused = self.refused or reason

        def run(_row: list[Any]) -> None:
            fail(reason)

        return Bound(types.VOID, run)

    @staticmethod
    def _read(slot: int, kind: Type) -> Bound:
        return Bound(kind, lambda row: row[slot])

    def _function(self, variable: str, body: Node, kind: Type) -> tuple[int, Bound] | None:
        slot, outer = self.size, self._variables.get(variable)
        self.size += 1
        self._variables[variable] = slot, kind
        bound = self.bind(body)
        if outer is None:
            del self._variables[variable]
        else:
            self._variables[variable] = outer
        return slot, bound


def _literal(literal: Literal) -> Bound:
    value = literal.value
    match literal.type:
        case LiteralType.NULL:
            return Bound(types.VOID, null, None)
        case LiteralType.INT:
            assert isinstance(value, int)
            return constant(types.INT if -(2**31) <= value < 2**31 else types.LONG, value)
        case LiteralType.DECIMAL:
            assert isinstance(value, Decimal)
            kind = types.digits(value)
            assert kind is not None
            return constant(kind, value)
        case LiteralType.DATE:
            assert isinstance(value, int)
            return constant(types.DATE, value // DAY)
    return constant(_TYPES[literal.type], value)


_TYPES = {
    LiteralType.BOOL: types.BOOL,
    LiteralType.DOUBLE: types.DOUBLE,
    LiteralType.STRING: types.STRING,
    LiteralType.TIMESTAMP: types.TIMESTAMP,
}


class Form:
    """An expression for attributes of certain types: the type of its value, and what computes it."""

    def __init__(self, node: Node, paths: tuple[Path, ...], kinds: tuple[Type | None, ...]) -> None:
        given = {path: VOID if kind is None else kind for path, kind in zip(paths, kinds, strict=True)}
        binder = _Binder(given, paths)
        bound = binder.bind(node)
        self.type = bound.type
        self.refused = binder.refused
        self.run: Run = self._run(bound.run, list(given.values()), kinds, binder.size)

    def _run(
        self,
        run: Callable[[list[Any]], Any],
        kinds: list[Type],
        known: tuple[Type | None, ...],
        size: int,
    ) -> Run:
        ways = [incoming(kind) for kind in kinds]
        unknown = [place for place, kind in enumerate(known) if kind is None]
        out = outgoing(self.type)
        more = [None] * (size - _FIRST_SLOT - len(kinds))
        plain = not any(ways) and not unknown

        def computed(values: Sequence[Any]) -> Any:
            if plain:
                row = [MAX_STEPS, *values, *more]
            else:
                row = [MAX_STEPS, *map(_entered, values, ways), *more]
                for place in unknown:
                    row[_FIRST_SLOT + place] = None
            try:
                value = run(row)
                return value if out is None or value is None else out(value)
            except (ArithmeticError, ValueError, RecursionError):
                # Whatever a function has overlooked: one filter must not take the event from the others.
                return fail("it cannot be computed")

        return computed


def _entered(value: Any, way: Callable[[Any], Any] | None) -> Any:
    return value if way is None or value is None else way(value)


class Expression:
    """A deterministic expression of Spark SQL over the attributes of an event.

    >>> score = Expression.parse("0.3e0 * price + Bid")
    >>> score.text, score.attributes
    ('(0.3e0 * price) + bid', (('price',), ('bid',)))
    >>> score.evaluate({"price": 10, "bid": 0.5}), score.evaluate({"price": 10})
    (3.5, None)
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.text = print_node(node)
        self.operand = print_operand(node)
        """The text, in parentheses where another operator follows."""
        self.attributes: tuple[Path, ...] = names(node)
        self._exists = isinstance(node, Call) and node.name == "exists" and len(self.attributes) == 1
        self._presence = any(path[0] == PRESENT for path in self.attributes)
        self._forms: dict[object, Form] = {}

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Parse a text; what is not part of the language is refused, with its place."""
        return _parsed(text)

    @classmethod
    def of(cls, node: Node, text: str) -> Expression:
        """Make one of a tree that was part of a text; refused if it is too large."""
        check_size(node, text)
        return cls(node)

    def __eq__(self, other: object) -> bool:
        """Compare by text."""
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        """Hash by text."""
        return hash(self.text)

    def __repr__(self) -> str:
        """Show the text."""
        return f"Expression({self.text!r})"

    def __reduce__(self) -> tuple[Callable[[str], Expression], tuple[str]]:
        """Travel as text."""
        return _parsed, (self.text,)

    def evaluate(self, event: Mapping[str, object]) -> Any:
        """Return the value for an event given as a record; None where it is NULL."""
        return self.of_attributes(flatten(event))

    def of_attributes(self, attributes: Mapping[Path, object]) -> Any:
        """Return the value for flattened attributes."""
        if self._presence:
            return self.of_values([value_of(path, attributes) for path in self.attributes])
        return self.of_values([attributes.get(path) for path in self.attributes])

    def of_values(self, values: Sequence[Any]) -> Any:
        """Return the value for those of the attributes, in their order."""
        value = self.form(values).run(values)
        if value is None and self._exists and type_of(values[0]) is None:
            return self._of_some(values[0])
        return value

    def _of_some(self, value: Any) -> bool | None:
        """Ask elements of several types one by one: TRUE of one is TRUE of all, and else it is NULL."""
        if not isinstance(value, list | tuple):
            return None
        return True if any(self.of_values(([each],)) is True for each in value) else None

    def trouble(self, attributes: Mapping[Path, object]) -> str:
        """Say where Spark would raise for an event; empty if it would not."""
        take_trouble()
        self.of_attributes(attributes)
        return take_trouble()

    def form(self, values: Sequence[Any]) -> Form:
        """Return what is ready for the types of some values."""
        key: object = tuple(map(type, values))
        form = self._forms.get(key)
        if form is not None:
            return form
        kinds = tuple(map(type_of, values))
        # Of decimals, arrays and objects the type says more than Python's.
        simple = all(type(value) in _SIMPLE for value in values)
        return self.form_of(kinds, key if simple else kinds)

    def form_of(self, kinds: tuple[Type | None, ...], key: object = None) -> Form:
        """Return what is ready for some types."""
        key = kinds if key is None else key
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            form = self._forms[key] = Form(self.node, self.attributes, kinds)
        return form


@lru_cache(maxsize=65_536)
def _parsed(text: str) -> Expression:
    return Expression.of(parse_node(text), text)
