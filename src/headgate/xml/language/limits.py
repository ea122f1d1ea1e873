"""What is refused before the parser sees a filter, and how large a pattern may be.

Limits keep one subscriber from hurting the others: a filter is parsed in milliseconds, and no nesting
exhausts a stack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.errors import FilterError
from headgate.xml.language.refusal import Refused

if TYPE_CHECKING:
    from headgate.xml.language.words import Kinds

MAX_CHARACTERS = 65_536
MAX_WORDS = 4_096
MAX_DEPTH = 64
"""Open brackets and parentheses."""
MAX_NODES = 256
MAX_TESTS = 64
"""Of one node."""

_OPENING = {"_LEFT", "_BEGIN", "CONTAINS", "STARTS_WITH", "FUNCTION"}
_CLOSING = {"_RIGHT", "_END"}
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_text(text: object) -> str:
    """Refuse what is no text, and a text by its length or for a character that no XML document has."""
    if not isinstance(text, str):
        raise FilterError(f"a filter is a text, not {type(text).__name__}", "", None)
    if len(text) > MAX_CHARACTERS:
        raise FilterError(
            f"the filter has {len(text):,} characters and at most {MAX_CHARACTERS:,} are taken", text, None
        )
    if not text.isprintable():
        found = _NO_CHARACTER.search(text)
        if found:
            reason = f"U+{ord(found[0]):04X} is no character of XML: no document has it"
            raise FilterError(reason, text, found.start())
    return text


def check_shape(kinds: Kinds) -> None:
    """Refuse a text by the number of its words, and by its nesting."""
    if len(kinds) > MAX_WORDS:
        raise Refused(f"the filter has {len(kinds):,} words and at most {MAX_WORDS:,} are taken", MAX_WORDS)
    depth = 0
    for number, kind in enumerate(kinds):
        if kind in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise Refused(f"the filter nests deeper than {MAX_DEPTH}", number)
        elif kind in _CLOSING:
            depth = max(0, depth - 1)


def check_nodes(count: int, number: int) -> None:
    """Refuse more nodes than a pattern may have; `number` is the word of the last."""
    if count > MAX_NODES:
        raise Refused(f"the filter has more than {MAX_NODES} steps", number)


def check_tests(count: int, number: int) -> None:
    """Refuse more tests than a node may have."""
    if count > MAX_TESTS:
        raise Refused(f"a step has more than {MAX_TESTS} conditions on its value", number)
