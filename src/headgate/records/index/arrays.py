"""The record index, events, and what a thread needs to match, as flat arrays; the hash of a pair of atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32, Words
    from headgate.core.interning import TextPool
    from headgate.core.values import Path
    from headgate.records.index.lines import Lines


@inner
def pair_hash(a: int, b: int) -> np.uint64:
    """Mix two atoms: the low byte is the fingerprint, the rest chooses the slot."""
    code = (np.uint64(a) << np.uint64(32)) | np.uint64(b)
    code *= np.uint64(0x9E3779B97F4A7C15)
    code ^= code >> np.uint64(29)
    code *= np.uint64(0xBF58476D1CE4E5B9)
    return code ^ (code >> np.uint64(32))


@inner
def pair_slot(code: np.uint64, slots: int) -> np.int64:
    """Choose the slot of a hash, from its upper half: any number of slots will do."""
    return np.int64(((code >> np.uint64(32)) * np.uint64(slots)) >> np.uint64(32))


POINT, RANGE, POINTS, RANGES = range(4)
"""What a check compares a code with: its shape."""
ANY_OPS, ALL_OPS, GLOB_OP, NOT_GLOB_OP, TRUE_OP, FALSE_OP = 4, 8, 12, 13, 14, 15
"""Operations: a shape by itself asks a value, with one of the first two the elements of an array."""
ANY_POINT = ANY_OPS + POINT
OP_MASK, SHAPE_MASK, KIND_SHIFT = 15, 3, 2
"""A check begins with its operation: the lowest bits are the shape, the others the kind of its leaf."""
LINE_SHIFT, LINE_MASK = 4, 0x3FFF
"""Behind it is the line; or, of any number of bits, the pattern."""
NOT_LINE = 14
"""The bit of a line's number, which has as many bits, that says that operands are what a check leaves out."""
LEFT_OUT = 1 << (LINE_SHIFT + NOT_LINE)
"""The same bit, where it stands in a check."""
COUNT_SHIFT = 20
"""Behind that, how many operands; 0 if a word of their number comes next."""
MOST_COUNTED = 2047
"""More operands than fit beside the operation are counted by a word of their own."""
LED = 1 << COUNT_SHIFT
"""Said of an ANY_POINT, where others count operands: its code alone leads there, so it holds."""

IDLE = -2
"""In place of `level_base`: the line of a computed attribute that leads to no entries."""
DUPLICATE, REFERENCE, TREE = 1, 2, 4
"""Flags of an entry: it may be found twice; its checks stand elsewhere; its checks have jumps."""
FLAGS = 3
"""Bits of the flags below the filter's number."""
HEAD_WORDS, PAIR_WORDS, REFERENCE_WORDS = 2, 3, 4
"""Words before the checks of an entry, before the entries of a pair, and of a reference."""
LENGTH, PAIR_LENGTH = 1, 2
"""Where the words of an entry's checks, or of a pair's entries, are counted."""
WHERE, PROBE_LINE, PROBE_BUCKETS = 1, 2, 3
"""Of a reference: where the entry stands, and what is asked before it is gone to."""
LATE = 512
"""References that are followed together."""

ACCEPT, REJECT = -1, -2
"""Jumps that leave a tree."""

BUCKETS = 5
"""Logarithm of the buckets of equal weight that a line is divided into, for ranges."""


class RecordArrays(NamedTuple):
    """All filters, each as entries of clusters that an event's values lead to.

        atom           a code on a line (line_base[l] + code), or a bucket of codes
                       (level_base[l] + bucket), behind all codes; the bucket of a code is quantile[atom],
                       and on a line that has no such atoms, since it has few codes, that is the code;
                       level_base[l] is -1 then, and IDLE where no atom leads anywhere
        single a       entries stream[single_start[a]:single_start[a + 1]]
        pair (a, b)    slots of a hash, a < b: slot_print 0 is free, else one byte of the key's hash, and
                       slot_at is where stream holds [a, b, words, entries…]
          pair_mask    of an atom: the lines it has partners on, one bit each, modulo 64
        apart          from marks[0] on, in no cluster: long conjunctions, trees, and unkeyed entries (below)
        entry          [filter << 3 | flags, words, checks…], or
                       [filter << 3 | REFERENCE…, where, line, buckets], in rising order of filters within a
                       cluster; what is referred to holds only if the event's bucket on the line is one of the
                       buckets, a bit each
        check          [op | line << 4 | n << 20, operands…]; n = 0 with several operands: n comes next
          POINT c      RANGE low high      POINTS n codes      RANGES n pairs      GLOB pattern
                       with NOT beside a line of single values, operands are what is left out, but for code 0
        pattern g      glob_tokens[glob_start[g]:glob_start[g + 1]] over glob_attribute[glob_side[g]]
        tree           every check is followed by two jumps, counted from the first check: if true, if false

    Every conjunction is stored in full, once: a short one in the first of its entries, to which the others
    refer, a long one apart. So the filters can be read back from here, and compaction needs no text.

    Conjunctions that nothing but negations narrow are not in the stream's clusters but below: m is the number
    of such a conjunction, in rising order of filters. It holds unless one of its values is ruled out.

        spoiler a      conjunctions that atom a rules out: spoiled[spoil_start[a]:spoil_start[a + 1]], or,
                       where spoil_row[a] >= 0, the bits of that row of `spoil_bits`
        unkeyed m      entry at stream[unkeyed_at[m]], which begins with unkeyed_head[m]; checks that spoilers
                       do not decide come first, their words are unkeyed_words[m]

    What leaves out more codes than there are spoilers for is told by buckets. Of a bucket with a row r, of
    bucket_row by its place among the buckets, bucket_out[r] has the bits of conjunctions that no code in it
    allows, and bucket_open[r] of those that only some allow. What is neither out nor open holds, unless it
    is in `unkeyed_open`: it has checks that buckets say nothing about.
    """

    line_base: Ints32
    line_multi: Bytes
    level_base: Ints32
    quantile: Bytes
    single_start: Ints32
    pair_mask: Words
    slot_print: Bytes
    slot_at: Ints32
    stream: Ints32
    marks: Ints
    spoil_start: Ints32
    spoiled: Ints32
    spoil_row: Ints32
    spoil_bits: Words
    unkeyed_at: Ints32
    unkeyed_words: Ints32
    unkeyed_head: Ints32
    unkeyed_open: Words
    bucket_row: Ints32
    bucket_out: Words
    bucket_open: Words
    glob_start: Ints
    glob_tokens: NDArray[np.int16]
    glob_side: Ints32
    glob_attribute: Ints32

    def check(self) -> None:
        """Assert the invariants: every cluster is a run of entries, and every entry a run of checks."""
        lines = len(self.line_base) - 1
        atoms = len(self.pair_mask)
        assert len(self.single_start) == atoms + 1
        assert len(self.level_base) == lines
        assert bool((np.diff(self.single_start) >= 0).all())
        full: dict[int, int] = {}
        references: list[tuple[int, int]] = []
        at = 0
        for atom in range(atoms):
            at = self._check_entries(at, int(self.single_start[atom + 1]), full, references)
        heads = set()
        while at < self.marks[0]:
            assert self.stream[at] < self.stream[at + 1] < atoms
            heads.add(at)
            at = self._check_entries(
                at + PAIR_WORDS, at + PAIR_WORDS + int(self.stream[at + PAIR_LENGTH]), full, references
            )
        at = self._check_entries(at, len(self.stream), full, references, ordered=False)
        assert at == len(self.stream)
        assert {int(where) for where in self.slot_at[self.slot_print > 0]} == heads
        assert all(full[where] == number for where, number in references)
        assert all(int(where) in full for where in self.unkeyed_at)
        assert np.array_equal(self.stream[self.unkeyed_at], self.unkeyed_head)
        assert not bool((self.bucket_out & self.bucket_open).any())
        assert bool((np.diff(self.stream[self.unkeyed_at] >> FLAGS) >= 0).all())

    def _check_entries(
        self,
        at: int,
        end: int,
        full: dict[int, int],
        references: list[tuple[int, int]],
        *,
        ordered: bool = True,
    ) -> int:
        before = -1
        while at < end:
            head = int(self.stream[at])
            assert not ordered or head >> FLAGS >= before
            before = head >> FLAGS
            if head & REFERENCE:
                references.append((int(self.stream[at + WHERE]), head >> FLAGS))
                assert 0 <= self.stream[at + PROBE_LINE] < max(1, len(self.level_base))
                at += REFERENCE_WORDS
            else:
                full[at] = head >> FLAGS
                begin, at = at + HEAD_WORDS, at + HEAD_WORDS + int(self.stream[at + LENGTH])
                self._check_checks(begin, at, tree=bool(head & TREE))
        assert at == end
        return at

    def _check_checks(self, at: int, end: int, *, tree: bool) -> None:
        from headgate.records.index.entries import list_checks

        begins = np.zeros(end - at + 1, np.int64)
        count = list_checks(self.stream, at, end, 2 if tree else 0, begins)
        assert begins[count] == end
        if tree:
            places = begins[:count] - at
            jumps = self.stream[np.add.outer(begins[1 : count + 1] - 2, range(2))]
            assert np.isin(jumps, [*places.tolist(), ACCEPT, REJECT]).all()


class Events(NamedTuple):
    """A batch of events, encoded for one index.

    codes[e, l]              the code of event e on line l; on a line of elements 1 if the value is an array
    multi_start[l, e]        the codes of the elements (or grams) of event e on line l are
                             multi_codes[multi_start[l, e]:multi_start[l, e + 1]]
    text_of[s, e]            the text that patterns over attribute glob_attribute[s] see, in text_offsets and
                             text_data; -1 for none
    """

    codes: Ints32
    multi_start: Ints
    multi_codes: Ints32
    text_of: Ints32
    text_offsets: Ints
    text_data: Bytes

    def some(self, begin: int, end: int) -> Events:
        """Take some of the events; kernels want every array in one piece."""
        return self._replace(
            codes=self.codes[begin:end],
            multi_start=np.ascontiguousarray(self.multi_start[:, begin : end + 1]),
            text_of=np.ascontiguousarray(self.text_of[:, begin:end]),
        )


class Desk(NamedTuple):
    """What a kernel writes down while it matches an event.

    atoms, masks, lines    the atoms of the event that have partners, and what is known of each
    buckets                the bucket of the event's code on each line
    clusters               the clusters that it leads to: first word, and end
    late                   places of references that wait until they are followed
    fail, doubt            of unkeyed entries, a bit each: ruled out; to be checked
    bits, words            all zero: of filters, and of words of `bits`, while matches are sorted
    """

    atoms: Ints32
    masks: Words
    lines: Bytes
    buckets: Bytes
    clusters: Ints32
    late: Ints32
    fail: Words
    doubt: Words
    bits: Words
    words: Words

    @classmethod
    def of(cls, index: RecordArrays, filters: int) -> Desk:
        """Make a desk for an index of so many filters."""
        most = 2 * len(index.line_base)
        unkeyed = (len(index.unkeyed_at) + 63) // 64
        words = (filters + 63) // 64
        return cls(
            atoms=np.empty(most, np.int32),
            masks=np.empty(most, np.uint64),
            lines=np.empty(most, np.uint8),
            buckets=np.empty(most, np.uint8),
            clusters=np.empty((max(256, most), 2), np.int32),
            late=np.empty(LATE, np.int32),
            fail=np.zeros(unkeyed, np.uint64),
            doubt=np.zeros(unkeyed, np.uint64),
            bits=np.zeros(words, np.uint64),
            words=np.zeros((words + 63) // 64, np.uint64),
        )


class BuiltIndex(NamedTuple):
    """The arrays, how events are encoded for them, and the attributes by number."""

    arrays: RecordArrays
    lines: Lines
    texts: TextPool
    attributes: tuple[Path, ...]
    filters: int
