"""How views that come can be fed: by those that are there, and by the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.plan.costs import costs_of
from headgate.plan.graphs.embeddings import embedding_graph
from headgate.plan.graphs.rewritability import find_rewritings
from headgate.plan.running.options import Option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.contents.views import Views
    from headgate.plan.model import Costs, Embeddings, Rewritings
    from headgate.plan.placement import Placement
    from headgate.plan.running.planner import Settings


def options_of(
    views: Views,
    settings: Settings,
    first: int,
    rows: NDArray[np.float64],
    sizes: NDArray[np.float64],
    placement: Placement,
) -> list[tuple[list[Option], Option]]:
    """Find how views from `first` on can be fed: by those before them, and by the source."""
    targets = np.arange(first, len(views), dtype=np.int32)
    found = _earlier(embedding_graph(views, targets=targets, threads=settings.threads))
    rewritings = find_rewritings(
        views.needed, found, settings.search, targets=targets, weights=sizes, threads=settings.threads
    ).rewritings
    costs = costs_of(rewritings, rows, sizes, settings.costs, placement)
    options: list[tuple[list[Option], Option]] = []
    for target in targets.tolist():
        ways = [
            _option(rewritings, costs, number) for number in range(*rewritings.offsets[target : target + 2])
        ]
        source = Option(
            (),
            float(costs.source_utilization[target]),
            float(costs.source_latency[target]),
            (float(costs.source_sent[target]),),
            (float(costs.source_sending[target]),),
            float(costs.source_joining[target]),
        )
        options.append((ways, source))
    return options


def renumbered(option: Option, numbers: NDArray[np.int64]) -> Option:
    """Name the inputs of a rewriting by their numbers among all views."""
    return option._replace(inputs=tuple(numbers[list(option.inputs)].tolist()))


def _earlier(embeddings: Embeddings) -> Embeddings:
    """Keep the sources that come before their target."""
    targets = np.repeat(np.arange(len(embeddings.offsets) - 1), np.diff(embeddings.offsets))
    kept = embeddings.sources < targets
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return embeddings._replace(
        offsets=before[embeddings.offsets], sources=embeddings.sources[kept], masks=embeddings.masks[kept]
    )


def _option(rewritings: Rewritings, costs: Costs, number: int) -> Option:
    place = slice(*rewritings.input_offsets[number : number + 2])
    return Option(
        tuple(rewritings.inputs[place].tolist()),
        float(costs.utilization[number]),
        float(costs.latency[number]),
        tuple(costs.sent[place].tolist()),
        tuple(costs.sending[place].tolist()),
        float(costs.joining[number]),
        costs.host_of(number),
    )
