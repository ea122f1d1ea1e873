"""Trees of expressions to parts that run, for attributes of given types."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headgate.core.casts import DAY
from headgate.records.expressions import types
from headgate.records.expressions.bound import Bound, constant, fail, null
from headgate.records.expressions.casting import cast
from headgate.records.expressions.functions import FUNCTIONS, OPERATORS
from headgate.records.expressions.model import Call, Cast, Lambda, Name, Node, Value, Variable
from headgate.records.language.model import Literal, LiteralType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.values import Path
    from headgate.records.expressions.types import Type

FIRST_SLOT = 1
"""Where the values of attributes begin in a row; before them stands how many steps are left."""


class Binder:
    """Binds one tree; `size` is how long rows must be, `refused` what Spark refuses in it."""

    def __init__(self, given: Mapping[Path, Type], order: tuple[Path, ...]) -> None:
        self._given = given
        self._slot = {path: FIRST_SLOT + place for place, path in enumerate(order)}
        self._variables: dict[str, tuple[int, Type]] = {}
        self.size = FIRST_SLOT + len(order)
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
