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

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32, Words


VARIABLE = -1
SELF = -2

TYPE_CODE = 0
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

SIZES = (1, 5, 3, 3, 3, 4, 3, 5)
"""How many words a check of each kind has. Behind those of AMONG come terms, as many as AT_COUNT says, and
behind those of OPAQUE slots."""

# The words of a check behind its kind: of RANGE, of PAIR, of KIND and SUFFIX, of TEXT, and of the others.
AT_SLOT = 1
AT_LINE, AT_RANGE_ENDS, AT_FLAGS = 2, 3, 4
AT_OTHER, AT_SIGN, AT_PAIR_EXPRESSION = 2, 3, 4
AT_VALUE = 2
AT_MODE, AT_TEXT = 2, 3
AT_EXPRESSION, AT_COUNT = 1, 2

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
HOW = 3
"""The bits of these."""
AS_TEXT = 4
"""Of STR(?x), which IRIs and all literals have, rather than of ?x."""

# What the code of a step says: of each place of the triple, and how it finds its triples.
SUBJECT, PROPERTY, OBJECT, MODE = range(4)
BY_HITS = 0
BY_SUBJECT = 1
BY_OBJECT = 2

# What a step does with a place of the triple: nothing if CONSTANT, else with the slot in the lower bits.
CONSTANT = -1
SETS = 64
SLOTS = 64
SLOT = SLOTS - 1
"""The bits of the slot."""

# How the entries of a group are sorted.
BY_LOW = 0
BY_HIGH = 1
BLOCK = 32
"""Entries of a group in one block."""


class Dictionary(NamedTuple):
    """Terms by code: `data[offsets[c]:offsets[c + 1]]`, found through `table` (open addressing, -1 free)."""

    offsets: Ints
    data: Bytes
    table: Ints32


S_KNOWN, P_KNOWN, O_KNOWN = 4, 2, 1
"""Which places of an edge are constants."""
LOOPS = 1 << 8
"""Of `masks`: there are edges `?x p ?x`."""


class Edges(NamedTuple):
    """Distinct edges, found through `table`; `first` is the first pattern that hangs at the edge, or -1.

    `masks` says which combinations of constants there are, a bit each, and LOOPS.
    """

    s: Ints32
    p: Ints32
    o: Ints32
    first: Ints32
    table: Ints32
    masks: Ints


class Patterns(NamedTuple):
    """Patterns: steps `step_start[i]:step_start[i + 1]`, entries and groups alike.

    `back` is the last step that sets a slot which a check looks at, -1 if none does: steps behind it only
    have to be possible. Of the entries, those before the first group are free.
    """

    next: Ints32
    step_start: Ints32
    entry_start: Ints32
    group_start: Ints32
    back: NDArray[np.int8]
    step_edge: Ints32
    step_code: NDArray[np.int8]


class Entries(NamedTuple):
    """Filters by pattern. `number` is the filter's, `checks` where its checks begin, 0 if there are none."""

    number: Ints32
    checks: Ints32


class Groups(NamedTuple):
    """Entries `entry` to `entry + size` with ranges `range_at` and so on, of one slot and line.

    `top` holds for each block of entries the highest end, from `block_at` on.
    """

    slot: NDArray[np.int8]
    line: NDArray[np.int8]
    order: NDArray[np.int8]
    entry: Ints32
    size: Ints32
    range_at: Ints32
    block_at: Ints32
    low: Floats64
    high: Floats64
    flags: Bytes
    top: Floats64


class Checks(NamedTuple):
    """What is checked: words, the ends of ranges, and texts that are looked for."""

    words: Ints32
    ends: Floats64
    text_offsets: Ints
    text_data: Bytes


class RdfArrays(NamedTuple):
    """All of it."""

    dictionary: Dictionary
    edges: Edges
    patterns: Patterns
    entries: Entries
    groups: Groups
    checks: Checks


class Encoded(NamedTuple):
    """An event, ready to be matched. Terms and triples are numbered within it.

    `code` is a term's code, -1 if no filter names it; `kind`, `marks`, `line`, `key` and `slack` are what
    checks look at: the value is within `slack` of the key. A term stands from `start` to `stop`; `begin` and
    `end` are its text without brackets, quotes and escapes; `suffix` is the code of what stands behind the
    quotes. Virtual triples come from the taxonomy: a property that is a
    variable does not match them. Triples by subject are `by_s[s_start[i]:s_start[i + 1]]`, by object alike.
    """

    code: Ints32
    kind: Bytes
    marks: Bytes
    line: NDArray[np.int8]
    key: Floats64
    slack: Floats64
    suffix: Ints32
    begin: Ints32
    end: Ints32
    start: Ints32
    stop: Ints32
    text: Bytes
    s: Ints32
    p: Ints32
    o: Ints32
    virtual: Bytes
    s_start: Ints32
    by_s: Ints32
    o_start: Ints32
    by_o: Ints32


FULL = -1
"""There is no room for more doubts: decide those that there are, and go on."""
TOO_MUCH = -2
"""A join has taken more steps than it may, or asked and searched more."""
START, ROW, PASS, ONLY, ONLY_ROW = range(5)
"""How a run goes on: from the start; at the row for which there was no room; behind the pattern that was too
much; with that pattern and nothing else, from its start or at the row for which there was no room."""
BUDGET = 50_000_000
"""Steps for one pattern: about half a second. A row in doubt counts as `DOUBT` of them."""
LEAST = 1 << 20
"""Steps that every filter has, however much others have taken of the event's time."""
ROWS, READINGS = 1 << 16, 4
"""How many rows each filter of a pattern may be asked about, and how often it may search all texts of an
event, beside as many rows and letters as the pattern may take steps."""
DOUBT = 512
LONG = 1024
"""A join of more steps remembers what failed."""
EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)


# What `JoinScratch.counts` counts.
HITS, TOUCHED, FOUND, DOUBTS, ROW_WORDS = range(5)
"""Hits, edges touched, filters out, doubts, and words of rows."""
ROW_KEPT, OPEN, STEPS_TAKEN = 5, 6, 7
"""Whether the row is among the rows, entries of the pattern that are open, and steps taken."""
AT_EDGE, AT_PATTERN, MOST_STEPS = 8, 9, 10
"""The edge and the pattern that the loop is at, and the steps that a pattern may take."""
FAILED, ASKED, MOST_ASKED = range(3)
"""Of `JoinScratch.blame`: the slots that checks have failed for, the entries that were asked and the letters
that were searched, and how many may be."""
OF_FILTER, OF_ROW, OF_ANSWER, OF_CHECKS, DOUBT_WORDS = range(5)
"""The words of a doubt, and how many there are."""


class JoinScratch(NamedTuple):
    """What one thread needs: marks by edge and filter, and room for what is found.

    `mark[e]` holds the epoch in its upper half and the edge's last hit in its lower; `hit_count` is how many
    hits there are from one on. A doubt is a filter, the place of its row in `rows`, and what must be asked.

    For a join: `conflict[d]` are the steps that failures behind step d depend on, a bit each; `setter` the
    step that sets a slot; `failed` keeps pairs of a step and a node from which it is known to fail.
    """

    mark: Ints
    seen: Ints32
    hit_next: Ints32
    hit_triple: Ints32
    hit_count: Ints32
    touched: Ints32
    at: Ints32
    mode: Ints32
    row: Ints32
    taken: Ints32
    out: Ints32
    doubts: Ints32
    rows: Ints32
    counts: Ints
    conflict: Words
    setter: Ints32
    blame: Words
    failed: Ints
    failed_when: Ints32
