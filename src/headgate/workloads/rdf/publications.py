"""What workloads of RDF have in common: tables of filters in SPARQL and of events in N-Triples.

subscriptions   id "filter-0000123", filter "PREFIX : <http://example.org/> ASK { … }", dialect "sparql"
events          id "event-0000042", data "<http://example.org/n7> <http://example.org/p1> … .",
datacontenttype
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.event import N_TRIPLES
from headgate.core.subscription import SPARQL
from headgate.workloads.columns import glue, joined, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.rdf.language.model import Term
    from headgate.workloads.columns import Ints, Texts

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


class FilterWorkload(ABC):
    """Rows of a workload whose filters are in one dialect, and whose events are documents of one type."""

    prefix: ClassVar[str]
    """What the ids of filters begin with."""
    dialect: ClassVar[str]
    content_type: ClassVar[str]

    @abstractmethod
    def filters(self, rows: Ints, seed: int) -> Texts | list[str]:
        """Write the filters with the given row numbers."""

    @abstractmethod
    def documents(self, rows: Ints, seed: int) -> Texts | list[str]:
        """Write the documents with the given row numbers."""

    def subscriptions(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the subscriptions with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        texts = pa.array(self.filters(rows, seed), pa.string())
        columns = [numbered(self.prefix, rows, 7), texts, pa.repeat(pa.scalar(self.dialect), len(rows))]
        return pa.RecordBatch.from_arrays(columns, schema=SUBSCRIPTION_SCHEMA)

    def subscription_schema(self) -> pa.Schema:
        """Describe the columns of `subscriptions`."""
        return SUBSCRIPTION_SCHEMA

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        texts = pa.array(self.documents(rows, seed), pa.string())
        columns = [numbered("event-", rows, 7), texts, pa.repeat(pa.scalar(self.content_type), len(rows))]
        return pa.RecordBatch.from_arrays(columns, schema=EVENT_SCHEMA)

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""
        return EVENT_SCHEMA


class RdfWorkload(FilterWorkload):
    """Rows of a workload of RDF; each depends on its number and the seed alone."""

    prefix = "filter-"
    dialect = SPARQL
    content_type = N_TRIPLES

    @abstractmethod
    def texts(self, rows: Ints, seed: int) -> Texts:
        """Write the filters of some rows, not too many."""

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

    def documents(self, rows: Ints, seed: int) -> Texts:
        """Write the events with the given row numbers."""
        start, subject, prop, object_ = self.triples(rows, seed)
        return joined(start, glue(subject, prop, object_, ".\n", between=" "), "")

    def taxonomy_text(self, seed: int) -> str:
        """Write the taxonomy as N-Triples."""
        return "".join(f"{s} {p} {o} .\n" for s, p, o in self.taxonomy(seed))


def _parts(rows: Ints) -> Iterator[Ints]:
    rows = np.asarray(rows, np.int64)
    return (rows[first : first + _BATCH] for first in range(0, len(rows), _BATCH))
