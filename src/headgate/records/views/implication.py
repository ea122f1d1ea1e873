"""Which of many clauses imply which, without comparing all pairs one by one.

Most clauses are one value set over one attribute. Those are compared by columns: a set lies in another only
if, on each of its facets, its first and last cut lie between those of the other; and if both are one interval
on each facet, that is all there is to it. Cuts are replaced by their ranks, since they are numbers or texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.records.programs.leaves import Facet, SetLeaf
from headgate.records.views.clauses import leaf_implies, paths_of, tree_implies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.records.programs.intervals import Cut
    from headgate.records.views.clauses import Tree, ViewClause


class _Group(NamedTuple):
    """Sets over one attribute with one quantifier and the same facets: ranks of first and last cuts."""

    facets: tuple[Facet, ...]
    numbers: NDArray[np.int64]
    lows: dict[Facet, NDArray[np.int64]]
    highs: dict[Facet, NDArray[np.int64]]
    on_null: NDArray[np.bool_]
    simple: NDArray[np.bool_]


def implied(clauses: Sequence[ViewClause]) -> list[NDArray[np.int32]]:
    """List for each clause the others that it implies, rising."""
    looking: dict[str, list[int]] = {}
    for number, clause in enumerate(clauses):
        for path in paths_of(clause.tree):
            looking.setdefault(path, []).append(number)
    plain = [_is_plain(clause.tree) for clause in clauses]
    odd = {path: [each for each in numbers if not plain[each]] for path, numbers in looking.items()}
    found: list[list[NDArray[np.int32]]] = [[] for _ in clauses]
    for weak, clause in enumerate(clauses):
        # What implies a clause looks at all of its names; if it has none, at some attribute of it.
        asked = odd if plain[weak] else looking
        paths: Iterable[str] = paths_of(clause.tree)
        if clause.names:
            paths = [min(clause.names, key=lambda name: len(looking[name]))]
        for strong in {number for path in paths for number in asked[path]}:
            if strong != weak and tree_implies(clauses[strong].tree, clause.tree):
                found[strong].append(np.array([weak], np.int32))
    leaves = {
        number: clause.tree
        for number, clause in enumerate(clauses)
        if plain[number] and isinstance(clause.tree, SetLeaf)
    }
    _compare(leaves, found)
    none = np.zeros(0, np.int32)
    return [np.sort(np.concatenate([none, *row])) for row in found]


def _is_plain(tree: Tree) -> bool:
    """Tell whether a clause is one set, and not that of all that is present: any facet implies it."""
    return isinstance(tree, SetLeaf) and all(facet != Facet.PRESENT for facet, _ in tree.sets)


def _compare(leaves: dict[int, SetLeaf], found: list[list[NDArray[np.int32]]]) -> None:
    ranks = _ranks(leaves.values())
    sharing: dict[object, dict[tuple[Facet, ...], list[int]]] = {}
    for number, leaf in leaves.items():
        facets = tuple(facet for facet, _ in leaf.sets)
        sharing.setdefault((leaf.path, leaf.quantifier), {}).setdefault(facets, []).append(number)
    for kinds in sharing.values():
        groups = [_group(facets, numbers, leaves, ranks) for facets, numbers in kinds.items()]
        for group in groups:
            wider = [each for each in groups if set(group.facets) <= set(each.facets)]
            for place, strong in enumerate(group.numbers.tolist()):
                for other in wider:
                    found[strong].append(_inside(group, place, other, leaves))


def _inside(group: _Group, place: int, other: _Group, leaves: dict[int, SetLeaf]) -> NDArray[np.int32]:
    """List the sets of a group that one of another group lies in, but for itself."""
    may = other.on_null | ~group.on_null[place]
    for facet in group.facets:
        may &= (other.lows[facet] <= group.lows[facet][place]) & (
            other.highs[facet] >= group.highs[facet][place]
        )
    strong = int(group.numbers[place])
    sure = may & other.simple if group.simple[place] else np.zeros(len(may), np.bool_)
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
