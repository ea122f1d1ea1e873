"""Which sets of tests imply which, for all that views have at nodes that can go to each other.

Sets are numbered; 0 is the empty one. Those that a set implies are a row of numbers, rising, without itself:
most nodes have no tests and most tests imply nothing, so rows are short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.xml.language.model import covers
from headgate.xml.language.values import implies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.xml.language.model import Label, Test

    Tests = tuple[Test, ...]


class Implications(NamedTuple):
    """Set a implies the sets `implied[offsets[a]:offsets[a + 1]]`, and itself."""

    offsets: NDArray[np.int64]
    implied: NDArray[np.int32]


def implications(sets: Sequence[Tests], used: Mapping[Label, Iterable[int]]) -> Implications:
    """Find what implies what among the sets that are used at the same label, or at labels that cover another.

    `used` are the sets at each label.
    """
    at = {label: sorted({0, *numbers}) for label, numbers in used.items() if any(numbers)}
    at |= {label: [0] for label in used if label not in at}
    found: list[set[int]] = [set() for _ in sets]
    compared: set[tuple[int, int]] = set()
    wide = [label for label in at if is_wide(label)]
    for special, below in at.items():
        for general in {special, *wide}:
            if not covers(general, special):
                continue
            above = at[general]
            for one, other in ((below, above), (above, below)):
                _compare(sets, one, other, compared, found)
    rows = [sorted(row) for row in found]
    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return Implications(offsets, np.array([each for row in rows for each in row], np.int32))


def is_wide(label: Label) -> bool:
    """Tell whether a label covers others.

    >>> [is_wide(each) for each in ("*", "@*:a", "{urn:*}a", "text()")]
    [True, True, False, False]
    """
    return label.removeprefix("@").startswith("*")


def _compare(
    sets: Sequence[Tests],
    strong: Sequence[int],
    weak: Sequence[int],
    compared: set[tuple[int, int]],
    found: list[set[int]],
) -> None:
    # Two different texts that a value is equal to: commonest of all, and neither implies the other.
    odd = [each for each in weak if not _equality(sets[each])]
    for a in strong:
        for b in odd if _equality(sets[a]) else weak:
            if a == b or (a, b) in compared:
                continue
            compared.add((a, b))
            if all(implies(sets[a], test) for test in sets[b]):
                found[a].add(b)


def _equality(tests: Tests) -> bool:
    return len(tests) == 1 and tests[0].sign == "=" and isinstance(tests[0].value, str)
