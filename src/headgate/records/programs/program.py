"""A filter as a small program; leaves over one attribute under one AND or OR are merged if they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import FilterError
from headgate.records.language.model import And, Constant, Expression, Not, Or, Truth
from headgate.records.programs.elements import some_element, typeof_path, with_type
from headgate.records.programs.leaves import Quantifier, SetLeaf, both, either, never
from headgate.records.programs.lowering import lower
from headgate.records.programs.tokens import AND, FALSE, MAX_HEIGHT, OR, TRUE, Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.records.programs.leaves import Leaf


def compile_program(expression: Expression) -> Program:
    """Compile a normalised expression (see `rewrite.normalise`).

    >>> from headgate.records.language.parse import parse_filter
    >>> from headgate.records.language.rewrite import normalise
    >>> compile_program(normalise(parse_filter("a > 1 AND (b = 2 OR NOT c)"))).tokens
    (0, 1, 2, -2, -1)
    >>> compile_program(normalise(parse_filter("a BETWEEN 1 AND 5 AND a != 3"))).tokens
    (0,)
    """
    tokens: list[int] = []
    leaves: dict[Leaf, int] = {}
    _emit(expression, tokens, leaves)
    if _height(tokens) >= MAX_HEIGHT:
        raise FilterError(f"AND and OR alternate deeper than {MAX_HEIGHT}", "", None)
    return Program(tuple(tokens), tuple(leaves))


def _height(tokens: list[int]) -> int:
    height = highest = 0
    for token in tokens:
        height += -1 if token in {AND, OR} else 1
        highest = max(highest, height)
    return highest


def _emit(node: Expression, tokens: list[int], leaves: dict[Leaf, int]) -> None:
    if isinstance(node, Constant):
        tokens.append(TRUE if node.value else FALSE)
    elif isinstance(node, And | Or):
        sign = AND if isinstance(node, And) else OR
        plain, nested = _split(node)
        for position, leaf in enumerate(plain):
            _emit_leaf(leaf, tokens, leaves)
            if position:
                tokens.append(sign)
        for position, child in enumerate(nested):
            _emit(child, tokens, leaves)
            if plain or position:
                tokens.append(sign)
    else:
        _emit_leaf(_lower(node), tokens, leaves)


def _emit_leaf(leaf: Leaf, tokens: list[int], leaves: dict[Leaf, int]) -> None:
    tokens.append(FALSE if never(leaf) else leaves.setdefault(leaf, len(leaves)))


def _lower(node: Expression) -> Leaf:
    negated = isinstance(node, Not)
    predicate = node.child if isinstance(node, Not) else node
    assert not isinstance(predicate, And | Or | Not | Constant), "push_not comes first"
    if isinstance(predicate, Truth) and predicate.attribute.expression is not None and not negated:
        leaf = some_element(predicate.attribute.expression)
        if leaf is not None:
            return leaf
    return lower(predicate, negated=negated)


def _split(node: And | Or) -> tuple[list[Leaf], list[Expression]]:
    """Lower the predicates among the children, merged by attribute; return them and the other children."""
    merge = both if isinstance(node, And) else either
    nested: list[Expression] = [child for child in node.children if isinstance(child, And | Or)]
    lowered = [_lower(child) for child in node.children if not isinstance(child, And | Or)]
    plain: list[Leaf] = []
    positions: dict[tuple[str, ...], int] = {}
    if isinstance(node, And):
        lowered = _with_types(lowered)
    for leaf in _merge_alike(lowered, merge):
        if isinstance(leaf, SetLeaf) and leaf.quantifier is Quantifier.VALUE:
            earlier = positions.get(leaf.path)
            known = plain[earlier] if earlier is not None else None
            merged = merge(known, leaf) if isinstance(known, SetLeaf) else None
            if earlier is not None and merged is not None:
                plain[earlier] = merged
                continue
            positions[leaf.path] = len(plain)
        plain.append(leaf)
    return plain, nested


def _with_types(leaves: list[Leaf]) -> list[Leaf]:
    """Merge what is asked of the type of an attribute with what is asked of its value."""
    typed = [leaf for leaf in leaves if isinstance(leaf, SetLeaf) and typeof_path(leaf.path) is not None]
    for each in typed:
        own = typeof_path(each.path)
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, SetLeaf) and leaf.quantifier is Quantifier.VALUE and leaf.path == own:
                merged = with_type(leaf, each)
                if merged is not None:
                    leaves = [
                        merged if at == position else other
                        for at, other in enumerate(leaves)
                        if other is not each
                    ]
                    break
    return leaves


def _merge_alike(leaves: list[Leaf], merge: Callable[[SetLeaf, SetLeaf], SetLeaf | None]) -> list[Leaf]:
    """Merge leaves over the same facets of one attribute, two by two, so that n of them cost n log n."""
    groups: dict[object, list[Leaf]] = {}
    for leaf in leaves:
        if isinstance(leaf, SetLeaf) and leaf.quantifier is Quantifier.VALUE:
            groups.setdefault((leaf.path, tuple(facet for facet, _ in leaf.sets)), []).append(leaf)
        else:
            # Over elements or patterns there is no algebra of sets; only equal leaves are one.
            groups[leaf] = [leaf]
    return [leaf for group in groups.values() for leaf in _halve(group, merge)]


def _halve(group: list[Leaf], merge: Callable[[SetLeaf, SetLeaf], SetLeaf | None]) -> list[Leaf]:
    while len(group) > 1:
        joined: list[Leaf] = []
        for left, right in zip(group[::2], group[1::2], strict=False):
            assert isinstance(left, SetLeaf)
            assert isinstance(right, SetLeaf)
            merged = merge(left, right)
            if merged is None:
                return group
            joined.append(merged)
        group = [*joined, *group[2 * len(joined) :]]
    return group
