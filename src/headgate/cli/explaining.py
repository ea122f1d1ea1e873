"""The command that says why."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.shell import cli, tell
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from headgate.records.explain import Explanation


@cli.command()
@click.option(
    "--event", required=True, metavar="JSON", help="The event's attributes; - reads standard input."
)
@click.option("--filter", "filter_text", metavar="SQL", help="The filter to explain.")
@click.option("--snapshot", metavar="DIRECTORY", help="Or a snapshot, with --subscription.")
@click.option("--subscription", metavar="ID", help="Which subscription of the snapshot.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def explain(
    event: str, filter_text: str | None, snapshot: str | None, subscription: str | None, *, as_json: bool
) -> None:
    r"""Say why an event matches a filter or not, clause by clause, with the nearest miss.

    \b
    Examples:
      headgate explain --filter "age > 30 AND topic = 'news'" --event '{"age": 35, "topic": "sport"}'
      headgate explain --snapshot snapshot/ --subscription s1 --event '{"age": 35}'
    """
    from headgate.core.event import Event, read_object
    from headgate.records.explain import explain as explain_filter
    from headgate.records.index import RecordIndex
    from headgate.records.parse import parse_filter

    found: Explanation
    data = Event("", read_object(sys.stdin.buffer.read() if event == "-" else event))
    if filter_text is not None and snapshot is None and subscription is None:
        found = explain_filter(parse_filter(filter_text), data.attributes)
    elif filter_text is None and snapshot is not None and subscription is not None:
        index = RecordIndex.open(Path(snapshot))
        found = index.explain(data, _identity(subscription, numbered=index.ids.numbered))
    else:
        raise click.UsageError("give --filter, or --snapshot and --subscription")
    tell(asdict(found), _explanation(found), as_json=as_json)


def _identity(text: str, *, numbered: bool) -> str | int:
    if not numbered:
        return text
    try:
        return int(text)
    except ValueError:
        raise SubscriptionError(
            f"there is no subscription {text!r} here: the ids of this snapshot are whole numbers"
        ) from None


def _explanation(found: Explanation) -> list[str]:
    signs = {True: "held", False: "failed", None: "unknown"}
    lines = ["match" if found.matches else "no match"]
    width = max(len(clause.text) for clause in found.clauses)
    for clause in found.clauses:
        value = f"{clause.attribute} = {_shown(clause.value)}" if clause.attribute else ""
        note = f" ({clause.note})" if clause.note else ""
        lines.append(f"  {signs[clause.held]:8}{clause.text:{width}}   {value}{note}".rstrip())
    if not found.matches:
        missing = " AND ".join(clause.text for clause in found.nearest_miss)
        lines.append(f"nearest miss: {missing or 'none, no event can match this filter'}")
    return lines


def _shown(value: object) -> str:
    return "NULL" if value is None else json.dumps(value, default=str, ensure_ascii=False)
