r"""Which characters are in words, and which are the same in any case: by whom regular expressions are read.

A *word* is a longest run of word characters, so that `\bword\b` holds where `word` is one of the text's.

    JAVA      Spark's, for records      RUST    SPARQL's, for RDF       PYTHON   lxml's, for XML

JAVA and RUST have the word characters of Unicode's annex on regular expressions (UTS 18, `\w`): letters and
other alphabetic characters, marks, decimal digits, connectors such as `_`, and the two joiners. PYTHON has no
marks and no joiners, but all other digits and numbers. All know the characters of Python's Unicode: one that
is newer is in no word.

Two characters are the same if they have the same upper case, or if that has the same lower case. RUST tells
the Turkish i apart; JAVA tells letters apart whose upper case is several letters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headgate.core.arrays import Ints32


_CATEGORIES = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"}
_OTHERS = re.compile(
    r"[\u200c\u200d\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]"
)
"""The joiners, and letters in circles and squares, which are symbols by category."""
LETTERS = 0x40000
"""Characters in a table of letters. Of those beyond it only the variation selectors count, as marks."""
_TURKISH = {"\u0130": "\u0130", "\u0131": "\u0131"}
_SEVERAL = {"\u1fd3": "\u0390", "\u1fe3": "\u03b0", "\ufb05": "\ufb06"}


class _Folding(dict[int, str]):
    """What characters become in any case, found out when one is met."""

    def __init__(self, same: dict[str, str]) -> None:
        super().__init__()
        self._same = same

    def __missing__(self, code: int) -> str:
        folded = self[code] = self._same.get(chr(code)) or _folded(chr(code))
        return folded


def _folded(character: str) -> str:
    """Fold one letter; only İ has a lower case of two characters, of which the first is meant."""
    upper = character.upper()
    return (upper if len(upper) == 1 else character).lower()[0]


class _Cutting(dict[int, str]):
    """What characters become before a text is cut into words: all but word characters are blank."""

    def __init__(self, alphabet: Alphabet, *, fold: bool) -> None:
        super().__init__()
        self._alphabet = alphabet
        self._fold = fold

    def __missing__(self, code: int) -> str:
        letter = chr(code) if self._alphabet.is_letter(chr(code)) else " "
        if self._fold and letter != " ":
            letter = self._alphabet.fold(letter)
        self[code] = letter
        return letter


class Alphabet:
    """One such reader's."""

    def __init__(self, same: dict[str, str], *, marks: bool) -> None:
        """Note what is folded as nobody would guess, and whether marks are in words."""
        self.marks = marks
        self._folding = _Folding(same)
        self._cutting = _Cutting(self, fold=True)
        self._parting = _Cutting(self, fold=False)

    def is_letter(self, character: str) -> bool:
        """Tell whether a character may be in a word.

        >>> [JAVA.is_letter(character) for character in "aé_9-' "]
        [True, True, True, True, False, False, False]
        """
        if not self.marks:
            return character.isalnum() or character == "_"
        return unicodedata.category(character) in _CATEGORIES or _OTHERS.match(character) is not None

    def fold(self, text: str) -> str:
        """Fold all characters of a text: two texts are the same in any case if this is.

        >>> JAVA.fold("İstanbul: STRAẞE"), RUST.fold("İstanbul: STRAẞE")
        ('istanbul: straße', 'İstanbul: straße')
        """
        return text.lower() if text.isascii() else text.translate(self._folding)

    def words(self, text: str) -> list[str]:
        """List the words of a text, folded, in their order.

        >>> JAVA.words("It's a Straße: 2 KELVIN, ΣΊΣΥΦΟΣ")
        ['it', 's', 'a', 'straße', '2', 'kelvin', 'σίσυφοσ']
        """
        return text.translate(self._cutting).split()

    def written_words(self, text: str) -> list[str]:
        """List the words of a text as they are written.

        >>> JAVA.written_words("It's News")
        ['It', 's', 'News']
        """
        return text.translate(self._parting).split()

    def is_word(self, text: str) -> bool:
        """Tell whether a text is one word.

        >>> JAVA.is_word("news"), JAVA.is_word("two words"), JAVA.is_word("")
        (True, False, False)
        """
        return bool(text) and all(map(self.is_letter, text))

    @cached_property
    def table(self) -> Ints32:
        """Return the folded letter of each character below `LETTERS`, 0 for what is in no word; made once.

        What stands behind the last says whether the variation selectors are in words.
        """
        table = np.zeros(LETTERS + 1, np.int32)
        every = [chr(code) for code in range(LETTERS) if not 0xD800 <= code < 0xE000]
        if self.marks:
            chosen = [
                character
                for character, category in zip(every, map(unicodedata.category, every), strict=True)
                if category in _CATEGORIES
            ]
            chosen += _OTHERS.findall("".join(every))
        else:
            chosen = [*filter(str.isalnum, every), "_"]
        for character in chosen:
            table[ord(character)] = ord(self._folding[ord(character)])
        table[LETTERS] = self.marks
        table.flags.writeable = False
        return table


JAVA = Alphabet({}, marks=True)
RUST = Alphabet(_TURKISH | _SEVERAL, marks=True)
PYTHON = Alphabet(_SEVERAL, marks=False)


words = JAVA.words
is_word = JAVA.is_word


_SHAPE = re.compile(r"\\b(?![ßẞ]\\)([^\\]+)\\b")
"""Not `ß` alone: to Java, and so to Spark, `ẞ` is another letter then, and the same in a longer word."""


def wanted_word(pattern: str) -> str | None:
    r"""Return the word, folded, that a regular expression looks for; None if it is not `\bword\b`.

    >>> wanted_word(r"\bNews\b"), wanted_word(r"\bne.s\b"), wanted_word("news"), wanted_word(r"\bß\b")
    ('news', None, None, None)
    """
    shape = _SHAPE.fullmatch(pattern)
    return words(shape[1])[0] if shape is not None and is_word(shape[1]) else None


_ANY_CASE = re.compile(r"\(\?(?=[uU]*i)[iuU]+\)")
"""All of them mean the same here: letters in any case, of any script."""


def one_word(pattern: str) -> str | None:
    r"""Return the word, folded, that a regular expression looks for in any case; None if it is another one.

    >>> one_word(r"(?i)\bNews\b"), one_word(r"\bNews\b")
    ('news', None)
    """
    flags = _ANY_CASE.match(pattern)
    return None if flags is None else wanted_word(pattern[flags.end() :])
