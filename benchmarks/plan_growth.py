"""A network that grows: what it takes to subscribe, beside laying out all views anew."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from benchmarks.measure import best, once
from benchmarks.results import Result
from headgate import Dissemination, Event, Subscription
from headgate.core.subscription import XPATH
from headgate.engine.views import views_of
from headgate.workloads.xml.xmark import XMark

SEED = 1
MORE = 20
"""Subscriptions that come one after the other."""


def measure_growth(count: int) -> list[Result]:
    """Subscribe some more views, one at a time."""
    texts = XMark().subscriptions(np.arange(count + MORE), SEED)["filter"].to_pylist()
    given = [Subscription(number, str(text), XPATH) for number, text in enumerate(texts)]
    event = Event("e", XMark().documents(np.arange(1), SEED)[0], content_type="xml")
    network = Dissemination.build(given[:count], [event])
    network.subscribe(given[count])
    took = sorted(once(partial(network.subscribe, each), time.process_time) for each in given[count + 1 :])
    anew = best(lambda: views_of(given), 1, time.process_time)
    section = f"A network that grows, {count:,} views, CPU time"
    return [
        Result(
            "subscribe one more, in the middle",
            took[len(took) // 2] * 1e3,
            "ms",
            anew * 1e3,
            "all views laid out anew",
            section=section,
        )
    ]
