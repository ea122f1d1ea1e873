"""The paper's Figure 3: four views, seven rewritings counting the source, and its program row by row.

    v1   from the source, or from v2 and v3            x10, x11
    v2   from the source                               x20
    v3   from the source                               x30
    v4   from the source, from v2 and v3, or from v1   x40, x41, x42

The printed program mixes up two superscripts of v4 (in equation 3, v1 feeds "x41" on one line and v2 with v3
feed it on the next); the figure and equation (4) have v1 feed the rewriting 2.
"""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from headgate.plan.model import SOURCE, Capacities, Costs
from headgate.plan.program.columns import FAN_OUT, build, matrix_of
from headgate.plan.program.infeasible import InfeasibleError
from headgate.plan.program.program import solve
from tests.plan.instances import rewritings_of
from tests.seeds import seeds

pytestmark = pytest.mark.jit_off

FIGURE = rewritings_of([[(1, 2)], [], [], [(1, 2), (0,)]])
NAMES = ["x11", "x10", "x20", "x30", "x41", "x42", "x40"]
"""The columns in the program's order: the source is the last of each view."""


def costs_of(utilization: dict[str, float]) -> Costs:
    """Give each of the seven rewritings its utilization."""
    rest = np.zeros(5)
    three, four = np.zeros(3), np.zeros(4)
    return Costs(
        np.array([utilization[name] for name in ("x11", "x41", "x42")]),
        three,
        rest,
        rest,
        three,
        np.array([utilization[name] for name in ("x10", "x20", "x30", "x40")]),
        four,
        four,
        four,
        four,
    )


def bounds_of(v1: float, v2: float, v3: float, v4: float, source: float) -> Capacities:
    """Bound the fan-outs, each view at a site of its own."""
    free = np.full(4, math.inf)
    return Capacities(
        np.arange(4, dtype=np.int32), np.array([v1, v2, v3, v4]), free, free, source, math.inf, math.inf
    )


def test_the_program_is_the_printed_one() -> None:
    prices = dict(zip(NAMES, (11.0, 10.0, 20.0, 30.0, 41.0, 42.0, 40.0), strict=True))
    costs = costs_of(prices)
    program = build(FIGURE, costs, bounds_of(5, 6, 7, 8, 9), costs.utilization, costs.source_utilization)
    assert program.costs.tolist() == [prices[name] for name in NAMES]
    assert program.resources.tolist() == [FAN_OUT] * 5
    matrix, _ = matrix_of(program, whole=True)
    rows: list[dict[str, float]] = [{} for _ in matrix.lower]
    for column, name in enumerate(NAMES):
        for place in range(matrix.starts[column], matrix.starts[column + 1]):
            rows[matrix.rows[place]][name] = float(matrix.amounts[place])
    # Equation (1).
    assert (matrix.whole, matrix.most.tolist()) == (7, [1.0] * 7)
    # Equation (2).
    assert rows[:4] == [
        {"x10": 1.0, "x11": 1.0},
        {"x20": 1.0},
        {"x30": 1.0},
        {"x40": 1.0, "x41": 1.0, "x42": 1.0},
    ]
    assert matrix.lower[:4].tolist() == matrix.upper[:4].tolist() == [1.0] * 4
    # Equation (4), with the edges' variables replaced by equation (3).
    assert rows[4:] == [
        {"x42": 1.0},
        {"x11": 1.0, "x41": 1.0},
        {"x11": 1.0, "x41": 1.0},
        {},
        {"x10": 1.0, "x20": 1.0, "x30": 1.0, "x40": 1.0},
    ]
    assert matrix.upper[4:].tolist() == [5.0, 6.0, 7.0, 8.0, 9.0]
    assert np.isneginf(matrix.lower[4:]).all()


def printed_optimum(prices: dict[str, float], v1: int, v2: int, v3: int, source: int) -> float:
    """Try all values of the seven variables in the printed equations."""
    found = math.inf
    for values in itertools.product((0, 1), repeat=7):
        x = dict(zip(NAMES, values, strict=True))
        if (
            x["x10"] + x["x11"] == 1
            and x["x20"] == 1
            and x["x30"] == 1
            and x["x40"] + x["x41"] + x["x42"] == 1
            and x["x42"] <= v1
            and x["x11"] + x["x41"] <= v2
            and x["x11"] + x["x41"] <= v3
            and x["x10"] + x["x20"] + x["x30"] + x["x40"] <= source
        ):
            found = min(found, sum(prices[name] * x[name] for name in NAMES))
    return found


@pytest.mark.parametrize("seed", seeds(40))
def test_the_optimum_is_that_of_the_printed_equations(seed: int) -> None:
    rng = random.Random(seed)
    prices = {name: float(rng.randint(1, 20)) for name in NAMES}
    v1, v2, v3, source = rng.randint(0, 1), rng.randint(0, 2), rng.randint(0, 2), rng.randint(1, 4)
    expected = printed_optimum(prices, v1, v2, v3, source)
    try:
        solution = solve(FIGURE, costs_of(prices), bounds_of(v1, v2, v3, 0, source))
    except InfeasibleError:
        assert math.isinf(expected)
    else:
        assert solution.utilization == expected


def test_bounds_decide_who_feeds_whom() -> None:
    prices = dict(zip(NAMES, (1.0, 9.0, 1.0, 1.0, 1.0, 2.0, 9.0), strict=True))
    free = solve(FIGURE, costs_of(prices), bounds_of(1, 2, 2, 0, 4))
    assert free.plan.chosen.tolist() == [0, SOURCE, SOURCE, 1]
    tight = solve(FIGURE, costs_of(prices), bounds_of(1, 1, 1, 0, 4))
    assert tight.plan.chosen.tolist() == [0, SOURCE, SOURCE, 2]
