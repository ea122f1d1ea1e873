"""Things and wishes, told in every content: as records, as triples and as documents.

A thing has a topic, and perhaps an age, a price and tags. A wish names some of them. What it means that a
wish is met is said here, in one line a part; that the contents tell it alike is a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate import Taxonomy
from headgate.core.rooms import MIXED_SIGN, RDF, RECORDS, XML
from headgate.core.subscription import SPARQL, SQL, XPATH

if TYPE_CHECKING:
    import random

    from tests.spark.files import Row

CONTENTS = (RECORDS, RDF, XML)
MIXED = MIXED_SIGN.join(CONTENTS)
"""All of them in one place: each filter is of one, and each event."""
DIALECTS = {RECORDS: SQL, RDF: SPARQL, XML: XPATH}
GROUPS = {"art": "culture", "music": "culture", "law": "state", "news": "state", "sport": "sport"}
TAGS = ("red", "blue", "new")
SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"


def taxonomy(content: str) -> Taxonomy | None:
    """Say which topics are of which group, where a content has a word for it."""
    if content not in {RDF, MIXED}:
        return None
    pairs = [(topic, group) for topic, group in GROUPS.items() if topic != group]
    return Taxonomy.of((f"<urn:{topic}>", f"<{SUBCLASS}>", f"<urn:{group}>") for topic, group in pairs)


@dataclass(frozen=True)
class Thing:
    """What an event tells."""

    topic: str
    age: int | None
    price: float | None
    tags: tuple[str, ...]

    @classmethod
    def draw(cls, rng: random.Random) -> Thing:
        """Draw one; what is not its topic may be missing."""
        age = rng.randrange(60) if rng.random() < 0.9 else None
        price = rng.randrange(40) / 4 if rng.random() < 0.7 else None
        return cls(rng.choice(list(GROUPS)), age, price, tuple(rng.sample(TAGS, rng.randrange(3))))

    def row(self, content: str) -> Row:
        """Tell it as a row, without its id."""
        if content == RECORDS:
            parts: Row = {"topic": self.topic, "age": self.age, "price": self.price, "tags": list(self.tags)}
            return {name: value for name, value in parts.items() if value is not None}
        if content == RDF:
            told = [f"a <urn:{self.topic}>", f'<urn:topic> "{self.topic}"']
            told += [] if self.age is None else [f"<urn:age> {self.age}"]
            told += [] if self.price is None else [f"<urn:price> {self.price}"]
            told += [f'<urn:tag> "{tag}"' for tag in self.tags]
            return {"datacontenttype": "text/turtle", "data": f"<urn:x> {' ; '.join(told)} ."}
        parts = {"topic": self.topic, "group": GROUPS[self.topic], "age": self.age, "price": self.price}
        inside = "".join(f"<{name}>{value}</{name}>" for name, value in parts.items() if value is not None)
        inside += "".join(f"<tag>{tag}</tag>" for tag in self.tags)
        return {"datacontenttype": "application/xml", "data": f"<all><thing>{inside}</thing></all>"}


@dataclass(frozen=True)
class Wish:
    """What somebody asks for; what is None does not matter."""

    topic: str | None = None
    group: str | None = None
    age: int | None = None
    """From this age on."""
    price: float | None = None
    """Up to this price."""
    tag: str | None = None

    @classmethod
    def draw(cls, rng: random.Random) -> Wish:
        """Draw one with one to three parts."""
        parts: dict[str, Any] = {
            "topic": rng.choice(list(GROUPS)),
            "group": rng.choice(["culture", "state"]),
            "age": rng.randrange(50),
            "price": rng.randrange(2, 40) / 4,
            "tag": rng.choice(TAGS),
        }
        kept = rng.sample(sorted(parts), rng.choice((1, 1, 2, 3)))
        return cls(**{name: parts[name] for name in kept})

    def met(self, thing: Thing) -> bool:
        """Tell whether a thing is what is asked for."""
        return (
            (self.topic is None or thing.topic == self.topic)
            and (self.group is None or GROUPS[thing.topic] == self.group)
            and (self.age is None or (thing.age is not None and thing.age >= self.age))
            and (self.price is None or (thing.price is not None and thing.price <= self.price))
            and (self.tag is None or self.tag in thing.tags)
        )

    def text(self, content: str) -> str:
        """Write it as a filter."""
        return {RECORDS: self._sql, RDF: self._sparql, XML: self._xpath}[content]()

    def weights(self, content: str, rng: random.Random) -> dict[str, float] | None:
        """Draw weights for some of what a filter of records looks at; clauses of others weigh 1."""
        if content != RECORDS or rng.random() < 0.4:
            return None
        looked_at = {"topic": self.topic or self.group, "age": self.age, "price": self.price}
        found = {
            name: rng.choice((0.5, 1.0, 2.0, 3.25)) for name, part in looked_at.items() if part is not None
        }
        return found or None

    def _sql(self) -> str:
        parts = []
        if self.topic is not None:
            parts.append(f"topic = '{self.topic}'")
        if self.group is not None:
            topics = ", ".join(f"'{topic}'" for topic, group in GROUPS.items() if group == self.group)
            parts.append(f"topic IN ({topics})")
        if self.age is not None:
            parts.append(f"age >= {self.age}")
        if self.price is not None:
            parts.append(f"price <= {self.price}")
        if self.tag is not None:
            parts.append(f"array_contains(tags, '{self.tag}')")
        return " AND ".join(parts) or "topic IS NOT NULL"

    def _sparql(self) -> str:
        parts, filters = [], []
        if self.topic is not None:
            parts.append(f'?x <urn:topic> "{self.topic}"')
        if self.group is not None:
            parts.append(f"?x a/<{SUBCLASS}>* <urn:{self.group}>")
        if self.age is not None:
            parts.append("?x <urn:age> ?age")
            filters.append(f"FILTER(?age >= {self.age})")
        if self.price is not None:
            parts.append("?x <urn:price> ?price")
            filters.append(f"FILTER(?price <= {self.price})")
        if self.tag is not None:
            parts.append(f'?x <urn:tag> "{self.tag}"')
        return f"ASK {{ {' . '.join(parts or ['?x <urn:topic> ?topic'])} {' '.join(filters)} }}"

    def _xpath(self) -> str:
        parts = []
        if self.topic is not None:
            parts.append(f"[topic = '{self.topic}']")
        if self.group is not None:
            parts.append(f"[group = '{self.group}']")
        if self.age is not None:
            parts.append(f"[age >= {self.age}]")
        if self.price is not None:
            parts.append(f"[price <= {self.price}]")
        if self.tag is not None:
            parts.append(f"[tag = '{self.tag}']")
        return "//thing" + "".join(parts or ["[topic]"])
