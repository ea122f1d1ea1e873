"""The clauses of views, which imply which, and hot loops: whether conjunctions embed, what they cover.

A view is taken apart after `rewrite.normalise`: what its topmost AND joins are its clauses, and logic is
two-valued. The view gives an event if its filter is TRUE, which is so if and only if all clauses are.

A clause is a tree of leaves. One leaf implies another if whatever makes it true makes the other true: on each
facet its set lies in the other's. Trees are compared as in a free lattice, where `x AND y` lies below `x` and
`x` below `x OR y`. What is found is so on every event, and implication is transitive. Not all is found:
`a < 2 AND a > 0` together imply things that neither does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from headgate.core.jit import bare, bare_inner
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
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Bools, Ints, Ints32, Words
    from headgate.records.language.model import Expression
    from headgate.records.programs.intervals import Cut


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
    clauses: dict[Tree, ViewClause] = {}
    for part in parts:
        if part != Constant(value=True):
            tree = _tree(part)
            clauses.setdefault(tree, ViewClause(tree, part, _names(tree)))
    return list(clauses.values())


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
    implies = known.get(key)
    if implies is None:
        implies = known[key] = _compare(strong, weak, known)
    return implies


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


class _Group(NamedTuple):
    """Sets over one attribute with one quantifier and the same facets: ranks of first and last cuts."""

    facets: tuple[Facet, ...]
    numbers: Ints
    lows: dict[Facet, Ints]
    highs: dict[Facet, Ints]
    on_null: Bools
    simple: Bools


def implied(clauses: Sequence[ViewClause]) -> list[Ints32]:
    """List for each clause the others that it implies, rising."""
    looking: dict[str, list[int]] = {}
    for number, clause in enumerate(clauses):
        for path in paths_of(clause.tree):
            looking.setdefault(path, []).append(number)
    plain = [_is_plain(clause.tree) for clause in clauses]
    odd = {path: [each for each in numbers if not plain[each]] for path, numbers in looking.items()}
    weaker: list[list[Ints32]] = [[] for _ in clauses]
    for weak, clause in enumerate(clauses):
        # What implies a clause looks at all of its names; if it has none, at some attribute of it.
        asked = odd if plain[weak] else looking
        paths: Iterable[str] = paths_of(clause.tree)
        if clause.names:
            paths = [min(clause.names, key=lambda name: len(looking[name]))]
        for strong in {number for path in paths for number in asked[path]}:
            if strong != weak and tree_implies(clauses[strong].tree, clause.tree):
                weaker[strong].append(np.array([weak], np.int32))
    leaves = {
        number: clause.tree
        for number, clause in enumerate(clauses)
        if plain[number] and isinstance(clause.tree, SetLeaf)
    }
    _compare_sets(leaves, weaker)
    none = np.zeros(0, np.int32)
    return [np.sort(np.concatenate([none, *row])) for row in weaker]


def _is_plain(tree: Tree) -> bool:
    """Tell whether a clause is one set, and not that of all that is present: any facet implies it."""
    return isinstance(tree, SetLeaf) and all(facet != Facet.PRESENT for facet, _ in tree.sets)


def _compare_sets(leaves: dict[int, SetLeaf], weaker: list[list[Ints32]]) -> None:
    ranks = _ranks(leaves.values())
    sharing: dict[object, dict[tuple[Facet, ...], list[int]]] = {}
    for number, leaf in leaves.items():
        facets = tuple(facet for facet, _ in leaf.sets)
        sharing.setdefault((leaf.path, leaf.quantifier), {}).setdefault(facets, []).append(number)
    for kinds in sharing.values():
        groups = [_group(facets, numbers, leaves, ranks) for facets, numbers in kinds.items()]
        for group in groups:
            wider = [each for each in groups if set(group.facets) <= set(each.facets)]
            for position, strong in enumerate(group.numbers.tolist()):
                for other in wider:
                    weaker[strong].append(_inside(group, position, other, leaves))


def _inside(group: _Group, position: int, other: _Group, leaves: dict[int, SetLeaf]) -> Ints32:
    """List the sets of a group that one of another group lies in, but for itself."""
    may = other.on_null | ~group.on_null[position]
    for facet in group.facets:
        may &= (other.lows[facet] <= group.lows[facet][position]) & (
            other.highs[facet] >= group.highs[facet][position]
        )
    strong = int(group.numbers[position])
    sure = may & other.simple if group.simple[position] else np.zeros(len(may), np.bool_)
    asked = other.numbers[may & ~sure].tolist()
    certain = other.numbers[sure & (other.numbers != strong)]
    more = [weak for weak in asked if weak != strong and leaf_implies(leaves[strong], leaves[weak])]
    return np.concatenate([certain, np.array(more, np.int64)]).astype(np.int32)


def _group(
    facets: tuple[Facet, ...],
    numbers: Sequence[int],
    leaves: dict[int, SetLeaf],
    ranks: dict[Facet, dict[Cut, int]],
) -> _Group:
    sets = [dict(leaves[number].sets) for number in numbers]
    return _Group(
        facets,
        np.array(numbers, np.int64),
        {facet: np.array([ranks[facet][each[facet][0][0]] for each in sets], np.int64) for facet in facets},
        {facet: np.array([ranks[facet][each[facet][-1][1]] for each in sets], np.int64) for facet in facets},
        np.array([leaves[number].on_null for number in numbers], np.bool_),
        np.array([all(len(own) == 1 for own in each.values()) for each in sets], np.bool_),
    )


def _ranks(leaves: Iterable[SetLeaf]) -> dict[Facet, dict[Cut, int]]:
    """Number the first and last cuts on each facet in their order."""
    cuts: dict[Facet, set[Cut]] = {}
    for leaf in leaves:
        for facet, own in leaf.sets:
            cuts.setdefault(facet, set()).update((own[0][0], own[-1][1]))
    return {facet: {cut: rank for rank, cut in enumerate(sorted(own))} for facet, own in cuts.items()}


_ODD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(57)
_ONE = np.uint64(1)


class Conjunctions(NamedTuple):
    """The clauses of view v are `clauses[starts[v]:starts[v + 1]]`, by number.

    Clause c implies itself and `implied[offsets[c]:offsets[c + 1]]`, which rise. `needed` are the items of
    each view: a bit for each clause, bit 0 alone if it has none, no bit if it takes no part in plans.
    """

    starts: Ints
    clauses: Ints32
    needed: Words
    offsets: Ints
    implied: Ints32


@bare_inner
def _implies(views: Conjunctions, strong: int, weak: int) -> bool:
    if strong == weak:
        return True
    low, high = views.offsets[strong], views.offsets[strong + 1]
    while low < high:
        middle = (low + high) >> 1
        if views.implied[middle] < weak:
            low = middle + 1
        else:
            high = middle
    return bool(low < views.offsets[strong + 1] and views.implied[low] == weak)


@bare_inner
def _embeds(views: Conjunctions, source: int, target: int) -> bool:
    """Tell whether each clause of a view is implied by one of another."""
    for i in range(views.starts[source], views.starts[source + 1]):
        covered = False
        for j in range(views.starts[target], views.starts[target + 1]):
            if _implies(views, views.clauses[j], views.clauses[i]):
                covered = True
                break
        if not covered:
            return False
    return True


@bare
def cover(
    views: Conjunctions, whole: bool, sources: Ints32, targets: Ints32, embeds: Bools, masks: Words
) -> None:
    """Answer for pairs of views; with `whole`, what a view gives is enough to test all clauses again."""
    for i in range(len(sources)):
        source, target = sources[i], targets[i]
        masks[i] = 0
        taking_part = views.needed[source] != 0 and views.needed[target] != 0
        embeds[i] = taking_part and _embeds(views, source, target)
        if not embeds[i]:
            continue
        first, end = views.starts[target], views.starts[target + 1]
        if whole or first == end:
            masks[i] = views.needed[target]
            continue
        mask = np.uint64(0)
        for j in range(first, end):
            for k in range(views.starts[source], views.starts[source + 1]):
                if _implies(views, views.clauses[k], views.clauses[j]):
                    mask |= _ONE << np.uint64(j - first)
                    break
        masks[i] = mask


@bare_inner
def _mark(words: Words, view: int, clause: int) -> None:
    bit = (np.uint64(clause + 1) * _ODD) >> _HIGH
    words[2 * view + np.int64(bit >> np.uint64(6))] |= _ONE << (bit & np.uint64(63))


@bare
def sign(views: Conjunctions, demands: Words, offers: Words) -> None:
    """Mark the clauses that each view demands of a target, and those that it implies as one."""
    for view in range(len(views.starts) - 1):
        for i in range(views.starts[view], views.starts[view + 1]):
            clause = views.clauses[i]
            _mark(demands, view, clause)
            _mark(offers, view, clause)
            for j in range(views.offsets[clause], views.offsets[clause + 1]):
                _mark(offers, view, views.implied[j])
