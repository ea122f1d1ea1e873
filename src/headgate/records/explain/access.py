"""By what the index comes to each filter, and which events of a sample come to it: what a check costs.

A filter is a few conjunctions. An event comes to a conjunction by a value, a range or a part of a text that
the conjunction demands, or by two of them; to one that demands nothing that is rare, every event comes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.protocol import EVERY_EVENT, Access, Costs
from headgate.records.computed import is_computed, shown
from headgate.records.events.encode import encode
from headgate.records.index.access import BY_GRAM, PAIR
from headgate.records.index.build import by_events, by_filters, choose
from headgate.records.index.clusters import lines_of_atoms
from headgate.records.index.grams import GRAMS
from headgate.records.programs.programs import ALL, ANY, GLOB, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.events.columns import Columns
    from headgate.records.index.build import Choices, Weigh
    from headgate.records.programs.programs import Programs

    Ints = NDArray[np.int64]

NEVER, ALWAYS = "it can never match", "it matches every event"


def find_access(
    programs: Programs,
    events: Columns | None,
    weigh: Weigh | None = None,
    only: Sequence[int] | None = None,
) -> list[Access]:
    """Say of each filter by what events come to it, as if the index was built with this sample.

    `weigh` says how often events have each value, instead of the sample. `only` names some of the filters.
    """
    found = choose(programs, weigh or (by_filters if events is None else by_events(events)))
    terms = len(found.terms.term_filter)
    owner = np.concatenate([found.terms.term_filter, found.terms.trees])
    comers = None if events is None else _Comers(programs, found, events)
    entities: list[list[int]] = [[] for _ in range(programs.filters)]
    for entity, filed in enumerate(owner.tolist()):
        entities[filed].append(entity)
    begin = np.searchsorted(found.of[order := np.argsort(found.of, kind="stable")], np.arange(len(owner) + 1))
    keys = found.key[order]
    line_of = lines_of_atoms(found.atoms.line_base, found.atoms.level_base, found.atoms.size)
    answers = []
    owners = _computed(programs)
    counts = Counter(name for names in owners for name in names)
    for number in range(programs.filters) if only is None else only:
        own, computed = entities[number], owners[number]
        shared = sum(counts[name] > 1 for name in computed)
        possible = [each for each in own if each >= terms or not _is_empty(programs, found, each)]
        words: list[str] = []
        ways: list[str] = []
        indexed: list[str] = []
        verified: list[str] = []
        reached: NDArray[np.bool_] | None = None if comers is None else np.zeros(comers.count, bool)
        for entity in possible:
            led = keys[begin[entity] : begin[entity + 1]]
            if entity < terms:
                leading = list(_words(programs, found, entity))
                words.append(" and ".join(leading) or EVERY_EVENT)
                ways.append(_way(programs, found, entity))
                verified += _checked(programs, found, entity)
            else:
                leading = _tree_words(programs, found, line_of[led])
                words.append(" or ".join(leading) or EVERY_EVENT)
                ways.append("value" if leading else "none")
                verified += _tree_checks(programs, int(owner[entity]))
            indexed += leading
            if comers is not None and reached is not None:
                reached |= comers.of(led) if len(led) else True
        if EVERY_EVENT in words:
            words = [EVERY_EVENT]
        always = any(
            each < terms and found.terms.term_start[each] == found.terms.term_start[each + 1] for each in own
        )
        answers.append(
            Access(
                " or ".join(dict.fromkeys(words)) or "nothing",
                None if reached is None else int(reached.sum()),
                NEVER if not possible else ALWAYS if always else None,
                Costs(
                    tuple(dict.fromkeys(ways)),
                    tuple(dict.fromkeys(indexed)),
                    tuple(dict.fromkeys(verified)),
                    computed,
                    shared,
                    EVERY_EVENT in words,
                ),
            )
        )
    return answers


def _computed(programs: Programs) -> list[tuple[str, ...]]:
    """List what is computed for each filter."""
    found = []
    for number in range(programs.filters):
        tokens = programs.tokens[programs.token_start[number] : programs.token_start[number + 1]]
        owners = dict.fromkeys(programs.leaf_attribute[tokens[tokens >= 0]].tolist())
        paths = (programs.attributes[owner] for owner in owners)
        found.append(tuple(shown(path) for path in paths if is_computed(path)))
    return found


def _way(programs: Programs, found: Choices, term: int) -> str:
    """Name the kind of what leads to a conjunction."""
    chosen = [(part, mode) for part, mode in found.chosen[term].reshape(2, 2).tolist() if part >= 0]
    if len(chosen) != 1:
        return "pair" if chosen else "none"
    part, mode = chosen[0]
    if mode == BY_GRAM:
        return "letters"
    if programs.leaf_kind[found.parts.part_leaf[part]] == ANY:
        return "element"
    return "range" if mode else "value"


def _words(programs: Programs, found: Choices, term: int) -> Iterator[str]:
    """Name what leads to a conjunction: one thing, or two."""
    for part, mode in found.chosen[term].reshape(2, 2).tolist():
        if part >= 0:
            yield _word(programs, int(found.parts.part_leaf[part]), mode)


def _checked(programs: Programs, found: Choices, term: int) -> Iterator[str]:
    """Name what is checked of a conjunction: all but the values that lead there, which are exact."""
    modes = dict(found.chosen[term].reshape(2, 2).tolist())
    for part in found.terms.part[found.terms.term_start[term] : found.terms.term_start[term + 1]].tolist():
        if modes.get(part) != 0:
            yield _word(programs, int(found.parts.part_leaf[part]))


def _word(programs: Programs, leaf: int, mode: int = 0) -> str:
    path, kind = programs.attributes[programs.leaf_attribute[leaf]], int(programs.leaf_kind[leaf])
    if mode == BY_GRAM:
        return word_of(path, GLOB)
    name = word_of(path, kind)
    return range_of(name) if mode and kind == VALUE else name


def range_of(name: str) -> str:
    """Name what leads to a filter where several values of an attribute are taken together."""
    return f"range of {name}"


def word_of(path: Path, kind: int) -> str:
    """Name what a leaf looks at: an attribute, its elements, or its letters.

    >>> word_of(("tags",), ANY), word_of(("LOWER", "name"), GLOB)
    ('elements of tags', 'letters of lower(name)')
    """
    name = shown(path)
    if kind >= GLOB:
        return f"letters of {name}"
    if kind == ALL:
        return f"all elements of {name}"
    return f"elements of {name}" if kind == ANY and not is_computed(path) else name


def _tree_words(programs: Programs, found: Choices, lines: Ints) -> list[str]:
    names = set()
    for line in {each % found.lines.size for each in lines.tolist()}:
        multi = found.lines.line_multi[line]
        kind = GLOB if multi == GRAMS else ANY if multi else VALUE
        names.add(word_of(programs.attributes[found.lines.line_attribute[line]], kind))
    return sorted(names)


def _tree_checks(programs: Programs, number: int) -> Iterator[str]:
    """Name what is checked of a filter that is kept as a tree: all of it."""
    tokens = programs.tokens[programs.token_start[number] : programs.token_start[number + 1]]
    return (_word(programs, leaf) for leaf in tokens[tokens >= 0].tolist())


def _is_empty(programs: Programs, found: Choices, term: int) -> bool:
    """Tell whether no value of an attribute has all that a conjunction demands of it."""
    parts = found.parts
    left: dict[int, set[int]] = {}
    for part in found.terms.part[found.terms.term_start[term] : found.terms.term_start[term + 1]].tolist():
        line = int(parts.part_line[part])
        if line < 0 or programs.leaf_kind[parts.part_leaf[part]] != VALUE:
            continue
        begin, end = parts.set_start[part], parts.set_start[part + 1]
        codes: set[int] = set()
        for low, high in zip(
            parts.set_low[begin:end].tolist(), parts.set_high[begin:end].tolist(), strict=True
        ):
            codes.update(range(low, high + 1))
        left[line] = left[line] & codes if line in left else codes
        if not left[line]:
            return True
    return False


class _Comers:
    """Which events have which codes and buckets, the atoms that lead to filters."""

    def __init__(self, programs: Programs, found: Choices, events: Columns) -> None:
        shell = found.shell(programs)
        encoded = encode(events, shell)
        self.count = events.count
        atoms = found.atoms
        pairs: list[tuple[Ints, Ints]] = []
        for line in range(found.lines.size):
            if found.lines.line_multi[line]:
                start = encoded.multi_start[line]
                rows = np.repeat(np.arange(self.count), np.diff(start))
                codes = encoded.multi_codes[start[0] : start[-1]].astype(np.int64)
            else:
                # Code 0 leads nowhere.
                rows = np.flatnonzero(encoded.codes[:, line])
                codes = encoded.codes[rows, line].astype(np.int64)
            atom = atoms.line_base[line] + codes
            pairs.append((atom, rows))
            if atoms.level_base[line] >= 0:
                pairs.append((atoms.level_base[line] + atoms.quantile[atom].astype(np.int64), rows))
        atom = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in pairs)])
        order = np.argsort(atom, kind="stable")
        self._atom = atom[order]
        self._row = np.concatenate([np.zeros(0, np.int64), *(each for _, each in pairs)])[order]

    def of(self, keys: Ints) -> NDArray[np.bool_]:
        """Tell of each event whether it comes by one of some keys."""
        found = np.zeros(self.count, bool)
        for key in keys.tolist():
            if key < PAIR:
                found[self._having(key)] = True
                continue
            both = np.zeros(self.count, np.int8)
            for atom in ((key >> 31) & 0x7FFFFFFF, key & 0x7FFFFFFF):
                both[np.unique(self._having(atom))] += 1
            found |= both == 2
        return found

    def _having(self, atom: int) -> Ints:
        begin, end = np.searchsorted(self._atom, (atom, atom + 1))
        return self._row[begin:end]
