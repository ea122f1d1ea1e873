"""The paper's integer program as printed (Table 1), for another solver: a variable for each edge, and (3).

It shares nothing with the project's own program but the instance, so that the model is checked as well as the
solver. OR-tools runs in a process of its own: it and HiGHS in one process have disturbed each other.

    python -m tests.plan.second_solver < instances.json > optima.json
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.plan.model import Capacities, Costs, Rewritings


def optima(instances: list[tuple[Rewritings, Costs, Capacities]]) -> list[int | None]:
    """Solve instances with whole numbers as costs: the least utilization of each, None if it has no plan."""
    sent = json.dumps([_plain(*instance) for instance in instances])
    done = subprocess.run(
        [sys.executable, "-m", "tests.plan.second_solver"],
        input=sent,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    answers: list[int | None] = json.loads(done.stdout)
    return answers


def _plain(rewritings: Rewritings, costs: Costs, capacities: Capacities) -> dict[str, Any]:
    parts = {**rewritings._asdict(), **costs._asdict(), **capacities._asdict()}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in parts.items()}


def _optimum(given: dict[str, Any]) -> int | None:
    """Write the program of Table 1 edge by edge, and solve it."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    utilization: list[Any] = []
    loads: dict[tuple[str, int], list[Any]] = {}

    def load(what: str, site: int, amount: float, edge: Any) -> None:
        loads.setdefault((what, site), []).append(round(amount) * edge)

    for view, site in enumerate(given["sites"]):
        into = []
        for number in range(given["offsets"][view], given["offsets"][view + 1]):
            out = model.new_bool_var("")
            into.append(out)
            utilization.append(round(given["utilization"][number]) * out)
            load("cpu", site, given["joining"][number], out)
            edges = []
            for place in range(given["input_offsets"][number], given["input_offsets"][number + 1]):
                edge = model.new_bool_var("")
                edges.append(edge)
                feeder = given["sites"][given["inputs"][place]]
                if feeder == site:
                    continue
                load("fan_out", feeder, 1, edge)
                load("bandwidth", feeder, given["sent"][place], edge)
                load("cpu", feeder, given["sending"][place], edge)
            model.add(sum(edges) == out * len(edges))  # equation (3)
        out, edge = model.new_bool_var(""), model.new_bool_var("")
        into.append(out)
        utilization.append(round(given["source_utilization"][view]) * out)
        load("cpu", site, given["source_joining"][view], out)
        load("source_fan_out", 0, 1, edge)
        load("source_bandwidth", 0, given["source_sent"][view], edge)
        load("source_cpu", 0, given["source_sending"][view], edge)
        model.add(edge == out)  # equation (3)
        model.add(sum(into) == 1)  # equation (2)
    for (what, site), terms in loads.items():
        bound = given[what] if what.startswith("source") else given[what][site]
        if not math.isinf(bound):
            model.add(sum(terms) <= math.floor(bound))  # equation (4)
    model.minimize(sum(utilization))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL
    return round(solver.objective_value)


if __name__ == "__main__":
    json.dump([_optimum(given) for given in json.load(sys.stdin)], sys.stdout)
