"""Commands that talk to a service, and those about subscriptions there and in files of statistics."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.options import options_of
from headgate.cli.shell import cli, json_option
from headgate.core.settings import Request, setting
from headgate.core.subscription import SQL
from headgate.errors import ServiceError, TableError
from headgate.report.words import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from headgate.client.client import Client
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
_FORBIDDEN = 403
_WIDE = 60
"""Characters of a filter in a table."""


@cli.group(name="subscriptions")
def subscriptions() -> None:
    """Look at subscriptions: which never match, which always do, which cost most."""


@dataclass(frozen=True)
class Stats(Request):
    """Which statistics are shown, and how."""

    snapshot: str | None = setting("what compile wrote: shows filters", metavar="DIRECTORY")
    only: str | None = setting("those of one list only", listed=KINDS)
    sort: str | None = setting("what comes first; work by default, the most first", listed=SORTS)
    top: int | None = setting(f"how many; in a table {SHOWN} by default", least=1)
    format: str = setting("how it is printed", "table", listed=("table", "json", "csv"))


@subscriptions.command()
@click.argument("path", metavar="FILE")
@options_of(Stats)
def stats(asked: Stats, path: str) -> None:
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

    only, top = asked.only, asked.top
    kept = read_statistics(Path(path))
    filters = None
    if asked.snapshot is not None:
        from headgate.core.versions.stores import located
        from headgate.runtime.engines import Runtime

        engines = Runtime.open(located(asked.snapshot))
        here = [identity.as_py() in engines for identity in kept.table["subscription_id"]]
        kept = kept._replace(table=kept.table.filter(here))
        filters = engines.filter
    if asked.format == "table" and only is None and asked.sort is None:
        _show_all(kept, top or SHOWN, filters)
        return
    table = listed(kept.table, asked.sort or "work", only)
    count = table.num_rows
    if asked.format == "table":
        click.echo(f"{many(count, 'subscription')}{'' if only is None else f' {_TITLES[only]}'}")
        _show(table.slice(0, top or SHOWN), filters)
        return
    rows = _rows(table if top is None else table.slice(0, top), filters)
    if asked.format == "csv":
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
        f"{many(kept.table.num_rows, 'subscription')}, {many(kept.events, 'event')} from "
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


_AT_ONCE = 500
"""Lines that are published together."""


# Only the address: a key in the arguments would be seen by others on the machine.
_service = click.option(
    "--url",
    metavar="ADDRESS",
    envvar="HEADGATE_URL",
    help="Where the service is.  [default: http://127.0.0.1:8080]",
)


def _client(url: str | None) -> Client:
    from headgate.client.client import Client

    return Client(url)


@cli.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@_service
@click.option("--matches", is_flag=True, help="Say who matched, event by event.")
@click.option("--partial", is_flag=True, help="Take good events although others are refused.")
@json_option
def publish(files: tuple[str, ...], url: str | None, *, matches: bool, partial: bool, as_json: bool) -> None:
    r"""Publish lines of JSON to a service: rows with an id, or CloudEvents; from files, or standard input.

    Events are on disk there when this ends. The key, if the service wants one, is in HEADGATE_KEY.

    \b
    Examples:
      echo '{"id": "e1", "topic": "sport", "price": 12}' | headgate publish
      headgate publish events.jsonl --matches --url https://headgate.example
    """
    accepted = refused = matched = 0
    lines = _lines(files)
    with _client(url) as client:
        while some := list(islice(lines, _AT_ONCE)):
            answer = client.publish(some, matches=matches, partial=partial)
            accepted += answer.accepted
            refused += answer.refused
            matched += answer.matched
            for each in answer.events:
                if each.refused is not None:
                    click.echo(f"refused: event {each.id!r}: {each.refused}", err=True)
                elif matches and not as_json:
                    click.echo(f"{each.id}\t{' '.join(each.matches or ())}")
    if as_json:
        click.echo(json.dumps({"accepted": accepted, "refused": refused, "matched": matched}))
    else:
        click.echo(f"events published: {accepted:,}, matches: {matched:,}, refused: {refused:,}", err=True)


def _lines(files: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for name in files or ("-",):
        try:
            with click.open_file(name, "rb") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield _object(line, name, number)
        except OSError as error:
            raise TableError(f"{name} cannot be read: {error.strerror}") from None


def _object(line: bytes, name: str, number: int) -> dict[str, Any]:
    from headgate.core.event import read_object
    from headgate.errors import EventError

    try:
        return read_object(line)
    except EventError as error:
        raise TableError(f"{'standard input' if name == '-' else name}, line {number}: {error}") from None


@cli.command()
@click.argument("consumer", default="default")
@_service
@click.option(
    "--after", type=int, metavar="CURSOR", help="Begin after this cursor, and not where the consumer is."
)
@click.option("--count", type=click.IntRange(1), metavar="N", help="End after so many deliveries.")
@click.option("--no-acknowledge", is_flag=True, help="Leave the consumer's cursor where it is.")
def listen(
    consumer: str, url: str | None, after: int | None, count: int | None, *, no_acknowledge: bool
) -> None:
    r"""Print the deliveries of a consumer as they arrive, as lines of JSON.

    \b
    Examples:
      headgate listen
      headgate listen alerts --after 0 --count 10 --no-acknowledge
    """
    import msgspec

    with _client(url) as client:
        deliveries = client.listen(consumer, after=after, acknowledge=not no_acknowledge)
        for seen, delivery in enumerate(deliveries, 1):
            click.echo(msgspec.json.encode(delivery).decode())
            if count is not None and seen == count:
                if not no_acknowledge:
                    client.acknowledge(consumer, delivery.cursor)
                return


@dataclass(frozen=True)
class Added(Request):
    """What is said of a subscription besides its filter."""

    dialect: str = setting("the language of the filter", SQL)
    consumer: str | None = setting("who gets its events", shown="default")
    score: float | None = setting("what it is ranked by")
    node: str | None = setting("the node of the graph where it hangs")


@subscriptions.command("add")
@click.argument("identity", metavar="ID")
@click.argument("text", metavar="FILTER")
@_service
@options_of(Added)
@json_option
def add_subscription(asked: Added, identity: str, text: str, url: str | None, *, as_json: bool) -> None:
    r"""Have a subscription at a service; one of the same id is replaced.

    What is odd about its filter is told on standard error, with --json in the answer.

    \b
    Example:
      headgate subscriptions add cheap "price < 10 AND topic = 'sport'" --consumer alerts
    """
    fields = {name: value for name, value in vars(asked).items() if value is not None}
    with _client(url) as client:
        made = client.subscribe(identity, text, **fields)
        try:
            made = client.subscription(identity)
        except ServiceError as error:
            # A key may subscribe and not read.
            if error.status != _FORBIDDEN:
                raise
            made["notes"] = ["the key does not allow to read: how its filter fares is not told"]
    if as_json:
        click.echo(json.dumps(made, ensure_ascii=False))
        return
    for note in made.get("notes", ()):
        click.echo(f"note {identity}: {note}", err=True)


@subscriptions.command("remove")
@click.argument("identity", metavar="ID")
@_service
def remove_subscription(identity: str, url: str | None) -> None:
    r"""Have no subscription of an id at a service.

    \b
    Example:
      headgate subscriptions remove cheap
    """
    with _client(url) as client:
        client.unsubscribe(identity)


@subscriptions.command("list")
@_service
@click.option("--search", help="Only those whose id or filter has this text.")
def list_subscriptions(url: str | None, search: str | None) -> None:
    r"""List the subscriptions of a service as lines of JSON.

    \b
    Example:
      headgate subscriptions list --search sport
    """
    with _client(url) as client:
        for each in client.subscriptions(search):
            click.echo(json.dumps(each, ensure_ascii=False))


@subscriptions.command("import")
@click.argument("file", type=click.File("rb"), metavar="FILE")
@_service
def import_subscriptions(file: Any, url: str | None) -> None:
    r"""Have all subscriptions of a file with lines of JSON at a service; tells those that are refused.

    \b
    Example:
      headgate subscriptions import subs.jsonl
    """
    with _client(url) as client:
        answer = client.import_subscriptions(line.rstrip(b"\r\n") for line in file if line.strip())
    for each in answer.errors:
        click.echo(f"refused: line {each.get('line')}, {each.get('id')!r}: {each.get('reason')}", err=True)
    click.echo(f"{answer.accepted:,} subscriptions, {answer.refused:,} refused", err=True)
    if answer.refused:
        sys.exit(3)
