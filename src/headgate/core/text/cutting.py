"""Texts of filters cut into words, what words mean, and the word for which a filter is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

T = TypeVar("T")


class RefusedFilterError(Exception):
    """A filter that is refused: why, and the number of the word at fault."""

    def __init__(self, reason: str, number: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.number = number


class Cutter:
    r"""Cuts texts into words: one expression for the gap before the first, one for a word and the gap behind.

    >>> import re
    >>> cutter = Cutter(re.compile(r"\s*"), re.compile(r"(\w+|.)\s*"))
    >>> cutter.cut(" a = b"), cutter.places(" a = b")
    (['a', '=', 'b'], [1, 3, 5, 6])
    """

    def __init__(self, gap: re.Pattern[str], word: re.Pattern[str]) -> None:
        self._gap = gap
        self._word = word

    def cut(self, text: str) -> list[str]:
        """Cut a text into words."""
        return self._word.findall(text, self._begin(text))

    def places(self, text: str) -> list[int]:
        """List where the words begin, and the end of the text."""
        return [match.start() for match in self._word.finditer(text, self._begin(text))] + [len(text)]

    def _begin(self, text: str) -> int:
        match = self._gap.match(text)
        return match.end() if match else 0


class BoundedCache(dict[str, T]):
    """The meanings of texts: at most `limit`, of texts no longer than `longest`; a full one starts anew.

    Reading is a plain dictionary's, and threads may share one: a meaning that is lost is found again.

    >>> lengths = BoundedCache(len, limit=2, longest=3)
    >>> lengths["a"], lengths["ab"], lengths["abcd"], lengths["abc"], lengths
    (1, 2, 4, 3, {'abc': 3})
    """

    def __init__(self, meaning: Callable[[str], T], limit: int = 65_536, longest: int = 64) -> None:
        super().__init__()
        self._meaning = meaning
        self.limit = limit
        self._longest = longest

    def __missing__(self, text: str) -> T:
        """Find out what a text means."""
        meaning = self._meaning(text)
        if len(text) <= self._longest:
            if len(self) >= self.limit:
                self.clear()
            self[text] = meaning
        return meaning
