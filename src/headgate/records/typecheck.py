"""Filters against a schema: names and types that can never match are refused at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.values import Kind, dotted
from headgate.errors import FilterError
from headgate.records.facets import Facet
from headgate.records.leaves import GlobLeaf, Quantifier
from headgate.records.lowering import lower
from headgate.records.model import IsNull, predicates
from headgate.records.printing import print_attribute, print_filter
from headgate.records.rewrite import expand_between, resolve_nulls

if TYPE_CHECKING:
    from headgate.core.schema import Schema, Type
    from headgate.records.model import Expression, Predicate

_STRINGS = {Facet.STRING, Facet.TEXT} | {facet for facet in Facet if facet.name.startswith("STRING_")}
_SEEN = {
    Kind.NULL: set(Facet),
    Kind.BOOL: {Facet.BOOL, Facet.TEXT},
    Kind.INT: {Facet.INT, Facet.TEXT},
    Kind.FLOAT: {Facet.FLOAT},
    Kind.STRING: _STRINGS,
    Kind.TIMESTAMP: {Facet.TIMESTAMP},
    Kind.ARRAY: {Facet.ARRAY},
    Kind.OBJECT: set(),
}


def check_types(expression: Expression, schema: Schema, text: str) -> None:
    """Refuse a filter that names an unknown attribute or compares one with a literal of another type.

    >>> from headgate import Schema, parse_filter
    >>> text = "aeg > 30"
    >>> check_types(parse_filter(text), Schema.from_json({"age": "int64"}), text)
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: attribute aeg is not in the schema; age is, at character 1: ⟪aeg > 30
    """
    for predicate in predicates(resolve_nulls(expand_between(expression))):
        path = predicate.attribute.path
        place = text.lower().find(print_attribute(predicate.attribute).lower())
        found = schema.types.get(path)
        if found is None:
            near = schema.nearest(path)
            hint = f"; {near} is" if near else ""
            raise FilterError(f"attribute {dotted(path)} is not in the schema{hint}", text, max(place, 0))
        if not _able(predicate, found):
            reason = f"{dotted(path)} is {found}, so {print_filter(predicate)} can never hold"
            raise FilterError(reason, text, max(place, 0))


def _able(predicate: Predicate, found: Type) -> bool:
    if isinstance(predicate, IsNull):
        return True
    # Both forms, because one of them may be empty for another reason: an empty list, say.
    for negated in (False, True):
        leaf = lower(predicate, negated=negated)
        if isinstance(leaf, GlobLeaf):
            return bool(_SEEN[found.kind] & {Facet.TEXT})
        kind = found.kind
        if leaf.quantifier is not Quantifier.VALUE:
            if kind is not Kind.ARRAY:
                return kind is Kind.NULL
            kind = found.element if found.element is not None else Kind.NULL
        if any(facet in _SEEN[kind] for facet, _ in leaf.sets):
            return True
    return False
