"""How the clauses of a filter are joined: asked of the parser once, then known by the joints.

The parser reads the joints with a bare attribute in every slot. A predicate binds tighter than NOT, AND and
OR, and stands between these, parentheses and the ends of the text; so the tree is that of any filter with
the same joints, with the clauses in place of the attributes.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import FilterError
from headgate.records.language.model import And, Expression, Not, Or, Truth
from headgate.records.language.parse import parse_filter
from headgate.records.language.rewrite import normalise
from headgate.records.programs.program import AND, OR, compile_program
from headgate.records.programs.shapes import JOINTS, SLOT, Bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headgate.core.values import Path

MAX_SKELETONS = 4_096
_MAX_LENGTH = 1_024
_MAX_NESTING = 16
_MAX_RUN = 8
"""Parentheses within each other, and NOTs in a row: far from the limits of the parser, since clauses have
parentheses and widths of their own."""

_RUN = re.compile(rf"(?:(?:NOT\b|!)[ \t\n\r]*){{{_MAX_RUN + 1}}}", re.IGNORECASE)
_NAME = "headgate_slot_{}"


class Role(NamedTuple):
    """What a clause is among its neighbours: joined to them by AND or OR, itself or its negation."""

    sign: int
    negated: bool


ROLES = tuple(Role(sign, negated) for sign in (AND, OR) for negated in (False, True))


class Skeleton(NamedTuple):
    """A filter without its clauses.

    tree      the model, with Truth of `_NAME` in the slots
    roles     of the slots, after NOT has moved down
    uniform   the one role of all slots, if there is one
    groups    the slots that one AND or OR joins directly; those of each
    tokens    the program, over leaves in the order of their first push
    order     the slot of each of these leaves
    fill      picks the tokens out of (leaf of slot 0, leaf of slot 1, …, AND, OR)
    """

    tree: Expression
    roles: tuple[Role, ...]
    uniform: Role | None
    groups: tuple[tuple[int, ...], ...]
    tokens: tuple[int, ...]
    order: tuple[int, ...]
    fill: Callable[[Sequence[int]], tuple[int, ...]]

    @property
    def slots(self) -> int:
        """Count the clauses."""
        return len(self.roles)

    def bind(self, clauses: Sequence[Expression]) -> Expression:
        """Put clauses into the slots."""
        return _bind(self.tree, dict(zip(_paths(len(clauses)), clauses, strict=True)))


_GLUED = -1
"""The slot of a name that is none, because nothing stood between a slot and the next word."""

skeletons: Bounded[str, Skeleton | None] = Bounded(MAX_SKELETONS)


def find(joints: str) -> Skeleton | None:
    """Return the skeleton of the joints, or None if the parser must read each text that has them."""
    if joints in skeletons:
        return skeletons.get(joints)
    if len(joints) > _MAX_LENGTH or not JOINTS.fullmatch(joints):
        # Not remembered: whatever is no clause is in there, so there is no end of such joints.
        return None
    found = _ask(joints)
    skeletons[joints] = found
    return found


def _ask(joints: str) -> Skeleton | None:
    if _nesting(joints) > _MAX_NESTING or _RUN.search(joints):
        return None
    gaps = joints.split(SLOT)
    slots = len(gaps) - 1
    probe = "".join(f"{gap}{_NAME.format(slot)}" for slot, gap in enumerate(gaps[:-1])) + gaps[-1]
    try:
        tree = parse_filter(probe)
        normal = normalise(tree)
        program = compile_program(normal)
    except FilterError:
        return None
    places = {path: slot for slot, path in enumerate(_paths(slots))}
    roles: dict[int, Role] = {}
    _assign(normal, AND, places, roles)
    order = tuple(places.get(leaf.path, _GLUED) for leaf in program.leaves)
    if sorted(roles) != list(range(slots)) or sorted(order) != list(range(slots)):
        return None
    signs = {AND: slots, OR: slots + 1}
    picked = [order[token] if token >= 0 else signs[token] for token in program.tokens]
    # itemgetter of one place returns no tuple; a slice of one does.
    fill = itemgetter(*picked) if len(picked) > 1 else itemgetter(slice(0, 1))
    listed = tuple(roles[slot] for slot in range(slots))
    uniform = listed[0] if len(set(listed)) == 1 else None
    groups = tuple(_groups(normal, places))
    return Skeleton(tree, listed, uniform, groups, program.tokens, order, fill)


def _nesting(joints: str) -> int:
    depth = deepest = 0
    for sign in joints:
        depth += (sign == "(") - (sign == ")")
        deepest = max(deepest, depth)
    return deepest


def _paths(slots: int) -> list[Path]:
    return [(_NAME.format(slot),) for slot in range(slots)]


def _assign(node: Expression, sign: int, slots: dict[Path, int], roles: dict[int, Role]) -> None:
    if isinstance(node, And | Or):
        for child in node.children:
            _assign(child, AND if isinstance(node, And) else OR, slots, roles)
    else:
        roles[slots.get(_path(node), _GLUED)] = Role(sign, isinstance(node, Not))


def _groups(node: Expression, slots: dict[Path, int]) -> Iterator[tuple[int, ...]]:
    children = node.children if isinstance(node, And | Or) else (node,)
    own = tuple(slots[_path(child)] for child in children if not isinstance(child, And | Or))
    if own:
        yield own
    for child in children:
        if isinstance(child, And | Or):
            yield from _groups(child, slots)


def _path(node: Expression) -> Path:
    bare = node.child if isinstance(node, Not) else node
    assert isinstance(bare, Truth)
    return bare.attribute.path


def _bind(node: Expression, clauses: dict[Path, Expression]) -> Expression:
    if isinstance(node, And | Or):
        return type(node)(tuple(_bind(child, clauses) for child in node.children))
    if isinstance(node, Not):
        return Not(_bind(node.child, clauses))
    assert isinstance(node, Truth)
    return clauses[node.attribute.path]
