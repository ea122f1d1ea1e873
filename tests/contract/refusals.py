"""Rows that are refused, one for each kind of reason, and what is said of each.

A table says of its row what is wrong; an object of the library says it in its own words where these differ,
and of some rows there is no object.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.event import SAME_NAMES
from headgate.core.rooms import RDF, RECORDS, XML
from tests.contract.telling import DIALECTS, MIXED, Thing

if TYPE_CHECKING:
    from headgate.core.event import Id
    from tests.contract.world import World
    from tests.spark.files import Row

BROKEN = {
    RECORDS: ("age >", "a value or a condition is missing after this, at character 5: age ⟪>"),
    RDF: (
        "ASK { ?x",
        "the filter ends too early: expected a variable, an IRI or 'a', at character 9: ASK { ?x⟪",
    ),
    XML: (
        "//thing[",
        "the filter ends too early: expected a path or a condition, at character 9: //thing[⟪",
    ),
}


"""A text that is no filter, and why."""
ALWAYS = {RECORDS: "topic = 'art'", RDF: 'ASK { ?x <urn:topic> "art" }', XML: "//thing[topic = 'art']"}
TELLING: dict[str, Row] = {content: Thing("art", 30, 2.5, ("red",)).row(content) for content in DIALECTS}


def _content(world: World) -> str:
    """Name the content of the rows of a table that are refused; of several contents, one."""
    return XML if world.content == MIXED else world.content


NO_LANGUAGE = (
    "dialect 'latin' is not known: use 'sql', 'labels', 'sparql', 'tuples', 'xpath', 'tree', 'eventbridge', "
    "'cloudevents', 'cesql', 'elasticsearch' or 'vespa'"
)
NO_JSON, NO_OBJECT = "not valid JSON: Input data was truncated", "expected a JSON object, found list"
FORMATS = {RDF: "turtle, nt, rdfxml, jsonld, rss, atom", XML: "xml, rss, atom"}
SENT = {
    RDF: "RDF: send one of text/turtle, application/n-triples, application/rdf+xml, application/ld+json, "
    "application/rss+xml, application/atom+xml as its content type",
    XML: "XML: send application/xml",
}


class Bad(NamedTuple):
    """A row and its reason."""

    line: str
    """As it is written in JSON lines."""
    reason: str
    object_reason: str | None = None
    """The reason in the library's words, if they are others."""
    has_object: bool = True
    """Whether the library can be asked at all."""
    columns: bool = True
    """Whether a table with columns of one type each can have it."""

    @property
    def row(self) -> Row:
        """Read the line."""
        found: Row = json.loads(self.line)
        return found

    def told(self, *, objects: bool) -> tuple[str, str]:
        """Return what identifies the row, and the reason."""
        return key_of(self.line), (self.object_reason or self.reason) if objects else self.reason


def key_of(text: str) -> str:
    """Find the id in a row, however its other columns are written; without one there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return "-"
    identity = found.get("id") if isinstance(found, dict) else None
    return "-" if identity is None else str(identity)


def _bad(row: Row, reason: str, object_reason: str | None = None, **more: bool) -> Bad:
    return Bad(json.dumps(row, ensure_ascii=False), reason, object_reason, **more)


def _fresh(world: World, number: int) -> Id:
    """Return an id that nobody has."""
    return 900_000 + number if world.numbered else f"bad-{number}"


def bad_subscriptions(world: World, known: Id, node: Id) -> list[Bad]:
    """List subscriptions that are refused, at the end of the table; `known` is the id of one that stands."""
    content = _content(world)
    text, reason = BROKEN[content]
    good: Row = {"filter": ALWAYS[content], "dialect": DIALECTS[content]}
    good |= {"node": node} if world.graph else {}
    one, two, three, four, five, six, seven = (_fresh(world, number) for number in range(1, 8))
    again = f"id {known!r} was given by an earlier row already"
    if world.graph:
        again = f"subscription {known!r} is given again: an id can be used once"
    found = [
        _bad({**good, "id": one, "filter": text}, reason),
        _bad({**good, "id": two, "dialect": "latin"}, NO_LANGUAGE),
        _bad({**good, "id": known}, again, f"id {known!r} is subscribed already: unsubscribe it first"),
        _bad(
            {**good, "id": None},
            "the row has no 'id': a subscription is an id and a filter",
            has_object=False,
        ),
        _bad(
            {**good, "id": three, "filter": 7},
            "the filter is int and must be text",
            f"subscription {three!r}: its filter is an int: give text",
        ),
    ]
    if world.ranked:
        found += [
            _bad(
                {**good, "id": four, "weights": [1, 2]},
                f"subscription {four!r} has 2 weights and 1 clauses: give one for each clause",
            ),
            _bad(
                {**good, "id": five, "score": True},
                "score True is not usable: give a number",
                f"the score of subscription {five!r} is True: give a finite number, or an expression over "
                "the event",
            ),
        ]
    if world.graph:
        nowhere = _fresh(world, 0)
        found += [
            _bad(
                {**good, "id": six, "node": nowhere},
                f"subscription {six!r}: there is no node {nowhere!r}",
                f"there is no node {nowhere!r} in the graph",
            ),
            _bad(
                {**good, "id": seven, "node": None},
                f"subscription {seven!r}: it is attached to no node: name one as its 'node'",
                f"subscription {seven!r} is attached to no node: give `node`",
            ),
        ]
    return found


def bad_nodes(world: World, known: Id) -> list[Bad]:
    """List nodes that are refused."""
    text, reason = BROKEN[_content(world)]
    costly = _fresh(world, 9)
    return [
        _bad({"id": _fresh(world, 8), "filter": text, "dialect": DIALECTS[_content(world)]}, reason),
        _bad(
            {"id": known},
            f"node {known!r} is given again: an id can be used once",
            f"node {known!r} is in the graph already: remove it first",
        ),
        _bad({"id": costly, "cost": -1.0}, f"node {costly!r} has cost -1.0: give a number from 0 up"),
    ]


def bad_edges(world: World, known: Id) -> list[Bad]:
    """List edges that are refused."""
    nowhere = _fresh(world, 0)
    lost = f"edge from {known!r} to {nowhere!r}: there is no node {nowhere!r}"
    return [_bad({"source": known, "target": nowhere}, lost, f"there is no node {nowhere!r} in the graph")]


def bad_events(world: World, node: Id) -> list[Bad]:
    """List events that are refused: lines, rows, documents, and where they come from."""
    good: Row = {**TELLING[_content(world)], **({"source": node} if world.graph else {})}
    wanted = "give the field 'id' as text or a whole number"
    found = [
        Bad("{", NO_JSON, columns=False),
        Bad("[1]", NO_OBJECT, columns=False),
        _bad(good, f"the event has no id: {wanted}"),
        _bad({**good, "id": 1.5}, f"the event has id 1.5: {wanted}", columns=False),
    ]
    if world.content == RECORDS:
        twice = "attribute age is given twice: names that differ in case only are the same"
        found.append(_bad({**good, "id": _fresh(world, 11), "AGE": 3}, twice, columns=False))
    else:
        found += _bad_documents(_content(world), world, good)[: 2 if world.content == MIXED else None]
    if world.graph:
        lost, silent, nowhere = _fresh(world, 16), _fresh(world, 17), _fresh(world, 0)
        found += [
            _bad(
                {**good, "id": lost, "source": nowhere},
                f"source {nowhere!r} is not a node of the graph: give the id of one",
                f"source {nowhere!r} of event {lost!r} is not a node of the graph: give the id of one",
            ),
            _bad(
                {**good, "id": silent, "source": None},
                "it has no source: name the node where it enters the graph",
                f"event {silent!r} has no source: name the node where it enters the graph, by text or a "
                "whole number",
            ),
        ]
    return found


def _bad_documents(content: str, world: World, good: Row) -> list[Bad]:
    """List documents that are none, of another content, and rows without their parts."""
    name = content.upper()
    one, two, three, four, five = (_fresh(world, number) for number in (12, 13, 14, 15, 18))
    if content == RDF:
        broken, why = "<urn:a> <urn:b> ", "not valid Turtle: at line 1 column 17: Unexpected end"
        other, kind, media = "<a/>", "xml", "application/xml"
    else:
        why = "not valid XML: Opening and ending tag mismatch: b line 1 and a, line 1, column 11"
        broken, other, kind, media = "<a><b></a>", "<urn:a> <urn:b> 1 .", "turtle", "text/turtle"
    of = FORMATS[content]
    return [
        _bad({**good, "id": one, "data": broken}, why),
        _bad({**good, "id": five, "DATA": good["data"]}, SAME_NAMES, columns=False),
        _bad(
            {**good, "id": two, "data": other, "datacontenttype": kind},
            f"datacontenttype {kind!r} is not a format of {name}: give one of {of}",
            f"event {two!r} is {media} and these filters look at {SENT[content]}",
        ),
        _bad(
            {**good, "id": three, "data": None},
            f"the event has no 'data': give its {name} there, as text",
            f"event {three!r} is application/json and these filters look at {SENT[content]}",
        ),
        _bad(
            {**good, "id": four, "datacontenttype": None},
            f"the event has no 'datacontenttype': name the format of its data, one of {of}",
            f"event {four!r} is application/json and these filters look at {SENT[content]}",
        ),
    ]


def bad_changes(world: World, known: Id, gone: Id, node: Id) -> list[Bad]:
    """List changes that are refused after all others; `known` is subscribed then, and `gone` no more."""
    content = _content(world)
    text, reason = BROKEN[content]
    good: Row = {"op": "subscribe", "filter": ALWAYS[content], "dialect": DIALECTS[content]}
    good |= {"node": node} if world.graph else {}
    unknown = f"there is no subscription {gone!r} here"
    operations = (
        "'subscribe', 'replace', 'upsert', 'unsubscribe', 'score', 'weights', 'add_node', 'remove_node', "
        "'add_edge', 'remove_edge', 'set_filter', or none"
    )
    there = f"id {known!r} is subscribed already: "
    found = [
        Bad("{", NO_JSON, has_object=False),
        _bad({"op": "rename", "id": known}, f"op is 'rename': use one of {operations}", has_object=False),
        _bad({"op": "unsubscribe", "id": gone}, f"there is no subscription {gone!r} to take away", unknown),
        _bad({"op": "unsubscribe"}, "the row has no 'id': give text or a whole number", has_object=False),
        _bad({**good, "id": known}, f"{there}use the op 'replace'", f"{there}unsubscribe it first"),
        _bad({**good, "id": _fresh(world, 21), "filter": text}, reason),
        _bad({**good, "id": _fresh(world, 22), "dialect": "latin"}, NO_LANGUAGE),
    ]
    if world.graph or world.ranked:
        no_score = f"there is no subscription {gone!r} to give a score to"
        found.append(_bad({"op": "score", "id": gone, "score": 1}, no_score, unknown))
    if world.ranked:
        weighs = f"the weight of clause 1 of subscription {known!r} is -1.0: give a finite number, 0 or more"
        found.append(_bad({"op": "weights", "id": known, "weights": [-1.0]}, weighs))
    if world.graph:
        nowhere = _fresh(world, 0)
        lost = f"there is no node {nowhere!r} in the graph"
        found.append(_bad({**good, "id": _fresh(world, 23), "node": nowhere}, lost))
    return found
