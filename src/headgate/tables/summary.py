"""Questions about tables that a job wrote: who gets most, why rows were refused. Answered in this process."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.core.values import fold
from headgate.tables.csv_text import read_csv
from headgate.tables.lines import json_lines, json_of, read_parquet
from headgate.tables.places import Format, check_input, table_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Id

REASON = "reason"
MOST = 20
"""Kinds of reasons that are told apart."""
LONGEST = 500
# A reason says what was there: in quotes, by number, or from a place on. Without that, it is a kind.
PARTICULARS = (
    (r"(?s), at character \d+.*$", ""),
    (r"(?s)⟪.*$", ""),
    (r"'(?:[^'\\]|\\.)*'", "…"),
    (r'"(?:[^"\\]|\\.)*"', "…"),
    (r"\d[\d,.]*", "…"),
)
_PARTICULARS = [(re.compile(pattern, re.ASCII), instead) for pattern, instead in PARTICULARS]


class Refusal(NamedTuple):
    """A kind of reason, how many rows were refused for it, and some of them with their own reason."""

    reason: str
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """How many events have how many matches, and who gets most."""

    events_by_matches: dict[int, int]
    busiest: tuple[tuple[Id, int], ...]


def refusals_of(path: str) -> tuple[Refusal, ...]:
    """Count the rows of a table of refused ones by kind of reason, most first."""
    kinds: dict[str, tuple[int, str, str]] = {}
    for row in _rows(path):
        name = next((each for each in row if fold(each) == REASON), None)
        if name is None:
            continue
        reason = str(row[name] or "")
        kind = reason
        for pattern, instead in _PARTICULARS:
            kind = pattern.sub(instead, kind)
        others = {each: value for each, value in row.items() if each != name}
        shown = str(next(iter(others.values()))) if len(others) == 1 else json_of(others).decode()
        example = f"{reason}, in {shown}"[:LONGEST]
        count, first, last = kinds.get(kind, (0, example, example))
        kinds[kind] = count + 1, min(first, example), max(last, example)
    ordered = sorted(kinds.items(), key=lambda each: (-each[1][0], each[0]))
    return with_others(
        [Refusal(kind, count, tuple(dict.fromkeys(shown))) for kind, (count, *shown) in ordered]
    )


def with_others(refusals: list[Refusal]) -> tuple[Refusal, ...]:
    """Let the last one take in what is beyond `MOST` kinds."""
    rest = refusals[MOST - 1 :]
    if len(rest) < 2:
        return tuple(refusals)
    other = Refusal(f"{len(rest)} other reasons", sum(each.rows for each in rest), rest[0].examples)
    return (*refusals[: MOST - 1], other)


def summarise(matches: str, events: int, *, top: int = 10) -> Summary:
    """Count a table of matches by event and by subscription."""
    per_event: Counter[Any] = Counter()
    per_subscription: Counter[Any] = Counter()
    text = check_input(matches) is Format.JSONL
    for row in _rows(matches):
        per_event[row[EVENT_ID]] += 1
        per_subscription[str(row[SUBSCRIPTION_ID]) if text else row[SUBSCRIPTION_ID]] += 1
    return summed(Counter(per_event.values()), per_subscription.items(), events, top)


def summed(spread: dict[int, int], counts: Iterable[tuple[Any, int]], events: int, top: int) -> Summary:
    """Put counts together; events without a match are those that are left."""
    silent = events - sum(spread.values())
    found = dict(spread)
    if silent:
        found[0] = silent
    busiest = sorted(counts, key=lambda each: (-each[1], each[0]))[:top]
    return Summary(found, tuple(busiest))


def _rows(path: str) -> Iterator[dict[str, Any]]:
    form, files = check_input(path), table_files(path)
    if form is Format.PARQUET:
        for batch in read_parquet(path, files).to_batches():
            yield from batch.to_pylist()
    elif form is Format.CSV:
        yield from read_csv(path, files).rows()
    else:
        for file in files:
            for line in json_lines(file):
                yield dict(sorted(json.loads(line).items()))
