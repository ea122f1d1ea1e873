"""The command that says why, and why not."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.ranking import factor_option, mode_option, wanted_top
from headgate.cli.shell import cli, tell
from headgate.core.subscription import DIALECTS, SQL
from headgate.errors import SnapshotError, SubscriptionError

if TYPE_CHECKING:
    from headgate.core.event import Event, Id
    from headgate.graph.base import Names
    from headgate.graph.explain import GraphExplanation
    from headgate.ranking.explain import RankExplanation
    from headgate.ranking.index import RankedIndex
    from headgate.records.explain import Explanation
    from headgate.records.why_not import NearMiss
    from headgate.spark.top import Top

LIMIT = 10


@cli.command()
@click.option(
    "--event", required=True, metavar="JSON", help="The event's attributes; - reads standard input."
)
@click.option("--filter", "filter_text", metavar="TEXT", help="The filter to explain.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="What --filter is written in; sql by default.")
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
@click.option(
    "--rank", type=click.IntRange(1), metavar="K", help="Why the subscription is among the best K, or not."
)
@mode_option
@factor_option
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def explain(
    event: str,
    filter_text: str | None,
    dialect: str | None,
    snapshot: str | None,
    subscription: str | None,
    limit: int | None,
    within: int | None,
    rank: int | None,
    mode: str | None,
    factors: tuple[str, ...],
    *,
    why_not: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Say why an event matches a filter or not, clause by clause, with the nearest miss.

    \b
    Examples:
      headgate explain --filter "age > 30 AND topic = 'news'" --event '{"age": 35, "topic": "sport"}'
      headgate explain --filter "subset(tags, 'new')" --dialect labels --event '{"tags": ["new"]}'
      headgate explain --snapshot snapshot/ --subscription s1 --event '{"age": 35}'
      headgate explain --snapshot ranked/ --subscription s1 --event '{"age": 35}' --rank 10 --mode relaxed
      headgate explain --snapshot graph/ --subscription s1 --event '{"source": "pub-1", "age": 35}'
      headgate explain --why-not --snapshot snapshot/ --event '{"age": 35}' --limit 5 --within 2
    """
    from headgate.core.event import Event, read_object

    given = (filter_text is not None, snapshot is not None, subscription is not None, why_not)
    if given not in {(True, False, False, False), (False, True, True, False), (False, True, False, True)}:
        raise click.UsageError("give --filter, or --snapshot and --subscription, or --snapshot and --why-not")
    if not why_not and (limit is not None or within is not None):
        raise click.UsageError("--limit and --within go with --why-not")
    if filter_text is None and dialect is not None:
        raise click.UsageError("--dialect goes with --filter")
    wanted = wanted_top("--rank", rank, mode, factors)
    if wanted is not None and subscription is None:
        raise click.UsageError("--rank goes with --snapshot and --subscription")
    data = Event("", read_object(sys.stdin.buffer.read() if event == "-" else event))
    if wanted is not None:
        place = _explain_rank(data, str(snapshot), str(subscription), wanted)
        tell(_rank_as_json(place), place.lines(), as_json=as_json)
    elif snapshot is not None and _has_graph(snapshot):
        if why_not:
            raise SnapshotError(
                f"snapshot {snapshot} has a graph, and --why-not looks at filters alone: "
                "ask for one with --subscription"
            )
        way = _explain_graph(data, Path(snapshot), str(subscription))
        tell({"matches": way.matches, **asdict(way)}, way.lines(), as_json=as_json)
    elif why_not:
        near = _near_misses(str(snapshot), data, limit or LIMIT, within, quiet=quiet)
        tell({"near_misses": [_as_json(miss) for miss in near]}, _near(near, within), as_json=as_json)
    else:
        found = _explain(data, filter_text, dialect or SQL, snapshot, subscription)
        tell(asdict(found), found.lines(), as_json=as_json)


def _explain(
    event: Event, filter_text: str | None, dialect: str, snapshot: str | None, subscription: str | None
) -> Explanation:
    from headgate.records.dialects import to_sql
    from headgate.records.explain import explain as explain_filter
    from headgate.records.index import RecordIndex
    from headgate.records.parse import parse_filter

    if filter_text is not None:
        return explain_filter(parse_filter(to_sql(filter_text, dialect)), event.attributes)
    place = Path(str(snapshot))
    if not _has_ranks(place):
        index = RecordIndex.open(place)
        return index.explain(event, _identity(str(subscription), numbered=index.ids.numbered))
    ranked, identity = _open_ranked(place, str(subscription))
    return explain_filter(parse_filter(ranked.filter(identity)), event.attributes)


def _open_ranked(place: Path, subscription: str) -> tuple[RankedIndex, str | int]:
    """Open ranked subscriptions, or the shard that has the one that is asked for."""
    from headgate.core.ids import Ids
    from headgate.graph.sharding import homes
    from headgate.ranking.index import RankedIndex
    from headgate.records.index import RecordIndex
    from headgate.spark.ranked_shards import have_numbers, ranked_places

    places = ranked_places(place)
    identity = _identity(subscription, numbered=have_numbers(places))
    home = places[int(homes(Ids.of([identity]), len(places))[0])]
    return RankedIndex.open(home, room=RecordIndex), identity


def _has_ranks(place: Path) -> bool:
    from headgate.core.snapshot import room_of
    from headgate.ranking.index import ROOM
    from headgate.spark.ranked_shards import ROOM as SHARDS

    return room_of(place) in {ROOM, SHARDS}


def _explain_rank(event: Event, snapshot: str, subscription: str, top: Top) -> RankExplanation:
    """Explain a rank, where one index knows all that compete for it."""
    from headgate.core.snapshot import room_of
    from headgate.engine import Engine
    from headgate.graph.base import ROOM as GRAPH
    from headgate.ranking.index import ROOM as RANKING
    from headgate.spark.targets import check_ranks

    place = Path(snapshot)
    room = room_of(place)
    check_ranks(place, room, top.mode)
    if room == RANKING:
        index, identity = _open_ranked(place, subscription)
        return index.explain_rank(event, identity, top.k, top.mode, factors=top.weighing)
    if room == GRAPH:
        engine = Engine.open(place)
        names = engine.graph.base.names
        identity = _identity(subscription, numbered=names.subscription_ids.numbered)
        given, _ = _entering(event, names)
        return engine.explain_rank(given, identity, top.k, top.mode, factors=top.weighing)
    raise SnapshotError(
        f"snapshot {snapshot} is in shards, where ranks are not explained: match with --top, or compile the "
        "subscriptions in one piece"
    )


def _has_graph(snapshot: str) -> bool:
    from headgate.core.snapshot import room_of
    from headgate.graph.base import ROOM as GRAPH
    from headgate.graph.sharding import ROOM as SHARDS

    return room_of(Path(snapshot)) in {GRAPH, SHARDS}


def _explain_graph(event: Event, snapshot: Path, subscription: str) -> GraphExplanation:
    """Explain how an event gets through a graph, on the shard that has the subscription."""
    from headgate.core.ids import Ids
    from headgate.graph.explain import NO_PATH, GraphExplanation
    from headgate.graph.index import GraphIndex
    from headgate.graph.sharding import homes
    from headgate.records.index import RecordIndex
    from headgate.spark.targets import graph_places

    graphs = [GraphIndex.open(place, room=RecordIndex) for place in graph_places(snapshot)]
    names = graphs[0].base.names
    given, source = _entering(event, names)
    identity = _identity(subscription, numbered=names.subscription_ids.numbered)
    graph = graphs[int(homes(Ids.of([identity]), len(graphs))[0])]
    if source is not None and source not in graph and any(source in each for each in graphs):
        # A node that leads nowhere is on one shard only.
        return GraphExplanation(given.id, source, identity, NO_PATH)
    return graph.explain(given, identity)


def _entering(event: Event, names: Names) -> tuple[Event, Id | None]:
    """Give an event the source that it names, in the type of the graph's nodes; None if it has none of it."""
    from headgate.core.event import Event
    from headgate.spark.id_types import fit_id

    named = Event.from_row({"id": "", **event.data})
    source = None if named.source is None else fit_id(named.source, numbered=names.node_ids.numbered)
    return replace(event, id=named.id, source=named.source if source is None else source), source


def _near_misses(
    snapshot: str, event: Event, limit: int, within: int | None, *, quiet: bool
) -> list[NearMiss]:
    from headgate.records.index import RecordIndex
    from headgate.spark.progress import step

    if _has_ranks(Path(snapshot)):
        raise SnapshotError(
            f"snapshot {snapshot} has ranks, and --why-not looks at filters alone: ask for one with "
            "--subscription, or compile the subscriptions with --no-ranked"
        )
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


def _near(found: list[NearMiss], within: int | None) -> list[str]:
    from headgate.records.explain import clause_lines

    lines = []
    for miss in found:
        count = len(miss.failed)
        lines.append(f"{miss.id}: {count} {'clause' if count == 1 else 'clauses'} failed")
        lines.extend(clause_lines(miss.failed))
    limit = (
        "" if within is None else f" with at most {within} failed {'clause' if within == 1 else 'clauses'}"
    )
    return lines or [f"no subscription nearly matched{limit}"]


def _as_json(miss: NearMiss) -> dict[str, object]:
    clauses = [asdict(clause) for clause in miss.failed]
    return {"id": miss.id, "filter": miss.filter, "failed": len(clauses), "clauses": clauses}


def _rank_as_json(place: RankExplanation) -> dict[str, object]:
    found = asdict(place)
    for name in ("clauses", "enough"):
        if found[name] is not None:
            found[name] = [each._asdict() for each in getattr(place, name)]
    return {"rank": place.rank, "entered": place.entered, "short": place.short, **found}
