"""What is refused before the parser sees a filter, and how large a pattern may be.

Limits keep one subscriber from hurting the others: a filter is parsed in milliseconds, no nesting exhausts a
stack, and the numbers of a pattern's variables fit into a byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import FilterError
from headgate.rdf.language.refusal import Refused

if TYPE_CHECKING:
    from headgate.rdf.language.words import Kinds

MAX_CHARACTERS = 65_536
MAX_WORDS = 8_192
MAX_DEPTH = 64
"""Open parentheses, brackets and braces."""
MAX_EDGES = 64
"""Triple patterns, those of the taxonomy included."""
MAX_VARIABLES = 64
"""Variables and blank nodes."""
MAX_LIST = 1_000
"""Commas between two parentheses, plus one: the members of an IN."""
MAX_JOINED = 1_000
"""Occurrences of && and ||, plus one."""

_OPENING = {"_LEFT", "BEGIN", "_OPEN"}
_CLOSING = {"_RIGHT", "_END", "_CLOSE"}
_JOINING = {"_AND", "_OR"}


def check_text(text: str) -> None:
    """Refuse a text by its length, and one that no encoding can write."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(
            f"the filter has {len(text):,} characters and at most {MAX_CHARACTERS:,} are taken", text, None
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise FilterError("half of a surrogate pair is no character", text, error.start) from None


def check_shape(kinds: Kinds) -> None:
    """Refuse a shape by the number of its words, its nesting, and what it lists and joins."""
    if len(kinds) > MAX_WORDS:
        raise Refused(f"the filter has {len(kinds):,} words and at most {MAX_WORDS:,} are taken", MAX_WORDS)
    joints = 1
    lists = [1]
    for number, kind in enumerate(kinds):
        if kind in _OPENING:
            lists.append(1)
            if len(lists) > MAX_DEPTH + 1:
                raise Refused(f"the filter nests deeper than {MAX_DEPTH}", number)
        elif kind in _CLOSING:
            lists = lists[:-1] or [1]
        elif kind == "_COMMA":
            lists[-1] += 1
            if lists[-1] > MAX_LIST:
                raise Refused(f"the list is longer than {MAX_LIST:,}", number)
        elif kind in _JOINING:
            joints += 1
            if joints > MAX_JOINED:
                raise Refused(f"the filter joins more than {MAX_JOINED:,} conditions by && and ||", number)


def check_edges(count: int, number: int) -> None:
    """Refuse more triple patterns than a pattern may have; `number` is the word where the last ends."""
    if count > MAX_EDGES:
        raise Refused(f"the filter has more than {MAX_EDGES} triple patterns", number)
