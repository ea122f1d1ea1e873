"""By what the index comes to each filter, and which events of a sample come to it: what a check costs.

A filter is a few conjunctions. An event comes to a conjunction by a value, a range or a part of a text that
the conjunction demands, or by two of them; to one that demands nothing that is rare, every event comes.

Beside why a filter holds, these words are put to its predicates as people wrote them: which lead there,
which are verified. By what an index comes to a filter depends on the others. Up to MOST of them are looked
at, which of a larger set are as good as all: they say which values are rare.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.protocol import EVERY_EVENT, Access, Costs
from headgate.records.computed import is_computed, shown
from headgate.records.events.encode import encode
from headgate.records.explain.explain import leaves, written
from headgate.records.index.access import ATOM_BITS, ATOM_MASK, BY_BUCKETS, BY_CODES, BY_GRAM, PAIR
from headgate.records.index.build import by_events, by_filters, choose
from headgate.records.index.clusters import lines_of_atoms
from headgate.records.index.grams import GRAMS
from headgate.records.language.rewrite import normalise, push_not
from headgate.records.programs.binding import compile_filters
from headgate.records.programs.elements import typeof_path
from headgate.records.programs.leaves import SetLeaf
from headgate.records.programs.program import compile_program
from headgate.records.programs.programs import ALL, ANY, GLOB, VALUE, concatenate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.core.arrays import Bools, Ints
    from headgate.core.values import Path
    from headgate.records.events.columns import Columns
    from headgate.records.explain.explain import Explanation
    from headgate.records.index.build import Choices, Weigh
    from headgate.records.index.live import State
    from headgate.records.language.model import Expression
    from headgate.records.programs.programs import Programs


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
    choices = choose(programs, weigh or (by_filters if events is None else by_events(events)))
    terms = len(choices.terms.term_filter)
    owner = np.concatenate([choices.terms.term_filter, choices.terms.trees])
    comers = None if events is None else _Comers(programs, choices, events)
    entities: list[list[int]] = [[] for _ in range(programs.filters)]
    for entity, filed in enumerate(owner.tolist()):
        entities[filed].append(entity)
    begin = np.searchsorted(
        choices.of[order := np.argsort(choices.of, kind="stable")], np.arange(len(owner) + 1)
    )
    keys = choices.key[order]
    line_of = lines_of_atoms(choices.atoms.line_base, choices.atoms.level_base, choices.atoms.size)
    answers = []
    owners = _computed(programs)
    counts = Counter(name for names in owners for name in names)
    for number in range(programs.filters) if only is None else only:
        own, computed = entities[number], owners[number]
        shared = sum(counts[name] > 1 for name in computed)
        possible = [each for each in own if each >= terms or not _is_empty(programs, choices, each)]
        words: list[str] = []
        ways: list[str] = []
        indexed: list[str] = []
        verified: list[str] = []
        reached: Bools | None = None if comers is None else np.zeros(comers.count, bool)
        for entity in possible:
            led = keys[begin[entity] : begin[entity + 1]]
            if entity < terms:
                leading = list(_words(programs, choices, entity))
                words.append(" and ".join(leading) or EVERY_EVENT)
                ways.append(_way(programs, choices, entity))
                verified += _checked(programs, choices, entity)
            else:
                leading = _tree_words(programs, choices, line_of[led])
                words.append(" or ".join(leading) or EVERY_EVENT)
                ways.append("value" if leading else "none")
                verified += _tree_checks(programs, int(owner[entity]))
            indexed += leading
            if comers is not None and reached is not None:
                reached |= comers.of(led) if len(led) else True
        if EVERY_EVENT in words:
            words = [EVERY_EVENT]
        always = any(
            each < terms and choices.terms.term_start[each] == choices.terms.term_start[each + 1]
            for each in own
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
    names = []
    for number in range(programs.filters):
        tokens = programs.tokens[programs.token_start[number] : programs.token_start[number + 1]]
        owners = dict.fromkeys(programs.leaf_attribute[tokens[tokens >= 0]].tolist())
        paths = (programs.attributes[owner] for owner in owners)
        names.append(tuple(shown(path) for path in paths if is_computed(path)))
    return names


def _way(programs: Programs, choices: Choices, term: int) -> str:
    """Name the kind of what leads to a conjunction."""
    chosen = [(part, mode) for part, mode in choices.chosen[term].reshape(2, 2).tolist() if part >= 0]
    if len(chosen) != 1:
        return "pair" if chosen else "none"
    part, mode = chosen[0]
    if mode == BY_GRAM:
        return "letters"
    if programs.leaf_kind[choices.parts.part_leaf[part]] == ANY:
        return "element"
    return "range" if mode == BY_BUCKETS else "value"


def _words(programs: Programs, choices: Choices, term: int) -> Iterator[str]:
    """Name what leads to a conjunction: one thing, or two."""
    for part, mode in choices.chosen[term].reshape(2, 2).tolist():
        if part >= 0:
            yield _word(programs, int(choices.parts.part_leaf[part]), mode)


def _checked(programs: Programs, choices: Choices, term: int) -> Iterator[str]:
    """Name what is checked of a conjunction: all but the values that lead there, which are exact."""
    modes = dict(choices.chosen[term].reshape(2, 2).tolist())
    for part in choices.terms.part[
        choices.terms.term_start[term] : choices.terms.term_start[term + 1]
    ].tolist():
        if modes.get(part) != BY_CODES:
            yield _word(programs, int(choices.parts.part_leaf[part]))


def _word(programs: Programs, leaf: int, mode: int = BY_CODES) -> str:
    path, kind = programs.attributes[programs.leaf_attribute[leaf]], int(programs.leaf_kind[leaf])
    if mode == BY_GRAM:
        return word_of(path, GLOB)
    name = word_of(path, kind)
    return range_of(name) if mode == BY_BUCKETS and kind == VALUE else name


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


def _tree_words(programs: Programs, choices: Choices, lines: Ints) -> list[str]:
    names = set()
    for line in {each % choices.lines.size for each in lines.tolist()}:
        multi = choices.lines.line_multi[line]
        kind = GLOB if multi == GRAMS else ANY if multi else VALUE
        names.add(word_of(programs.attributes[choices.lines.line_attribute[line]], kind))
    return sorted(names)


def _tree_checks(programs: Programs, number: int) -> Iterator[str]:
    """Name what is checked of a filter that is kept as a tree: all of it."""
    tokens = programs.tokens[programs.token_start[number] : programs.token_start[number + 1]]
    return (_word(programs, leaf) for leaf in tokens[tokens >= 0].tolist())


def _is_empty(programs: Programs, choices: Choices, term: int) -> bool:
    """Tell whether no value of an attribute has all that a conjunction demands of it."""
    parts = choices.parts
    left: dict[int, set[int]] = {}
    for part in choices.terms.part[
        choices.terms.term_start[term] : choices.terms.term_start[term + 1]
    ].tolist():
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

    def __init__(self, programs: Programs, choices: Choices, events: Columns) -> None:
        shell = choices.shell(programs)
        encoded = encode(events, shell)
        self.count = events.count
        atoms = choices.atoms
        pairs: list[tuple[Ints, Ints]] = []
        for line in range(choices.lines.size):
            if choices.lines.line_multi[line]:
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

    def of(self, keys: Ints) -> Bools:
        """Tell of each event whether it comes by one of some keys."""
        coming = np.zeros(self.count, bool)
        for key in keys.tolist():
            if key < PAIR:
                coming[self._having(key)] = True
                continue
            both = np.zeros(self.count, np.int8)
            for atom in ((key >> ATOM_BITS) & ATOM_MASK, key & ATOM_MASK):
                both[np.unique(self._having(atom))] += 1
            coming |= both == 2
        return coming

    def _having(self, atom: int) -> Ints:
        begin, end = np.searchsorted(self._atom, (atom, atom + 1))
        return self._row[begin:end]


MOST = 5_000
"""Filters among which one is looked at: those of a larger set at equal distances."""


class IndexUse:
    """What the index does for the filters of a state, as it is now, and would do for others."""

    def __init__(self, state: State, weigh: Weigh | None) -> None:
        self._state = state
        self._weigh = weigh or by_filters
        self._changes = state.changes
        early, late = state.left()
        numbers = np.concatenate([np.flatnonzero(early), len(early) + np.flatnonzero(late)])
        self._whole = len(numbers) <= MOST
        if not self._whole:
            numbers = numbers[np.linspace(0, len(numbers) - 1, MOST).astype(np.int64)]
        texts = list(map(state.text, numbers.tolist()))
        # The same filter comes to the same, whosever it is.
        self._places = {text: place for place, text in enumerate(texts)}
        self._programs = compile_filters(texts).programs

    def is_of(self, state: State) -> bool:
        """Tell whether a state has not changed since."""
        return state is self._state and state.changes == self._changes

    def access(self, texts: Sequence[str], events: Columns | None = None) -> list[Access]:
        """Say by what events come to filters among these, and what they cost; one that is not here comes."""
        others = list(dict.fromkeys(text for text in texts if text not in self._places))
        programs, places = self._programs, self._places
        if others:
            programs = concatenate([programs, compile_filters(others).programs])
            places = places | {text: place for place, text in enumerate(others, self._programs.filters)}
        found = find_access(programs, events, self._weigh, [places[text] for text in texts])
        return found if self._whole else [each._replace(costs=_unshared(each.costs)) for each in found]


def _unshared(costs: Costs | None) -> Costs | None:
    """Return costs without what others share, which is not known of a part of them."""
    return costs and replace(costs, shared=None)


def with_access(told: Explanation, expression: Expression, access: Access) -> Explanation:
    """Add to an explanation of a filter what the index does for it."""
    costs = access.costs
    assert costs is not None, "records have them"
    leading, checked = {*costs.indexed}, {*costs.verified}
    indexed, verified = [], []
    for node in leaves(push_not(expression)):
        words = {*_words_of(node)}
        if not leading.isdisjoint(words | {*map(range_of, words)}):
            indexed.append(written(node))
        if not checked.isdisjoint(words):
            verified.append(written(node))
    return replace(
        told,
        indexed_by=access.by,
        indexed=tuple(dict.fromkeys(indexed)),
        verified=tuple(dict.fromkeys(verified)),
        costs=costs,
        notes=() if access.note is None else (access.note,),
    )


def _words_of(node: Expression) -> Iterator[str]:
    """List the words by which `access` may name a predicate, negated or not."""
    for leaf in compile_program(normalise(node)).leaves:
        kind = int(leaf.quantifier) if isinstance(leaf, SetLeaf) else GLOB
        yield word_of(leaf.path, kind)
        typed = typeof_path(leaf.path)
        if typed is not None:
            # What is asked of the type may have been merged with what is asked of the value.
            yield word_of(typed, VALUE)
