"""Filters of other systems: how long it takes to convert, parse and index event patterns of EventBridge."""

from __future__ import annotations

import json
import random
import time
from typing import Any

from benchmarks.results import Result
from headgate import Event, Subscription
from headgate.core.subscription import EVENTBRIDGE
from headgate.records.computed import is_computed
from headgate.records.importers.registry import convert
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from tests.importers.eventbridge import matches

SECTION = "Event patterns of EventBridge"
_GOAL = 30.0
_SIZES = {"quick": 2_000, "full": 100_000}


def run(size: str) -> list[Result]:
    """Convert and index patterns, and check what they match against the reference."""
    count = _SIZES[size]
    rng = random.Random(1)
    patterns = [json.dumps(_pattern(rng)) for _ in range(count)]
    # Kernels are compiled, or loaded, before the clock runs.
    RecordIndex.build([Subscription(0, patterns[0], EVENTBRIDGE)]).match(Event("e", _event(rng)))
    begin = time.process_time()
    texts = [convert(pattern, EVENTBRIDGE) for pattern in patterns]
    converted = time.process_time() - begin
    kept = list(range(count))
    for number in range(0, count, max(1, count // 500)):
        parse_filter(texts[number])
    begin = time.process_time()
    index = RecordIndex.build([Subscription(number, patterns[number], EVENTBRIDGE) for number in kept])
    built = time.process_time() - begin
    computed = sum(map(is_computed, index.built.attributes))
    for _ in range(3):
        event = _event(rng)
        expected = {number for number in kept if matches(json.loads(patterns[number]), event)}
        assert set(index.match(Event("e", event))) == expected
    name = f"{len(kept):,} of {count:,} event patterns"
    return [
        Result(f"{name}: converted", converted, "s, CPU", section=SECTION),
        Result(
            f"{name}: converted, parsed and indexed",
            built,
            "s, CPU",
            goal=_GOAL if size == "full" else None,
            section=SECTION,
        ),
        Result(f"{name}: attributes that are computed", computed, "", section=SECTION),
    ]


def _pattern(rng: random.Random) -> dict[str, Any]:
    """Draw a pattern as rules have them: a source, types, some of the detail."""
    detail: dict[str, Any] = {"state": rng.sample(_STATES, rng.randrange(1, 4))}
    match rng.randrange(10):
        case 0 | 1:
            detail["key"] = [{"prefix": f"images/{rng.randrange(5_000)}/"}]
        case 2:
            detail["key"] = [{"suffix": rng.choice([".png", ".jpg", ".gif"])}]
        case 3 | 4:
            low = rng.randrange(10_000)
            detail["size"] = [{"numeric": [">=", low, "<", low + rng.randrange(1, 2_000)]}]
        case 5:
            detail["user"] = [{"anything-but": f"user{rng.randrange(1_000)}"}]
        case 6:
            detail["error"] = [{"exists": rng.random() < 0.5}]
        case _:
            detail["instance-id"] = [f"i-{rng.randrange(100_000):08x}"]
    return {
        "source": [f"aws.{rng.choice(_SERVICES)}"],
        "account": [f"{rng.randrange(2_000):012d}" for _ in range(rng.choice([1, 1, 2]))],
        "detail": detail,
    }


def _event(rng: random.Random) -> dict[str, Any]:
    return {
        "source": f"aws.{rng.choice(_SERVICES)}",
        "account": f"{rng.randrange(2_000):012d}",
        "detail": {
            "state": rng.choice(_STATES),
            "key": f"images/{rng.randrange(5_000)}/x{rng.choice(['.png', '.txt'])}",
            "size": rng.randrange(10_000),
            "user": f"user{rng.randrange(1_000)}",
            "instance-id": f"i-{rng.randrange(100_000):08x}",
        },
    }


_SERVICES = ["ec2", "s3", "rds", "ecs", "eks", "iam", "sns", "sqs", "glue", "batch"]
_STATES = ["pending", "running", "stopping", "stopped", "shutting-down", "terminated"]
