"""The advertising exchange: publishers, networks and advertisers, after Broder et al., WWW 2011.

    nodes    "pub-000042", then "net-000007", then "adv-000042"; networks and advertisers have filters
    edges    from publishers to networks and advertisers, between networks, from networks to advertisers
    events   visits to a publisher, with six attributes

An advertiser's subscription is its own id. `exchange_structure` draws the graph, `targeting` the filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.workloads.catalogue import EXCHANGE_SELECTIVITIES
from headgate.workloads.graphs.exchange_structure import (
    ADVERTISERS,
    EDGES,
    NETWORKS,
    PUBLISHERS,
    exchange_structure,
)
from headgate.workloads.graphs.graphs import NODE_SCHEMA, GraphWorkload, Structure, numbered
from headgate.workloads.graphs.targeting import targeting
from headgate.workloads.hashing import Key, integers, uniform
from headgate.workloads.records.specification import Attribute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.workloads.records.specification import Specification

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Texts = pa.Array[pa.Scalar[pa.lib.StringType]]

KINDS = ("publisher", "network", "advertiser")
SCALES = range(1, 6)
VOCABULARIES = range(16, 1_000_001)
SELECTIVITIES = dict(
    zip(EXCHANGE_SELECTIVITIES, (693, 1_336, 3_081, 7_064, NETWORKS + ADVERTISERS), strict=True)
)
"""Networks and advertisers whose filter holds for an event on average: the first row of Table 2."""

_ATTRIBUTES = tuple(
    Attribute(name, is_text, size, 0.0, 1.0)
    for name, is_text, size in (
        ("gender", True, 4),
        ("device", True, 8),
        ("slot", False, 16),
        ("hour", False, 24),
        ("topic", True, 50),
        ("age", False, 86),
    )
)
_PREFIXES = ("pub-", "net-", "adv-")
_DIGITS = 6


@dataclass(frozen=True)
class Exchange(GraphWorkload):
    """An exchange of `scale` times the size, with filters of one selectivity.

    The six attributes have 188 values together, or `vocabulary` values each.
    """

    scale: int = 1
    selectivity: str = "1/4"
    vocabulary: int | None = None

    def __post_init__(self) -> None:
        """Refuse what the paper does not have."""
        if self.scale not in SCALES:
            raise HeadgateError(f"the exchange has no scale {self.scale}; there are 1 to {SCALES[-1]}")
        if self.selectivity not in SELECTIVITIES:
            known = ", ".join(SELECTIVITIES)
            raise HeadgateError(f"the exchange has no selectivity {self.selectivity!r}; there are {known}")
        if self.vocabulary is not None and self.vocabulary not in VOCABULARIES:
            raise HeadgateError(f"vocabulary {self.vocabulary}: an attribute may have 16 to 1,000,000 values")

    @property
    def node_count(self) -> int:
        """Count the nodes."""
        return (PUBLISHERS + NETWORKS + ADVERTISERS) * self.scale

    @property
    def edge_count(self) -> int:
        """Count the edges."""
        return EDGES * self.scale

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """List the attributes of events, in the order of the specification."""
        if self.vocabulary is None:
            return _ATTRIBUTES
        return tuple(each._replace(size=self.vocabulary) for each in _ATTRIBUTES)

    @property
    def table(self) -> str:
        """Name the tables that values are drawn for."""
        return "exchange"

    def structure(self, seed: int) -> Structure:
        """Draw the graph, or return the one that was drawn for this seed; kinds are numbers in `KINDS`."""
        return exchange_structure(self.scale, seed)

    def ids(self, places: Ints) -> Texts:
        """Write the ids of nodes."""
        kind = self._kind(places)
        prefix = pa.array(_PREFIXES, pa.string()).take(pa.array(kind, pa.int64()))
        return numbered(prefix, places - self._first[kind], _DIGITS)

    def nodes(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the nodes with the given row numbers; passing a network costs something."""
        rows = np.asarray(rows, np.int64)
        kind, ids = self._kind(rows), self.ids(rows)
        drawn = np.round(uniform(Key(seed, "exchange nodes", "score", rows)), 6)
        columns: list[pa.Array[Any]] = [
            ids,
            pa.array(KINDS, pa.string()).take(pa.array(kind, pa.int64())),
            self.filters(rows, seed),
            ids.take(pa.array(np.arange(len(rows)), pa.int64(), mask=kind != 2)),
            pa.array(np.where(kind == 2, drawn, 0)),
            pa.array(np.where(kind == 1, drawn, 0)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=NODE_SCHEMA)

    def has_filter(self, rows: Ints) -> Bools:
        """Tell which nodes have a filter: networks and advertisers, unless everything is selected."""
        return (self._kind(rows) > 0) & (self.selectivity != "1")

    def specification(self, rows: Ints, seed: int) -> Specification:
        """Draw the filters of nodes, each of which must have one."""
        rows = np.asarray(rows, np.int64)
        self.refuse_without(rows)
        share = SELECTIVITIES[self.selectivity] / SELECTIVITIES["1"]
        return targeting(self.attributes, share, Key(seed, "exchange filters", "", rows))

    def sources(self, rows: Ints, seed: int) -> Ints:
        """Draw the publishers of the events with the given row numbers, all as likely."""
        return integers(Key(seed, "exchange events", "source", rows), 0, PUBLISHERS * self.scale)

    @property
    def _first(self) -> Ints:
        return np.array([0, PUBLISHERS, PUBLISHERS + NETWORKS]) * self.scale

    def _kind(self, places: Ints) -> Ints:
        return np.searchsorted(self._first, places, side="right") - 1
