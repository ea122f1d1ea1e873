"""Entries laid out in the order in which events reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.records.index.access import ATOM_BITS, ATOM_MASK, OTHER, PAIR, PART
from headgate.records.index.arrays import (
    ANY_POINT,
    BUCKETS,
    FLAGS,
    HEAD_WORDS,
    LED,
    LENGTH,
    OP_MASK,
    PAIR_LENGTH,
    PAIR_WORDS,
    PROBE_BUCKETS,
    PROBE_LINE,
    REFERENCE,
    REFERENCE_WORDS,
    TREE,
    WHERE,
    pair_hash,
    pair_slot,
)
from headgate.records.index.checking import write_check
from headgate.records.index.terms import write_tree
from headgate.records.programs.programs import VALUE

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints, Ints32, Words
    from headgate.records.index.access import Atoms
    from headgate.records.index.lines import Parts


APART = -2
"""In the place of a term that is not written in a cluster."""


class Entities(NamedTuple):
    """What entries stand for: term t, or behind all terms tree k, each of one filter.

    parts[start[t]:start[t + 1]] in the order in which they are checked; a tree has tokens instead, each of so
    many words. led[i] says that the codes of parts[i] are what leads to the term, and nothing else.
    """

    filter: Ints32
    flags: Bytes
    start: Ints
    parts: Ints32
    led: Bytes
    token_start: Ints
    tokens: Ints32
    token_words: Ints


def entity_words(entities: Entities, words: Ints) -> Ints:
    """Count the words of the checks of each entity, given those of its parts, place by place."""
    each = np.repeat(np.arange(len(entities.start) - 1), np.diff(entities.start))
    terms = np.bincount(each, words, len(entities.start) - 1)
    trees = len(entities.token_start) - 1
    each = np.repeat(np.arange(trees), np.diff(entities.token_start))
    return np.append(terms, np.bincount(each, entities.token_words, trees)).astype(np.int64)


@kernel
def place_entries(
    key: Ints, of: Ints32, terms: int, words: Ints, at: Ints, single_start: Ints32, begin: int
) -> int:
    """Find where each entity is written in full (at) and where the clusters of singles begin.

    Postings are sorted by key. Trees, and terms whose place is APART, are written behind everything else.
    Returns the end of the clusters.
    """
    at_word = begin
    before = np.int64(-1)
    atom = 0
    for i in range(len(key)):
        if key[i] != before:
            if key[i] < PAIR:
                while atom <= key[i]:
                    single_start[atom] = at_word
                    atom += 1
            else:
                if before < PAIR:
                    while atom < len(single_start):
                        single_start[atom] = at_word
                        atom += 1
                at_word += PAIR_WORDS
            before = key[i]
        t = of[i]
        if t < terms and at[t] != APART and at[t] < 0:
            at[t] = at_word
            at_word += HEAD_WORDS + words[t]
        else:
            at_word += REFERENCE_WORDS
    while atom < len(single_start):
        single_start[atom] = at_word
        atom += 1
    return at_word


@kernel
def choose_probes(
    parts: Parts, atoms: Atoms, entities: Entities, chosen: Ints32, line: Ints32, buckets: Ints32
) -> None:
    """Choose for each entity what references to it ask first: a line, and the buckets there that allow it.

    Of the parts that did not lead to it, the one that the buckets let the fewest events through. Where there
    is none, all buckets of the first line.
    """
    for t in range(len(entities.filter)):
        line[t], buckets[t] = 0, -1
        if t >= len(entities.start) - 1:
            continue
        least = 2.0
        for i in range(entities.start[t], entities.start[t + 1]):
            p = entities.parts[i]
            own = parts.part_line[p]
            if own < 0 or atoms.line_multi[own] or parts.part_kind[p] != VALUE:
                continue
            if p == chosen[t, PART] or p == chosen[t, OTHER]:
                continue
            base, level = atoms.line_base[own], atoms.level_base[own]
            share, bits = 0.0, np.int64(0)
            for s in range(parts.set_start[p], parts.set_start[p + 1]):
                first = np.int64(atoms.quantile[base + parts.set_low[s]])
                for b in range(first, np.int64(atoms.quantile[base + parts.set_high[s]]) + 1):
                    if not (bits >> b) & 1:
                        bits |= np.int64(1) << b
                        share += atoms.weight[(base if level < 0 else level) + b]
            if bits & 1 and level >= 0:
                # That of a missing value.
                share += atoms.weight[base]
            if share < least:
                least = share
                line[t], buckets[t] = own, np.int32(bits if bits < (1 << 31) else bits - (1 << 32))


@kernel
def write_entity(parts: Parts, entities: Entities, t: int, words: int, out: Ints32) -> None:
    """Write an entity in full."""
    terms = len(entities.start) - 1
    head = (entities.filter[t] << FLAGS) | entities.flags[t]
    out[LENGTH] = words
    if t < terms:
        out[0] = head
        offset = HEAD_WORDS
        for i in range(entities.start[t], entities.start[t + 1]):
            written = write_check(parts, entities.parts[i], out[offset:])
            if entities.led[i] and (out[offset] & OP_MASK) == ANY_POINT:
                out[offset] |= LED
            offset += written
    else:
        out[0] = head | TREE
        first, last = entities.token_start[t - terms], entities.token_start[t - terms + 1]
        write_tree(parts, entities.tokens[first:last], entities.token_words[first:last], out[HEAD_WORDS:])


@kernel
def write_clusters(
    parts: Parts,
    entities: Entities,
    key: Ints,
    of: Ints32,
    words: Ints,
    at: Ints,
    probe_line: Ints32,
    probe_buckets: Ints32,
    stream: Ints32,
    begin: int,
    pair_at: Ints,
) -> int:
    """Write the clusters in the places that `place_entries` found; returns the pairs."""
    at_word = begin
    pairs = 0
    head = 0
    before = np.int64(-1)
    for i in range(len(key)):
        if key[i] != before:
            if before >= PAIR:
                stream[head + PAIR_LENGTH] = at_word - head - PAIR_WORDS
            if key[i] >= PAIR:
                head = at_word
                pair_at[pairs] = head
                pairs += 1
                stream[head] = (key[i] >> ATOM_BITS) & ATOM_MASK
                stream[head + 1] = key[i] & ATOM_MASK
                at_word += PAIR_WORDS
            before = key[i]
        t = of[i]
        if at[t] == at_word:
            write_entity(parts, entities, t, words[t], stream[at_word:])
            at_word += HEAD_WORDS + words[t]
        else:
            stream[at_word] = (entities.filter[t] << FLAGS) | entities.flags[t] | REFERENCE
            stream[at_word + WHERE] = at[t]
            stream[at_word + PROBE_LINE] = probe_line[t]
            stream[at_word + PROBE_BUCKETS] = probe_buckets[t]
            at_word += REFERENCE_WORDS
    if before >= PAIR:
        stream[head + PAIR_LENGTH] = at_word - head - PAIR_WORDS
    return pairs


@kernel
def write_apart(
    parts: Parts, entities: Entities, which: Ints32, words: Ints, at: Ints, stream: Ints32
) -> None:
    """Write some entities that are in no cluster, each at its place."""
    for i in range(len(which)):
        t = which[i]
        write_entity(parts, entities, t, words[t], stream[at[t] :])


@kernel
def fill_slots(
    stream: Ints32, pair_at: Ints, line_of: Ints32, slot_print: Bytes, slot_at: Ints32, pair_mask: Words
) -> None:
    """Put pairs into the hash, and note for both atoms which line the other is on."""
    slots = len(slot_print)
    for i in range(len(pair_at)):
        a, b = stream[pair_at[i]], stream[pair_at[i] + 1]
        code = pair_hash(a, b)
        slot = pair_slot(code, slots)
        while slot_print[slot]:
            slot = np.int64(slot + 1 if slot + 1 < slots else 0)
        slot_print[slot] = np.uint8(code & np.uint64(0xFF)) | np.uint8(1)
        slot_at[slot] = pair_at[i]
        pair_mask[a] |= np.uint64(1) << np.uint64(line_of[b] & 63)
        pair_mask[b] |= np.uint64(1) << np.uint64(line_of[a] & 63)


@kernel
def count_spoilers(
    parts: Parts,
    atoms: Atoms,
    entities: Entities,
    which: Ints32,
    most: int,
    counts: Ints,
    decided: Bytes,
    spoiled: Ints32,
    places: Ints,
) -> None:
    """Count, or with places write, the atoms that rule out each of some entities.

    decided[i] is set for parts (by their place in entities.parts) that the spoilers decide fully. A value on
    code 0 rules out every part of a line, so that a missing attribute costs nothing more.
    """
    terms = len(entities.start) - 1
    fill = len(places) > 0
    for m in range(len(which)):
        t = which[m]
        if t >= terms:
            continue
        for i in range(entities.start[t], entities.start[t + 1]):
            p = entities.parts[i]
            line = parts.part_line[p]
            if line < 0 or atoms.line_multi[line] or parts.part_kind[p] != VALUE:
                continue
            base, codes = atoms.line_base[line], atoms.line_base[line + 1] - atoms.line_base[line]
            first, last = parts.set_start[p], parts.set_start[p + 1]
            outside = codes
            for s in range(first, last):
                outside -= parts.set_high[s] - parts.set_low[s] + 1
            whole = outside <= most
            decided[i] = whole
            s = first
            code = 0
            while code < codes:
                if s < last and code == parts.set_low[s]:
                    code = parts.set_high[s] + 1
                    s += 1
                    continue
                if fill:
                    spoiled[places[base + code]] = m
                    places[base + code] += 1
                else:
                    counts[base + code] += 1
                code += 1
                if not whole:
                    break


@kernel
def mark_buckets(
    parts: Parts,
    atoms: Atoms,
    entities: Entities,
    which: Ints32,
    decided: Bytes,
    row: Ints32,
    first: Ints32,
    out: Words,
    opened: Words,
    always: Words,
) -> None:
    """Mark for each bucket with a row which of some entities it rules out, and which it leaves open.

    Bucket b of a line has the codes from first[b] up to first[b + 1], where b is its place among all buckets;
    the codes of a line's last bucket end where those of the next line begin. `always` gets what has checks
    that no bucket tells of.
    """
    terms = len(entities.start) - 1
    behind = atoms.line_base[len(atoms.line_base) - 1]
    for m in range(len(which)):
        t = which[m]
        w, bit = m >> 6, np.uint64(1) << np.uint64(m & 63)
        if t >= terms:
            always[w] |= bit
            continue
        for i in range(entities.start[t], entities.start[t + 1]):
            if decided[i]:
                continue
            p = entities.parts[i]
            line = parts.part_line[p]
            told = line >= 0 and parts.part_kind[p] == VALUE and atoms.level_base[line] >= 0
            begin = atoms.level_base[line] - behind if told else 0
            if not told or row[begin] < 0:
                always[w] |= bit
                continue
            s, last = parts.set_start[p], parts.set_start[p + 1]
            for b in range(begin, begin + (1 << BUCKETS)):
                low, high = (
                    first[b],
                    first[b + 1]
                    if b + 1 < begin + (1 << BUCKETS)
                    else np.int32(atoms.line_base[line + 1] - atoms.line_base[line]),
                )
                covered = 0
                while s < last and parts.set_high[s] < low:
                    s += 1
                k = s
                while k < last and parts.set_low[k] < high:
                    covered += min(high - 1, parts.set_high[k]) - max(low, parts.set_low[k]) + 1
                    k += 1
                if covered == 0:
                    out[row[b], w] |= bit
                elif covered < high - low:
                    opened[row[b], w] |= bit


def lines_of_atoms(line_base: Ints32, level_base: Ints32, atoms: int) -> np.ndarray:
    """Number the line of each atom; levels of a line count as further lines."""
    lines_by_atom = np.zeros(atoms, np.int32)
    lines = len(line_base) - 1
    codes = int(line_base[-1])
    lines_by_atom[:codes] = np.repeat(np.arange(lines, dtype=np.int32), np.diff(line_base))
    used = [(int(base), number) for number, base in enumerate(level_base.tolist()) if base >= 0]
    for position, (base, number) in enumerate(used):
        end = used[position + 1][0] if position + 1 < len(used) else atoms
        lines_by_atom[base:end] = lines + number
    return lines_by_atom
