"""Names of a document to labels of patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.xml.index.paths import CLASSES
from headgate.xml.language.model import ANY, ANY_ATTRIBUTE, TEXT, is_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

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

    def encode(self, names: Iterable[Label]) -> NDArray[np.int32]:
        """Return for each name the labels that it has, CLASSES of them, -1 for none."""
        known = self._known
        try:
            found = b"".join([known[name] for name in names])
        except KeyError:
            if len(known) > _REMEMBERED:
                known = self._known = {}
            found = b"".join([known.get(name) or self._looked_up(name, known) for name in names])
        return np.frombuffer(found, np.int32)

    def _looked_up(self, name: Label, known: dict[Label, bytes]) -> bytes:
        found = self._classes(name)
        if len(name) <= _SHORT:
            known[name] = found
        return found

    def _classes(self, name: Label) -> bytes:
        """Look the labels of a name up.

        >>> np.frombuffer(Encoder(["a", "*:a", "*", "@*"])._classes("{urn:x}a"), np.int32).tolist()
        [-1, 1, 2]
        """
        found = np.full(CLASSES, -1, np.int32)
        for place, label in enumerate(labels_of(name)):
            found[place] = self._numbers.get(label, -1)
        return found.tobytes()
