"""Why filters hold for none of some events: which of their clauses never do, and what events have there."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.event import JSON
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records.explain.explain import clause_of, leaves, written
from headgate.records.index.index import RecordIndex
from headgate.records.language.model import And
from headgate.records.language.printing import print_filter
from headgate.records.language.rewrite import push_not
from headgate.records.programs.binding import compile_filters, parse_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.records.language.model import Expression

_LOOKED = 500
"""Events whose values are looked at."""
_LISTED = 3
_LONGEST = 40
"""Letters of a value that are shown."""
_APART = "each of its clauses holds for some of the events, and never all of them for one"


def why_never(texts: Sequence[str], events: Sequence[Event], mark: str = "") -> list[list[str]]:
    """Say of each filter that holds for no event which clauses never do, and what is there.

    Nothing is said of attributes that no event has.

    >>> from headgate import Event
    >>> why_never(["age > 30 AND tags = 'a'"], [Event(1, {"age": 31, "tags": ["a"]})])
    [["tags = 'a' holds for none of the events: tags is an array, and array_contains asks for an element"]]
    """
    split = [_clauses(text) for text in texts]
    clauses = {text: node for some in split for text, node in some.items()}
    ids, pool = Ids.from_arrow(pa.array(range(len(clauses)))), TextPool.build([*clauses])
    index = RecordIndex.from_programs(ids, pool, compile_filters(pool).programs)
    matches = index.match_batch(events, pa.array(np.arange(len(events))))
    held = {*np.asarray(matches.column(1)).tolist()}
    never = {text for number, text in enumerate(clauses) if number not in held}
    there = _There([each.attributes_as(mark) for each in events if each.content_type == JSON][:_LOOKED])
    return [
        [told for text in some if text in never and (told := there.instead_of(some[text]))]
        if not never.isdisjoint(some)
        else [_APART]
        for some in split
    ]


def _clauses(text: str) -> dict[str, Expression]:
    """Take a filter apart into what its topmost ANDs join."""
    node = push_not(parse_text(text))
    return {print_filter(each): each for each in (node.children if isinstance(node, And) else (node,))}


class _There:
    """What events have where filters look."""

    def __init__(self, rows: Sequence[Mapping[Path, object]]) -> None:
        self._rows = rows
        self._having: dict[str, list[tuple[Mapping[Path, object], object]]] = {}
        """The events that have an attribute, with its value."""

    def instead_of(self, clause: Expression) -> str:
        """Say what is there where a clause looks that never holds; nothing if no event has any of it."""
        words = "; ".join(dict.fromkeys(filter(None, map(self._words, leaves(clause)))))
        return words and f"{written(clause)} holds for none of the events: {words}"

    def _words(self, leaf: Expression) -> str:
        name = clause_of(leaf, {}).attribute
        if name not in self._having:
            values = ((row, clause_of(leaf, row).value) for row in self._rows)
            self._having[name] = [(row, value) for row, value in values if value is not None]
        if not self._having[name]:
            return ""
        row, value = self._having[name][0]
        if clause_of(leaf, row).held is not None:
            return f"{name} {_values([each for _, each in self._having[name]])}"
        if isinstance(value, list | tuple):
            return f"{name} is an array, and array_contains asks for an element"
        return f"{name} is {_shown(value)}, for one, which cannot be compared so"


def _values(values: Sequence[Any]) -> str:
    """Say which values there are: from the least to the greatest, or the most frequent."""
    if any(isinstance(each, list | tuple) for each in values):
        return f"has {_frequent([one for each in values if isinstance(each, list | tuple) for one in each])}"
    kinds = {type(each) for each in values}
    if kinds <= {int, float, Decimal} or kinds in ({dt.date}, {dt.datetime}):
        return f"is {min(values)} to {max(values)}"
    return f"is {_frequent(values)}"


def _frequent(values: Sequence[Any]) -> str:
    counts = Counter(map(_shown, values))
    listed = ", ".join(each for each, _ in counts.most_common(_LISTED))
    more = len(counts) - _LISTED
    return f"{listed} or one of {more:,} others" if more > 0 else listed or "nothing"


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
