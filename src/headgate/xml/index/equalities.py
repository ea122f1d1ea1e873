"""Which sets of tests cannot hold in a document, because they ask for a text that no node has.

With many filters most texts that are asked for are in no document. Which of them a document has is found by
looking its values up, once, rather than by comparing each of them with the nodes of each path. That pays
where there are many more such sets than nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.xml.index.arrays import EQUAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.xml.events.document import Document
    from headgate.xml.index.arrays import Tests

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

    def impossible(self, document: Document) -> NDArray[np.uint8] | None:
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
        found = self._skip.copy()
        for value in values & self._places.keys():
            start, stop = self._places[value]
            found[self._sets[start:stop]] = 0
        return found
