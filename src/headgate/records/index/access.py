"""Which values lead to a conjunction: the cheapest cover of it by one atom, or by pairs of atoms.

A part of a conjunction can be *covered* by atoms, one of which every event has that satisfies it: its codes
themselves, or the buckets that its codes lie in. A conjunction is posted under all atoms of one cover, or
under all pairs of two covers. What it costs is the share of events that reach it and must be checked, and
memory for each posting. A conjunction for which nothing of this is cheap has no access: it is unkeyed,
looked at for every event whose values do not rule it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.records.index.arrays import BUCKETS
from headgate.records.programs.programs import ALL, GLOB, VALUE

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Bytes, Floats64, Ints, Ints32
    from headgate.records.index.lines import Lines, Parts


POSTING = 3e-4
"""What a posting costs, in checks an event. Smaller values buy speed with memory."""
MOST_POSTINGS = 100
MOST_POINTS = 16
OUTCAST = 0.03
"""What a conjunction without access costs every event, in checks."""
MOST_SPOILERS = 64
"""A negation that leaves out more codes is checked rather than posted."""
WEAK = 0.5
"""A tree that a larger share of events reaches is looked at for every event instead."""
ATOM_BITS = 31
ATOM_MASK = (1 << ATOM_BITS) - 1
PAIR = np.int64(1) << (2 * ATOM_BITS)
"""The key of a posting is an atom, or PAIR and two of them."""
PART, WAY, OTHER, OTHER_WAY = range(4)
"""What is chosen of a term: a part and by what it leads there; of a pair, another part, too."""
BY_CODES, BY_BUCKETS, BY_GRAM = range(3)
"""By the codes themselves, by the buckets that they lie in, or by three letters of a pattern."""
NO_PART = -2
MOST_OPTIONS = 256


class Atoms(NamedTuple):
    """The numbering of atoms, and how often events have them.

    line_base[l] + code                    a code of line l, for 0 … its codes - 1
    level_base[l] + bucket                 a bucket of line l; level_base is -1 where there are none
    quantile[a]                            the bucket of a code; the code itself where there are none
    weight[a], cumulative[a]               the share of events that have atom a, and all before it
    """

    line_base: Ints32
    line_multi: Bytes
    level_base: Ints32
    quantile: Bytes
    weight: Floats64
    cumulative: Floats64

    @property
    def size(self) -> int:
        """Count the atoms."""
        return len(self.weight)


def number_atoms(lines: Lines, weights: Floats64) -> Atoms:
    """Number codes and buckets; `weights` of all codes, line after line."""
    line_base = np.zeros(lines.size + 1, np.int32)
    np.cumsum(lines.line_codes, out=line_base[1:])
    codes = int(line_base[-1])
    quantile = np.zeros(codes, np.uint8)
    level_base = np.full(lines.size, -1, np.int32)
    buckets: list[Floats64] = []
    following = codes
    for line in range(lines.size):
        first, last = int(line_base[line]), int(line_base[line + 1])
        if lines.line_multi[line] or last - first <= MOST_POINTS:
            quantile[first:last] = 0 if lines.line_multi[line] else np.arange(last - first)
            continue
        own = weights[first + 1 : last]
        before = (np.cumsum(own) - own / 2) / max(own.sum(), 1e-12)
        quantile[first + 1 : last] = np.minimum(
            (before * (1 << BUCKETS)).astype(np.int64), (1 << BUCKETS) - 1
        )
        level_base[line] = following
        bucket_weights = np.bincount(quantile[first + 1 : last], own, minlength=1 << BUCKETS)
        buckets.append(bucket_weights.astype(np.float64))
        following += 1 << BUCKETS
    weight = np.concatenate([weights, *buckets])
    return Atoms(
        line_base, lines.line_multi, level_base, quantile, weight, np.concatenate([[0.0], np.cumsum(weight)])
    )


class Postings(NamedTuple):
    """Posting i says that key[i] leads to term (or tree) of[i]; an unkeyed one has none."""

    key: Ints
    of: Ints32


@kernel
def cover(atoms: Atoms, parts: Parts, p: int, buckets: bool, out: Ints) -> tuple[int, float]:
    """Cover a part by the codes or buckets of its line; returns how many, and how many events have them.

    The atoms are written to `out`, if it has any room.
    """
    line = parts.part_line[p]
    base = atoms.line_base[line]
    start = atoms.level_base[line] if buckets else base
    size, weight, reached = 0, 0.0, np.int64(-1)
    for i in range(parts.set_start[p], parts.set_start[p + 1]):
        first, last = np.int64(parts.set_low[i]), np.int64(parts.set_high[i])
        if buckets:
            first = max(np.int64(atoms.quantile[base + first]), reached + 1)
            last = np.int64(atoms.quantile[base + last])
        if last < first:
            continue
        reached = last
        weight += atoms.cumulative[start + last + 1] - atoms.cumulative[start + first]
        if len(out):
            for offset in range(first, last + 1):
                out[size + offset - first] = start + offset
        size += int(last - first) + 1
    return size, weight


@kernel
def weigh_parts(atoms: Atoms, parts: Parts, weights: Floats64, sizes: Ints) -> None:
    """Estimate the share of events that satisfy each part, and count its codes."""
    none = np.empty(0, np.int64)
    for p in range(len(parts.part_line)):
        if parts.part_line[p] < 0:
            weights[p] = 0.1 if parts.part_kind[p] == GLOB else 0.9
            continue
        size, weight = cover(atoms, parts, p, False, none)
        sizes[p] = size
        weights[p] = 0.5 if parts.part_kind[p] == ALL else min(weight, 1.0)


@kernel
def unkeyed_cost(
    atoms: Atoms, parts: Parts, weights: Floats64, sizes: Ints, own: Ints32, told: Bools
) -> float:
    """Estimate what a term costs that has no access: a bit for every event, and a check if none rules it out.

    Spoilers decide a part that leaves few codes out, and on lines that are told by buckets, these rule out
    most of what any other leaves out. Elsewhere spoilers only tell that its attribute is there.
    """
    none = np.empty(0, np.int64)
    left = 1.0
    for i in range(len(own)):
        p = own[i]
        line = parts.part_line[p]
        if line >= 0 and parts.part_kind[p] == VALUE:
            base, codes = atoms.line_base[line], atoms.line_base[line + 1] - atoms.line_base[line]
            if codes - sizes[p] <= MOST_SPOILERS:
                left *= weights[p]
            elif told[line]:
                left *= min(1.0, cover(atoms, parts, p, True, none)[1])
            else:
                left *= 1.0 - min(1.0, atoms.weight[base])
    return OUTCAST + left


@kernel
def choose_access(
    atoms: Atoms,
    parts: Parts,
    weights: Floats64,
    sizes: Ints,
    gram_atom: Ints,
    term_start: Ints,
    term_part: Ints32,
    posting: float,
    told: Bools,
    chosen: Ints32,
) -> None:
    """Choose for each term: chosen[t] = (PART, WAY, OTHER, OTHER_WAY).

    told[l] says that unkeyed terms are told of line l by its buckets.
    """
    none = np.empty(0, np.int64)
    option_part = np.empty(MOST_OPTIONS, np.int32)
    option_way = np.empty(MOST_OPTIONS, np.int32)
    option_size = np.empty(MOST_OPTIONS, np.int64)
    option_weight = np.empty(MOST_OPTIONS, np.float64)
    for t in range(len(term_start) - 1):
        options = 0
        for i in range(term_start[t], term_start[t + 1]):
            p = term_part[i]
            line = parts.part_line[p]
            if gram_atom[p] >= 0 and options < MOST_OPTIONS - 3:
                option_part[options], option_way[options] = p, BY_GRAM
                option_size[options], option_weight[options] = 1, atoms.weight[gram_atom[p]]
                options += 1
            if line < 0 or parts.part_kind[p] >= ALL or options >= MOST_OPTIONS - 3:
                continue
            if sizes[p] <= MOST_POINTS:
                option_part[options], option_way[options] = p, BY_CODES
                option_size[options], option_weight[options] = sizes[p], weights[p]
                options += 1
            if 2 * sizes[p] > MOST_POINTS and atoms.level_base[line] >= 0:
                size, weight = cover(atoms, parts, p, True, none)
                if size <= MOST_POINTS:
                    option_part[options], option_way[options] = p, BY_BUCKETS
                    option_size[options], option_weight[options] = size, weight
                    options += 1
        own = term_part[term_start[t] : term_start[t + 1]]
        best = unkeyed_cost(atoms, parts, weights, sizes, own, told)
        chosen[t, PART] = chosen[t, OTHER] = NO_PART
        for i in range(options):
            cost = option_weight[i] + 0.5 * posting * option_size[i]
            if cost < best:
                best = cost
                chosen[t, PART], chosen[t, WAY], chosen[t, OTHER] = option_part[i], option_way[i], NO_PART
        for i in range(options):
            if option_way[i] == BY_GRAM or atoms.line_multi[parts.part_line[option_part[i]]]:
                continue
            for j in range(i):
                if option_way[j] == BY_GRAM or atoms.line_multi[parts.part_line[option_part[j]]]:
                    continue
                if parts.part_line[option_part[i]] == parts.part_line[option_part[j]]:
                    continue
                size = option_size[i] * option_size[j]
                cost = option_weight[i] * option_weight[j] + posting * size
                if cost < best and size <= MOST_POSTINGS:
                    best = cost
                    chosen[t, PART], chosen[t, WAY] = option_part[i], option_way[i]
                    chosen[t, OTHER], chosen[t, OTHER_WAY] = option_part[j], option_way[j]


@kernel
def list_postings(atoms: Atoms, parts: Parts, gram_atom: Ints, chosen: Ints32, key: Ints, of: Ints32) -> int:
    """Write the postings of all terms; with empty `key`, only count them."""
    ours = np.empty(4096, np.int64)
    theirs = np.empty(4096, np.int64)
    n = 0
    fill = len(key) > 0
    for t in range(len(chosen)):
        p = chosen[t, PART]
        if p < 0:
            continue
        if chosen[t, WAY] == BY_GRAM:
            if fill:
                key[n], of[n] = gram_atom[p], t
            n += 1
            continue
        first = cover(atoms, parts, p, chosen[t, WAY] == BY_BUCKETS, ours)[0]
        q = chosen[t, OTHER]
        if q < 0:
            if fill:
                for i in range(first):
                    key[n + i] = ours[i]
                    of[n + i] = t
            n += first
            continue
        second = cover(atoms, parts, q, chosen[t, OTHER_WAY] == BY_BUCKETS, theirs)[0]
        if fill:
            at = n
            for i in range(first):
                for j in range(second):
                    a, b = min(ours[i], theirs[j]), max(ours[i], theirs[j])
                    key[at] = PAIR | (a << ATOM_BITS) | b
                    of[at] = t
                    at += 1
        n += first * second
    return n


def post(atoms: Atoms, parts: Parts, gram_atom: Ints, chosen: Ints32) -> Postings:
    """List the postings of all terms."""
    none = np.zeros(0, np.int64)
    count = list_postings(atoms, parts, gram_atom, chosen, none, np.zeros(0, np.int32))
    key, of = np.zeros(count, np.int64), np.zeros(count, np.int32)
    if count:
        list_postings(atoms, parts, gram_atom, chosen, key, of)
    return Postings(key, of)
