"""Filters against a schema: names and types that can never match are refused at once."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from headgate.core.values import Kind, dotted
from headgate.errors import FilterError
from headgate.records.language.model import IsNull, predicates
from headgate.records.language.printing import print_filter
from headgate.records.language.rewrite import expand_between, resolve_nulls
from headgate.records.programs.leaves import Facet, GlobLeaf, Quantifier
from headgate.records.programs.lowering import lower

if TYPE_CHECKING:
    from headgate.core.schema import Schema, Type
    from headgate.core.values import Path
    from headgate.records.language.model import Expression, Predicate

_STRING = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
# A variable, and all that its function says of it: up to the parenthesis that ends the call.
_LAMBDA = rf"""(?:\w+|`[^`]*`)\s*->(?:{_STRING}|[^'"()]|\((?:{_STRING}|[^'"()])*\))*"""
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
    seen: Counter[Path] = Counter()
    for predicate in predicates(expression):
        path = predicate.attribute.path
        seen[path] += 1
        found = schema.types.get(path)
        if found is None:
            near = schema.nearest(path)
            reason = f"attribute {dotted(path)} is not in the schema" + (f"; {near} is" if near else "")
            raise FilterError(reason, text, _place(path, seen[path], text))
        for part in predicates(resolve_nulls(expand_between(predicate))):
            if not _able(part, found):
                reason = f"{dotted(path)} is {found}, so {print_filter(part)} can never hold"
                raise FilterError(reason, text, _place(path, seen[path], text))


def _place(path: Path, count: int, text: str) -> int | None:
    """Find where an attribute stands for the count-th time, with or without backticks, not in a string.

    Nor in a function of forall, whose variable may have the same name.
    """
    names = (rf"(?:{re.escape(name)}|`{re.escape(name.replace('`', '``'))}`)" for name in path)
    dotted_name = r"\s*\.\s*".join(names)
    pattern = rf"{_STRING}|{_LAMBDA}|(?<![\w.`])({dotted_name})(?![\w`]|\s*\.)"
    places = [found.start(1) for found in re.finditer(pattern, text, re.IGNORECASE | re.DOTALL) if found[1]]
    return places[count - 1] if len(places) >= count else None


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
        if any(facet is Facet.PRESENT or facet in _SEEN[kind] for facet, _ in leaf.sets):
            return True
    return False
