"""Rows of tables: subscriptions, nodes, edges and sites. What their columns are, and what each may hold.

    line of JSON, row of CSV or Parquet ──► fields, by folded name ──► a subscription, a node, an edge, a site

Whoever reads rows reads them here, and a row that is refused has the same reason everywhere. Where whole
columns are read at once, the names and bounds are these, and what is unusual is looked at here. Rows that
change something have an operation besides: `operations`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.core.arguments import likeliest
from headgate.core.casts import to_double
from headgate.core.event import ID, read_object
from headgate.core.ranks import check_score
from headgate.core.subscription import Subscription
from headgate.core.text import csv_text
from headgate.core.values import check, fold
from headgate.errors import GraphError, HeadgateError, SubscriptionError, TableError
from headgate.graph.model import Edge, Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.event import Id
    from headgate.core.ranks import Score, Weights

    Fields = Mapping[str, Any]

FILTER, DIALECT, NODE = "filter", "dialect", "node"
SCORE, WEIGHTS = RANKS = ("score", "weights")
"""The columns that make a table one of ranked subscriptions."""
KIND, SUBSCRIPTION, COST = "kind", "subscription", "cost"
SOURCE, TARGET = "source", "target"
SITE = "site"
WEIGHT = "weight"
BOUNDS = ("fan_out", "bandwidth", "cpu", WEIGHT)
"""The columns that bound a site, and what its work weighs; null or none is as by default."""
REPLACEMENT = "\ufffd"
"""What stands for bytes that are not UTF-8 where a row is shown."""
MISFIT, NOT_UTF8 = csv_text.MISFIT, csv_text.NOT_UTF8
NO_ID = "the row has no 'id': give text or a whole number"
_NO_SUBSCRIPTION = "the row has no {!r}: a subscription is an id and a filter"
_NO_END = "the row has no {!r}: an edge leads from one node to another, and names both"
_HINT = "give an object of attributes and numbers, or a list of numbers, one for each clause"


class Columns(NamedTuple):
    """What the rows of a table are made of, beside `filter` and `dialect`."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    required: Mapping[str, str]
    """Columns that must be filled, and what is said of a row without."""
    error: type[HeadgateError]

    def read(self, row: Fields, fields: dict[str, Any]) -> None:
        """Read a row column by column, and raise for the first that cannot be used; what was read stays."""
        for name in self.ids:
            fields[name] = read_id(row, name)
        fields[FILTER] = read_filter(row)
        for name in (DIALECT, *self.texts):
            fields[name] = read_text(row, name, self.error)
        for name in self.numbers:
            fields[name] = read_number(row, name, self.error)

    def check(self, fields: Fields, row: Fields) -> None:
        """Refuse a row that lacks what it must have; `given` may have it by another name."""
        for name, complaint in self.required.items():
            if fields[name] is None:
                meant = likeliest(name, set(row) - set(fields))
                raise self.error(complaint if meant is None else f"{complaint} (is {meant!r} meant?)")


NODES = Columns((ID, SUBSCRIPTION), (KIND,), (SCORE, COST), {ID: NO_ID}, GraphError)
EDGES = Columns(
    (SOURCE, TARGET), (), (COST,), {name: _NO_END.format(name) for name in (SOURCE, TARGET)}, GraphError
)
_BOTH = {name: _NO_SUBSCRIPTION.format(name) for name in (ID, FILTER)}
SUBSCRIPTIONS = Columns((ID,), (), (), _BOTH, SubscriptionError)
"""Those without a graph; what they may be ranked by is read where they are ranked."""
HUNG = Columns((ID, NODE), (), (SCORE,), _BOTH, SubscriptionError)
"""Subscriptions that hang at the nodes of a graph."""


def why_broken(row: str | None, otherwise: str = MISFIT) -> str:
    """Say why a row of a table could not be read, by how it is shown.

    >>> why_broken("1,caf\ufffd") == NOT_UTF8, why_broken("1,2,3", "it does not fit")
    (True, 'it does not fit')
    """
    return NOT_UTF8 if REPLACEMENT in (row or "") else otherwise


# From rows to fields


def read_line(value: bytes | str | None, broken: str | None = None) -> dict[str, Any]:
    """Read a line of JSON; None stands for a line of CSV that does not fit the header, and `broken` is that.

    >>> read_line(b'{"ID": 7, "Filter": "age > 30"}')
    {'id': 7, 'filter': 'age > 30'}
    """
    if value is None:
        raise SubscriptionError(why_broken(broken))
    return fields_of(read_object(value))


def fields_of(row: Fields) -> dict[str, Any]:
    """Fold the names of a row."""
    fields = {fold(str(name)): value for name, value in row.items()}
    if len(fields) < len(row):
        raise SubscriptionError("two fields have names that differ in case only, which are the same")
    return fields


def as_object(row: Fields) -> dict[str, Any]:
    """Make of a row of Parquet what JSON would have: nothing for null, and an object for a map.

    >>> as_object({"id": 7, "score": None, "weights": [("age", 2.0)]})
    {'id': 7, 'weights': {'age': 2.0}}
    """
    return {
        name: dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value
        for name, value in row.items()
        if value is not None
    }


# From fields to what they are


def read_subscription(row: Fields, dialect: str, *, ranked: bool = True, graph: bool = True) -> Subscription:
    """Read a subscription; one that names no dialect has the given one.

    What it is ranked by and where it hangs are columns like any other where there are no ranks or no graph,
    and passed over.

    >>> read_subscription({"id": 7, "filter": "age > 30", "score": "2.5"}, "sql").score
    2.5
    """
    fields: dict[str, Any] = {}
    SUBSCRIPTIONS.read(row, fields)
    SUBSCRIPTIONS.check(fields, row)
    return Subscription(
        fields[ID],
        fields[FILTER],
        dialect if fields[DIALECT] is None else fields[DIALECT],
        read_id(row, NODE) if graph else None,
        read_score(row.get(SCORE)) if ranked or graph else 0.0,
        read_weights(row.get(WEIGHTS)) if ranked else None,
    )


def read_node(row: Fields, dialect: str) -> Node:
    """Read a node.

    >>> read_node({"id": "net", "cost": 2}, "sql").cost
    2.0
    """
    fields: dict[str, Any] = {}
    NODES.read(row, fields)
    NODES.check(fields, row)
    return Node(**_given(fields, dialect))


def read_edge(row: Fields, dialect: str) -> Edge:
    """Read an edge.

    >>> read_edge({"source": "a", "target": "b"}, "sql").cost
    1.0
    """
    fields: dict[str, Any] = {}
    EDGES.read(row, fields)
    EDGES.check(fields, row)
    return Edge(**_given(fields, dialect))


def _given(fields: Fields, dialect: str) -> dict[str, Any]:
    """Leave out what is not given: the classes know what stands for it."""
    return {DIALECT: dialect} | {name: value for name, value in fields.items() if value is not None}


class SiteRow(NamedTuple):
    """Where a subscription is, and what the row says of the site's bounds."""

    id: Id
    site: str | None
    bounds: dict[str, float]


def read_site(row: Fields) -> SiteRow:
    """Read a row about a site.

    >>> read_site({"id": 7, "site": "hub", "cpu": "0.5", "fan_out": ""})
    SiteRow(id=7, site='hub', bounds={'cpu': 0.5})
    """
    identity = read_id(row, ID)
    if identity is None:
        raise TableError("the row has no id: name a subscription in the field 'id'")
    site = row.get(SITE)
    if isinstance(site, bool) or not isinstance(site, str | int | None):
        raise TableError(f"site is {site!r}: give its name, or leave it out")
    bounds = {name: _read_bound(name, row[name]) for name in BOUNDS if not is_nothing(row.get(name))}
    if math.isinf(bounds.get(WEIGHT, 1.0)):
        raise TableError("the weight of a site is infinite: give a number that is not, or leave it out")
    return SiteRow(identity, None if is_nothing(site) else str(site), bounds)


def is_nothing(value: object) -> bool:
    """Tell whether a value stands for none: null, or in tables of text an empty one."""
    return value is None or value == ""


# Fields


def read_id(row: Fields, name: str) -> Id | None:
    """Read a field that holds an id, if the row has it."""
    identity = row.get(name)
    if identity is None:
        return None
    check(identity, (name,))
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise SubscriptionError(f"{name} {identity!r} is not usable: give text or a whole number")
    return identity


def read_filter(row: Fields) -> str | None:
    """Read the text of a filter, if the row has one."""
    text = row.get(FILTER)
    if text is not None and not isinstance(text, str):
        raise SubscriptionError(f"the filter is {type(text).__name__} and must be text")
    return text


def read_text(row: Fields, name: str, error: type[HeadgateError] = SubscriptionError) -> str | None:
    """Read a text, if the row has it."""
    text = row.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise error(f"{name} {text!r} is not usable: give text")
    check(text, (name,))
    return text


def read_number(row: Fields, name: str, error: type[HeadgateError] = SubscriptionError) -> float | None:
    """Read a number, if the row has it; CSV has it as text, and so has Parquet what is not finite."""
    value = row.get(name)
    if value is None:
        return None
    number = to_double(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise error(f"{name} {value!r} is not usable: give a number")
    try:
        return float(number)
    except OverflowError:
        raise error(f"{name} is a number that no double can hold: give a smaller one") from None


def read_score(value: object) -> Score:
    """Read a score: a finite number, or an expression; none is 0.

    >>> read_score("2.5"), read_score(None), read_score("0.3 * price")
    (2.5, 0.0, '0.3 * price')
    """
    if isinstance(value, str) and value.strip() and to_double(value) is None:
        return value
    score = read_number({SCORE: value}, SCORE)
    if score is None:
        return 0.0
    check_score(score, "the row")
    return score


def read_weights(value: object) -> Weights | None:
    """Read weights; in CSV, and wherever that is easier to write, they are JSON in a text.

    >>> read_weights('{"age": 2}'), read_weights([1, 0.5])
    ({'age': 2}, [1, 0.5])
    """
    read = value
    if isinstance(value, str):
        try:
            read = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise SubscriptionError(f"weights are not JSON ({error}): {_HINT}") from None
    if read is None or isinstance(read, dict | list):
        return read
    raise SubscriptionError(f"weights are {type(read).__name__}: {_HINT}")


def _read_bound(name: str, value: object) -> float:
    try:
        bound = read_number({name: value}, name)
    except SubscriptionError:
        bound = None
    if bound is None or not bound >= 0:
        raise TableError(f"{name} is {value!r}: give a number that is 0 or more, or leave it out")
    return bound
