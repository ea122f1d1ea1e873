"""Entries read back from the stream: where those in full stand, and their checks, in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.records.index.arrays import (
    FLAGS,
    GLOB_OP,
    HEAD_WORDS,
    KIND_SHIFT,
    LEFT_OUT,
    LENGTH,
    LINE_MASK,
    LINE_SHIFT,
    OP_MASK,
    PAIR_LENGTH,
    PAIR_WORDS,
    REFERENCE,
    TREE,
)
from headgate.records.index.checking import operands
from headgate.records.index.kernels import behind_entry
from headgate.records.programs.programs import GLOB, starts

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.records.index.arrays import RecordArrays


def full_entries(arrays: RecordArrays) -> Ints:
    """Find all entries of the stream that are no references."""
    out = np.zeros(len(arrays.stream) // HEAD_WORDS + 1, np.int64)
    singles = int(arrays.single_start[-1])
    return out[: _find_entries(arrays.stream, singles, int(arrays.marks[0]), out)].copy()


@kernel
def _find_entries(stream: Ints32, singles: int, pairs: int, out: Ints) -> int:
    """Walk singles, then pairs with their words in front of each, then what is apart."""
    n, at = 0, 0
    while at < len(stream):
        end = singles if at < singles else len(stream)
        if singles <= at < pairs:
            end = at + PAIR_WORDS + stream[at + PAIR_LENGTH]
            at += PAIR_WORDS
        while at < end:
            if not stream[at] & REFERENCE:
                out[n] = at
                n += 1
            at = behind_entry(stream, at)
    return n


class Checks(NamedTuple):
    """The checks of some entries, one behind another: checks[i] of entry i, none of one with jumps.

    line, kind     the line, -1 for a pattern, and the kind of the leaf, as in `Programs`
    glob           the number of the pattern
    ranges         of how many ranges of codes a check tells: those of all lie behind each other in low, high
    """

    checks: Ints
    line: Ints32
    kind: Bytes
    glob: Ints32
    ranges: Ints
    low: Ints32
    high: Ints32

    @classmethod
    def empty(cls, entries: int, checks: int, ranges: int) -> Checks:
        """Make arrays to be written."""
        line, glob = np.full((2, checks), -1, np.int32)
        low, high = np.zeros((2, ranges), np.int32)
        return cls(
            np.zeros(entries, np.int64),
            line,
            np.zeros(checks, np.uint8),
            glob,
            np.zeros(checks, np.int64),
            low,
            high,
        )

    @property
    def start(self) -> Ints:
        """Return where the ranges of each check begin."""
        return starts(self.ranges)


def read_checks(arrays: RecordArrays, entries: Ints) -> Checks:
    """Read the checks of entries: ranges of codes, also of those that name what they leave out."""
    sizes = np.zeros(2, np.int64)
    _read_checks(arrays.stream, arrays.line_base, entries, Checks.empty(len(entries), 0, 0), sizes)
    checks = Checks.empty(len(entries), *sizes.tolist())
    _read_checks(arrays.stream, arrays.line_base, entries, checks, sizes)
    return checks


@kernel
def _read_checks(stream: Ints32, line_base: Ints32, entries: Ints, out: Checks, sizes: Ints) -> None:
    """Read checks; with no room in `out`, only count these and their ranges."""
    fill = len(out.line) > 0
    check, ranges = 0, 0
    for i in range(len(entries)):
        entry = entries[i]
        pc = entry + HEAD_WORDS
        end = pc if stream[entry] & TREE else pc + stream[entry + LENGTH]
        out.checks[i] = -check
        while pc < end:
            word = stream[pc]
            op = word & OP_MASK
            if op >= GLOB_OP:
                if fill:
                    out.kind[check], out.glob[check] = GLOB + op - GLOB_OP, word >> LINE_SHIFT
                pc += 1
                check += 1
                continue
            n, at, pc = operands(stream, pc)
            line, left_out = (word >> LINE_SHIFT) & LINE_MASK, 1 if word & LEFT_OUT else 0
            width = (pc - at) // max(n, 1)
            before = ranges
            for k in range(n + left_out):
                if left_out:
                    # Between what is left out, and behind it.
                    low = stream[at + width * k - 1] + 1 if k else 1
                    codes = line_base[line + 1] - line_base[line]
                    high = codes - 1 if k == n else stream[at + width * k] - 1
                    if low > high:
                        continue
                else:
                    low, high = stream[at + width * k], stream[at + width * k + width - 1]
                if fill:
                    out.low[ranges], out.high[ranges] = low, high
                ranges += 1
            if fill:
                out.line[check], out.kind[check] = line, op >> KIND_SHIFT
                out.ranges[check] = ranges - before
            check += 1
        out.checks[i] += check
    sizes[0], sizes[1] = check, ranges


def filters_of(arrays: RecordArrays, entries: Ints) -> Ints32:
    """Return the filter of each entry."""
    filters: Ints32 = arrays.stream[entries] >> FLAGS
    return filters


@kernel
def list_checks(stream: Ints32, at: int, end: int, jumps: int, out: Ints) -> int:
    """List where the checks from one place to another begin; so many words of jumps are behind each."""
    n = 0
    while at < end:
        out[n] = at
        n += 1
        if stream[at] & OP_MASK >= GLOB_OP:
            at += 1 + jumps
        else:
            at = operands(stream, at)[2] + jumps
    out[n] = at
    return n
