"""What workloads of RDF have in common: tables of filters in SPARQL and of events in N-Triples.

subscriptions   id "filter-0000123", filter "PREFIX : <http://example.org/> ASK { … }", dialect "sparql"
events          id "event-0000042", data "<http://example.org/n7> <http://example.org/p1> … .",
datacontenttype

Beside the texts there are the same filters and events as the room's parsers would read them, for those who
do not want to measure the parsers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.rdf.events.reading import make_graph
from headgate.workloads.columns import glue, joined, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from headgate.rdf.language.model import Graph, Pattern, Term

    Ints = NDArray[np.int64]
    Texts = pa.Array[pa.Scalar[pa.lib.StringType]]
    Statement = tuple[Term, Term, Term]

BASE = "http://example.org/"
_BATCH = 16_384
"""Rows that are drawn at once."""


def _schema(*names: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.string(), nullable=False) for name in names])


SUBSCRIPTION_SCHEMA = _schema("id", "filter", "dialect")
EVENT_SCHEMA = _schema("id", "data", "datacontenttype")


class Triples(NamedTuple):
    """Events: the triples of event n are start[n] : start[n + 1] of the terms, as N-Triples writes them."""

    start: Ints
    subject: Texts
    property: Texts
    object: Texts


class RdfWorkload(ABC):
    """Rows of a workload of RDF; each depends on its number and the seed alone."""

    @abstractmethod
    def texts(self, rows: Ints, seed: int) -> Texts:
        """Write the filters of some rows, not too many."""

    @abstractmethod
    def models(self, rows: Ints, seed: int) -> list[Pattern]:
        """Make the filters of some rows, not too many, without a parser."""

    @abstractmethod
    def triples(self, rows: Ints, seed: int) -> Triples:
        """Draw the events with the given row numbers."""

    @abstractmethod
    def taxonomy(self, seed: int) -> list[Statement]:
        """List the statements of the taxonomy that belongs to the filters."""

    def filters(self, rows: Ints, seed: int) -> Texts:
        """Write the filters with the given row numbers."""
        return pa.concat_arrays(
            [pa.array([], pa.string()), *(self.texts(part, seed) for part in _parts(rows))]
        )

    def patterns(self, rows: Ints, seed: int) -> list[Pattern]:
        """Make the filters with the given row numbers: what the parser makes of their texts."""
        return [pattern for part in _parts(rows) for pattern in self.models(part, seed)]

    def subscriptions(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the subscriptions with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        columns: list[pa.Array[Any]] = [
            numbered("filter-", rows, 7),
            self.filters(rows, seed),
            pa.repeat(pa.scalar("sparql"), len(rows)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SUBSCRIPTION_SCHEMA)

    def subscription_schema(self) -> pa.Schema:
        """Describe the columns of `subscriptions`."""
        return SUBSCRIPTION_SCHEMA

    def graphs(self, rows: Ints, seed: int) -> list[Graph]:
        """Make the events with the given row numbers: what the parser makes of their texts."""
        start, *columns = self.triples(np.asarray(rows, np.int64), seed)
        statements = list(zip(*(column.to_pylist() for column in columns), strict=True))
        return [make_graph(statements[first:last]) for first, last in pairwise(start.tolist())]

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        start, subject, prop, object_ = self.triples(rows, seed)
        lines = glue(subject, prop, object_, ".\n", between=" ")
        columns: list[pa.Array[Any]] = [
            numbered("event-", rows, 7),
            joined(start, lines, ""),
            pa.repeat(pa.scalar("application/n-triples"), len(rows)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=EVENT_SCHEMA)

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""
        return EVENT_SCHEMA

    def taxonomy_text(self, seed: int) -> str:
        """Write the taxonomy as N-Triples."""
        return "".join(f"{s} {p} {o} .\n" for s, p, o in self.taxonomy(seed))


def _parts(rows: Ints) -> Iterator[Ints]:
    rows = np.asarray(rows, np.int64)
    return (rows[first : first + _BATCH] for first in range(0, len(rows), _BATCH))
