"""Patterns of one filter that tell nothing, or no more than others of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.xml.language.model import ANY, ANY_ATTRIBUTE, CHILD, DESCENDANT, ROOT, TEXT, covers
from headgate.xml.language.values import implies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.xml.language.model import Pattern, Test


def tells(pattern: Pattern) -> bool:
    """Tell whether a pattern leaves any documents out: it names something, or tests a value."""
    return any(node.tests or node.label not in (ANY, ANY_ATTRIBUTE, TEXT) for node in pattern.nodes)


def widest(patterns: list[Pattern]) -> list[Pattern]:
    """Leave out patterns that ask for more than another."""
    kept: list[Pattern] = []
    for each in sorted(patterns, key=lambda pattern: len(pattern.nodes)):
        if not any(_within(wide, each) for wide in kept):
            kept.append(each)
    return sorted(kept, key=patterns.index)


def _follows(tests: Sequence[Test], test: Test) -> bool:
    """Tell whether a test follows from others of its kind: those of the other may not be asked."""
    kind = isinstance(test.value, str)
    return implies([each for each in tests if isinstance(each.value, str) == kind], test)


def _within(wide: Pattern, narrow: Pattern) -> bool:
    """Tell whether a pattern embeds in another: it holds wherever that does."""
    below: list[list[int]] = [[] for _ in narrow.nodes]
    for place, node in enumerate(narrow.nodes):
        above = node.parent
        while above != ROOT:
            below[above].append(place)
            above = narrow.nodes[above].parent
    fits: list[set[int]] = [set() for _ in wide.nodes]
    for place in range(len(wide.nodes) - 1, -1, -1):
        own = wide.nodes[place]
        for other, node in enumerate(narrow.nodes):
            if (
                covers(own.label, node.label)
                and all(_follows(node.tests, test) for test in own.tests)
                and all(
                    any(
                        image in fits[child]
                        and (
                            wide.nodes[child].axis == DESCENDANT
                            or (narrow.nodes[image].axis == CHILD and narrow.nodes[image].parent == other)
                        )
                        for image in below[other]
                    )
                    for child in wide.children[place]
                )
            ):
                fits[place].add(other)
    return all(
        any(
            wide.nodes[root].axis == DESCENDANT
            or (narrow.nodes[image].axis == CHILD and narrow.nodes[image].parent == ROOT)
            for image in fits[root]
        )
        for root in wide.roots
    )
