"""An order of views in which inputs come first, of a whole rewritability graph or of one plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.errors import PlanError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.plan.model import Plan, Rewritings


def order_of(rewritings: Rewritings) -> NDArray[np.int32]:
    """Order views such that everything any rewriting uses comes before it; refuses a graph with a cycle."""
    bounds = rewritings.input_offsets[rewritings.offsets]
    return _ordered(bounds[:-1], bounds[1:], rewritings.inputs, "the rewritability graph")


def plan_order(plan: Plan, rewritings: Rewritings) -> NDArray[np.int32]:
    """Order views such that inputs of chosen rewritings come before; refuses a plan with a cycle."""
    begins, ends = chosen_inputs(plan, rewritings)
    return _ordered(begins, ends, rewritings.inputs, "the plan")


def chosen_inputs(plan: Plan, rewritings: Rewritings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tell where among `inputs` those of each view begin and end; none if the source feeds it."""
    fed = plan.chosen >= 0
    begins = np.where(fed, rewritings.input_offsets[np.where(fed, plan.chosen, 0)], 0)
    ends = np.where(fed, rewritings.input_offsets[np.where(fed, plan.chosen + 1, 0)], 0)
    return begins.astype(np.int64), ends.astype(np.int64)


def _ordered(
    begins: NDArray[np.int64], ends: NDArray[np.int64], inputs: NDArray[np.int32], what: str
) -> NDArray[np.int32]:
    order = np.empty(len(begins), dtype=np.int32)
    entangled = _order(
        np.ascontiguousarray(begins, dtype=np.int64),
        np.ascontiguousarray(ends, dtype=np.int64),
        np.ascontiguousarray(inputs, dtype=np.int32),
        order,
    )
    if entangled >= 0:
        raise PlanError(
            f"{what} has a cycle through view {entangled}: a view may not feed itself, by any way"
        )
    return order


@kernel
def _order(
    begins: NDArray[np.int64], ends: NDArray[np.int64], inputs: NDArray[np.int32], order: NDArray[np.int32]
) -> int:
    """Walk to the inputs first; a view enters the order behind them. Returns -1, or a view on a cycle."""
    views = len(begins)
    seen = np.zeros(views, dtype=np.int8)  # 0 not yet, 1 on the stack, 2 in the order
    stack = np.empty(views, dtype=np.int32)
    at = np.empty(views, dtype=np.int64)  # how far the inputs of the view on that place of the stack are done
    done = 0
    for root in range(views):
        if seen[root] != 0:
            continue
        depth = 0
        stack[0] = root
        at[0] = begins[root]
        seen[root] = 1
        while depth >= 0:
            view = stack[depth]
            if at[depth] < ends[view]:
                below = inputs[at[depth]]
                at[depth] += 1
                if seen[below] == 1:
                    return int(below)
                if seen[below] == 0:
                    seen[below] = 1
                    depth += 1
                    stack[depth] = below
                    at[depth] = begins[below]
            else:
                seen[view] = 2
                order[done] = view
                done += 1
                depth -= 1
    return -1
