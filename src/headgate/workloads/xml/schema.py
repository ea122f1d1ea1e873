"""The schema of XMark's auction site: what an element contains, and what values there are.

After Schmidt, Waas, Kersten, Carey, Manolescu and Busse, "XMark: a benchmark for XML data management", VLDB
2002. An element's attributes stand among its children, as in the room of XML. Values come from small
vocabularies, the common ones first, so that what a view asks for is in most documents.
"""

from __future__ import annotations

from functools import lru_cache

ROOT_LABEL = "site"
CONTINENTS = ("africa", "asia", "australia", "europe", "namerica", "samerica")
_MARKED = ("keyword", "bold", "emph")

CHILDREN: dict[str, tuple[str, ...]] = {
    "site": ("regions", "people", "open_auctions", "closed_auctions", "categories", "catgraph"),
    "regions": ("europe", "asia", "namerica", "africa", "australia", "samerica"),
    **dict.fromkeys(CONTINENTS, ("item",)),
    "item": (
        "name",
        "description",
        "location",
        "mailbox",
        "payment",
        "incategory",
        "quantity",
        "shipping",
        "@id",
        "@featured",
    ),
    "incategory": ("@category",),
    "mailbox": ("mail",),
    "mail": ("from", "date", "text", "to"),
    "description": ("parlist", "text"),
    "parlist": ("listitem",),
    "listitem": ("text", "parlist"),
    "text": _MARKED,
    "people": ("person",),
    "person": (
        "name",
        "profile",
        "address",
        "emailaddress",
        "watches",
        "@id",
        "creditcard",
        "phone",
        "homepage",
    ),
    "address": ("city", "country", "street", "zipcode", "province"),
    "profile": ("interest", "age", "education", "@income", "business", "gender"),
    "interest": ("@category",),
    "watches": ("watch",),
    "watch": ("@open_auction",),
    "open_auctions": ("open_auction",),
    "open_auction": (
        "bidder",
        "current",
        "annotation",
        "seller",
        "itemref",
        "interval",
        "initial",
        "@id",
        "type",
        "quantity",
        "reserve",
        "privacy",
    ),
    "bidder": ("increase", "personref", "date", "time"),
    "personref": ("@person",),
    "seller": ("@person",),
    "itemref": ("@item",),
    "annotation": ("description", "author", "happiness"),
    "author": ("@person",),
    "interval": ("start", "end"),
    "closed_auctions": ("closed_auction",),
    "closed_auction": ("price", "annotation", "buyer", "itemref", "date", "seller", "quantity", "type"),
    "buyer": ("@person",),
    "categories": ("category",),
    "category": ("name", "description", "@id"),
    "catgraph": ("edge",),
    "edge": ("@from", "@to"),
}
"""What an element may contain, with the popular ones first; those not named here contain text."""

EITHER = frozenset({"description"})
"""What contains one of its children only."""

WORDS = ("gold", "duke", "noble", "sword")
_MONEY = ("3.00", "1.50", "6.00", "12.00")
_DATES = ("07/04/1999", "01/12/1998", "11/30/2000")
_NAMES = ("Ada Lind", "Ben Oduya", "Cleo Marsh", "Dora Petit")


def _ids(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(4))


_VALUES: dict[str, tuple[str, ...]] = {
    "location": ("United States", "France", "Ghana", "Japan"),
    "quantity": ("1", "2", "3"),
    "name": _NAMES,
    "item/name": ("old map", "silver ring", "chess set", "blue lamp"),
    "category/name": ("tools", "books", "coins", "toys"),
    "payment": ("Cash", "Creditcard", "Money order"),
    "shipping": ("Will ship internationally", "Buyer pays", "See description"),
    "from": _NAMES,
    "to": _NAMES,
    **dict.fromkeys(_MARKED, WORDS),
    "emailaddress": ("ada@example.org", "ben@example.org", "cleo@example.org", "dora@example.org"),
    "phone": ("+1 555 0101", "+33 555 0102", "+81 555 0103"),
    "homepage": ("http://example.org/ada", "http://example.org/ben", "http://example.org/cleo"),
    "creditcard": ("1111 2222", "3333 4444", "5555 6666"),
    "street": ("1 Main St", "22 Hill Rd", "7 Lake Ave"),
    "city": ("Paris", "Boston", "Osaka"),
    "country": ("United States", "France", "Japan", "Ghana"),
    "province": ("Ohio", "Texas", "Maine"),
    "zipcode": ("10", "25", "31", "8"),
    "education": ("College", "High School", "Graduate School"),
    "gender": ("female", "male"),
    "business": ("Yes", "No"),
    "age": ("30", "18", "45", "62"),
    **dict.fromkeys(("initial", "reserve", "current", "increase", "price"), _MONEY),
    "privacy": ("Yes", "No"),
    "type": ("Regular", "Featured"),
    **dict.fromkeys(("date", "start", "end"), _DATES),
    "time": ("12:15:02", "08:30:45", "21:05:10"),
    "happiness": ("10", "7", "4", "1"),
    "item/@id": _ids("item"),
    "person/@id": _ids("person"),
    "category/@id": _ids("category"),
    "open_auction/@id": _ids("open_auction"),
    "@featured": ("yes",),
    "@category": _ids("category"),
    "@income": ("45000.00", "9876.00", "82000.50"),
    "@open_auction": _ids("open_auction"),
    "@person": _ids("person"),
    "@item": _ids("item"),
    "@from": _ids("category"),
    "@to": _ids("category"),
}


def values(parent: str, label: str) -> tuple[str, ...]:
    """List the values of an element or attribute, common ones first; none if it contains other elements.

    >>> values("closed_auction", "quantity"), values("item", "@featured"), values("site", "people")
    (('1', '2', '3'), ('yes',), ())
    """
    return _VALUES.get(f"{parent}/{label}") or _VALUES.get(label, ())


@lru_cache(maxsize=128)
def below(label: str) -> tuple[tuple[str, str], ...]:
    """List what may be anywhere below an element, each with its parent, near ones first.

    >>> below("mailbox")[:3]
    (('mailbox', 'mail'), ('mail', 'from'), ('mail', 'date'))
    """
    known: dict[tuple[str, str], None] = {}
    level = [label]
    while level:
        pairs = [(parent, child) for parent in level for child in CHILDREN.get(parent, ())]
        fresh = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        known.update(dict.fromkeys(fresh))
        level = list(dict.fromkeys(child for _, child in fresh))
    return tuple(known)


def labels() -> tuple[tuple[str, str], ...]:
    """List all elements and attributes that there are, each with a parent; the root's is empty."""
    return (("", ROOT_LABEL), *below(ROOT_LABEL))
