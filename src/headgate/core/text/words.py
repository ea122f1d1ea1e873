r"""Whole words in any case, for records: what one is, and which one a regular expression looks for.

What a word is differs a little among kinds of content (`alphabets.py`); here are those of records.
"""

from __future__ import annotations

import re

from headgate.core.text.alphabets import JAVA

words = JAVA.words
is_word = JAVA.is_word


_SHAPE = re.compile(r"\\b(?![ßẞ]\\)([^\\]+)\\b")
"""Not `ß` alone: to Java, and so to Spark, `ẞ` is another letter then, and the same in a longer word."""


def wanted_word(pattern: str) -> str | None:
    r"""Return the word, folded, that a regular expression looks for; None if it is not `\bword\b`.

    >>> wanted_word(r"\bNews\b"), wanted_word(r"\bne.s\b"), wanted_word("news"), wanted_word(r"\bß\b")
    ('news', None, None, None)
    """
    found = _SHAPE.fullmatch(pattern)
    return words(found[1])[0] if found is not None and is_word(found[1]) else None


_ANY_CASE = re.compile(r"\(\?(?=[uU]*i)[iuU]+\)")
"""All of them mean the same here: letters in any case, of any script."""


def one_word(pattern: str) -> str | None:
    r"""Return the word, folded, that a regular expression looks for in any case; None if it is another one.

    >>> one_word(r"(?i)\bNews\b"), one_word(r"\bNews\b")
    ('news', None)
    """
    flags = _ANY_CASE.match(pattern)
    return None if flags is None else wanted_word(pattern[flags.end() :])
