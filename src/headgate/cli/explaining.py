"""The command that says why, and why not."""

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
    from headgate.core.event import Event
    from headgate.records.explain import Clause, Explanation
    from headgate.records.why_not import NearMiss

LIMIT = 10


@cli.command()
@click.option(
    "--event", required=True, metavar="JSON", help="The event's attributes; - reads standard input."
)
@click.option("--filter", "filter_text", metavar="SQL", help="The filter to explain.")
@click.option("--snapshot", metavar="DIRECTORY", help="Or a snapshot, with --subscription or --why-not.")
@click.option("--subscription", metavar="ID", help="Which subscription of the snapshot.")
@click.option("--why-not", is_flag=True, help="All of the snapshot: which subscriptions nearly matched?")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="With --why-not: how many to show; 10 by default."
)
@click.option(
    "--within",
    type=click.IntRange(1),
    metavar="K",
    help="With --why-not: those with at most K failed clauses.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def explain(
    event: str,
    filter_text: str | None,
    snapshot: str | None,
    subscription: str | None,
    limit: int | None,
    within: int | None,
    *,
    why_not: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Say why an event matches a filter or not, clause by clause, with the nearest miss.

    \b
    Examples:
      headgate explain --filter "age > 30 AND topic = 'news'" --event '{"age": 35, "topic": "sport"}'
      headgate explain --snapshot snapshot/ --subscription s1 --event '{"age": 35}'
      headgate explain --why-not --snapshot snapshot/ --event '{"age": 35}' --limit 5 --within 2
    """
    from headgate.core.event import Event, read_object

    given = (filter_text is not None, snapshot is not None, subscription is not None, why_not)
    if given not in {(True, False, False, False), (False, True, True, False), (False, True, False, True)}:
        raise click.UsageError("give --filter, or --snapshot and --subscription, or --snapshot and --why-not")
    if not why_not and (limit is not None or within is not None):
        raise click.UsageError("--limit and --within go with --why-not")
    data = Event("", read_object(sys.stdin.buffer.read() if event == "-" else event))
    if why_not:
        near = _near_misses(str(snapshot), data, limit or LIMIT, within, quiet=quiet)
        tell({"near_misses": [_as_json(miss) for miss in near]}, _near(near, within), as_json=as_json)
    else:
        found = _explain(data, filter_text, snapshot, subscription)
        tell(asdict(found), _explanation(found), as_json=as_json)


def _explain(
    event: Event, filter_text: str | None, snapshot: str | None, subscription: str | None
) -> Explanation:
    from headgate.records.explain import explain as explain_filter
    from headgate.records.index import RecordIndex
    from headgate.records.parse import parse_filter

    if filter_text is not None:
        return explain_filter(parse_filter(filter_text), event.attributes)
    index = RecordIndex.open(Path(str(snapshot)))
    return index.explain(event, _identity(str(subscription), numbered=index.ids.numbered))


def _near_misses(
    snapshot: str, event: Event, limit: int, within: int | None, *, quiet: bool
) -> list[NearMiss]:
    from headgate.records.index import RecordIndex
    from headgate.spark.progress import step

    with step("opening the snapshot", quiet=quiet):
        index = RecordIndex.open(Path(snapshot))
    with step(f"looking through {len(index):,} subscriptions", quiet=quiet):
        return index.why_not(event, limit, within)


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
    lines = ["match" if found.matches else "no match", *_clauses(found.clauses)]
    if not found.matches:
        missing = " AND ".join(clause.text for clause in found.nearest_miss)
        lines.append(f"nearest miss: {missing or 'none, no event can match this filter'}")
    return lines


def _near(found: list[NearMiss], within: int | None) -> list[str]:
    lines = []
    for miss in found:
        count = len(miss.failed)
        lines.append(f"{miss.id}: {count} {'clause' if count == 1 else 'clauses'} failed")
        lines.extend(_clauses(miss.failed))
    limit = (
        "" if within is None else f" with at most {within} failed {'clause' if within == 1 else 'clauses'}"
    )
    return lines or [f"no subscription nearly matched{limit}"]


def _as_json(miss: NearMiss) -> dict[str, object]:
    clauses = [asdict(clause) for clause in miss.failed]
    return {"id": miss.id, "filter": miss.filter, "failed": len(clauses), "clauses": clauses}


def _clauses(clauses: tuple[Clause, ...]) -> list[str]:
    signs = {True: "held", False: "failed", None: "unknown"}
    width = max(len(clause.text) for clause in clauses)
    lines = []
    for clause in clauses:
        value = f"{clause.attribute} = {_shown(clause.value)}" if clause.attribute else ""
        note = f" ({clause.note})" if clause.note else ""
        lines.append(f"  {signs[clause.held]:8}{clause.text:{width}}   {value}{note}".rstrip())
    return lines


def _shown(value: object) -> str:
    return "NULL" if value is None else json.dumps(value, default=str, ensure_ascii=False)
