"""Headgate: content-based publish/subscribe.

The public names are loaded when they are first used, so that `headgate --help` and `headgate doctor` start
at once and work where a package is missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.core.event import Event
    from headgate.core.omission import Omission, Omissions
    from headgate.core.schema import Schema
    from headgate.core.subscription import Subscription
    from headgate.engine.dissemination import Dissemination
    from headgate.engine.engine import Engine
    from headgate.errors import (
        EventError,
        FilterError,
        GraphError,
        HeadgateError,
        MachineError,
        PlanError,
        SnapshotError,
        SubscriptionError,
        TableError,
        TaxonomyError,
    )
    from headgate.graph.index import GraphIndex
    from headgate.graph.model import Edge, Node
    from headgate.plan.running.making import Settings
    from headgate.plan.running.network import Network
    from headgate.ranking.boxes.index import BoxIndex
    from headgate.ranking.filters.index import RankedIndex
    from headgate.ranking.model import Best, Box, Interval
    from headgate.rdf.events.feeds import feed_events, read_feed
    from headgate.rdf.index.index import RdfIndex, RdfRoom
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.records.explain.explain import Explanation
    from headgate.records.index.index import RecordIndex
    from headgate.records.language.parse import parse_filter
    from headgate.records.language.printing import print_filter
    from headgate.xml.index.index import XmlIndex

__version__ = "0.1.0"

__all__ = [
    "Best",
    "Box",
    "BoxIndex",
    "Dissemination",
    "Edge",
    "Engine",
    "Event",
    "EventError",
    "Explanation",
    "FilterError",
    "GraphError",
    "GraphIndex",
    "HeadgateError",
    "Interval",
    "MachineError",
    "Network",
    "Node",
    "Omission",
    "Omissions",
    "Options",
    "PlanError",
    "RankedIndex",
    "RdfIndex",
    "RdfRoom",
    "RecordIndex",
    "Schema",
    "Settings",
    "SnapshotError",
    "Subscription",
    "SubscriptionError",
    "TableError",
    "Taxonomy",
    "TaxonomyError",
    "XmlIndex",
    "feed_events",
    "parse_filter",
    "print_filter",
    "read_feed",
]

_HOMES = {
    "Event": "headgate.core.event",
    "Schema": "headgate.core.schema",
    "Subscription": "headgate.core.subscription",
    "Edge": "headgate.graph.model",
    "Engine": "headgate.engine.engine",
    "GraphIndex": "headgate.graph.index",
    "Node": "headgate.graph.model",
    "Best": "headgate.ranking.model",
    "Box": "headgate.ranking.model",
    "BoxIndex": "headgate.ranking.boxes.index",
    "Interval": "headgate.ranking.model",
    "RankedIndex": "headgate.ranking.filters.index",
    "Omission": "headgate.core.omission",
    "Omissions": "headgate.core.omission",
    "Options": "headgate.rdf.language.model",
    "RdfIndex": "headgate.rdf.index.index",
    "feed_events": "headgate.rdf.events.feeds",
    "read_feed": "headgate.rdf.events.feeds",
    "RdfRoom": "headgate.rdf.index.index",
    "Taxonomy": "headgate.rdf.taxonomy.taxonomy",
    "Explanation": "headgate.records.explain.explain",
    "RecordIndex": "headgate.records.index.index",
    "parse_filter": "headgate.records.language.parse",
    "print_filter": "headgate.records.language.printing",
    "Dissemination": "headgate.engine.dissemination",
    "Network": "headgate.plan.running.network",
    "Settings": "headgate.plan.running.making",
    "XmlIndex": "headgate.xml.index.index",
}


def __getattr__(name: str) -> object:
    """Load a public name from its room."""
    if name not in __all__:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES.get(name, "headgate.errors")), name)
    globals()[name] = value
    return value
