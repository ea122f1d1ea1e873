"""A document that patterns are asked about, with its names as labels: worked out once.

Nothing of it outlives the document. Its names come from strangers, and can be long and many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.xml.events.serialising import Texts
from headgate.xml.index.paths import CLASSES
from headgate.xml.language.model import ANY, ANY_ATTRIBUTE, TEXT, is_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Ints, Ints32
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Label


_REMEMBERED = 1 << 14
"""Names whose labels are remembered; documents of strangers may have any number of them."""
_SHORT = 200
"""Letters of a name that is remembered; they may be of any length too."""


def labels_of(name: Label) -> tuple[Label, ...]:
    """List the labels of patterns that a name has: itself, in any namespace, any at all.

    >>> labels_of("{urn:x}a"), labels_of("@b"), labels_of("text()")
    (('{urn:x}a', '*:a', '*'), ('@b', '@*:b', '@*'), ('text()',))
    """
    if name == TEXT:
        return (name,)
    attribute = is_attribute(name)
    local = name.rpartition("}")[2] if "}" in name else name[attribute:]
    return (name, f"@*:{local}", ANY_ATTRIBUTE) if attribute else (name, f"*:{local}", ANY)


class Encoder:
    """Knows the labels of patterns by their numbers."""

    def __init__(self, labels: Iterable[Label]) -> None:
        self._numbers = {label: number for number, label in enumerate(labels)}
        self._known: dict[Label, bytes] = {}

    def encode(self, names: Iterable[Label]) -> Ints32:
        """Return for each name the labels that it has, CLASSES of them, -1 for none."""
        known = self._known
        try:
            encoded = b"".join([known[name] for name in names])
        except KeyError:
            if len(known) > _REMEMBERED:
                known = self._known = {}
            encoded = b"".join([known.get(name) or self._looked_up(name, known) for name in names])
        return np.frombuffer(encoded, np.int32)

    def _looked_up(self, name: Label, known: dict[Label, bytes]) -> bytes:
        classes = self._classes(name)
        if len(name) <= _SHORT:
            known[name] = classes
        return classes

    def _classes(self, name: Label) -> bytes:
        """Look the labels of a name up.

        >>> np.frombuffer(Encoder(["a", "*:a", "*", "@*"])._classes("{urn:x}a"), np.int32).tolist()
        [-1, 1, 2]
        """
        classes = np.full(CLASSES, -1, np.int32)
        for index, label in enumerate(labels_of(name)):
            classes[index] = self._numbers.get(label, -1)
        return classes.tobytes()


class Subject:
    """A document with its nodes by label.

        nodes   by name, each name's in document order │ those of *:a │ those of * │ ...

    A label of patterns is a span of it. Those of several names are added when they are first asked for. A
    node has three labels at most, so that is the room that they need.
    """

    def __init__(self, document: Document) -> None:
        """Sort the nodes by name."""
        self.document = document
        self.texts = Texts(document)
        self.nodes = np.empty(3 * len(document.labels), np.int32)
        self._end = len(document.labels)
        ends = _group(document.labels, len(document.names), self.nodes).tolist()
        self._spans: dict[Label, tuple[int, int]] = dict(
            zip(document.names, zip([0, *ends], ends, strict=False), strict=True)
        )
        self._several: dict[Label, list[Label]] | None = None

    def spans(self, labels: Sequence[Label]) -> Ints | None:
        """Return where the nodes of each label are; None if a label has none."""
        known = self._spans
        try:
            return np.array([known[label] for label in labels], np.int64).reshape(-1, 2)
        except KeyError:
            for label in labels:
                if label not in known and not self._gather(label):
                    return None
        return np.array([known[label] for label in labels], np.int64).reshape(-1, 2)

    def _gather(self, label: Label) -> bool:
        """Add the nodes of a label that several names have; false if none has."""
        if "*" not in label:
            return False
        if self._several is None:
            self._several = {}
            for name in self.document.names:
                for general in labels_of(name)[1:]:
                    self._several.setdefault(general, []).append(name)
        names = self._several.get(label)
        if names is None:
            return False
        parts = [self.nodes[slice(*self._spans[name])] for name in names]
        gathered = np.sort(np.concatenate(parts))
        start, self._end = self._end, self._end + len(gathered)
        self.nodes[start : self._end] = gathered
        self._spans[label] = start, self._end
        return True


@kernel
def _group(labels: Ints32, names: int, nodes: Ints32) -> Ints:
    """Put the nodes of each name together, rising; returns where those of each name end."""
    places = np.zeros(names + 1, np.int64)
    for label in labels:
        places[label + 1] += 1
    for name in range(names):
        places[name + 1] += places[name]
    for node in range(len(labels)):
        nodes[places[labels[node]]] = node
        places[labels[node]] += 1
    return places[:names]
