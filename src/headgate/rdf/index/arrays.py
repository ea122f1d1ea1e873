"""The index as flat arrays, with their invariants.

    dictionary   every term that a filter names, by its code; the first codes are given below
    edges        distinct triple patterns, by their constants: (s, p, o), each a code, or VARIABLE, or SELF
                 twice for `?x p ?x`; what the variables are called is not here
    patterns     distinct sets of edges with their variables as slots, joined once for all filters that
                 share them
    entries      the filters of a pattern: first those without an access range, then groups with one

        edge ──edge_first──► pattern ──next──► pattern …      a pattern hangs at one of its edges, the rarest
                               │
                               ├─ steps    its edges in the order of the join, the one it hangs at first
                               ├─ free     entries that are looked at whenever the pattern holds
                               └─ groups   entries sorted by an end of a range on one slot

A check is some words of `words`: its kind, the slot, and operands; an entry's checks stand one after another
from `entry_checks` on, and END closes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

VARIABLE = -1
SELF = -2

TYPE_CODE = 0
SUBCLASS_CODE = 1
SUBPROPERTY_CODE = 2
ISA_CODE = 3
ALWAYS_CODE = 4
"""The property of the one edge of a pattern that has none; every event that is asked for it has it."""
LOWER_CODE = 5
FOLDED_CODE = 7
WORD_CODE = 9
"""Properties of virtual triples that lead from a string to its lower case, to the same in any case, and to
each of its words that a filter names. Behind each is the one of STR(?x), which IRIs and all literals have."""

# Kinds of terms, as bits.
IRI = 1
LITERAL = 2
BLANK = 4

# Marks of a term.
EXACT = 1
"""The key is the value."""
SHORT = 2
"""The value has at most 15 digits: two such with the same key are equal. A double compares as if it had."""
WORDS = 4
"""A string, with a language or without: what STRSTARTS and so on take."""

# Lines: what can be ordered among itself. A term or an end is on one of them, by a key in floats.
NOWHERE = 0
NUMBERS = 1
TIMES = 2
"""dateTime with a timezone, in seconds."""
LOCAL_TIMES = 3
"""dateTime without one."""
DAYS = 4
LOCAL_DAYS = 5

# Kinds of checks.
END = 0
RANGE = 1
AMONG = 2
KIND = 3
SUFFIX = 4
TEXT = 5
OPAQUE = 6
PAIR = 7
"""Two slots compared; what keys and kinds cannot tell is left to the expression that stands behind."""

# Signs of a comparison of two slots.
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(6)

# Flags of a range.
LOW_OPEN = 1
HIGH_OPEN = 2
LOW_MARKS = 4
HIGH_MARKS = 16
"""The marks EXACT and SHORT of an end stand in two bits from these on."""

# How a text is looked for.
STARTS = 0
ENDS = 1
CONTAINS = 2
AS_TEXT = 4
"""Of STR(?x), which IRIs and all literals have, rather than of ?x."""

# How a step finds its triples.
BY_HITS = 0
BY_SUBJECT = 1
BY_OBJECT = 2

# What a step does with a place of the triple: nothing if CONSTANT, else with the slot in the lower bits.
CONSTANT = -1
SETS = 64
SLOTS = 64

# How the entries of a group are sorted.
BY_LOW = 0
BY_HIGH = 1
BLOCK = 32
"""Entries of a group in one block."""


class Dictionary(NamedTuple):
    """Terms by code: `data[offsets[c]:offsets[c + 1]]`, found through `table` (open addressing, -1 free)."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    table: NDArray[np.int32]


class Edges(NamedTuple):
    """Distinct edges, found through `table`; `first` is the first pattern that hangs at the edge, or -1.

    `masks` says which combinations of constants there are: bit `4 s + 2 p + o`, and bit 8 for SELF.
    """

    s: NDArray[np.int32]
    p: NDArray[np.int32]
    o: NDArray[np.int32]
    first: NDArray[np.int32]
    table: NDArray[np.int32]
    masks: NDArray[np.int64]


class Patterns(NamedTuple):
    """Patterns: steps `step_start[i]:step_start[i + 1]`, entries and groups alike.

    `back` is the last step that sets a slot which a check looks at, -1 if none does: steps behind it only
    have to be possible. Of the entries, those before the first group are free.
    """

    next: NDArray[np.int32]
    step_start: NDArray[np.int32]
    entry_start: NDArray[np.int32]
    group_start: NDArray[np.int32]
    back: NDArray[np.int8]
    step_edge: NDArray[np.int32]
    step_code: NDArray[np.int8]


class Entries(NamedTuple):
    """Filters by pattern. `number` is the filter's, `checks` where its checks begin, 0 if there are none."""

    number: NDArray[np.int32]
    checks: NDArray[np.int32]


class Groups(NamedTuple):
    """Entries `entry` to `entry + size` with ranges `range_at` and so on, of one slot and line.

    `top` holds for each block of entries the highest end, from `block_at` on.
    """

    slot: NDArray[np.int8]
    line: NDArray[np.int8]
    order: NDArray[np.int8]
    entry: NDArray[np.int32]
    size: NDArray[np.int32]
    range_at: NDArray[np.int32]
    block_at: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    flags: NDArray[np.uint8]
    top: NDArray[np.float64]


class Checks(NamedTuple):
    """What is checked: words, the ends of ranges, and texts that are looked for."""

    words: NDArray[np.int32]
    ends: NDArray[np.float64]
    text_offsets: NDArray[np.int64]
    text_data: NDArray[np.uint8]


class RdfArrays(NamedTuple):
    """All of it."""

    dictionary: Dictionary
    edges: Edges
    patterns: Patterns
    entries: Entries
    groups: Groups
    checks: Checks

    @property
    def nbytes(self) -> int:
        """Count the bytes."""
        return sum(array.nbytes for part in self for array in part)

    def check(self) -> None:
        """Assert the invariants."""
        edges, patterns, entries, groups = self.edges, self.patterns, self.entries, self.groups
        _check_table(self.dictionary.table, len(self.dictionary.offsets) - 1)
        _check_table(edges.table, len(edges.s))
        count = len(patterns.next)
        for start, size in (
            (patterns.step_start, len(patterns.step_edge)),
            (patterns.entry_start, len(entries.number)),
            (patterns.group_start, len(groups.slot)),
        ):
            assert len(start) == count + 1
            assert start[0] == 0
            assert start[-1] == size
            assert bool((np.diff(start) >= 0).all())
        assert sorted(entries.number.tolist()) == list(range(len(entries.number)))
        hanging = 0
        for e in np.flatnonzero(edges.first >= 0).tolist():
            pattern = int(edges.first[e])
            while pattern >= 0:
                # It hangs at the edge of its first step, which nothing leads to.
                assert patterns.step_edge[patterns.step_start[pattern]] == e
                assert patterns.step_code[patterns.step_start[pattern], 3] == BY_HITS
                hanging += 1
                pattern = int(patterns.next[pattern])
        assert hanging == count
        for g in range(len(groups.slot)):
            inside = slice(groups.range_at[g], groups.range_at[g] + groups.size[g])
            ends = groups.high[inside] if groups.order[g] == BY_HIGH else groups.low[inside]
            assert bool((np.diff(ends) >= 0).all())
            assert groups.top[groups.block_at[g]] == groups.high[inside][:BLOCK].max()
        # Checks end where the next ones begin.
        begin = entries.checks[entries.checks > 0]
        assert bool((self.checks.words[begin[1:] - 1] == END).all())
        assert len(begin) == 0 or (begin[0] == 1 and self.checks.words[-1] == END)

    def read_only(self) -> RdfArrays:
        """Return the same arrays, where they lie, such that nobody can write through them."""
        parts: list[Any] = [type(part)(*[_read_only(array) for array in part]) for part in self]
        return RdfArrays(*parts)


def _check_table(table: NDArray[np.int32], count: int) -> None:
    """Assert that a table finds each number once, and that some of it is free."""
    assert len(table) & (len(table) - 1) == 0
    assert count < len(table)
    assert sorted(table[table >= 0].tolist()) == list(range(count))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


class Encoded(NamedTuple):
    """An event, ready to be matched. Terms and triples are numbered within it.

    `code` is a term's code, -1 if no filter names it; `kind`, `marks`, `line`, `key` and `slack` are what
    checks look at: the value is within `slack` of the key. A term stands from `start` to `stop`; `begin` and
    `end` are its text without brackets, quotes and escapes; `suffix` is the code of what stands behind the
    quotes. Virtual triples come from the taxonomy: a property that is a
    variable does not match them. Triples by subject are `by_s[s_start[i]:s_start[i + 1]]`, by object alike.
    """

    code: NDArray[np.int32]
    kind: NDArray[np.uint8]
    marks: NDArray[np.uint8]
    line: NDArray[np.int8]
    key: NDArray[np.float64]
    slack: NDArray[np.float64]
    suffix: NDArray[np.int32]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    text: NDArray[np.uint8]
    s: NDArray[np.int32]
    p: NDArray[np.int32]
    o: NDArray[np.int32]
    virtual: NDArray[np.uint8]
    s_start: NDArray[np.int32]
    by_s: NDArray[np.int32]
    o_start: NDArray[np.int32]
    by_o: NDArray[np.int32]
