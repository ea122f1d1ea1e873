"""The advertising exchange: publishers, networks and advertisers, after Broder et al., WWW 2011.

    nodes    "pub-000042", then "net-000007", then "adv-000042"; networks and advertisers have filters
    edges    from publishers to networks and advertisers, between networks, from networks to advertisers
    events   visits to a publisher, with six attributes

An advertiser's subscription is its own id. `targeting` draws the filters.

The graph, after Table 1 and Figure 11:

                     60,011 publishers
        ┌────────────┬─────────────┬─────────────┬────────────┐
        ▼            ▼             ▼             ▼            │
    36 before ──► 126 core ──► 70 behind      50 aside        │
        │       (a component)  (4 a ring)        │            │
        ▼            ▼             ▼             ▼            ▼
       240         3,470         2,301          480         4,313     advertisers

The paper's means leave little room. Of 87,799 edges, networks have 224.4 in and 42.1 out on average, so with
17,000 edges past the networks there are 58,927 into them from publishers, 4,354 between them and 7,518 from
them to advertisers. Every node has an edge on each side that it may. A publisher reaches some 5,970 nodes
if it reaches the core, and few if not; hence 80 % of them do. Edges past the networks go to advertisers of
all parts. `scale` multiplies all numbers, so degrees stay.

The rest was chosen to come near Table 2, which docs/workloads.md compares. Networks that have many publishers
have many advertisers. Two in five advertisers that the core reaches have only networks behind it, which have
one or two edges from the core each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.workloads.catalogue import EXCHANGE_SELECTIVITIES
from headgate.workloads.columns import Key, bits, integers, numbered, uniform, zipf_rank
from headgate.workloads.graphs.graphs import NODE_SCHEMA, GraphWorkload, Structure, fill
from headgate.workloads.graphs.targeting import targeting
from headgate.workloads.records.specification import Attribute

if TYPE_CHECKING:
    from headgate.workloads.columns import Bools, Ints, Texts
    from headgate.workloads.records.specification import Specification


PUBLISHERS, NETWORKS, ADVERTISERS, EDGES = 60_011, 282, 10_804, 87_799

_PARTS = {
    "inside": 45_780,
    "upstream": 2_410,
    "outside": 4_000,
    "direct": 7_821,
    "core": 126,
    "ring": 4,
    "behind": 66,
    "before": 36,
    "aside": 50,
    "reached": 3_470,
    "further": 2_301,
    "early": 240,
    "apart": 480,
    "alone": 4_313,
}
"""Nodes by part: publishers by where their first edge goes, networks, advertisers by who has them."""
_EDGES = {
    "core": 4_160,
    "ring": 4,
    "core behind": 90,
    "before core": 100,
    "reached": 3_864,
    "further": 2_576,
    "early": 378,
    "apart": 700,
    "inside": 50_530,
    "upstream": 2_660,
    "outside": 5_737,
    "past": 17_000,
}
"""Edges by what they join, in the order in which they are drawn."""
_HUBS, _SPREAD = 1.0, 0.6
"""Exponents of Zipf's law for networks: within the core's part of the graph, and elsewhere."""


@lru_cache(maxsize=4)
def exchange_structure(scale: int, seed: int) -> Structure:
    """Draw the graph of `scale` times the size."""
    kinds = np.array([PUBLISHERS, NETWORKS, ADVERTISERS]) * scale
    edges = _Edges(scale, seed)
    edges.draw()
    source, target = np.divmod(np.concatenate(edges.found), edges.size)
    # So that neither places nor ids tell to which part a node belongs.
    place_of = np.concatenate(
        [
            first + np.argsort(bits(Key(seed, "exchange", f"shuffle {kind}", np.arange(count))))
            for kind, (first, count) in enumerate(zip(np.cumsum(kinds) - kinds, kinds, strict=True))
        ]
    )
    source, target = np.divmod(np.sort(place_of[source] * edges.size + place_of[target]), edges.size)
    return Structure.frozen(np.repeat(np.arange(3), kinds), source, target)


class _Choice(NamedTuple):
    """The nodes that one end of an edge is drawn from; with an exponent, the first of them most often."""

    nodes: Ints
    exponent: float = 0.0

    def draw(self, key: Key, draw: int) -> Ints:
        return self.nodes[zipf_rank(key, len(self.nodes), self.exponent, draw)]


class _Edges:
    """Edges as they are drawn, each as source * size + target."""

    def __init__(self, scale: int, seed: int) -> None:
        self.scale, self.seed = scale, seed
        ends = np.cumsum(list(_PARTS.values())) * scale
        self.size = int(ends[-1])
        self.parts = dict(zip(_PARTS, np.split(np.arange(self.size), ends[:-1]), strict=True))
        self.found: list[Ints] = []

    def draw(self) -> None:
        """Draw all edges, part by part."""
        part = self.parts
        core, aside = (_Choice(part[name], _SPREAD) for name in ("core", "aside"))
        before = _Choice(part["before"])
        core_hubs, before_hubs = core._replace(exponent=_HUBS), before._replace(exponent=_HUBS)
        behind = _Choice(self._join("behind", "ring"), _HUBS)
        for name in ("core", "ring"):
            even = _Choice(part[name])
            self._add(name, even, even, part[name], np.roll(part[name], 1))
        self._add("core behind", core, behind._replace(exponent=0.0), None, behind.nodes)
        self._add("before core", before, core, before.nodes, None)
        for name, holders, each in (
            ("reached", core_hubs, None),
            ("further", behind, behind.nodes),
            ("early", before, None),
            ("apart", aside, aside.nodes),
        ):
            self._add(name, holders, _Choice(part[name]), each, part[name])
        self._add("inside", _Choice(part["inside"]), core_hubs, part["inside"], core.nodes)
        self._add("upstream", _Choice(part["upstream"]), before_hubs, part["upstream"], before.nodes)
        others = _Choice(np.concatenate((behind.nodes, aside.nodes)), _SPREAD)
        self._add("outside", _Choice(self._join("outside", "direct")), others, part["outside"], others.nodes)
        publishers = _Choice(self._join("inside", "upstream", "outside", "direct"))
        advertisers = _Choice(self._join("reached", "further", "early", "apart", "alone"))
        self._add("past", publishers, advertisers, part["direct"], part["alone"])

    def _join(self, *names: str) -> Ints:
        return np.concatenate([self.parts[name] for name in names])

    def _add(
        self, name: str, sources: _Choice, targets: _Choice, from_each: Ints | None, to_each: Ints | None
    ) -> None:
        """Draw edges, the first of them from and to each of the given nodes."""

        def ends(wanted: int, turn: int) -> tuple[Ints, Ints]:
            key = Key(self.seed, "exchange", name, np.arange(wanted))
            return sources.draw(key, 2 * turn), targets.draw(key, 2 * turn + 1)

        def draw(wanted: int, turn: int) -> Ints:
            source, target = ends(wanted, turn + 1)
            return np.where(source == target, -1, source * self.size + target)

        source, target = ends(max(len(each) for each in (from_each, to_each) if each is not None), 0)
        if from_each is not None:
            source[: len(from_each)] = from_each
        if to_each is not None:
            target[: len(to_each)] = to_each
        self.found.append(fill(source * self.size + target, _EDGES[name] * self.scale, draw))


KINDS = ("publisher", "network", "advertiser")
_PUBLISHER, _NETWORK, _ADVERTISER = range(3)
SCALES = range(1, 6)
VOCABULARIES = range(16, 1_000_001)
SELECTIVITIES = dict(
    zip(EXCHANGE_SELECTIVITIES, (693, 1_336, 3_081, 7_064, NETWORKS + ADVERTISERS), strict=True)
)
"""Networks and advertisers whose filter holds for an event on average: the first row of Table 2."""

_ATTRIBUTES = (
    Attribute("gender", True, 4),
    Attribute("device", True, 8),
    Attribute("slot", False, 16),
    Attribute("hour", False, 24),
    Attribute("topic", True, 50),
    Attribute("age", False, 86),
)
_PREFIXES = ("pub-", "net-", "adv-")
_DIGITS = 6


@dataclass(frozen=True)
class Exchange(GraphWorkload):
    """An exchange of `scale` times the size, with filters of one selectivity.

    The six attributes have 188 values together, or `vocabulary` values each.
    """

    table = "exchange"

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
            ids.take(pa.array(np.arange(len(rows)), pa.int64(), mask=kind != _ADVERTISER)),
            pa.array(np.where(kind == _ADVERTISER, drawn, 0)),
            pa.array(np.where(kind == _NETWORK, drawn, 0)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=NODE_SCHEMA)

    def has_filter(self, rows: Ints) -> Bools:
        """Tell which nodes have a filter: networks and advertisers, unless everything is selected."""
        return (self._kind(rows) > _PUBLISHER) & (self.selectivity != "1")

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
