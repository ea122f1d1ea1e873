"""What filters of records demand of events, as keys: the values of one attribute.

`country IN ('CH', 'DE') AND age > 30` has the keys =CH and =DE of `country`. Whatever may hold for more
values than can be listed is open. Texts and whole numbers are keys, and the facets of the compiled leaves say
which events each of them can meet: `a = 17` holds for the number 17 and for texts that are cast to it,
`a = '17'` for the text and for the number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.records.programs.leaves import Facet
from headgate.records.programs.programs import VALUE, Programs
from headgate.records.programs.tokens import AND, FALSE, OR, TRUE

if TYPE_CHECKING:
    from headgate.contents.protocol import Keys
    from headgate.core.values import Path

MOST = 1000
"""Keys of one filter; with more it is open."""
_SEEN_BY_OTHERS = frozenset(
    {Facet.ARRAY, Facet.BOOL, Facet.FLOAT, Facet.TIMESTAMP, Facet.DECIMAL, Facet.LONG_DECIMAL}
)
"""Facets of values that meet every shard anyway."""
_NUMBERS = frozenset({Facet.INT, Facet.STRING_INT})


def text_key(text: str) -> str:
    """Return the key of a text."""
    return f"={text}"


def number_key(number: int) -> str:
    """Return the key of a whole number, which texts have as well that are cast to it."""
    return f"#{number}"


def record_keys(programs: Programs, path: Path) -> list[Keys]:
    """List the keys of filters of records, for one attribute.

    >>> from headgate.records.programs.binding import compile_filters
    >>> found = record_keys(compile_filters(["a = 'x' AND b > 1", "a IN (1, 2) OR b = 1"]).programs, ("a",))
    >>> [keys and sorted(keys) for keys in found]
    [['=x'], None]
    """
    keys_of: list[Keys] = [None] * programs.filters
    if path not in programs.attributes:
        return keys_of
    here = np.flatnonzero(programs.leaf_attribute == programs.attributes.index(path))
    leaves = {leaf: _leaf_keys(programs, leaf) for leaf in here.tolist()}
    touched = np.isin(programs.tokens, here)
    filters = np.unique(np.searchsorted(programs.token_start, np.flatnonzero(touched), "right") - 1)
    for number in filters.tolist():
        begin, end = programs.token_start[number], programs.token_start[number + 1]
        keys = _evaluate(programs.tokens[begin:end].tolist(), leaves)
        keys_of[number] = None if keys is None or len(keys) > MOST else keys
    return keys_of


def _leaf_keys(programs: Programs, leaf: int) -> Keys:
    """List the values for which a leaf holds; None if there are others."""
    if programs.leaf_kind[leaf] != VALUE or programs.leaf_on_null[leaf]:
        return None
    keys: set[str] = set()
    for row in range(int(programs.range_start[leaf]), int(programs.range_start[leaf + 1])):
        facet = Facet(int(programs.range_facet[row]))
        low, high = int(programs.range_low[row]), int(programs.range_high[row])
        if facet in _SEEN_BY_OTHERS:
            continue
        if facet in _NUMBERS and high - low < MOST:
            keys.update(map(number_key, range(low, high + 1)))
        elif facet is Facet.STRING and low % 2 == 0 and high == low + 1:
            keys.add(text_key(programs.texts.text(low // 2)))
        else:
            return None
    return frozenset(keys)


def _evaluate(tokens: list[int], leaves: dict[int, Keys]) -> Keys:
    stack: list[Keys] = []
    for token in tokens:
        if token == AND:
            right, left = stack.pop(), stack.pop()
            known = [each for each in (left, right) if each is not None]
            stack.append(min(known, key=len) if known else None)
        elif token == OR:
            right, left = stack.pop(), stack.pop()
            stack.append(None if left is None or right is None else left | right)
        elif token == FALSE:
            stack.append(frozenset())
        else:
            stack.append(None if token == TRUE else leaves.get(token))
    return stack[0]
