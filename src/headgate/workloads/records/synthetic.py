"""Workloads that are drawn as a specification: their tables of subscriptions and events.

subscriptions   id "filter-0000123", filter: the specified filter, as Spark SQL
events          id "event-0000042", and the attributes, NULL where the event lacks one
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.workloads.hashing import Key
from headgate.workloads.records.drawing import numbers
from headgate.workloads.records.specification import texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.workloads.records.specification import Attribute, Specification

    Ints = NDArray[np.int64]
    Texts = pa.Array[pa.Scalar[pa.lib.StringType]]

SUBSCRIPTION_SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False), pa.field("filter", pa.string(), nullable=False)]
)


class Synthetic(ABC):
    """Rows of a workload; each depends on its number and the seed alone."""

    @property
    @abstractmethod
    def attributes(self) -> tuple[Attribute, ...]:
        """List the attributes, in the order of the specification."""

    @property
    @abstractmethod
    def table(self) -> str:
        """Name the tables that values are drawn for; variants of one name share their draws."""

    @abstractmethod
    def specification(self, rows: Ints, seed: int) -> Specification:
        """Draw the filters with the given row numbers."""

    def subscriptions(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the subscriptions with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        filters = texts(self.specification(rows, seed))
        return pa.RecordBatch.from_arrays([_ids("filter-", rows), filters], schema=SUBSCRIPTION_SCHEMA)

    def subscription_schema(self) -> pa.Schema:
        """Describe the columns of `subscriptions`."""
        return SUBSCRIPTION_SCHEMA

    def numbers(self, rows: Ints, seed: int) -> Ints:
        """Draw events as numbers: a row each, a column for each attribute, -1 where the event lacks it."""
        rows = np.asarray(rows, np.int64)
        return numbers(self.attributes, lambda column: Key(seed, f"{self.table} events", column, rows))

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        columns: list[pa.Array[Any]] = [_ids("event-", rows)]
        for attribute, drawn in zip(self.attributes, self.numbers(rows, seed).T, strict=True):
            values: pa.Array[Any] = pa.array(drawn, mask=drawn < 0)
            columns.append(_glue("v", pc.cast(values, pa.string())) if attribute.is_text else values)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema())

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""
        fields = [
            pa.field(each.name, pa.string() if each.is_text else pa.int64()) for each in self.attributes
        ]
        return pa.schema([pa.field("id", pa.string(), nullable=False), *fields])


def _ids(prefix: str, rows: Ints) -> pa.Array[Any]:
    return _glue(prefix, pc.utf8_lpad(pc.cast(pa.array(rows), pa.string()), 7, "0"))


def _glue(prefix: str, texts: Texts) -> Texts:
    before, between = (pa.repeat(pa.scalar(text), len(texts)) for text in (prefix, ""))
    return pc.binary_join_element_wise(before, texts, between)
