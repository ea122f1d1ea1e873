"""Readers that open a snapshot again and again while others replace it: how often, and what went wrong.

python -m tests.core.opening PLACE SECONDS      one reader, as a process of its own; prints one line of JSON
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headgate import Edge, Engine, Node, Subscription
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Callable

EVENT = {"source": "a", "age": 1_000_000, "topic": "x"}


def engine(number: int) -> Engine:
    """Build a graph with filters inside: its answers say which one it is, and that it is whole."""
    hung = [Subscription(f"s{number}-{each}", f"age > {number + each}", node="b") for each in range(3)]
    return Engine.build(hung, nodes=[Node("a"), Node("b", "topic = 'x'")], edges=[Edge("a", "b")])


def read(place: Path, over: Callable[[], bool]) -> tuple[int, list[str]]:
    """Open until it is over; returns how often, and what went wrong."""
    times, wrong = 0, []
    while not over():
        times += 1
        try:
            found = Engine.open(place).match(EVENT)
        except HeadgateError as error:
            wrong.append(str(error))
            continue
        if len(found) != 3 or len({str(each).partition("-")[0] for each in found}) != 1:
            wrong.append(f"a mixture: {found}")
    return times, wrong


if __name__ == "__main__":
    end = time.monotonic() + float(sys.argv[2])
    print(json.dumps(read(Path(sys.argv[1]), lambda: time.monotonic() > end)))
