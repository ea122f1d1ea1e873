"""Every evaluator gives what a plain search gives, over graphs of every shape."""

from __future__ import annotations

import random
from functools import partial

import pytest

from headgate.errors import GraphError
from headgate.graph.index import EVALUATORS, GraphIndex
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph, valid_text
from tests.graph.reference import reach_nodes, reach_subscriptions
from tests.seeds import seeds

pytestmark = pytest.mark.jit_off


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", seeds(12))
def test_all_evaluators_agree_with_the_reference(shape: str, seed: int) -> None:
    rng = random.Random(f"{shape}{seed}")
    drawn = draw_graph(rng, shape, rng.choice((1, 2, 5, 20, 70, 150)))
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    index.base.arrays.check()
    index.base.planes.check()
    for number in range(6):
        source = rng.choice(drawn.nodes).id
        event = draw_event(rng, str(source), number)
        valid = partial(valid_text, event)
        nodes = reach_nodes(drawn.nodes, drawn.edges, source, valid)
        served = reach_subscriptions(drawn.nodes, drawn.edges, drawn.subscriptions, source, valid)
        for evaluator in EVALUATORS:
            if evaluator.startswith("dag") and not index.base.acyclic:
                with pytest.raises(GraphError, match="has cycles"):
                    index.match(event, evaluator)
                continue
            assert index.nodes(event, evaluator) == sorted(nodes), evaluator
            assert index.match(event, evaluator) == sorted(served), evaluator
            found = list(index.reach(event, evaluator))
            assert sorted(found) == sorted(served), evaluator
            assert len(set(found)) == len(found), evaluator
