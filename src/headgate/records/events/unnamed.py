"""What no filter names: nothing of it is encoded, and it is checked as if one did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.values import MAX_DEPTH, check, fold
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SPELLINGS = 1 << 12
"""Names that are kept, at most."""
LONGEST = 64
"""Letters of a name that is kept, at most."""


class Checked(dict[Any, "tuple[Any, int | tuple[int, ...]]"]):
    """The values of an attribute that no filter names: they go nowhere, and are checked all the same."""

    def __init__(self, nowhere: int) -> None:
        super().__init__(dict.fromkeys((None, True, False), (nowhere, 0)))
        self._found = (nowhere, 0)

    def __missing__(self, value: Any) -> tuple[Any, int | tuple[int, ...]]:
        if type(value) is not str or not value.isascii():
            check(value, ())
        return self._found


class CheckedObjects:
    """Objects of which filters name nothing. Names that were seen before are not looked at again."""

    def __init__(self, part: Callable[[str], str] = fold) -> None:
        self._part = part
        """Makes the part of a path of a name: an object with two names of one part is refused."""
        self._spelled: dict[str, str] = {}
        self._distinct: set[str] = set()
        """Names of which no two have the same part."""

    def check(self, value: dict[str, Any], depth: int) -> None:
        """Refuse what `flatten_into` refuses, in whatever words; `depth` counts the objects around it."""
        if depth >= MAX_DEPTH:
            raise EventError(f"objects nest deeper than {MAX_DEPTH}")
        if not self._distinct.issuperset(value):
            self._learn(value)
        for each in value.values():
            kind = type(each)
            if kind is str:
                if not each.isascii():
                    check(each, ())
            elif kind is int:
                if not INT64_MIN <= each <= INT64_MAX:
                    check(each, ())
            elif kind is dict:
                self.check(each, depth + 1)
            elif kind is not float and kind is not bool and each is not None:
                check(each, ())

    def _learn(self, names: Iterable[object]) -> None:
        parts = set()
        for name in names:
            if not isinstance(name, str):
                raise EventError("the name of an attribute is not text")
            part = self._part(name)
            if part in parts:
                raise EventError("an attribute is given twice")
            parts.add(part)
            kept = len(self._spelled) < SPELLINGS and len(name) <= LONGEST
            # Of two spellings the first one is kept; objects with the other one come here each time.
            if kept and self._spelled.setdefault(part, name) == name:
                self._distinct.add(name)
