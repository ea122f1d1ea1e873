"""Statistics of workloads of XML, beside those of Table 2 of Karanasos et al., VLDB 2014."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.xml.events.reading import read_document
from headgate.xml.index.columns import compile_all
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.model import ANY, DESCENDANT
from headgate.xml.language.printing import print_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.workloads.xml.xmark import XMark
    from headgate.xml.language.model import Pattern

__all__ = ["PAPER_VIEWS", "measure_views", "measure_xml"]

PAPER_VIEWS = {
    "predicates a view": 0.72,
    "predicates a node": 0.11,
    "nodes a view": 6.13,
    "return nodes a view": 2.52,
}


def measure_views(patterns: Sequence[Pattern]) -> dict[str, float]:
    """Measure what Table 2 says of views."""
    nodes = [node for pattern in patterns for node in pattern.nodes]
    tests = sum(len(node.tests) for node in nodes)
    return {
        "predicates a view": tests / len(patterns),
        "predicates a node": tests / len(nodes),
        "nodes a view": len(nodes) / len(patterns),
        "return nodes a view": sum(bool(node.returns) for node in nodes) / len(patterns),
    }


def measure_xml(workload: XMark, views: int, events: int, seed: int) -> dict[str, float]:
    """Measure views, documents, and how many of the views each document answers."""
    patterns = workload.views(views, seed)
    nodes = [node for pattern in patterns for node in pattern.nodes]
    texts = workload.documents(np.arange(events), seed)
    documents = [read_document(text) for text in texts]
    index = XmlIndex.from_columns(
        Ids.from_arrow(pa.array(np.arange(views))), TextPool.build(()), compile_all(patterns)
    )
    answered = np.array([len(index.match_document(each)) for each in documents])
    return {
        **measure_views(patterns),
        "unique views, %": 100 * len({*patterns}) / views,
        "// by nodes, %": 100 * sum(node.axis == DESCENDANT for node in nodes) / len(nodes),
        "* by nodes, %": 100 * sum(node.label == ANY for node in nodes) / len(nodes),
        "characters a view": float(np.mean([len(print_pattern(each)) for each in patterns[:1_000]])),
        "bytes a document": float(np.mean([len(text.encode()) for text in texts])),
        "nodes a document": float(np.mean([len(each.labels) for each in documents])),
        "views that a document answers, %": 100 * float(answered.mean()) / views,
        "least, %": 100 * float(answered.min()) / views,
        "most, %": 100 * float(answered.max()) / views,
    }
