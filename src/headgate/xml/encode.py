"""Names of a document to labels of patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.xml.model import ANY, ANY_ATTRIBUTE, TEXT, is_attribute
from headgate.xml.paths import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.xml.model import Label

_REMEMBERED = 1 << 14
"""Names whose labels are remembered; documents of strangers may have any number of them."""


class Encoder:
    """Knows the labels of patterns by their numbers."""

    def __init__(self, labels: Iterable[Label]) -> None:
        self._numbers = {label: number for number, label in enumerate(labels)}
        self._known: dict[Label, bytes] = {}

    def encode(self, names: Iterable[Label]) -> NDArray[np.int32]:
        """Return for each name the labels that it has, CLASSES of them, -1 for none."""
        known = self._known
        try:
            found = b"".join([known[name] for name in names])
        except KeyError:
            if len(known) > _REMEMBERED:
                known = self._known = {}
            for name in names:
                known[name] = self._classes(name)
            found = b"".join([known[name] for name in names])
        return np.frombuffer(found, np.int32)

    def _classes(self, name: Label) -> bytes:
        """Look the labels of a name up: itself, in any namespace, any at all.

        >>> np.frombuffer(Encoder(["a", "*:a", "*", "@*"])._classes("{urn:x}a"), np.int32).tolist()
        [-1, 1, 2]
        """
        labels = [name]
        if name != TEXT:
            attribute = is_attribute(name)
            local = name.rpartition("}")[2] if "}" in name else name[attribute:]
            labels += [f"@*:{local}", ANY_ATTRIBUTE] if attribute else [f"*:{local}", ANY]
        found = np.full(CLASSES, -1, np.int32)
        for place, label in enumerate(labels):
            found[place] = self._numbers.get(label, -1)
        return found.tobytes()
