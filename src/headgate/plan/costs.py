"""The cost model: from what views give for a document to what each rewriting costs.

Known of each view are the rows and bytes that it gives for a document, on average. Then, for a rewriting of
view v over the inputs u, each on a site of its own:

    sent         each u sends its whole result                     sizes[u]
    sending      work of that, at the site of u                    sending * sizes[u]
    joining      work at the site of v: rows read and written      joining * (sum of rows[u] + rows[v])
    utilization  byte * (sum of sent) + (sum of sending) + joining
    latency      hop + (greatest sizes[u]) / link + joining / speed     inputs send at the same time

and if the source feeds v:

    source_sent          what v gives                              sizes[v]
    source_sending       extracting it, then sending               extracting + sending * sizes[v]
    source_joining       nothing is left to do at v                0
    source_utilization   byte * source_sent + source_sending
    source_latency       hop + sizes[v] / link

The time in which the source matches a document against all it feeds is the same for all, and left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import PlanError
from headgate.plan.model import Costs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from headgate.plan.model import Rewritings


@dataclass(frozen=True, slots=True)
class Settings:
    """What things cost. Work has a unit of its own; latencies are in milliseconds.

    The source is who everybody depends on: `extracting`, the work of feeding one more view by it, is what
    a rewriting has to be cheaper than.
    """

    byte: float = 0.001
    sending: float = 0.0001
    joining: float = 0.01
    extracting: float = 100.0
    hop: float = 10.0
    link: float = 1000.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be: less than nothing, or no speed at all."""
        for field in fields(self):
            value = getattr(self, field.name)
            divides = field.name in {"link", "speed"}
            if not (math.isfinite(value) and (value > 0 if divides else value >= 0)):
                least = "more than 0" if divides else "0 or more"
                raise PlanError(f"the cost setting {field.name} is {value}: it is {least}, and finite")


def costs_of(
    rewritings: Rewritings, rows: ArrayLike, sizes: ArrayLike, settings: Settings | None = None
) -> Costs:
    """Compute what all rewritings cost, from rows and bytes that each view gives for a document."""
    settings = settings or Settings()
    views = len(rewritings.offsets) - 1
    many = _amounts(rows, views, "rows")
    large = _amounts(sizes, views, "sizes")
    firsts = rewritings.input_offsets[:-1]
    if (np.diff(rewritings.input_offsets) < 1).any():
        raise PlanError("a rewriting has no inputs: each needs one at least")
    sent = large[rewritings.inputs]
    sending = settings.sending * sent
    if len(firsts):
        sent_in_all = np.add.reduceat(sent, firsts)
        largest = np.maximum.reduceat(sent, firsts)
        read = np.add.reduceat(many[rewritings.inputs], firsts)
    else:
        sent_in_all = largest = read = np.empty(0, dtype=np.float64)
    owners = np.repeat(np.arange(views), np.diff(rewritings.offsets))
    joining = settings.joining * (read + many[owners])
    source_sending = settings.extracting + settings.sending * large
    return Costs(
        utilization=(settings.byte + settings.sending) * sent_in_all + joining,
        latency=settings.hop + largest / settings.link + joining / settings.speed,
        sent=sent,
        sending=sending,
        joining=joining,
        source_utilization=settings.byte * large + source_sending,
        source_latency=settings.hop + large / settings.link,
        source_sent=large,
        source_sending=source_sending,
        source_joining=np.zeros(views, dtype=np.float64),
    )


def _amounts(given: ArrayLike, views: int, what: str) -> NDArray[np.float64]:
    amounts = np.array(given, dtype=np.float64)
    if amounts.shape != (views,):
        raise PlanError(
            f"{what} of {amounts.size} views are given, there are {views}: one for each is needed"
        )
    if not (np.isfinite(amounts) & (amounts >= 0)).all():
        view = int(np.flatnonzero(~(np.isfinite(amounts) & (amounts >= 0)))[0])
        raise PlanError(f"{what} of view {view} are {amounts[view]}: they are 0 or more, and finite")
    return amounts
