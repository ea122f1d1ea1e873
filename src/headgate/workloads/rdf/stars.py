"""Filters that ask for an instance of a class with properties in a range, over a taxonomy of 1,000 classes.

    ?x a/rdfs:subClassOf* :C12 ; :p24 ?v1 ; :p25 ?v2 . FILTER(?v1 >= 120 && ?v1 <= 480)

Each class brings two properties of its own; its instances may have those, those of the classes above it,
and six that are common to all. Values are whole numbers below 10,000. An event describes ten things: each
has a type, all types as likely, and eight of the properties that it may have, which makes 90 triples.

A filter asks for a type as events have it, or for a class above it, more often a near one. It asks for two
or three of four properties: those of the class, and those of its parent. One or two of these have a range.

The taxonomy has the shape of schema.org's, release 30.0. That one has 1,014 classes; 57 have several
parents, 3 at most; a class has 4.0 ancestors on average and 8 at most, itself included. Here classes lie on
levels below one root, as many on each as `LEVELS` says, and have a parent on the level above. Those with
several parents have no classes below them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import HeadgateError
from headgate.rdf.language.model import RDFS, SUBCLASS, TYPE, XSD, iri
from headgate.workloads.columns import Key, choose, digits, either, glue, integers, uniform, zipf_rank
from headgate.workloads.rdf.publications import BASE, RdfWorkload, Triples
from headgate.workloads.records.synthetic import distinct

if TYPE_CHECKING:
    from headgate.rdf.language.model import Term
    from headgate.workloads.columns import Ints, Texts
    from headgate.workloads.rdf.publications import Statement


LEVELS = (1, 70, 300, 390, 170, 65, 14, 4)
"""How many classes there are on each level."""
_INNER = 0.2
"""The part of a level that classes below it hang on; which of it, by Zipf's law."""
_SKEW = 0.8
_TWO, _THREE = 52, 5
"""How many classes have two parents, and three."""
_TABLE = "rdf classes"


class Classes(NamedTuple):
    """Classes by number, and what each is below."""

    names: tuple[Term, ...]
    parents: tuple[tuple[int, ...], ...]

    def statements(self) -> list[Statement]:
        """Write what is below what."""
        return [
            (self.names[low], SUBCLASS, self.names[high])
            for low, parents in enumerate(self.parents)
            for high in parents
        ]

    def line(self, number: int) -> list[int]:
        """List a class, its first parent, the first parent of that, and so on."""
        line = [number]
        while self.parents[line[-1]] and self.parents[line[-1]][0] not in line:
            line.append(self.parents[line[-1]][0])
        return line


@lru_cache(maxsize=4)
def draw_classes(seed: int) -> Classes:
    """Draw classes.

    >>> draw_classes(1).names[-1]
    '<http://example.org/C1013>'
    """
    first = np.cumsum((0, *LEVELS))
    parents: list[tuple[int, ...]] = [()]
    for level in range(1, len(LEVELS)):
        key = Key(seed, _TABLE, f"parent {level}", np.arange(LEVELS[level]))
        inner = max(1, round(_INNER * LEVELS[level - 1]))
        parents += [(int(parent),) for parent in first[level - 1] + zipf_rank(key, inner, _SKEW)]
    inside = {parent for (parent,) in parents[1:]}
    leaves = [number for number in range(int(first[2]), int(first[4])) if number not in inside]
    chosen = distinct(Key(seed, _TABLE, "several", np.arange(1)), _TWO + _THREE, len(leaves))[0].tolist()
    several = {leaves[at] for at in chosen}
    for turn, number in enumerate(sorted(several)):
        wanted = 3 if turn < _THREE else 2
        level = int(np.searchsorted(first, number, side="right")) - 1
        more = dict.fromkeys(parents[number])
        draw = 0
        while len(more) < wanted:
            key = Key(seed, _TABLE, "another parent", np.array([number]))
            parent = int(integers(key, int(first[level - 1]), int(first[level]), draw)[0])
            # One that has several parents itself would bring too many ancestors.
            more |= {} if parent in several else {parent: None}
            draw += 1
        parents[number] = tuple(more)
    return Classes(tuple(iri(f"{BASE}C{number}") for number in range(len(parents))), tuple(parents))


THINGS, PROPERTIES = 10, 8
"""Things of an event, and properties of a thing beside its type."""
VALUES = 10_000
OWN, COMMON, ASKED = 2, 6, 4
"""Properties that a class brings, that are common to all, and that filters choose from."""
_MOST, _RANGED = 3, 2
"""Properties of a filter, and of them those with a range, at most."""
_CLIMB = 0.2
"""How often a filter asks for the parent rather than the class, again and again."""
_HALF = 0.3
"""How many ranges have one end only."""
_FILTERS, _EVENTS = "rdf stars", "rdf things"
_BEFORE = f"PREFIX : <{BASE}> PREFIX rdfs: <{RDFS}> ASK {{ ?x a/rdfs:subClassOf* "


class DrawnFilters(NamedTuple):
    """Filters as arrays, a row each."""

    of: Ints
    """The class."""
    asked: Ints
    """Properties, of which the first `number` are asked for."""
    number: Ints
    low: Ints
    """The least values of the first properties; below 0 for none."""
    high: Ints


@dataclass(frozen=True)
class Stars(RdfWorkload):
    """Instances of classes, with ranges.

    >>> Stars().filters(np.arange(1), seed=1)[0].as_py().partition("ASK ")[2]
    '{ ?x a/rdfs:subClassOf* :C777 ; :p864 ?v1 ; :p1560 ?v2 . FILTER(?v1 >= 9846) }'
    """

    classes: Classes | None = None
    """Those of a real taxonomy; drawn with the seed, otherwise."""
    widths: tuple[float, float] = (0.01, 0.2)
    """What a range covers of all values, at least and at most."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if not 0 < self.widths[0] <= self.widths[1] <= 1:
            raise HeadgateError(f"ranges over {self.widths} of the values: give two parts, the lesser first")
        if self.classes is not None and not self.classes.names:
            raise HeadgateError("there must be a class at least")

    def classes_of(self, seed: int) -> Classes:
        """Return the classes."""
        return draw_classes(seed) if self.classes is None else self.classes

    def taxonomy(self, seed: int) -> list[Statement]:
        """List what class is below what."""
        return self.classes_of(seed).statements()

    def draw(self, rows: Ints, seed: int) -> DrawnFilters:
        """Draw the filters of some rows."""
        key = Key(seed, _FILTERS, "", np.asarray(rows, np.int64))
        tables = _tables(self.classes_of(seed))
        of = integers(key._replace(column="class"), 0, len(tables.parent))
        climbs = np.ones(len(of), np.bool_)
        for step in range(tables.depth):
            climbs &= uniform(key._replace(column="climb"), step) < _CLIMB
            of = np.where(climbs, tables.parent[of], of)
        chosen = distinct(key._replace(column="asked"), _MOST, ASKED)
        number = integers(key._replace(column="number"), 2, _MOST + 1)
        low, high = _ranges(key, self.widths)
        return DrawnFilters(of, np.take_along_axis(tables.asked[of], chosen, axis=1), number, low, high)

    def texts(self, rows: Ints, seed: int) -> Texts:
        """Write the filters of some rows."""
        drawn = self.draw(rows, seed)
        names = [_short(name) for name in self.classes_of(seed).names]
        pieces = [choose(names, drawn.of)]
        for i in range(_MOST):
            asked = glue(" ; :p", digits(drawn.asked[:, i]), f" ?v{i + 1}")
            pieces.append(either(i < drawn.number, asked, ""))
        bounds = []
        for i in range(_RANGED):
            low, high = drawn.low[:, i], drawn.high[:, i]
            least, most = glue(f"?v{i + 1} >= ", digits(low)), glue(f"?v{i + 1} <= ", digits(high))
            inner = either(low < 0, most, either(high < 0, least, glue(least, " && ", most)))
            bounds.append(either(np.maximum(low, high) < 0, "", glue(" FILTER(", inner, ")")))
        return glue(_BEFORE, *pieces, " .", *bounds, " }")

    def triples(self, rows: Ints, seed: int) -> Triples:
        """Draw the events with the given row numbers."""
        classes = self.classes_of(seed)
        tables = _tables(classes)
        thing = (np.asarray(rows, np.int64)[:, None] * THINGS + np.arange(THINGS)).ravel()
        key = Key(seed, _EVENTS, "", thing)
        of = integers(key._replace(column="type"), 0, len(tables.parent))
        chosen = np.empty((len(thing), PROPERTIES), np.int64)
        for number in np.unique(tables.number[of]).tolist():
            (some,) = np.nonzero(tables.number[of] == number)
            own = key._replace(column=f"properties of {number}", rows=thing[some])
            chosen[some] = distinct(own, PROPERTIES, number)
        has = np.take_along_axis(tables.available[of], chosen, axis=1)
        address = (thing[:, None] * PROPERTIES + np.arange(PROPERTIES)).ravel()
        value = integers(Key(seed, _EVENTS, "value", address), 0, VALUES)
        # A thing's type comes before its properties: column 0 of each of its rows.
        size = PROPERTIES + 1
        where = np.arange(len(thing) * size)
        is_type = where % size == 0
        at = np.maximum(where - where // size - 1, 0)
        return Triples(
            np.arange(len(rows) + 1) * THINGS * size,
            glue(f"<{BASE}t", digits(np.repeat(thing, size)), ">"),
            either(is_type, TYPE, glue(f"<{BASE}p", digits(has.ravel()[at]), ">")),
            either(
                is_type,
                choose(classes.names, np.repeat(of, size)),
                glue('"', digits(value[at]), f'"^^<{XSD}integer>'),
            ),
        )


class Tables(NamedTuple):
    """What is known of each class, a row each."""

    parent: Ints
    """The first one; the class itself, if it has none."""
    asked: Ints
    available: Ints
    """Properties that an instance may have, of which there are `number`."""
    number: Ints
    depth: int


@lru_cache(maxsize=4)
def _tables(classes: Classes) -> Tables:
    lines = [classes.line(number) for number in range(len(classes.names))]
    own = COMMON + OWN * np.arange(len(lines))[:, None] + np.arange(OWN)
    available = [[*own[line].ravel().tolist(), *range(COMMON)] for line in lines]
    number = np.array([len(each) for each in available])
    padded = np.zeros((len(lines), number.max()), np.int64)
    for row, each in enumerate(available):
        padded[row, : len(each)] = each
    return Tables(
        np.array([line[min(1, len(line) - 1)] for line in lines]),
        padded[:, :ASKED].copy(),
        padded,
        number,
        max(len(line) for line in lines),
    )


def _ranges(key: Key, widths: tuple[float, float]) -> tuple[Ints, Ints]:
    """Draw ranges for the first property, or the first two; an end that is missing is -1."""
    low, high = (np.full((len(key.rows), _RANGED), -1, np.int64) for _ in range(2))
    ranged = integers(key._replace(column="ranged"), 1, _RANGED + 1)
    least, most = widths
    for i in range(_RANGED):
        own = key._replace(column=f"range {i}")
        width = np.round((least + (most - least) * uniform(own)) * VALUES).astype(np.int64)
        begin = np.floor(uniform(own, 1) * (VALUES - width)).astype(np.int64)
        kind = uniform(own, 2)
        below, above = kind < _HALF / 2, (kind >= _HALF / 2) & (kind < _HALF)
        there = i < ranged
        low[:, i] = np.where(there & ~below, np.where(above, VALUES - width, begin), -1)
        high[:, i] = np.where(there & ~above, np.where(below, width, begin + width) - 1, -1)
    return low, high


def _short(name: Term) -> str:
    """Write a class as filters do."""
    return f":{name[len(BASE) + 1 : -1]}" if name.startswith(f"<{BASE}") else name
