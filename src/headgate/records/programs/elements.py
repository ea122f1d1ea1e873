"""What some conditions over one value say of its type as well, as a set of values.

    typeof(a) <> 'string' AND a > 5                      whole numbers, doubles and decimals above 5
    exists(a, x -> typeof(x) = 'string' AND x LIKE 'b%') an array with such a text

By kinds of values, because `typeof` tells them apart and facets alone do not: a text has several. For each
kind it is known which values hold, on one facet; where it is not, or two facets would be needed, there is no
set, and the condition is computed.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from headgate.core.values import Kind
from headgate.errors import FilterError
from headgate.records.computed import EXPRESSION, expression_of
from headgate.records.expressions.model import Call, Cast, Lambda, Name, Variable, names, walk
from headgate.records.language.model import And, Attribute, Comparison, In, IsNull, Like, Not, Op, Or
from headgate.records.language.rewrite import normalise
from headgate.records.programs.intervals import Cut, Intervals, after, before, intersection, union
from headgate.records.programs.leaves import (
    FACETS_OF_KIND,
    Facet,
    Leaf,
    Quantifier,
    SetLeaf,
    element_leaf,
    line,
    value_leaf,
)
from headgate.records.programs.lowering import lower, points

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.values import Path
    from headgate.records.expressions.expression import Expression as Computed
    from headgate.records.expressions.model import Node
    from headgate.records.language.model import Expression

_SCALARS = (Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.TIMESTAMP, Kind.STRING)
_NAMES: dict[Kind, tuple[Cut, Cut]] = {
    Kind.BOOL: (before("boolean"), after("boolean")),
    Kind.INT: (before("bigint"), after("bigint")),
    Kind.FLOAT: (before("double"), after("double")),
    Kind.DECIMAL: (before("decimal("), before("decimal)")),
    Kind.TIMESTAMP: (before("timestamp"), after("timestamp")),
    Kind.STRING: (before("string"), after("string")),
    Kind.ARRAY: (before("array<"), before("array=")),
    Kind.OBJECT: (before("struct<"), before("struct=")),
    Kind.NULL: (before("void"), after("void")),
}
"""The names that `typeof` gives values of a kind: from a cut to another."""
_TYPEOF = "typeof("
_ELEMENT = Attribute.of("x")


class _Some(NamedTuple):
    """The values of a kind whose keys on a facet lie in a set."""

    facet: Facet
    ranges: Intervals


_Values = bool | _Some | None
"""All values of a kind, none, some, or not known."""
_ByKind = dict[Kind, _Values]


@lru_cache(maxsize=4_096)
def typeof_path(path: Path) -> Path | None:
    """Return the attribute whose type a computed attribute is; None if it is none.

    >>> typeof_path(("EXPRESSION", "typeof(a.b)")), typeof_path(("EXPRESSION", "a + 1"))
    (('a', 'b'), None)
    """
    if path[:1] != (EXPRESSION,) or not path[1].startswith(_TYPEOF):
        return None
    match expression_of(path).node:
        case Call("typeof", (Name(found),)):
            return found
    return None


def with_type(leaf: SetLeaf, typed: SetLeaf) -> SetLeaf | None:
    """Make one leaf of a set of values and of a set of their types, joined by AND; None if there is none.

    >>> from headgate.records.programs.program import compile_program
    >>> from headgate.records.language.parse import parse_filter
    >>> found = compile_program(parse_filter("a > 5 AND typeof(a) <> 'string'")).leaves
    >>> [facet.name for facet, _ in found[0].sets]
    ['INT', 'FLOAT', 'DECIMAL']
    """
    values = _both(_by_kind(leaf), _of_types(typed, null=True))
    sets = _sets(values)
    return None if sets is None or values[Kind.NULL] is not False else value_leaf(leaf.path, sets)


@lru_cache(maxsize=4_096)
def some_element(expression: Computed) -> SetLeaf | None:
    """Make the leaf of `exists(a, x -> …)`; None if the condition on elements is no set of values."""
    match expression.node:
        case Call("exists", (Name(path), Lambda(variable, body))):
            values = _elements(body, variable)
            sets = None if values is None else _sets(values)
            if values is None or sets is None or values[Kind.NULL] is None:
                return None
            leaf = element_leaf(path, Quantifier.ANY, sets)
            return replace(leaf, on_null=values[Kind.NULL] is True)
    return None


def _elements(body: Node, variable: str) -> _ByKind | None:
    """Return for which elements a condition is TRUE; None if it is none of those that are known here."""
    if names(body) or any(isinstance(each, Lambda) for each in walk(body)):
        return None
    from headgate.records.language.conditions import Conditions

    try:
        condition = Conditions("", lambda _node: None).filter(_named(body, variable))
    except FilterError:
        return None
    return _condition(normalise(condition))


def _named(node: Node, variable: str) -> Node:
    """Write an attribute for the variable."""
    match node:
        case Variable(name) if name == variable:
            return Name(_ELEMENT.path, _ELEMENT.names)
        case Call(name, arguments):
            return Call(name, tuple(_named(each, variable) for each in arguments))
        case Cast(child, to):
            return Cast(_named(child, variable), to)
    return node


def _condition(node: Expression) -> _ByKind | None:
    if isinstance(node, And | Or):
        join = _both if isinstance(node, And) else _either
        parts = [_condition(child) for child in node.children]
        known = [each for each in parts if each is not None]
        return reduce(join, known) if len(known) == len(parts) else None
    predicate = node.child if isinstance(node, Not) else node
    if not isinstance(predicate, Comparison | In | Like | IsNull) or (
        # Spark raises where a literal cannot be cast, and then it is NULL: which would be equal to NULL.
        isinstance(predicate, Comparison) and predicate.op is Op.NULL_SAFE_EQ
    ):
        return None
    if isinstance(node, In):
        # An expression takes a literal that cannot be cast for NULL, and may equal the others.
        leaf: Leaf = value_leaf(node.attribute.key, points(node.literals, every=False))
    else:
        leaf = lower(predicate, negated=isinstance(node, Not))
    if not isinstance(leaf, SetLeaf):
        return None
    if leaf.path == _ELEMENT.path:
        return _by_kind(leaf, like=isinstance(predicate, Like))
    # Elements that are NULL have the type of the others.
    return _of_types(leaf, null=False) if typeof_path(leaf.path) == _ELEMENT.path else None


def _by_kind(leaf: SetLeaf, *, like: bool = False) -> _ByKind:
    """Return the values of a leaf; what LIKE sees of elements is not known, unless they are texts."""
    values: _ByKind = dict.fromkeys(_NAMES, False)
    values[Kind.NULL] = leaf.on_null
    sets = dict(leaf.sets)
    if Facet.PRESENT in sets:
        return {kind: leaf.on_null if kind is Kind.NULL else True for kind in values}
    if Facet.ARRAY in sets:
        values[Kind.ARRAY] = True
    for kind in _SCALARS:
        own = [facet for facet in FACETS_OF_KIND[kind] if facet in sets]
        if like and kind is not Kind.STRING:
            values[kind] = None
        elif len(own) == 1:
            values[kind] = _Some(own[0], sets[own[0]])
        elif own:
            values[kind] = None
    return values


def _of_types(leaf: SetLeaf, *, null: bool) -> _ByKind:
    """Return the values whose types lie in a set of names; without `null` those of NULL are not known."""
    sets = dict(leaf.sets)
    ranges = sets.get(Facet.STRING) or sets.get(Facet.TEXT, ())
    values: _ByKind = {}
    for kind, (low, high) in _NAMES.items():
        inside = intersection(ranges, ((low, high),))
        values[kind] = False if not inside else True if inside == ((low, high),) else None
    if values[Kind.ARRAY] != values[Kind.NULL]:
        # An array whose elements have no common type is NULL to expressions, so its type is void.
        values[Kind.ARRAY] = None
    if not null:
        values[Kind.NULL] = None
        if values[Kind.INT] != values[Kind.FLOAT]:
            # A whole number among doubles is a double.
            values[Kind.INT] = values[Kind.FLOAT] = None
    return values


def _both(left: _ByKind, right: _ByKind) -> _ByKind:
    return {kind: _joined(left[kind], right[kind], intersection, final=False) for kind in left}


def _either(left: _ByKind, right: _ByKind) -> _ByKind:
    return {kind: _joined(left[kind], right[kind], union, final=True) for kind in left}


def _joined(
    left: _Values, right: _Values, join: Callable[[Intervals, Intervals], Intervals], *, final: bool
) -> _Values:
    """Join values of a kind by AND, of which one FALSE is enough, or OR, of which one TRUE is."""
    if left is final or right is final:
        return final
    if isinstance(left, bool) or isinstance(right, bool):
        return right if isinstance(left, bool) else left
    if left is None or right is None or left.facet != right.facet:
        return None
    ranges = join(left.ranges, right.ranges)
    return _Some(left.facet, ranges) if ranges else False


def _sets(found: _ByKind) -> dict[Facet, Intervals] | None:
    """Return the sets of a leaf; None if it cannot say so."""
    others = [values for kind, values in found.items() if kind is not Kind.NULL]
    if all(values is True for values in others):
        return {Facet.PRESENT: (line(Facet.PRESENT),)}
    if found[Kind.OBJECT] is not False:
        return None
    sets: dict[Facet, Intervals] = {}
    for kind, values in found.items():
        if kind is Kind.NULL or values is False:
            continue
        if values is None:
            return None
        own = Facet[kind.name]
        if values is True:
            sets[own] = (line(own),)
        elif values.facet is not Facet.TEXT:
            sets[values.facet] = values.ranges
        elif kind is Kind.STRING:
            sets[own] = values.ranges
        else:
            return None
    return sets
