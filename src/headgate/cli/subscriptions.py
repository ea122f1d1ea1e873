"""Commands about subscriptions: how often they match, and what they cost."""

from __future__ import annotations

import csv
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.shell import cli

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.runtime.statistics import Kept

KINDS = ("never", "every", "costly", "exceeded")
SORTS = ("work", "matches", "candidates", "failed", "exceeded", "last", "id")
SHOWN = 10
"""Subscriptions of a list, unless more are asked for."""
_TITLES = {
    "never": "never matched",
    "every": "matched every event",
    "costly": "cost most",
    "exceeded": "too much for some events",
}
_COLUMNS = ("matches", "share", "last_match", "last_event", "candidates", "failed", "work", "exceeded")
_WIDE = 60
"""Characters of a filter in a table."""


@cli.group(name="subscriptions")
def subscriptions() -> None:
    """Look at subscriptions: which never match, which always do, which cost most."""


@subscriptions.command()
@click.argument("path", metavar="FILE")
@click.option("--snapshot", metavar="DIRECTORY", help="What compile wrote: shows filters.")
@click.option("--only", type=click.Choice(KINDS), help="Those of one list only.")
@click.option("--sort", type=click.Choice(SORTS), help="What comes first; work by default, the most first.")
@click.option("--top", type=click.IntRange(1), metavar="N", help=f"How many; in a table {SHOWN} by default.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How it is printed.",
)
def stats(
    path: str, snapshot: str | None, only: str | None, sort: str | None, top: int | None, form: str
) -> None:
    r"""Show statistics of subscriptions that match --stats has written.

    Without --only and --sort a table lists those that never matched, that matched every event, that cost
    most, and that were too much for some events. Candidates are events for which a filter had to be checked,
    failed those of them that did not match; work is what checking took, in words of the index, letters of
    texts and steps of joins. These three are estimated from some of the events.

    \b
    Examples:
      headgate subscriptions stats statistics.parquet
      headgate subscriptions stats statistics.parquet --snapshot snapshot/ --only never --top 100
      headgate subscriptions stats statistics.parquet --sort failed --format csv
      headgate subscriptions stats statistics.parquet --only costly --top 5 --format json
    """
    from headgate.runtime.statistics import listed, read_statistics

    kept = read_statistics(Path(path))
    filters = None
    if snapshot is not None:
        from headgate.core.versions.locating import located
        from headgate.runtime.engines import ShardEngines

        engines = ShardEngines.open(located(snapshot))
        here = [identity.as_py() in engines for identity in kept.table["subscription_id"]]
        kept = kept._replace(table=kept.table.filter(here))
        filters = engines.filter
    if form == "table" and only is None and sort is None:
        _show_all(kept, top or SHOWN, filters)
        return
    found = listed(kept.table, sort or "work", only)
    count = found.num_rows
    if form == "table":
        click.echo(f"{_count(count, 'subscription')}{'' if only is None else f' {_TITLES[only]}'}")
        _show(found.slice(0, top or SHOWN), filters)
        return
    rows = _rows(found if top is None else found.slice(0, top), filters)
    if form == "csv":
        writer = csv.DictWriter(sys.stdout, _names(filters), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    about = {"events": kept.events, "since": _moment(kept.since), "until": _moment(kept.until)}
    about |= {"subscriptions": kept.table.num_rows, "found": count}
    click.echo(json.dumps({**about, "rows": rows}, ensure_ascii=False))


def _show_all(kept: Kept, top: int, filters: Any) -> None:
    from headgate.runtime.statistics import listed

    parts = {kind: listed(kept.table, "work", kind) for kind in KINDS}
    counts = {kind: found.num_rows for kind, found in parts.items()}
    click.echo(
        f"{_count(kept.table.num_rows, 'subscription')}, {_count(kept.events, 'event')} from "
        f"{_moment(kept.since)} to {_moment(kept.until)}"
    )
    click.echo(
        f"{counts['never']:,} never matched, {counts['every']:,} matched every event, "
        f"{counts['exceeded']:,} were too much for some events"
    )
    for kind, found in parts.items():
        if found.num_rows:
            some = found.slice(0, top)
            more = f", {some.num_rows} of {found.num_rows:,}" if found.num_rows > some.num_rows else ""
            click.echo(f"\n{_TITLES[kind]}{more}")
            _show(some, filters)


def _show(table: pa.Table, filters: Any) -> None:
    """Print rows in columns."""
    rows = [_names(filters)]
    rows += [[_cell(name, row[name]) for name in rows[0]] for row in _rows(table, filters)]
    rows[0] = [name.replace("subscription_id", "subscription").replace("_", " ") for name in rows[0]]
    left = {0, *([len(rows[0]) - 1] if filters is not None else [])}
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo(f"  {'  '.join(cells).rstrip()}")


def _names(filters: Any) -> list[str]:
    return ["subscription_id", *_COLUMNS, *([] if filters is None else ["filter"])]


def _rows(table: pa.Table, filters: Any) -> list[dict[str, Any]]:
    """Return rows as Python values, with the texts of filters if they are known."""
    rows = table.select(["subscription_id", *_COLUMNS]).to_pylist()
    for row in rows:
        if row["last_match"] is not None:
            row["last_match"] = _moment(row["last_match"].timestamp())
        if row["share"] is not None:
            row["share"] = round(row["share"], 6)
        if filters is not None:
            row["filter"] = filters(row["subscription_id"])
    return rows


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "" if name == "filter" else "-"
    if name == "share":
        return f"{value:.2%}"
    if name == "filter":
        text = " ".join(value.split())
        return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
    return f"{value:,}" if isinstance(value, int) and name != "subscription_id" else str(value)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
