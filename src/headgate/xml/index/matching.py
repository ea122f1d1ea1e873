"""From a document to the filters that hold, for any thread."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.columns import all_read_only, read_only
from headgate.contents.documents import BaseMatcher
from headgate.errors import EventError
from headgate.xml.events.document import Document
from headgate.xml.events.subject import Encoder
from headgate.xml.index import kernels, scratch
from headgate.xml.index.arrays import EQUAL, TESTS
from headgate.xml.index.paths import find_paths, walk_trie
from headgate.xml.index.word_lists import ListedPatterns, are_words, split
from headgate.xml.index.word_nodes import WordNodes
from headgate.xml.language.values import number

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32
    from headgate.core.interning import TextPool
    from headgate.core.text.listing import Split
    from headgate.xml.index.arrays import Tests, XmlArrays


_WORTH = 2
"""Sets for each node of a document, from which on it is worth looking its values up."""


class Equalities:
    """The texts that sets of tests ask a node to be."""

    def __init__(self, tests: Tests) -> None:
        member = np.asarray(tests.member)
        owner = np.repeat(np.arange(len(tests.set_start) - 1), np.diff(tests.set_start))
        equal = (tests.sign[member] == EQUAL) & (tests.text[member] >= 0)
        # One text of a set is enough: without it the set does not hold.
        sets, at = np.unique(owner[equal], return_index=True)
        texts = tests.text[member[equal][at]]
        self.count = len(sets)
        self._skip = np.zeros(len(tests.set_start) - 1, np.uint8)
        self._skip[sets] = 1
        order = np.argsort(texts, kind="stable")
        self._sets = sets[order]
        numbers, starts = np.unique(texts[order], return_index=True)
        stops = np.append(starts, len(order))[1:]
        offsets = np.asarray(tests.text_offsets)
        data = np.asarray(tests.text_data).tobytes()
        begins, ends = offsets[numbers].tolist(), offsets[numbers + 1].tolist()
        self._places = {
            data[begin:end]: (start, stop)
            for begin, end, start, stop in zip(begins, ends, starts.tolist(), stops.tolist(), strict=True)
        }
        self._longest = max((end - begin for begin, end in zip(begins, ends, strict=True)), default=0)

    def impossible(self, document: Document) -> Bytes | None:
        """Mark the sets that hold nowhere in a document; None if it is not worth finding them."""
        if self.count < _WORTH * len(document.labels):
            return None
        begins, stops = np.asarray(document.begins), np.asarray(document.stops)
        short = stops - begins <= self._longest
        text = np.asarray(document.text).tobytes()
        values = {
            text[begin:stop]
            for begin, stop in zip(begins[short].tolist(), stops[short].tolist(), strict=True)
        }
        marks = self._skip.copy()
        for value in values & self._places.keys():
            start, stop = self._places[value]
            marks[self._sets[start:stop]] = 0
        return marks


_NODES, _PAIRS, _ENTRIES, _TRUTHS = 1024, 1 << 12, 1 << 12, 1 << 14
MOST_PAIRS = 1 << 27
"""Paths of a document with nodes of the trie that they lead to, and what else is as many: far fewer than
numbers of 32 bits can count, and no more than fits into memory."""
MOST_LETTERS = 1 << 27
"""Letters that are searched for one filter, for all its `contains` together: some tenths of a second."""
_READ = 1
_LAST_EPOCH = 2**31 - 4


class Prepared(NamedTuple):
    """A document with words as nodes, the labels of its names, and the filters that were found by a word."""

    document: Document
    classes: Ints32
    listed: Ints32 | None


class Matcher(BaseMatcher):
    """Filters in arrays, with what is needed to ask them."""

    def __init__(self, arrays: XmlArrays, labels: TextPool) -> None:
        # All of one kind, whether built or mapped: loops are compiled once.
        self.arrays = all_read_only(arrays)
        self._labels = labels
        self._local = threading.local()

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self._labels.texts())

    @cached_property
    def _words(self) -> WordNodes | None:
        return WordNodes.of(self._labels.texts(), self.arrays.trie, are_words(self._labels))

    @cached_property
    def _split(self) -> Split | None:
        """Return the filters that are found by a word, and what is left; None if they are few."""
        return split(self.arrays, self._labels)

    @cached_property
    def _listed(self) -> ListedPatterns | None:
        return None if self._split is None else ListedPatterns(self._split)

    @cached_property
    def _joined(self) -> WordNodes | None:
        """Return the words that other filters ask for."""
        if self._split is None:
            return self._words
        return WordNodes.of(self._labels.texts(), self.arrays.trie, self._split.joined)

    @property
    def finds_words(self) -> bool:
        """Tell whether words are looked up to encode a document."""
        return self._listed is not None or self._joined is not None

    def match_encoded(self, document: Document, prepared: Prepared, left_out: dict[int, str]) -> Ints32:
        """List the filters that hold for a document that is encoded, rising."""
        del document
        listed = prepared.listed
        if listed is not None and self._split is not None and self._split.whole:
            return listed
        numbers = self._thread_scratch().match(prepared.document, prepared.classes, left_out)
        if listed is None or not len(listed):
            return numbers
        # A word that other filters ask for as well is a node, too.
        return np.union1d(listed, numbers) if len(numbers) else listed

    def costs(self, document: Document, candidates: Ints, work: Floats64) -> None:
        """Match a document once more, and add for each filter whether it is checked, and what that takes.

        A filter is checked if a path leads to one of its anchors. What it takes are the paths that lead to
        what it is made of, and the letters that its tests search; what filters share counts for each.
        """
        self._thread_scratch().costs(*self._with_words(document, self._words), candidates, work)

    def _thread_scratch(self) -> _ThreadScratch:
        own: _ThreadScratch | None = getattr(self._local, "scratch", None)
        if own is None:
            own = self._local.scratch = _ThreadScratch(self.arrays, self._equalities)
        return own

    def encode(self, document: Document) -> Prepared:
        """Encode a document, and find the filters that are found by a word."""
        document, classes = self._with_words(document, None)
        listed = (
            None if self._listed is None else self._thread_scratch().listed(self._listed, document, classes)
        )
        if self._joined is not None:
            document, classes = self._joined.added(document, classes)
        return Prepared(document, classes, listed)

    def _with_words(self, document: Document, words: WordNodes | None) -> tuple[Document, Ints32]:
        """Return a document with some words as nodes, and the labels of its names."""
        classes = read_only(self._encoder.encode(document.names))
        document = Document((), *map(read_only, document[1:]))  # type: ignore[arg-type]
        return (document, classes) if words is None else words.added(document, classes)

    @cached_property
    def _equalities(self) -> Equalities:
        return Equalities(self.arrays.tests)


class _ThreadScratch:
    """One thread's scratch space."""

    def __init__(self, arrays: XmlArrays, equalities: Equalities) -> None:
        self._arrays = arrays
        self._equalities = equalities
        self._epoch = 1
        self._nodes, self._pairs, self._entries, self._truths = _NODES, _PAIRS, _ENTRIES, _TRUTHS
        self._scratch = scratch.MatchScratch(
            scratch.make_fixed(arrays),
            scratch.make_sized(_NODES),
            scratch.make_lists(_PAIRS, _ENTRIES, _TRUTHS),
        )

    def listed(self, patterns: ListedPatterns, document: Document, classes: Ints32) -> Ints32:
        """List the filters that are found by a word, rising."""
        self._fit(len(document.labels))
        while True:
            numbers = patterns.find(self._arrays.trie, document, classes, self._scratch)
            if not isinstance(numbers, int):
                return numbers
            self._grow(numbers)

    def _fit(self, nodes: int) -> None:
        """Make room for a document of so many nodes."""
        if nodes > self._nodes:
            self._nodes = 2 * nodes
            self._scratch = self._scratch._replace(sized=scratch.make_sized(self._nodes))

    def match(self, document: Document, classes: Ints32, left_out: dict[int, str]) -> Ints32:
        nodes = len(document.labels)
        self._fit(nodes)
        sized = self._scratch.sized
        sized.known[:nodes] = 0
        most, guilty = MOST_LETTERS, np.zeros(0, np.int32)
        impossible = self._equalities.impossible(document)
        if impossible is not None:
            self._scratch.fixed.skip[: len(impossible)] = impossible
        while True:
            self._scratch.fixed.counts[scratch.MOST] = most
            done = kernels.match(self._arrays, document, classes, self._scratch, self._stamp())
            fixed = self._scratch.fixed
            hard = sized.hard[: fixed.counts[scratch.HARD]]
            for n in hard.tolist():
                sized.value[n], sized.known[n] = number(document.val(n)), _READ
            if done == scratch.TOO_MUCH and impossible is not None:
                # What is skipped is from now on what has been too much.
                impossible = None
                fixed.skip[:] = 0
            elif done == scratch.TOO_MUCH:
                most *= 2
                guilty = self._relieve()
            elif done != scratch.DONE:
                self._grow(done)
            elif not len(hard):
                break
        numbers = np.sort(fixed.out[: fixed.counts[scratch.OUT]])
        if len(guilty) or impossible is not None:
            fixed.skip[:] = 0
        if len(guilty):
            reason = f"more than {MOST_LETTERS:,} letters would be searched for it; send smaller documents"
            left_out |= dict.fromkeys(
                np.setdiff1d(guilty, numbers).tolist(), f"{reason}, or narrow the filter"
            )
        return numbers

    def _relieve(self) -> Ints32:
        """Skip the sets of tests that only such filters have which search more than one may; returns these.

        Others may search as much together: each filter more is more to do.
        """
        units, forests = self._arrays.units, self._arrays.forests
        fixed = self._scratch.fixed
        own = units.row[:, TESTS]
        # What was skipped before has been too much before.
        letters = self._letters(np.where(fixed.skip, MOST_LETTERS + 1.0, 0.0))
        cost = _summed(letters[own], *units.pairs())
        anchor = np.repeat(np.arange(len(own)), np.diff(units.forest_start))
        guilty = np.bincount(units.forests, cost[anchor], len(forests.need)) > MOST_LETTERS
        # And down again: all that the others are made of.
        fixed.skip[:] = 1
        fixed.skip[own[units.made_of(anchor[~guilty[units.forests]])]] = 0
        fixed.skip[0] = 0
        return forests.number[np.repeat(guilty, np.diff(forests.start))]

    def _letters(self, letters: Floats64) -> Floats64:
        """Add the letters that each set of tests has searched."""
        asked = slice(0, int(self._scratch.fixed.counts[scratch.SETS]))
        lists = self._scratch.lists
        np.add.at(letters, lists.set_of[asked], lists.set_letters[asked])
        return letters

    def costs(self, document: Document, classes: Ints32, candidates: Ints, work: Floats64) -> None:
        """Add what it takes to match a document, by filter."""
        # First as ever, for the letters, and so that there is room.
        self.match(document, classes, {})
        trie, units, _, forests = self._arrays
        letters = self._letters(np.zeros(len(self._scratch.fixed.skip)))
        fixed, sized, lists = self._scratch
        find_paths(document, classes, sized, fixed)
        walk_trie(trie, classes, sized, fixed, lists)
        paths = np.bincount(lists.active[: fixed.counts[scratch.PAIRS]], minlength=len(trie.parent))
        visits = np.repeat(paths, np.diff(trie.unit_start))
        cost = _summed(visits + letters[units.row[:, TESTS]] * (visits > 0), *units.pairs())
        anchor = np.repeat(np.arange(len(visits)), np.diff(units.forest_start))
        led = visits[anchor] > 0
        of, spent = units.forests[led], cost[anchor[led]]
        count = len(forests.need)
        sizes = np.diff(forests.start)
        candidates[forests.number] += np.repeat(np.bincount(of, minlength=count) > 0, sizes)
        work[forests.number] += np.repeat(np.bincount(of, spent, count), sizes)

    def _stamp(self) -> int:
        """Take an epoch that no mark holds; the next one is taken with it."""
        if self._epoch >= _LAST_EPOCH:
            self._scratch = self._scratch._replace(fixed=scratch.make_fixed(self._arrays))
            self._epoch = 1
        self._epoch += 2
        return self._epoch

    def _grow(self, lacking: int) -> None:
        """Double what there was no room for."""
        if lacking == scratch.FULL_PAIRS:
            if self._pairs >= MOST_PAIRS:
                raise EventError(
                    f"the document and the filters meet in more than {MOST_PAIRS:,} places: send it in parts"
                )
            self._pairs *= 2
        elif lacking == scratch.FULL_ENTRIES:
            self._entries *= 2
        else:
            self._truths *= 2
        self._scratch = self._scratch._replace(
            lists=scratch.make_lists(self._pairs, self._entries, self._truths)
        )


def _summed(own: Floats64, parent: Ints, child: Ints32) -> Floats64:
    """Add what is below to each unit's own: from the leaves up, once for each level of the patterns."""
    cost = own
    while True:
        more = own + np.bincount(parent, cost[child], len(own))
        if (more == cost).all():
            return more
        cost = more
