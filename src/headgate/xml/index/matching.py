"""From a document to the filters that hold, for any thread."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import EventError
from headgate.xml.events.document import Document
from headgate.xml.events.encode import Encoder
from headgate.xml.index import kernels
from headgate.xml.index.arrays import read_only
from headgate.xml.index.scratch import (
    DONE,
    FULL_ENTRIES,
    FULL_PAIRS,
    HARD,
    OUT,
    Scratch,
    make_fixed,
    make_lists,
    make_sized,
)
from headgate.xml.language.values import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.xml.index.arrays import XmlArrays

_NODES, _PAIRS, _ENTRIES, _TRUTHS = 1024, 1 << 12, 1 << 12, 1 << 14
MOST_PAIRS = 1 << 27
"""Paths of a document with nodes of the trie that they lead to, and what else is as many: far fewer than
numbers of 32 bits can count, and no more than fits into memory."""
_READ = 1
_LAST_EPOCH = 2**31 - 4


class Matcher:
    """Filters in arrays, with what is needed to ask them. Any number of threads may ask."""

    def __init__(self, arrays: XmlArrays, labels: TextPool) -> None:
        # All of one kind, whether built or mapped: loops are compiled once.
        self.arrays = arrays.read_only()
        self._labels = labels
        self._local = threading.local()

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self._labels.texts())

    def match(self, document: Document) -> NDArray[np.int32]:
        """List the filters that hold, rising."""
        room: _Room | None = getattr(self._local, "room", None)
        if room is None:
            room = self._local.room = _Room(self.arrays)
        classes = read_only(self._encoder.encode(document.names))
        return room.match(Document((), *map(read_only, document[1:])), classes)  # type: ignore[arg-type]


class _Room:
    """One thread's scratch space."""

    def __init__(self, arrays: XmlArrays) -> None:
        self._arrays = arrays
        self._epoch = 1
        self._nodes, self._pairs, self._entries, self._truths = _NODES, _PAIRS, _ENTRIES, _TRUTHS
        self._scratch = Scratch(make_fixed(arrays), make_sized(_NODES), make_lists(_PAIRS, _ENTRIES, _TRUTHS))

    def match(self, document: Document, classes: NDArray[np.int32]) -> NDArray[np.int32]:
        nodes = len(document.labels)
        if nodes > self._nodes:
            self._nodes = 2 * nodes
            self._scratch = self._scratch._replace(sized=make_sized(self._nodes))
        sized = self._scratch.sized
        sized.known[:nodes] = 0
        while True:
            done = kernels.match(self._arrays, document, classes, self._scratch, self._stamp())
            fixed = self._scratch.fixed
            hard = sized.hard[: fixed.counts[HARD]]
            for n in hard.tolist():
                sized.value[n], sized.known[n] = number(document.val(n)), _READ
            if done != DONE:
                self._grow(done)
            elif not len(hard):
                return np.sort(fixed.out[: fixed.counts[OUT]])

    def _stamp(self) -> int:
        """Take an epoch that no mark holds; the next one is taken with it."""
        if self._epoch >= _LAST_EPOCH:
            self._scratch = self._scratch._replace(fixed=make_fixed(self._arrays))
            self._epoch = 1
        self._epoch += 2
        return self._epoch

    def _grow(self, lacking: int) -> None:
        """Double what there was no room for."""
        if lacking == FULL_PAIRS:
            if self._pairs >= MOST_PAIRS:
                raise EventError(
                    f"the document and the filters meet in more than {MOST_PAIRS:,} places: send it in parts"
                )
            self._pairs *= 2
        elif lacking == FULL_ENTRIES:
            self._entries *= 2
        else:
            self._truths *= 2
        self._scratch = self._scratch._replace(lists=make_lists(self._pairs, self._entries, self._truths))
