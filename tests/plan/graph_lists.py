"""Graphs as lists, for comparing and counting by eye."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.plan.model import Embeddings, Rewritings


def same(some: Embeddings | Rewritings, others: Embeddings | Rewritings) -> bool:
    """Tell whether two graphs have the same arrays, of the same types."""
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(some, others, strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def rows_of(graph: Embeddings) -> list[dict[int, int]]:
    """List the sources of each target with their masks."""
    return [
        dict(zip(graph.sources[a:b].tolist(), graph.masks[a:b].tolist(), strict=True))
        for a, b in pairwise(graph.offsets.tolist())
    ]


def edges_of(graph: Embeddings) -> list[tuple[int, int]]:
    """List pairs of a source and a target."""
    return [(source, target) for target, row in enumerate(rows_of(graph)) for source in row]


def inputs_of(found: Rewritings) -> list[list[tuple[int, ...]]]:
    """List the rewritings of each view as tuples of inputs."""
    sets = [tuple(found.inputs[a:b].tolist()) for a, b in pairwise(found.input_offsets.tolist())]
    return [sets[a:b] for a, b in pairwise(found.offsets.tolist())]


def has_cycle(embeddings: Embeddings) -> bool:
    """Tell whether some vertices reach each other, by their strongly connected components."""
    vertices = len(embeddings.offsets) - 1
    matrix = csr_matrix(
        (np.ones(len(embeddings.sources), np.int8), embeddings.sources, embeddings.offsets),
        shape=(vertices, vertices),
    )
    return vertices > 0 and int(connected_components(matrix, connection="strong")[0]) < vertices
