"""The names of the rooms, as snapshots and indexes carry them: known without loading a room."""

from __future__ import annotations

from importlib import import_module
from typing import Final

RECORDS: Final = "records"
RDF: Final = "rdf"
XML: Final = "xml"
GRAPH: Final = "graph"
RANKING: Final = "ranking"
FILTERS: Final = "filters"
"""The snapshot of the filters, inside that of a graph or of a ranking."""
CLAUSES: Final = "clauses"
"""The snapshot of the clauses, inside that of a graph or of a ranking."""
GRAPH_SHARDS: Final = "shards"
RANKING_SHARDS: Final = "ranking-shards"
FILTER_SHARDS: Final = "filter-shards"
MIXED_SIGN: Final = "+"
"""What stands between the names of kinds of content that are held together: `records+rdf`."""


def discover() -> None:
    """Find the kinds of content that others have added. By its name: the registry stands above this room."""
    import_module("headgate.contents.registry").kinds()
