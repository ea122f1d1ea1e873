"""Whole languages: what functions and arithmetic in filters of records cost, SPARQL, XPath and importers.

W-mix as it is, and W-mix of which a tenth of the filters have a clause that asks the same of a function: a
range of a number becomes one of an expression of it, an equality becomes one of the text in upper case. So
both match the same, which is checked, but for clauses over two attributes. Times are of the processor, the
best of some rounds.
"""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import languages_importers, languages_sparql, languages_xpath
from benchmarks.results import Result
from headgate import Event, Subscription
from headgate.records.index.index import RecordIndex
from headgate.workloads.records.mixed import Mixed

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 1
GOAL = 1.5
EACH = "µs an event, CPU"
SECTION = "W-mix, of which a tenth of the filters have a function or arithmetic: {:,} filters"


class Plan(NamedTuple):
    """What a size measures: filters, events in a table, events one by one, and rounds."""

    filters: int
    events: int
    single: int
    rounds: int


SIZES = {"quick": Plan(2_000, 200, 20, 1), "full": Plan(100_000, 10_000, 300, 5)}
_RANGE = re.compile(r"(num\d\d) BETWEEN (\d+) AND (\d+)")
_EQUAL = re.compile(r"(cat\d\d) = '(\w+)'")


def with_function(rng: random.Random, text: str) -> str:
    """Ask the same of a function in one clause, or something of two attributes."""
    ranges, equal = _RANGE.search(text), _EQUAL.search(text)
    if ranges is not None and (equal is None or rng.random() < 0.6):
        name, low, high = ranges[1], int(ranges[2]), int(ranges[3])
        clause = rng.choice(
            [
                f"{name} * 2 BETWEEN {2 * low} AND {2 * high}",
                f"{name} + 7 BETWEEN {low + 7} AND {high + 7}",
                f"-{name} BETWEEN {-high} AND {-low}",
                f"CASE WHEN {name} < 5000 THEN {name} ELSE {name} + 0 END BETWEEN {low} AND {high}",
                f"coalesce({name}, -1) BETWEEN {low} AND {high}",
            ]
        )
        return text[: ranges.start()] + clause + text[ranges.end() :]
    if equal is not None:
        name, value = equal[1], equal[2]
        clause = rng.choice(
            [
                f"upper({name}) = '{value.upper()}'",
                f"concat({name}, '!') = '{value}!'",
                f"substring({name}, 1, 40) = '{value}'",
                f"lower({name}) = '{value.lower()}'",
            ]
        )
        return text[: equal.start()] + clause + text[equal.end() :]
    return f"({text}) AND {rng.choice(['num00 < num01', 'num02 <= num03 + 9000'])}"


def best(ask: Callable[[], object], rounds: int, events: int) -> float:
    """Return the least CPU microseconds an event."""
    spent = []
    for _ in range(rounds + 1):
        began = time.process_time()
        ask()
        spent.append(time.process_time() - began)
    return 1e6 * min(spent[1:]) / events


def run(size: str) -> list[Result]:
    """Measure filters with and without functions, over a table and over dicts."""
    plan, rng = SIZES[size], random.Random(SEED)
    workload = Mixed()
    plain: list[Any] = workload.subscriptions(np.arange(plan.filters), SEED)["filter"].to_pylist()
    computed = [with_function(rng, text) if number % 10 == 0 else text for number, text in enumerate(plain)]
    table = workload.events(np.arange(plan.events), SEED)
    events = [
        Event(row["id"], {name: value for name, value in row.items() if name != "id" and value is not None})
        for row in table.slice(0, plan.single).to_pylist()
    ]
    indexes, took = {}, {}
    for name, texts in (("plain", plain), ("computed", computed)):
        began = time.process_time()
        indexes[name] = RecordIndex.build(Subscription(number, text) for number, text in enumerate(texts))
        took[name] = time.process_time() - began
    found = {name: [set(index.match(event)) for event in events] for name, index in indexes.items()}
    narrowed = {
        number for number, text in enumerate(computed) if " AND num0" in text and text != plain[number]
    }
    for first, second in zip(found["plain"], found["computed"], strict=True):
        assert second <= first
        assert first - second <= narrowed
    section = SECTION.format(plan.filters)
    goal = GOAL if size == "full" else None
    batch = {
        name: best(lambda index=index: index.match_batch(table), plan.rounds, plan.events)  # type: ignore[misc]
        for name, index in indexes.items()
    }
    single = {
        name: best(lambda index=index: [index.match(event) for event in events], plan.rounds, plan.single)  # type: ignore[misc]
        for name, index in indexes.items()
    }
    expressions = sum(path[:1] == ("EXPRESSION",) for path in indexes["computed"].built.attributes)
    return [
        Result("`match_batch`", batch["computed"], EACH, batch["plain"], "W-mix", section=section),
        Result(
            "`match_batch`, times W-mix", batch["computed"] / batch["plain"], "", goal=goal, section=section
        ),
        Result("`match`, a dict", single["computed"], EACH, single["plain"], "W-mix", section=section),
        Result("build", took["computed"], "s, CPU", took["plain"], "W-mix", section=section),
        Result("distinct expressions", expressions, "", section=section),
        *languages_sparql.run(size),
        *languages_xpath.run(size),
        *languages_importers.run(size),
    ]
