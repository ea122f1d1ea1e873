"""Programs to arrays: lines, terms, access, clusters.

programs -> lines and parts of leaves -> terms (or trees) -> access of each -> postings, sorted -> stream
                                                          `-> unkeyed -> spoilers

Access is chosen by how often events have each code: counted in a sample of events, or guessed from the
filters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from headgate.contents.columns import picked
from headgate.errors import SubscriptionError
from headgate.records.computed import is_computed
from headgate.records.events.columns import BatchColumns
from headgate.records.events.encode import encode
from headgate.records.index import access, clusters
from headgate.records.index.access import BY_CODES, NO_PART, OTHER, PART, WAY, Atoms, number_atoms
from headgate.records.index.arrays import BUCKETS, DUPLICATE, HEAD_WORDS, IDLE, BuiltIndex, RecordArrays
from headgate.records.index.checking import check_words, name_left_out
from headgate.records.index.clusters import Entities
from headgate.records.index.grams import add_grams, add_slots, rarest
from headgate.records.index.lines import Lines, Parts, make_lines
from headgate.records.index.terms import MOST_ATOMS, Terms, cover_tree, make_terms, token_words
from headgate.records.programs.programs import GLOB, VALUE, Programs, starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Ints
    from headgate.core.interning import TextPool
    from headgate.core.values import Path
    from headgate.records.events.columns import Columns
    from headgate.records.index.arrays import Events


Weigh: TypeAlias = Callable[["BuiltIndex", "Parts", "Terms"], "NDArray[np.float64]"]

_PRESENT = 0.9
"""The share of events that have an attribute, when nothing is known."""
_GUESSED = 256
"""The guess from the filters counts as much as so many events."""


def by_filters(built: BuiltIndex, parts: Parts, terms: Terms) -> NDArray[np.float64]:
    """Guess from the filters: the values that many of them name are the ones that many events have."""
    lines = built.lines
    base = built.arrays.line_base
    weights = np.zeros(int(base[-1]))
    width = np.diff(parts.set_start)
    uses = np.bincount(terms.part, minlength=len(parts.part_line))
    of_set = np.repeat(np.arange(len(parts.part_line)), width)
    point = (parts.set_low == parts.set_high) & (parts.part_line[of_set] >= 0)
    atoms = base[parts.part_line[of_set[point]]] + parts.set_low[point]
    weights += np.bincount(atoms, uses[of_set[point]], minlength=len(weights))
    weights += 1.0
    weights[base[:-1]] = 0.0
    totals = np.add.reduceat(weights, base[:-1]) if lines.size else np.zeros(0)
    weights /= np.repeat(np.maximum(totals, 1.0), lines.line_codes) / _PRESENT
    weights[base[:-1]] = 1 - _PRESENT
    return weights


def by_events(sample: pa.RecordBatch | Columns) -> Weigh:
    """Count in a sample of events; of codes that it hardly has, the guess from the filters tells more."""
    columns = BatchColumns(sample) if isinstance(sample, pa.RecordBatch) else sample

    def weigh(built: BuiltIndex, parts: Parts, terms: Terms) -> NDArray[np.float64]:
        guess = by_filters(built, parts, terms)
        seen = count_codes(built, encode(columns, built))
        return (seen + _GUESSED * guess) / (columns.count + _GUESSED)

    return weigh


def count_codes(built: BuiltIndex, events: Events) -> NDArray[np.float64]:
    """Count how often each code of each line occurs in some events."""
    base = built.arrays.line_base
    seen = np.zeros(int(base[-1]))
    for line in range(built.lines.size):
        own = events.codes[:, line]
        if built.lines.line_multi[line]:
            own = events.multi_codes[events.multi_start[line, 0] : events.multi_start[line, -1]]
        seen[base[line] : base[line + 1]] = np.bincount(own, minlength=int(built.lines.line_codes[line]))
    return seen


MOST_LINES = 16_383
"""Two atoms of a line and two atoms of a pair share 32 bits in the kernels."""
DENSE = 32
"""A spoiler that rules out more than one in 32 unkeyed entries is stored as bits."""
FEWEST = 64
"""Unkeyed entries that look at a line whose buckets have rows of bits, at least."""
INLINE = 6
"""Words of the checks of a term that stand in a cluster, at most; longer ones are referred to.

A reference takes four words with its probe, which most events fail, and a cluster is read from its beginning.
"""
LOAD = 0.6
"""How full the hash of pairs is; it keeps one free slot at least."""


class Choices(NamedTuple):
    """How events come to each term or tree, and what was asked to choose that.

    `chosen` is what `access.choose_access` writes. Posting i says that key[i] leads to term of[i], or behind
    all terms to a tree.
    """

    lines: Lines
    parts: Parts
    texts: TextPool
    terms: Terms
    atoms: Atoms
    weights: NDArray[np.float64]
    chosen: NDArray[np.int32]
    key: Ints
    of: NDArray[np.int32]
    tree_tokens: list[NDArray[np.int32]]

    def shell(self, programs: Programs) -> BuiltIndex:
        """Return what events can be encoded for, without filters."""
        return without_filters(programs.attributes, programs.filters, self.lines, self.texts)


FEW_LINES = 16
"""Lines of computed attributes that are all taken as they are."""
LINE = 3.0
"""What it costs an event to come to filters by one line more, in checks."""
_NEVER = 1e6
"""How much more frequent codes are made to seem by which no event shall come, if there is another way."""


def _gains(
    parts: Parts,
    weights: NDArray[np.float64],
    chosen: NDArray[np.int32],
    others: NDArray[np.int32],
    lines: int,
) -> NDArray[np.float64]:
    """Return for each line how many checks an event is spared if terms are come to by it, and not by others.

    A set may have hundreds of expressions with few filters each; a line for each of them to look up would
    cost every event more than it spares.
    """
    reached = []
    for each in (chosen, others):
        share = np.ones(len(each))
        for column in (PART, OTHER):
            own = each[:, column]
            share *= np.where(own >= 0, weights[np.maximum(own, 0)], 1.0) if len(weights) else 1.0
        reached.append(share)
    gains = np.zeros(lines)
    spared = np.maximum(reached[1] - reached[0], 0.0)
    for column in (PART, OTHER):
        own = chosen[:, column]
        line = parts.part_line[np.maximum(own, 0)] if len(parts.part_line) else own
        led = (own >= 0) & (line >= 0)
        np.add.at(gains, line[led], spared[led])
    return gains


def choose(programs: Programs, weigh: Weigh | None = None, *, posting: float = access.POSTING) -> Choices:
    """Choose how events come to programs; `weigh` estimates how often events have each code."""
    lines, parts, texts = make_lines(programs)
    lines, grams = add_grams(programs, lines, parts)
    lines = add_slots(programs.attributes, lines, texts)
    if lines.size > MOST_LINES:
        raise SubscriptionError(
            f"filters look at attributes in {lines.size:,} ways, and an index has room for {MOST_LINES:,}: "
            "divide them"
        )
    terms = make_terms(programs, parts)
    shell = without_filters(programs.attributes, programs.filters, lines, texts)
    shares = (weigh or by_filters)(shell, parts, terms)
    atoms = number_atoms(lines, shares)
    gram_atom = rarest(grams, atoms.line_base, atoms.weight)

    def chosen_by(own: Atoms) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        weights = np.zeros(len(parts.part_line))
        sizes = np.zeros(len(parts.part_line), np.int64)
        access.weigh_parts(own, parts, weights, sizes)
        opened = _left_open(own, parts, sizes)
        told = _told(own, parts, opened, terms.part, len(terms.term_filter))

        def choose_some(term_start: Ints, part: NDArray[np.int32]) -> NDArray[np.int32]:
            choices = np.full((len(term_start) - 1, 4), -2, np.int32)
            access.choose_access(
                own, parts, weights, sizes, gram_atom, term_start, part, posting, told, choices
            )
            return choices

        chosen = choose_some(terms.term_start, terms.part)
        while True:
            # Those that rely on buckets of lines that too few others look at are chosen for again.
            unkeyed = np.flatnonzero(chosen[:, PART] == NO_PART)
            each, part = _parts_of(terms, unkeyed)
            still = _told(own, parts, opened, part, len(unkeyed))
            each, line = each[opened[part]], parts.part_line[part[opened[part]]]
            lost = told[line] & ~still[line]
            if not lost.any():
                return weights, chosen
            told &= still
            again = np.unique(each[lost])
            some = choose_some(starts(np.diff(terms.term_start)[again]), _parts_of(terms, again)[1])
            chosen[again] = some

    weights, chosen = chosen_by(atoms)
    computed = np.array([is_computed(path) for path in programs.attributes], bool)[lines.line_attribute]
    computed &= lines.line_multi == 0
    if computed.sum() > FEW_LINES:

        def without(left_out: NDArray[np.bool_]) -> NDArray[np.int32]:
            factor = np.where(left_out, _NEVER, 1.0)
            return chosen_by(number_atoms(lines, shares * np.repeat(factor, lines.line_codes)))[1]

        idle = computed & (_gains(parts, weights, chosen, without(computed), lines.size) < LINE)
        chosen = without(idle) if idle.any() else chosen
    postings = access.post(atoms, parts, gram_atom, chosen)
    tree_key, tree_of, tree_tokens = _post_trees(programs, parts, terms, atoms, gram_atom)
    key = np.concatenate([postings.key, tree_key])
    of = np.concatenate([postings.of, tree_of])
    owners = np.concatenate([terms.term_filter, terms.trees])
    # Terms are in the order of their filters, and stay so within a cluster; trees come behind all terms.
    order = np.lexsort((owners[of], key)) if len(tree_key) else np.argsort(key, kind="stable")
    return Choices(lines, parts, texts, terms, atoms, weights, chosen, key[order], of[order], tree_tokens)


def build(programs: Programs, weigh: Weigh | None = None, *, posting: float = access.POSTING) -> BuiltIndex:
    """Build the index of programs; `weigh` as for `choose`."""
    choices = choose(programs, weigh, posting=posting)
    arrays = _lay_out(programs, choices)
    return choices.shell(programs)._replace(arrays=arrays)


def without_filters(attributes: tuple[Path, ...], filters: int, lines: Lines, texts: TextPool) -> BuiltIndex:
    """Return what events can be encoded for, without filters."""
    base = np.zeros(lines.size + 1, np.int32)
    np.cumsum(lines.line_codes, out=base[1:])
    none: dict[str, NDArray[Any]] = {name: np.zeros(0, np.int32) for name in RecordArrays._fields}
    arrays = RecordArrays(**{**none, "line_base": base, "line_multi": lines.line_multi})
    return BuiltIndex(arrays, lines, texts, attributes, filters)


def _post_trees(
    programs: Programs, parts: Parts, terms: Terms, atoms: Atoms, gram_atom: Ints
) -> tuple[Ints, NDArray[np.int32], list[NDArray[np.int32]]]:
    """Post trees under their covers; returns keys, entities, and the tokens of each tree."""
    keys: list[Ints] = []
    owners: list[NDArray[np.int32]] = []
    tokens: list[NDArray[np.int32]] = []
    out = np.zeros(MOST_ATOMS + 1, np.int64)
    first = len(terms.term_filter)
    for number, f in enumerate(terms.trees.tolist()):
        own = programs.tokens[programs.token_start[f] : programs.token_start[f + 1]]
        tokens.append(own)
        count = cover_tree(atoms, parts, gram_atom, own, out)
        if count > 0:
            atoms_of_tree = np.unique(out[:count])
            keys.append(atoms_of_tree)
            owners.append(np.full(len(atoms_of_tree), first + number, np.int32))
    return (
        np.concatenate([np.zeros(0, np.int64), *keys]),
        np.concatenate([np.zeros(0, np.int32), *owners]),
        tokens,
    )


def _entities(programs: Programs, choices: Choices, written: Parts, part_words: Ints) -> Entities:
    """Put the parts of each term into the order of their checks, and tell what may be found twice."""
    parts, terms, chosen, weights, tokens = (
        choices.parts,
        choices.terms,
        choices.chosen,
        choices.weights,
        choices.tree_tokens,
    )
    owners = np.concatenate([terms.term_filter, terms.trees])
    count = len(terms.term_filter)
    each = np.repeat(np.arange(count), np.diff(terms.term_start))
    # Rare parts first; those that led here hold already, and come last.
    led = (terms.part == chosen[each, PART]) | (terms.part == chosen[each, OTHER])
    cost = weights[terms.part] + 2.0 * led + 0.5 * (parts.part_kind[terms.part] != VALUE)
    order = np.lexsort((cost, each))
    # By the codes of one part, and not by buckets or a pair.
    alone = (chosen[:, PART] >= 0) & (chosen[:, WAY] == BY_CODES) & (chosen[:, OTHER] < 0)
    multi = np.zeros(len(owners), bool)
    multi[:count] = (
        (chosen[:, PART] >= 0) & (parts.part_kind[np.maximum(chosen[:, PART], 0)] != VALUE)
        if len(parts.part_leaf)
        else False
    )
    multi[count:] = True
    again = np.bincount(owners, minlength=programs.filters) > 1 if len(owners) else np.zeros(0, bool)
    flags = np.where(again[owners] | multi, DUPLICATE, 0).astype(np.uint8)
    tree_tokens = np.concatenate([np.zeros(0, np.int32), *tokens])
    return Entities(
        filter=owners,
        flags=flags,
        start=terms.term_start,
        parts=terms.part[order],
        led=(alone[each] & (terms.part == chosen[each, PART]))[order].astype(np.uint8),
        token_start=starts(np.array([len(own) for own in tokens], np.int64)),
        tokens=tree_tokens,
        token_words=token_words(written, part_words, tree_tokens),
    )


def _left_open(atoms: Atoms, parts: Parts, sizes: Ints) -> NDArray[np.bool_]:
    """Tell which parts spoilers leave open, and buckets could tell of."""
    line = parts.part_line
    # A part without a line is at -1: that is behind all lines.
    codes = np.append(np.diff(atoms.line_base), 0)[line]
    plain = (parts.part_kind == VALUE) & (np.append(atoms.level_base, -1)[line] >= 0)
    return np.asarray(plain & (codes - sizes > access.MOST_SPOILERS), np.bool_)


def _told(
    atoms: Atoms, parts: Parts, opened: NDArray[np.bool_], part: NDArray[np.int32], terms: int
) -> NDArray[np.bool_]:
    """Tell which lines would have rows of buckets, if some terms with these parts were the unkeyed ones."""
    counts = np.bincount(parts.part_line[part[opened[part]]], minlength=len(atoms.level_base))
    return _are_many(counts, terms)


def _are_many(counts: Ints, unkeyed: int) -> NDArray[np.bool_]:
    """Tell which lines so many unkeyed entries look at that their buckets have rows."""
    return np.asarray((counts * DENSE > unkeyed) & (counts > FEWEST), np.bool_)


def _parts_of(terms: Terms, chosen: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """List the parts of some terms, each with its term."""
    term_start, at = picked(terms.term_start, chosen)
    return np.repeat(chosen, np.diff(term_start)), terms.part[at]


def _long_terms(words: Ints, of: NDArray[np.int32]) -> NDArray[np.int32]:
    """List the terms that stand apart, in the order of the clusters that lead to them first."""
    first = np.full(max(len(words), int(of.max(initial=-1)) + 1), -1, np.int64)
    first[of[::-1]] = np.arange(len(of))[::-1]
    long = np.flatnonzero((first[: len(words)] >= 0) & (words > INLINE))
    return long[np.argsort(first[long], kind="stable")].astype(np.int32)


def _lay_out(programs: Programs, choices: Choices) -> RecordArrays:
    parts, atoms, key, of = choices.parts, choices.atoms, choices.key, choices.of
    written = _written(parts, atoms)
    part_words = np.zeros(len(parts.part_line), np.int64)
    check_words(written, part_words)
    entities = _entities(programs, choices, written, part_words)
    count = len(entities.filter)
    terms = len(entities.start) - 1
    posted = np.bincount(of, minlength=count)
    decided = np.zeros(len(entities.parts), np.uint8)
    lone = np.flatnonzero(posted == 0).astype(np.int32)
    lone = lone[np.argsort(entities.filter[lone], kind="stable")]
    spoilers = _spoilers(parts, atoms, entities, lone, decided)
    if decided.any():
        # What spoilers do not decide is checked first.
        each = np.repeat(np.arange(terms), np.diff(entities.start))
        order = np.lexsort((decided, each))
        entities = entities._replace(parts=entities.parts[order], led=entities.led[order])
        decided = decided[order]
    words = clusters.entity_words(entities, part_words[entities.parts])
    at = np.full(count, -1, np.int64)
    long = _long_terms(words[:terms], of)
    at[long] = clusters.APART
    single_start = np.zeros(atoms.size + 1, np.int32)
    end = clusters.place_entries(key, of, terms, words, at, single_start, 0)
    apart = np.concatenate([long, lone, np.arange(terms, count, dtype=np.int32)[posted[terms:] > 0]])
    at[apart] = end + starts(words[apart] + HEAD_WORDS)[:-1]
    total = end + int((words[apart] + HEAD_WORDS).sum())
    if total >= 2**31:
        raise SubscriptionError(
            f"the filters need {total:,} words, and an index has room for 2**31: divide them"
        )
    stream = np.zeros(total, np.int32)
    pair_at = np.zeros(int((np.diff(key[key >= access.PAIR], prepend=0) != 0).sum()), np.int64)
    probes = np.zeros((2, count), np.int32)
    probe_line, probe_buckets = probes
    clusters.choose_probes(parts, atoms, entities, choices.chosen, probe_line, probe_buckets)
    clusters.write_clusters(
        written, entities, key, of, words, at, probe_line, probe_buckets, stream, 0, pair_at
    )
    clusters.write_apart(written, entities, apart, words, at, stream)
    slots = int(len(pair_at) / LOAD) + 1
    slot_print, slot_at = np.zeros(slots, np.uint8), np.zeros(slots, np.int32)
    pair_mask = np.zeros(atoms.size, np.uint64)
    line_of = clusters.lines_of_atoms(atoms.line_base, atoms.level_base, atoms.size)
    clusters.fill_slots(stream, pair_at, line_of, slot_print, slot_at, pair_mask)
    buckets = _buckets(parts, atoms, entities, lone, decided)
    # What spoilers decide is not read.
    unkeyed_words = clusters.entity_words(entities, part_words[entities.parts] * (decided == 0))[lone]
    is_glob = programs.leaf_kind >= GLOB
    glob_words = np.diff(programs.glob_start)[is_glob]
    glob_attribute, glob_side = np.unique(programs.leaf_attribute[is_glob], return_inverse=True)
    leading = np.zeros(choices.lines.size, bool)
    leads = (np.diff(single_start) > 0) | (pair_mask > 0)
    leading[np.unique(line_of[leads]) % max(1, choices.lines.size)] = True
    computed = np.array([is_computed(path) for path in programs.attributes], bool)
    idle = computed[choices.lines.line_attribute] & ~leading
    arrays = RecordArrays(
        line_base=atoms.line_base,
        line_multi=atoms.line_multi,
        level_base=np.where(idle, np.int32(IDLE), atoms.level_base).astype(np.int32),
        quantile=atoms.quantile,
        single_start=single_start,
        pair_mask=pair_mask,
        slot_print=slot_print,
        slot_at=slot_at,
        stream=stream,
        marks=np.array([end], np.int64),
        spoil_start=spoilers.start,
        spoiled=spoilers.spoiled,
        spoil_row=spoilers.row,
        spoil_bits=spoilers.bits,
        unkeyed_at=at[lone].astype(np.int32),
        unkeyed_words=unkeyed_words.astype(np.int32),
        unkeyed_head=stream[at[lone]],
        unkeyed_open=buckets.always,
        bucket_row=buckets.row,
        bucket_out=buckets.out,
        bucket_open=buckets.open,
        glob_start=starts(glob_words),
        glob_tokens=programs.glob_tokens,
        glob_side=glob_side.astype(np.int32),
        glob_attribute=glob_attribute,
    )
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _written(parts: Parts, atoms: Atoms) -> Parts:
    """Return the parts as checks name them: by what they hold for, or by what they leave out."""
    none, start = np.zeros(0, np.int32), np.zeros(len(parts.part_line) + 1, np.int64)
    line = np.zeros(len(parts.part_line), np.int32)
    given = (parts, atoms.line_base, atoms.line_multi, start, line)
    low, high = np.zeros((2, name_left_out(*given, none, none)), np.int32)
    name_left_out(*given, low, high)
    return parts._replace(part_line=line, set_start=start, set_low=low, set_high=high)


class _Buckets(NamedTuple):
    row: NDArray[np.int32]
    out: NDArray[np.uint64]
    open: NDArray[np.uint64]
    always: NDArray[np.uint64]


def _buckets(
    parts: Parts,
    atoms: Atoms,
    entities: Entities,
    lone: NDArray[np.int32],
    decided: NDArray[np.uint8],
) -> _Buckets:
    """Tell for buckets of lines that many unkeyed entries look at what is out and what is open there."""
    looked_at, plain = parts.part_line[entities.parts], parts.part_kind[entities.parts] == VALUE
    plain &= (decided == 0) & (np.append(atoms.level_base, -1)[looked_at] >= 0)
    alone = np.zeros(len(entities.filter), np.bool_)
    alone[lone] = True
    asked = np.repeat(alone[: len(entities.start) - 1], np.diff(entities.start)) & plain
    counts = np.bincount(looked_at[asked], minlength=len(atoms.level_base))
    codes = int(atoms.line_base[-1])
    row = np.full(atoms.size - codes, -1, np.int32)
    first = np.zeros(len(row), np.int32)
    rows = 0
    for line in np.flatnonzero(_are_many(counts, len(lone))).tolist():
        begin = int(atoms.level_base[line]) - codes
        own = atoms.quantile[atoms.line_base[line] + 1 : atoms.line_base[line + 1]]
        first[begin : begin + (1 << BUCKETS)] = 1 + np.searchsorted(own, np.arange(1 << BUCKETS))
        row[begin : begin + (1 << BUCKETS)] = rows + np.arange(1 << BUCKETS)
        rows += 1 << BUCKETS
    words = (len(lone) + 63) // 64
    out, opened = np.zeros((2, rows, words), np.uint64)
    always = np.zeros(words, np.uint64)
    clusters.mark_buckets(parts, atoms, entities, lone, decided, row, first, out, opened, always)
    return _Buckets(row, out, opened, always)


class _Spoilers(NamedTuple):
    start: NDArray[np.int32]
    spoiled: NDArray[np.int32]
    row: NDArray[np.int32]
    bits: NDArray[np.uint64]


def _spoilers(
    parts: Parts,
    atoms: Atoms,
    entities: Entities,
    lone: NDArray[np.int32],
    decided: NDArray[np.uint8],
) -> _Spoilers:
    """List for each code the unkeyed entries that it rules out; long lists become bits."""
    codes = int(atoms.line_base[-1])
    counts = np.zeros(codes, np.int64)
    none = np.zeros(0, np.int64)
    given = (parts, atoms, entities, lone, access.MOST_SPOILERS)
    clusters.count_spoilers(*given, counts, decided, np.zeros(0, np.int32), none)
    places = starts(counts)
    spoiled = np.zeros(int(places[-1]), np.int32)
    if len(spoiled):
        clusters.count_spoilers(*given, counts, decided, spoiled, places[:-1].copy())
    row = np.full(codes, -1, np.int32)
    dense = np.flatnonzero((counts * DENSE > len(lone)) & (counts > 64))
    row[dense] = np.arange(len(dense))
    bits = np.zeros((len(dense), (len(lone) + 63) // 64), np.uint64)
    for number, atom in enumerate(dense.tolist()):
        own = spoiled[places[atom] : places[atom + 1]]
        np.bitwise_or.at(bits[number], own >> 6, np.uint64(1) << (own & 63).astype(np.uint64))
    sparse = np.repeat(row < 0, counts)
    return _Spoilers(starts(np.where(row < 0, counts, 0)).astype(np.int32), spoiled[sparse], row, bits)
