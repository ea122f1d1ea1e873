"""A filter that lxml decides, and what is said of all filters of a set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.contents.kind import ALLOW, REFUSE
from headgate.contents.settings import check_plain
from headgate.core.arguments import told
from headgate.errors import SubscriptionError
from headgate.xml.language.words import cut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.xml.language.model import Pattern

BY_PATTERN, BY_LXML, EVERY_TIME = 0, 1, 2
"""How a filter is decided: by its pattern; by lxml, if one of its patterns holds; by lxml in any case."""


@dataclass(frozen=True)
class WholeFilter:
    """An expression of XPath 1.0 that is no tree pattern.

    `needs` are patterns of which one holds for every document that matches; None if there are none, and every
    document is asked. lxml decides for those that have one.
    """

    text: str
    needs: tuple[Pattern, ...] | None

    @property
    def indexed(self) -> bool:
        """Tell whether the index leads to it."""
        return self.needs is not None


@dataclass(frozen=True)
class XPathSettings:
    """What is said of all filters of a set: namespaces by prefix, and whether any expression is taken.

    >>> XPathSettings({"dc": "http://purl.org/dc/elements/1.1/"}).unindexed
    'refuse'
    """

    namespaces: Mapping[str, str] = field(default_factory=dict)
    unindexed: str = REFUSE

    def __post_init__(self) -> None:
        """Refuse what is no prefix, no namespace, or no word for what is not indexed."""
        given: Any = self.namespaces
        if not hasattr(given, "items"):
            raise SubscriptionError(
                f"the namespaces are {told(given)}: give them by prefix, as {{'dc': 'http://…'}}"
            )
        for prefix, space in given.items():
            # A name is one word; with others before and behind it, so is the name of something.
            if not isinstance(prefix, str) or cut(f"x:{prefix}") != [f"x:{prefix}"] or "*" in prefix:
                raise SubscriptionError(f"the prefix {prefix!r} is no name: give one such as dc")
            if not isinstance(space, str) or not space.strip() or "{" in space or "}" in space:
                raise SubscriptionError(f"the namespace of {prefix!r} is {space!r}: give it as text")
        check_plain(self)

    def plain(self) -> dict[str, Any]:
        """Return it for a snapshot."""
        return {"namespaces": dict(self.namespaces), "unindexed": self.unindexed}

    @classmethod
    def of(cls, plain: Mapping[str, Any] | None) -> XPathSettings:
        """Return what `plain` gave."""
        return cls() if plain is None else cls(plain["namespaces"], plain["unindexed"])


STORED = XPathSettings(unindexed=ALLOW)
"""How filters are read that were taken before."""
