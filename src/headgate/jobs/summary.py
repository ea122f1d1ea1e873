"""Questions about tables that a job wrote: who gets most, why rows were refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.core.values import fold
from headgate.jobs.runner import job
from headgate.tables.lines import VALUE, json_of
from headgate.tables.places import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Id
    from headgate.jobs.runner import Runner

REASON = "reason"
MOST = 20
"""Kinds of reasons that are told apart."""
LONGEST = 500
# A reason says what was there: in quotes, by number, or from a place on. Without that, it is a kind.
_WRITTEN = (
    (r"(?s), at character \d+.*$", ""),
    (r"(?s)⟪.*$", ""),
    (r"'(?:[^'\\]|\\.)*'", "…"),
    (r'"(?:[^"\\]|\\.)*"', "…"),
    (r"\d[\d,.]*", "…"),
)
_PARTICULARS = [(re.compile(pattern, re.ASCII), instead) for pattern, instead in _WRITTEN]
_TYPES: dict[str, pa.DataType] = {
    "kind": pa.string(),
    "rows": pa.int64(),
    "first": pa.string(),
    "last": pa.string(),
}
_KINDS = pa.schema(_TYPES)
_IDS = pa.schema({EVENT_ID: pa.string(), SUBSCRIPTION_ID: pa.string()})
_SPREAD = pa.schema({"matches": pa.int64(), "events": pa.int64()})


class Refusal(NamedTuple):
    """A kind of reason, how many rows were refused for it, and some of them with their own reason."""

    reason: str
    rows: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """How many events have how many matches, and who gets most."""

    events_by_matches: dict[int, int]
    busiest: tuple[tuple[Id, int], ...]


@job
def refusals_of(runner: Runner, path: str) -> tuple[Refusal, ...]:
    """Count the rows of a table of refused ones by kind of reason, most first.

    The last one takes in what is beyond `MOST` kinds.
    """
    with runner.step("counting refused rows"):
        table = runner.table(path)
        columns = table.columns()
        # Tables of events have the row as one column; those of other rows have columns of their own.
        work = partial(_count_kinds, columns=None if columns is None else len(columns))
        counts = table.lines().map(work, _KINDS).collect().to_pylist()
    kinds: dict[str, tuple[int, str, str]] = {}
    for kind, *more in (row.values() for row in counts):
        _add(kinds, kind, *more)
    ordered = sorted(kinds.items(), key=lambda each: (-each[1][0], each[0]))
    return with_others(
        [Refusal(kind, count, tuple(dict.fromkeys(shown))) for kind, (count, *shown) in ordered]
    )


def _count_kinds(batches: Iterable[pa.RecordBatch], columns: int | None) -> Iterator[pa.RecordBatch]:
    """Count rows by kinds of reasons; the first and the last are examples, in any order of rows the same."""
    kinds: dict[str, tuple[int, str, str]] = {}
    for fields in _rows(batches):
        row = dict(sorted(fields.items())) if columns is None else fields
        name = next((each for each in row if fold(each) == REASON), None)
        if name is None:
            continue
        reason = str(row.pop(name) or "")
        kind = reason
        for pattern, instead in _PARTICULARS:
            kind = pattern.sub(instead, kind)
        alone = (columns or len(row) + 1) == 2
        shown = str(next(iter(row.values()), None)) if alone else json_of(row).decode()
        example = f"{reason}, in {shown}"[:LONGEST]
        _add(kinds, kind, 1, example, example)
    yield pa.RecordBatch.from_pylist(
        [dict(zip(_KINDS.names, (kind, *more), strict=True)) for kind, more in kinds.items()], _KINDS
    )


def _add(kinds: dict[str, tuple[int, str, str]], kind: str, rows: int, first: str, last: str) -> None:
    before = kinds.get(kind, (0, first, last))
    kinds[kind] = before[0] + rows, min(before[1], first), max(before[2], last)


def with_others(refusals: list[Refusal]) -> tuple[Refusal, ...]:
    """Let the last one take in what is beyond `MOST` kinds."""
    rest = refusals[MOST - 1 :]
    if len(rest) < 2:
        return tuple(refusals)
    other = Refusal(f"{len(rest)} other reasons", sum(each.rows for each in rest), rest[0].examples)
    return (*refusals[: MOST - 1], other)


@job
def summarise(runner: Runner, matches: str, events: int, *, top: int = 10) -> Summary:
    """Count a table of matches by event and by subscription. Shuffles twice."""
    with runner.step("summing up"):
        table = runner.table(matches)
        # Lines of JSON and CSV are read as text.
        whole = table.form is Format.PARQUET
        rows = table.typed() if whole else table.lines().map(_read_ids, _IDS)
        spread = rows.counted(EVENT_ID).select("count").map(_count_counts, _SPREAD).collect()
        busiest = rows.counted(SUBSCRIPTION_ID).sorted("-count", SUBSCRIPTION_ID).head(top)
    by_matches: Counter[int] = Counter()
    for row in spread.to_pylist():
        by_matches[row["matches"]] += row["events"]
    pairs = [(row[SUBSCRIPTION_ID], row["count"]) for row in busiest.to_pylist()]
    # Events without a match are those that are left.
    silent = events - by_matches.total()
    return Summary({**by_matches, **({0: silent} if silent else {})}, tuple(pairs))


def _read_ids(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the ids of matches as text."""
    for batch in batches:
        ids = [{name: str(row[name]) for name in _IDS.names} for row in _rows([batch])]
        yield pa.RecordBatch.from_pylist(ids, _IDS)


def _count_counts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count how many events have how many matches."""
    counts = Counter(count for batch in batches for count in batch["count"].to_pylist())
    yield pa.RecordBatch.from_pydict({"matches": list(counts), "events": list(counts.values())}, _SPREAD)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for line in batch[VALUE].to_pylist():
            if line and line.strip():
                yield json.loads(line)
