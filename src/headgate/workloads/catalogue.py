"""The workloads by name. Their modules are imported when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.workloads.records.synthetic import Synthetic

    Ints = NDArray[np.int64]

SYNTHETIC = ("equality", "mixed", "ranges", "negations", "growth")
"""W-eq, then W-mix and its variants: those that are drawn as a specification."""

NAMES = ("advertising", *SYNTHETIC)

EXCHANGE_SELECTIVITIES = ("1/16", "1/8", "1/4", "1/2", "1")
SOCIAL_SELECTIVITIES = ("1/64", "1/16", "1/8", "1/4", "1/2", "1")
"""The part of the filters of a graph's nodes that an event matches; 1 is no filters."""

RANKING_SCORES = ("length", "random")
"""What boxes are ranked by if all of their intervals hold: the mean of their weights, or chance."""

RDF_NAMES = ("paper", "stars")
"""Graph patterns: those of the paper on G-ToPSS, and instances of classes with ranges."""

XMARK_LAWS = ("table-2", "wan")
"""How views over XMark's schema are drawn: as in Table 2 of the paper on Delta, or in its section 5.5."""


class Workload(Protocol):
    """What every workload has; a module may be one."""

    def subscriptions(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the subscriptions with the given row numbers."""

    def subscription_schema(self) -> pa.Schema:
        """Describe the columns of `subscriptions`."""

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""


def workload(name: str, total: int) -> Workload:
    """Find a workload by its name; `total` is how many subscriptions there will be."""
    if name == "advertising":
        from headgate.workloads.records import advertising

        return advertising
    return synthetic(name, total)


def synthetic(name: str, total: int) -> Synthetic:
    """Find a workload that is drawn as a specification.

    >>> synthetic("growth", 1_000_000).attributes[-1].size
    10
    """
    from headgate.workloads.records.equality import Equality
    from headgate.workloads.records.mixed import Mixed

    if name not in SYNTHETIC:
        raise HeadgateError(f"no specified workload is named {name!r}; there are {', '.join(SYNTHETIC)}")
    return Equality() if name == "equality" else Mixed(name, total)
