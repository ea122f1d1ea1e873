"""What filters demand of events, as keys: an event that matches has one of them.

    records     one attribute's values: `country IN ('CH', 'DE') AND age > 30` has the keys =CH and =DE
    XML         labels: every label that a pattern names without a wildcard
    RDF         properties, and the classes of `a`: every one that an edge names

Whatever may hold for more values than can be listed is *open*: None. Texts and whole numbers are the keys of
records, and the facets of the compiled leaves say which events each of them can meet: `a = 17` holds for the
number 17 and for texts that are cast to it, `a = '17'` for the text and for the number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from headgate.contents.registry import RDF, RECORDS, XML
from headgate.rdf.language.model import TYPE
from headgate.records.programs.leaves import Facet
from headgate.records.programs.program import AND, FALSE, OR, TRUE
from headgate.records.programs.programs import VALUE, Programs
from headgate.records.programs.transport import from_bytes as programs_from_bytes
from headgate.spark.compile.rdf_contents import RdfFiled
from headgate.spark.compile.rdf_contents import from_bytes as rdf_from_bytes
from headgate.spark.compile.record_contents import RecordsFiled
from headgate.spark.compile.xml_contents import XmlFiled
from headgate.xml.index.columns import from_bytes as xml_from_bytes
from headgate.xml.language.model import ANY, ANY_ATTRIBUTE

if TYPE_CHECKING:
    from headgate.core.values import Path
    from headgate.rdf.index.columns import Columns as RdfColumns
    from headgate.spark.compile.contents import Contents, Filed
    from headgate.xml.index.columns import Columns as XmlColumns

Keys: TypeAlias = "frozenset[str] | None"
"""Keys of a filter, or None if it is open."""

MOST = 1000
"""Keys of one filter; with more it is open."""
_SEEN_BY_OTHERS = frozenset({Facet.ARRAY, Facet.BOOL, Facet.FLOAT, Facet.TIMESTAMP})
"""Facets of values that meet every shard anyway."""
_NUMBERS = frozenset({Facet.INT, Facet.STRING_INT})


def text_key(text: str) -> str:
    """Return the key of a text."""
    return f"={text}"


def number_key(number: int) -> str:
    """Return the key of a whole number, which texts have as well that are cast to it."""
    return f"#{number}"


def class_key(term: str) -> str:
    """Return the key of a class that something is an instance of."""
    return f"a {term}"


class Finder(NamedTuple):
    """Finds the keys of filters. Small, and sent to workers."""

    content: str
    path: Path | None = None
    """The attribute of records that keys are values of."""
    listed: frozenset[str] = frozenset()
    """Classes that the taxonomy lists instances of: an event may have those without naming them."""

    @classmethod
    def of(cls, contents: Contents, path: Path | None) -> Finder:
        """Know what must be known of a room."""
        if contents.name != RDF:
            return cls(contents.name, path)
        taxonomy: Any = contents
        classes = {o for _, p, o in taxonomy.taxonomy.statements() if p == TYPE}
        return cls(contents.name, path, frozenset(classes))

    @property
    def demands(self) -> bool:
        """Tell whether an event must have all keys of a filter, so that one of them is enough to route by."""
        return self.content != RECORDS

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of filters as a writer has written them."""
        if self.content == RECORDS:
            return [] if self.path is None else record_keys(programs_from_bytes(payload), self.path)
        if self.content == XML:
            return xml_keys(xml_from_bytes(payload))
        return rdf_keys(rdf_from_bytes(payload), self.listed)

    def of_filed(self, filed: Filed) -> list[Keys]:
        """Find the keys of filters that were filed."""
        if isinstance(filed, RecordsFiled):
            return [] if self.path is None else record_keys(filed.programs, self.path)
        if isinstance(filed, XmlFiled):
            return xml_keys(filed.columns)
        assert isinstance(filed, RdfFiled)
        return rdf_keys(filed.columns, self.listed)


def record_keys(programs: Programs, path: Path) -> list[Keys]:
    """List the keys of filters of records, for one attribute.

    >>> from headgate.records.programs.binding import compile_filters
    >>> found = record_keys(compile_filters(["a = 'x' AND b > 1", "a IN (1, 2) OR b = 1"]).programs, ("a",))
    >>> [keys and sorted(keys) for keys in found]
    [['=x'], None]
    """
    found: list[Keys] = [None] * programs.filters
    if path not in programs.attributes:
        return found
    here = np.flatnonzero(programs.leaf_attribute == programs.attributes.index(path))
    leaves = {leaf: _leaf_keys(programs, leaf) for leaf in here.tolist()}
    touched = np.isin(programs.tokens, here)
    filters = np.unique(np.searchsorted(programs.token_start, np.flatnonzero(touched), "right") - 1)
    for number in filters.tolist():
        begin, end = programs.token_start[number], programs.token_start[number + 1]
        keys = _evaluate(programs.tokens[begin:end].tolist(), leaves)
        found[number] = None if keys is None or len(keys) > MOST else keys
    return found


def _leaf_keys(programs: Programs, leaf: int) -> Keys:
    """List the values for which a leaf holds; None if there are others."""
    if programs.leaf_kind[leaf] != VALUE or programs.leaf_on_null[leaf]:
        return None
    keys: set[str] = set()
    for place in range(int(programs.range_start[leaf]), int(programs.range_start[leaf + 1])):
        facet = Facet(int(programs.range_facet[place]))
        low, high = int(programs.range_low[place]), int(programs.range_high[place])
        if facet in _SEEN_BY_OTHERS:
            continue
        if facet in _NUMBERS and high - low < MOST:
            keys.update(map(number_key, range(low, high + 1)))
        elif facet is Facet.STRING and low % 2 == 0 and high == low + 1:
            keys.add(text_key(programs.texts.text(low // 2)))
        else:
            return None
    return frozenset(keys)


def _evaluate(tokens: list[int], leaves: dict[int, Keys]) -> Keys:
    stack: list[Keys] = []
    for token in tokens:
        if token == AND:
            right, left = stack.pop(), stack.pop()
            known = [each for each in (left, right) if each is not None]
            stack.append(min(known, key=len) if known else None)
        elif token == OR:
            right, left = stack.pop(), stack.pop()
            stack.append(None if left is None or right is None else left | right)
        elif token == FALSE:
            stack.append(frozenset())
        else:
            stack.append(None if token == TRUE else leaves.get(token))
    return stack[0]


def xml_keys(columns: XmlColumns) -> list[Keys]:
    """List the labels that patterns demand.

    >>> from headgate.xml.index.columns import compile_all
    >>> from headgate.xml.language.parse import parse_filter
    >>> [sorted(keys) for keys in xml_keys(compile_all([parse_filter("//news[*]/@id", "xpath")]))]
    [['@id', 'news']]
    """
    labels = columns.labels.texts()
    plain = [label not in {ANY, ANY_ATTRIBUTE} and not label.startswith(("*:", "@*:")) for label in labels]
    found: list[Keys] = []
    starts = columns.node_start.tolist()
    for begin, end in pairwise(starts):
        used = {labels[label] for label in columns.label[begin:end].tolist() if plain[label]}
        found.append(frozenset(used) or None)
    return found


def rdf_keys(columns: RdfColumns, listed: frozenset[str]) -> list[Keys]:
    """List the properties and classes that patterns demand; not of edges that go by the taxonomy.

    >>> from headgate.rdf.index.columns import compile_all
    >>> from headgate.rdf.language.model import Options
    >>> from headgate.rdf.language.parse import parse_filter
    >>> pattern = parse_filter("ASK { ?x a <urn:Art> ; <urn:by> ?who ; a/rdfs:subClassOf* <urn:Thing> }")
    >>> [sorted(keys) for keys in rdf_keys(compile_all([pattern], Options()), frozenset())]
    [['<urn:by>', 'a <urn:Art>']]
    """
    terms = columns.terms.texts()
    found: list[Keys] = []
    starts, edges = columns.edge_start.tolist(), columns.edges.tolist()
    for begin, end in pairwise(starts):
        used: set[str] = set()
        for _, relation, target in edges[begin:end]:
            if relation < 0 or not terms[relation].startswith("<"):
                continue
            if terms[relation] != TYPE:
                used.add(terms[relation])
            elif target >= 0 and terms[target] not in listed:
                used.add(class_key(terms[target]))
        found.append(frozenset(used) or None)
    return found
