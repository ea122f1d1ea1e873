"""What names in filters mean: settings of a set of filters, and how their texts carry them.

    nulls   missing    an attribute that is null is as if it were missing
            told       present(a) tells the two apart
    names   any_case   Price and price are one attribute, as in Spark
            exact      they are two
    dots    path       a.b goes into the object a; the name a.b is written `a.b`
            name       a dot is part of a name: a.b is the name a.b
            either     both: {"a.b": 1} and {"a": {"b": 1}} are the same to filters

The settings are asked once, where a text comes in. There its names get the marks of `core/values.py`, within
backticks, and `present(a)` becomes the name of a Boolean attribute. So the text that an index keeps means the
same wherever it is parsed again, and paths say for themselves how an event is asked. `plain` takes the marks
off for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.contents import settings
from headgate.contents.settings import PLAIN, check_plain
from headgate.core.values import EXACT, EXACT_JOINED, JOINED, MARKS, PRESENT, marked
from headgate.errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING, TOLD = PLAIN["nulls"].choices
ANY_CASE, EXACT_NAMES = NAMES = PLAIN["names"].choices
PATH, NAME, EITHER = PLAIN["dots"].choices


@dataclass(frozen=True)
class NameSettings:
    """What a set of filters of records wants names to mean.

    >>> NameSettings(names="exact").plain
    {'names': 'exact'}
    >>> NameSettings(nulls="yes")
    Traceback (most recent call last):
    ...
    headgate.errors.SubscriptionError: nulls is 'yes': give 'missing' or 'told', for whether null is told \
from missing
    """

    nulls: str = MISSING
    names: str = ANY_CASE
    dots: str = PATH

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        check_plain(self)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> NameSettings:
        """Read what was written down; those that are not there are as usual."""
        said = given or {}
        return cls(**{name: said[name] for name in settings.NAMES if said.get(name) is not None})

    @property
    def plain(self) -> dict[str, str]:
        """Write down what is not as usual."""
        return {
            name: getattr(self, name)
            for name in settings.NAMES
            if getattr(self, name) != PLAIN[name].choices[0]
        }

    @property
    def usual(self) -> bool:
        """Tell whether names mean what they mean in Spark."""
        return self == USUAL

    @property
    def told(self) -> bool:
        """Tell whether null is told from missing."""
        return self.nulls == TOLD

    @property
    def mark(self) -> str:
        """Return what stands before names in paths."""
        if self.dots == EITHER:
            return EXACT_JOINED if self.names == EXACT_NAMES else JOINED
        return EXACT if self.names == EXACT_NAMES else ""

    def spelled(self, names: tuple[str, ...]) -> tuple[str, ...]:
        r"""Return the parts of a dotted name, with marks.

        >>> NameSettings(dots="name").spelled(("a", "b")), NameSettings(names="exact").spelled(("A",))
        (('a.b',), ('\x01A',))
        """
        if names[0] == PRESENT:
            return (PRESENT, *self.spelled(names[1:]))
        if names[-1][:1] == self.mark:
            return names
        if self.dots == NAME and len(names) > 1:
            names = (".".join(names),)
        return marked(names, self.mark)

    def to_marked(self, sql: str) -> str:
        r"""Return a filter in SQL as an index keeps it; one that an index has kept stays as it is.

        >>> NameSettings().to_marked("a = 1"), NameSettings(names="exact").to_marked("A = 1")
        ('a = 1', '`\x01A` = 1')
        """
        mark = _MARK.search(sql)
        if mark is not None and mark[0][1] not in (self.mark, PRESENT if self.told else ""):
            raise FilterError("a name begins with a control character, which none may", sql, mark.start())
        if not self.mark and self.dots == PATH and not (self.told and _ASKS.search(sql)):
            return sql
        from headgate.records.language.parse import parse_filter
        from headgate.records.language.printing import print_filter

        try:
            return print_filter(parse_filter(sql, self))
        except FilterError as error:
            raise FilterError(plain_text(error.reason), sql, error.position) from None


USUAL = NameSettings()
_MARK = re.compile(f"`[{MARKS}{PRESENT}]")
_ASKS = re.compile(r"present\s*\(", re.IGNORECASE)
_PART = r"`(?:[^`]|``)*`|[A-Za-z_]\w*"
_NAME = re.compile(rf"`{PRESENT}`\.((?:{_PART})(?:\.(?:{_PART}))*)|`([{MARKS}])((?:[^`]|``)*)`")


def plain_text(text: str) -> str:
    """Return a filter that an index keeps as people would write it.

    >>> plain_text(NameSettings("told", "exact").to_marked("present(A.b) AND `first name` = 'x'"))
    "present(A.b) AND `first name` = 'x'"
    """
    return _NAME.sub(_unmarked, text) if _MARK.search(text) else text


def _unmarked(match_: re.Match[str]) -> str:
    from headgate.records.language.printing import name_text

    inner, mark, name = match_.groups()
    if inner is not None:
        return f"present({plain_text(inner)})"
    name = name.replace("``", "`")
    return name_text(name) if mark == EXACT else ".".join(map(name_text, name.split(".")))
