"""The clauses of a view, and which of them imply which.

A view is taken apart after `rewrite.normalise`: what its topmost AND joins are its clauses, and logic is
two-valued. The view gives an event if its filter is TRUE, which is so if and only if all clauses are.

A clause is a tree of leaves. One leaf implies another if whatever makes it true makes the other true: on each
facet its set lies in the other's. Trees are compared as in a free lattice, where `x AND y` lies below `x` and
`x` below `x OR y`. What is found is so on every event, and implication is transitive. Not all is found:
`a < 2 AND a > 0` together imply things that neither does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.core.values import dotted
from headgate.records.language.model import And, Constant
from headgate.records.language.printing import print_filter
from headgate.records.language.rewrite import normalise
from headgate.records.programs.binding import parse_text
from headgate.records.programs.intervals import intersection
from headgate.records.programs.leaves import Facet, GlobLeaf, Leaf, Quantifier, SetLeaf, line
from headgate.records.programs.program import compile_program
from headgate.records.programs.tokens import AND, FALSE, OR, TRUE

if TYPE_CHECKING:
    from headgate.records.language.model import Expression


class Junction(NamedTuple):
    """`left AND right` or `left OR right`."""

    sign: int
    left: Tree
    right: Tree


Tree: TypeAlias = "SetLeaf | GlobLeaf | Junction | bool"

NEVER = "FALSE"
"""Stands among the names of clauses for what is never true: only that implies it."""


class ViewClause(NamedTuple):
    """A clause as a tree, in words, and the attributes that whatever implies it must look at too."""

    tree: Tree
    expression: Expression
    names: frozenset[str]

    @property
    def text(self) -> str:
        """Write the clause down."""
        return print_filter(self.expression)


def clauses_of(text: str) -> list[ViewClause]:
    """Take a filter of the dialect SQL apart.

    >>> [clause.text for clause in clauses_of("a BETWEEN 1 AND 5 AND (b = 2 OR NOT c) AND TRUE")]
    ['a >= 1', 'a <= 5', 'b = 2 OR NOT c']
    """
    whole = normalise(parse_text(text))
    parts = whole.children if isinstance(whole, And) else (whole,)
    found: dict[Tree, ViewClause] = {}
    for part in parts:
        if part != Constant(value=True):
            tree = _tree(part)
            found.setdefault(tree, ViewClause(tree, part, _names(tree)))
    return list(found.values())


def _tree(expression: Expression) -> Tree:
    program = compile_program(expression)
    stack: list[Tree] = []
    for token in program.tokens:
        if token in {AND, OR}:
            right = stack.pop()
            stack.append(Junction(token, stack.pop(), right))
        elif token in {TRUE, FALSE}:
            stack.append(token == TRUE)
        else:
            stack.append(program.leaves[token])
    return stack.pop()


def paths_of(tree: Tree) -> frozenset[str]:
    """List the attributes that a clause looks at."""
    if isinstance(tree, Junction):
        return paths_of(tree.left) | paths_of(tree.right)
    return frozenset({NEVER}) if isinstance(tree, bool) else frozenset({dotted(tree.path)})


def _names(tree: Tree) -> frozenset[str]:
    """List what all ways in which a clause can be true look at; what implies it does as well."""
    if isinstance(tree, Junction):
        left, right = _names(tree.left), _names(tree.right)
        return left | right if tree.sign == AND else left & right
    return paths_of(tree) if tree is not True else frozenset()


def tree_implies(strong: Tree, weak: Tree) -> bool:
    """Tell whether a clause is found to imply another."""
    return _below(strong, weak, {})


def _below(strong: Tree, weak: Tree, known: dict[tuple[int, int], bool]) -> bool:
    key = id(strong), id(weak)
    found = known.get(key)
    if found is None:
        found = known[key] = _compare(strong, weak, known)
    return found


def _compare(strong: Tree, weak: Tree, known: dict[tuple[int, int], bool]) -> bool:
    if isinstance(strong, Junction) and strong.sign == OR:
        return _below(strong.left, weak, known) and _below(strong.right, weak, known)
    if isinstance(weak, Junction) and weak.sign == AND:
        return _below(strong, weak.left, known) and _below(strong, weak.right, known)
    if isinstance(weak, Junction) and (_below(strong, weak.left, known) or _below(strong, weak.right, known)):
        return True
    if isinstance(strong, Junction):
        return _below(strong.left, weak, known) or _below(strong.right, weak, known)
    if isinstance(strong, bool) or isinstance(weak, bool | Junction):
        return weak is True or strong is weak
    return leaf_implies(strong, weak)


_PRESENT = (Facet.PRESENT, (line(Facet.PRESENT),))


def leaf_implies(strong: Leaf, weak: Leaf) -> bool:
    """Tell whether whatever makes a leaf true makes another true."""
    if strong.path != weak.path:
        return False
    if strong == weak:
        return True
    if not isinstance(weak, SetLeaf):
        return False
    if isinstance(strong, SetLeaf) and strong.on_null and not weak.on_null:
        return False
    if weak.quantifier is Quantifier.VALUE and _PRESENT in weak.sets:
        return True
    if not isinstance(strong, SetLeaf) or strong.quantifier is not weak.quantifier:
        return False
    theirs = dict(weak.sets)
    return all(intersection(own, theirs.get(facet, ())) == own for facet, own in strong.sets)
