r"""What a word is, and when two are the same: for whole words in records, RDF and XML alike.

A *word* is a longest run of word characters, which are those of Unicode's annex on regular expressions
(UTS 18, `\w`): letters and other alphabetic characters, marks, decimal digits, connectors such as `_`, and
the two joiners. So `\bword\b` holds where `word` is a word of the text. Words are the same whatever the case
of their letters: two letters are, if they have the same upper case, or if that has the same lower case.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CATEGORIES = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"}
_OTHERS = re.compile(
    r"[\u200c\u200d\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]"
)
"""The joiners, and letters in circles and squares, which are symbols by category."""
LETTERS = 0x40000
"""Characters in the table of letters. Of those beyond it only the variation selectors count, as marks."""
SELECTORS = range(0xE0100, 0xE01F0)


class _Folding(dict[int, str]):
    """What characters become before a text is cut: word characters are folded, all others blank."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _folded(chr(code)) if is_letter(chr(code)) else " "
        return found


def is_letter(character: str) -> bool:
    """Tell whether a character may be in a word.

    >>> [is_letter(character) for character in "aé_9-' "]
    [True, True, True, True, False, False, False]
    """
    return unicodedata.category(character) in _CATEGORIES or _OTHERS.match(character) is not None


def _folded(character: str) -> str:
    """Fold one letter; only İ has a lower case of two characters, of which the first is meant."""
    upper = character.upper()
    return (upper if len(upper) == 1 else character).lower()[0]


_FOLDING = _Folding()


def words(text: str) -> list[str]:
    """List the words of a text, folded, in their order.

    >>> words("It's a Straße: 2 KELVIN, ΣΊΣΥΦΟΣ")
    ['it', 's', 'a', 'straße', '2', 'kelvin', 'σίσυφοσ']
    """
    return text.translate(_FOLDING).split()


def is_word(text: str) -> bool:
    """Tell whether a text is one word.

    >>> is_word("news"), is_word("two words"), is_word("")
    (True, False, False)
    """
    return bool(text) and all(map(is_letter, text))


_SHAPE = re.compile(r"\\b([^\\]+)\\b")


def wanted_word(pattern: str) -> str | None:
    r"""Return the word, folded, that a regular expression looks for; None if it is not `\bword\b`.

    >>> wanted_word(r"\bNews\b"), wanted_word(r"\bne.s\b"), wanted_word("news")
    ('news', None, None)
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


@cache
def letters() -> NDArray[np.int32]:
    """Return the folded letter of each character below `LETTERS`, 0 for what is in no word; made once."""
    found = np.zeros(LETTERS, np.int32)
    every = [chr(code) for code in range(LETTERS) if not 0xD800 <= code < 0xE000]
    for character, category in zip(every, map(unicodedata.category, every), strict=True):
        if category in _CATEGORIES:
            found[ord(character)] = ord(_folded(character))
    for character in _OTHERS.findall("".join(every)):
        found[ord(character)] = ord(_folded(character))
    found.flags.writeable = False
    return found
