"""A filter as a small program over leaves: postfix, one token each.

    age > 30 AND (topic = 'news' OR NOT spam)    ->    leaf 0, leaf 1, leaf 2, OR, AND

Tokens at least 0 push a leaf; the others are below. Leaves over one attribute under one AND or OR are
merged first where one value set can say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from headgate.records.programs.leaves import Leaf

AND = -1
OR = -2
TRUE = -3
FALSE = -4

MAX_HEIGHT = 256
"""Values on the stack at once; text within the limits of the language needs about 130."""


class Program(NamedTuple):
    """Tokens, and the leaves that they push by their position here."""

    tokens: tuple[int, ...]
    leaves: tuple[Leaf, ...]
