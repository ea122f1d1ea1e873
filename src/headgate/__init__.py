"""Headgate: content-based publish/subscribe.

The public names are loaded when they are first used, so that `headgate --help` and `headgate doctor` start
at once and work where a package is missing. Errors are in `headgate.errors`; indexes, parsers and readers of
feeds are in their rooms.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headgate.core import __version__ as __version__

if TYPE_CHECKING:
    from headgate.client.asynchronous import AsyncClient
    from headgate.client.client import Client
    from headgate.core.event import Event
    from headgate.core.omission import Omission, Omissions
    from headgate.core.ranks import Best
    from headgate.core.schema import Schema
    from headgate.core.subscription import Subscription
    from headgate.engine.dissemination import Dissemination
    from headgate.engine.engine import Engine
    from headgate.graph.model import Edge, Node
    from headgate.plan.running.planner import Settings
    from headgate.plan.running.saved_plan import SavedPlan
    from headgate.ranking.boxes.index import BoxIndex
    from headgate.ranking.model import Box, Interval
    from headgate.rdf.language.model import SUBCLASS, Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.records.explain.explain import Explanation

__all__ = [
    "SUBCLASS",
    "AsyncClient",
    "Best",
    "Box",
    "BoxIndex",
    "Client",
    "Dissemination",
    "Edge",
    "Engine",
    "Event",
    "Explanation",
    "Interval",
    "Node",
    "Omission",
    "Omissions",
    "Options",
    "SavedPlan",
    "Schema",
    "Settings",
    "Subscription",
    "Taxonomy",
]

_HOMES = {
    "AsyncClient": "headgate.client.asynchronous",
    "Client": "headgate.client.client",
    "Event": "headgate.core.event",
    "Schema": "headgate.core.schema",
    "Subscription": "headgate.core.subscription",
    "Edge": "headgate.graph.model",
    "Engine": "headgate.engine.engine",
    "Node": "headgate.graph.model",
    "Best": "headgate.core.ranks",
    "Box": "headgate.ranking.model",
    "BoxIndex": "headgate.ranking.boxes.index",
    "Interval": "headgate.ranking.model",
    "Omission": "headgate.core.omission",
    "Omissions": "headgate.core.omission",
    "Options": "headgate.rdf.language.model",
    "SUBCLASS": "headgate.rdf.language.model",
    "Taxonomy": "headgate.rdf.taxonomy.taxonomy",
    "Explanation": "headgate.records.explain.explain",
    "Dissemination": "headgate.engine.dissemination",
    "SavedPlan": "headgate.plan.running.saved_plan",
    "Settings": "headgate.plan.running.planner",
}


def __getattr__(name: str) -> object:
    """Load a public name from its room."""
    if name not in __all__:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
