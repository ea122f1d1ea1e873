"""Small documents like XMark's: an auction site with some items, persons and auctions of each kind.

Things are added in turn until the document has the size that was drawn for it. The first of each kind have
all that is optional, so that a view that asks for it is answered by every document.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from headgate.workloads.columns import Key, bits
from headgate.workloads.xml.schema import CONTINENTS, WORDS, values

if TYPE_CHECKING:
    from collections.abc import Callable

_TABLE = "xmark documents"
_DRAWS = 4096
"""Random numbers that are drawn at once."""
_OFTEN = 0.75
"""How often there is what may be missing."""
_NESTED = 0.1
"""How often a mark is within a mark, or a list within a list, which is twice as likely."""
_DEEPEST = 3
"""How often a list may be within a list."""
_ROUND = ("item", "person", "open", "item", "person", "closed", "item", "person", "open", "category")
"""What is added, again and again."""


def document(row: int, seed: int, sizes: tuple[int, int]) -> str:
    """Write the document of a row; it has some bytes more than a number between the two sizes.

    >>> text = document(3, 1, (10_000, 10_000))
    >>> text[:39], 10_000 <= len(text) < 13_000
    ('<site><regions><africa><item id="item2"', True)
    """
    site = _Site(row, seed)
    least, most = sizes
    return site.write(least + int(site.chance() * (most - least + 1)))


class _Site:
    """A document that is being written."""

    def __init__(self, row: int, seed: int) -> None:
        self._key = Key(seed, _TABLE, "draw", np.arange(row * _DRAWS, (row + 1) * _DRAWS))
        self._block = 0
        self._drawn: list[int] = []
        self._number = 0
        self._rich = True

    def chance(self) -> float:
        """Draw a number in [0, 1)."""
        if not self._drawn:
            self._drawn = (bits(self._key, self._block) >> np.uint64(11)).tolist()
            self._block += 1
        return self._drawn.pop() / (1 << 53)

    def write(self, size: int) -> str:
        parts: dict[str, list[str]] = {name: [] for name in (*CONTINENTS, *_ROUND)}
        kinds: dict[str, Callable[[int], str]] = {
            "item": self._item,
            "person": self._person,
            "open": self._open,
            "closed": self._closed,
            "category": self._category,
        }
        counts = dict.fromkeys(kinds, 0)
        length = 450  # what stands around them, at least
        turns = cycle(_ROUND)
        while length < size:
            kind = next(turns)
            number = counts[kind]
            counts[kind] += 1
            self._number, self._rich = number, number < 2
            text = kinds[kind](number)
            parts[CONTINENTS[(number + 4) % 6] if kind == "item" else kind].append(text)
            length += len(text)
        regions = "".join(_tag(name, *parts[name]) for name in CONTINENTS)
        edges = [f'<edge from="{self._value("@from")}" to="{self._value("@to")}"/>' for _ in range(6)]
        return _tag(
            "site",
            _tag("regions", regions),
            _tag("categories", *parts["category"]),
            _tag("catgraph", *edges),
            _tag("people", *parts["person"]),
            _tag("open_auctions", *parts["open"]),
            _tag("closed_auctions", *parts["closed"]),
        )

    def _maybe(self, make: Callable[[], str]) -> str:
        return make() if self._rich or self.chance() < _OFTEN else ""

    def _some(self, most: int, make: Callable[[], str]) -> str:
        """Write up to so many."""
        count = most if self._rich else int(self.chance() * (most + 1))
        return "".join(make() for _ in range(count))

    def _value(self, label: str, parent: str = "") -> str:
        """Draw a value, the first ones more often."""
        known = values(parent, label)
        return known[int(len(known) * self.chance() ** 2)]

    def _leaf(self, label: str, parent: str = "") -> str:
        return f"<{label}>{self._value(label, parent)}</{label}>"

    def _ref(self, label: str, attribute: str) -> str:
        return f'<{label} {attribute}="{self._value("@" + attribute)}"/>'

    def _text(self) -> str:
        """Write words, some of them marked; a mark holds one word, or now and then another mark."""
        pieces = []
        for mark in ("keyword", "bold", "emph"):
            pieces.append(WORDS[int(self.chance() * len(WORDS))])
            if self._rich or self.chance() < _OFTEN:
                inner = f" {self._leaf('emph')}" if self.chance() < _NESTED else ""
                pieces.append(_tag(mark, self._value(mark), inner))
        return _tag("text", " ".join(pieces))

    def _parlist(self, depth: int = 1) -> str:
        def listitem() -> str:
            deep = depth < _DEEPEST and (self._rich or self.chance() < 2 * _NESTED)
            return _tag("listitem", self._text(), self._parlist(depth + 1) if deep else "")

        return _tag("parlist", listitem(), "" if depth > 1 else self._maybe(listitem))

    def _description(self) -> str:
        """Write a list or a text; the first of a kind has a list, the second a text."""
        is_list = self._number == 0 if self._rich else self.chance() < 0.5
        return _tag("description", self._parlist() if is_list else self._text())

    def _mail(self) -> str:
        return _tag("mail", self._leaf("from"), self._leaf("to"), self._leaf("date"), self._text())

    def _item(self, number: int) -> str:
        featured = self._maybe(lambda: ' featured="yes"')
        return (
            f'<item id="item{number}"{featured}>'
            + "".join(self._leaf(each, "item") for each in ("location", "quantity", "name", "payment"))
            + self._description()
            + self._leaf("shipping")
            + self._ref("incategory", "category")
            + self._some(1, lambda: self._ref("incategory", "category"))
            + _tag("mailbox", self._some(2, self._mail))
            + "</item>"
        )

    def _person(self, number: int) -> str:
        def leaf(label: str) -> str:
            return self._maybe(lambda: self._leaf(label))

        address = self._maybe(
            lambda: _tag(
                "address",
                *(self._leaf(each) for each in ("street", "city", "country")),
                leaf("province"),
                self._leaf("zipcode"),
            )
        )
        profile = self._maybe(
            lambda: (
                f'<profile income="{self._value("@income")}">'
                + self._some(2, lambda: self._ref("interest", "category"))
                + leaf("education")
                + leaf("gender")
                + self._leaf("business")
                + leaf("age")
                + "</profile>"
            )
        )
        return (
            f'<person id="person{number}">'
            + self._leaf("name")
            + self._leaf("emailaddress")
            + leaf("phone")
            + address
            + leaf("homepage")
            + leaf("creditcard")
            + profile
            + _tag("watches", self._some(2, lambda: self._ref("watch", "open_auction")))
            + "</person>"
        )

    def _annotation(self) -> str:
        return _tag("annotation", self._ref("author", "person"), self._description(), self._leaf("happiness"))

    def _bidder(self) -> str:
        return _tag(
            "bidder",
            self._leaf("date"),
            self._leaf("time"),
            self._ref("personref", "person"),
            self._leaf("increase"),
        )

    def _open(self, number: int) -> str:
        return (
            f'<open_auction id="open_auction{number}">'
            + self._leaf("initial")
            + self._maybe(lambda: self._leaf("reserve"))
            + self._some(3, self._bidder)
            + self._leaf("current")
            + self._maybe(lambda: self._leaf("privacy"))
            + self._ref("itemref", "item")
            + self._ref("seller", "person")
            + self._annotation()
            + self._leaf("quantity")
            + self._leaf("type")
            + _tag("interval", self._leaf("start"), self._leaf("end"))
            + "</open_auction>"
        )

    def _closed(self, number: int) -> str:
        del number
        return _tag(
            "closed_auction",
            self._ref("seller", "person"),
            self._ref("buyer", "person"),
            self._ref("itemref", "item"),
            self._leaf("price"),
            self._leaf("date"),
            self._leaf("quantity"),
            self._leaf("type"),
            self._maybe(self._annotation),
        )

    def _category(self, number: int) -> str:
        return (
            f'<category id="category{number}">'
            + self._leaf("name", "category")
            + self._description()
            + "</category>"
        )


def _tag(name: str, *content: str) -> str:
    inner = "".join(content)
    return f"<{name}>{inner}</{name}>" if inner else f"<{name}/>"
