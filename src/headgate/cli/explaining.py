"""The command that says why, and why not, wherever in a snapshot a subscription is."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from headgate.cli.documents import (
    format_option,
    item_option,
    read_document,
    read_row,
    refuse_options,
    source_option,
)
from headgate.cli.options import option_of, options_of, read_given
from headgate.cli.shell import (
    cli,
    factor_option,
    json_option,
    mode_option,
    path_options,
    quiet_option,
    tell,
    wanted_top,
)
from headgate.cli.terminal import shown
from headgate.core.settings import setting_of, settings_of
from headgate.core.subscription import SQL
from headgate.errors import SnapshotError
from headgate.tables.settings import Backtest, Best, Filters

if TYPE_CHECKING:
    from headgate.contents.kind import FilterSettings, Kind, Results
    from headgate.core.event import Event
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.records.explain.why_not import NearMiss
    from headgate.runtime.questions import Top


class Answer(NamedTuple):
    """An answer, for machines and for people."""

    result: dict[str, Any]
    lines: list[str]

    def with_results(self, name: str, found: Results) -> Answer:
        """Add what a filter gives besides that it holds."""
        return Answer({**self.result, name: found.plain}, [*self.lines, *found.lines])


def explain_subscription(
    event: Event, snapshot: str, subscription: str, results: int | None = None
) -> Answer:
    """Explain a subscription; with `results`, list so many of what its filter gives if it matches."""
    from headgate.contents.registry import kind_at
    from headgate.core.versions.locating import located
    from headgate.runtime.explaining import Explainer, has_graph

    place = located(snapshot)
    asked = Explainer.open(place, subscription)
    found, given = asked.explain(event)
    about = {"matches": found.matches, **asdict(found)} if has_graph(place) else asdict(found)
    told = Answer(about, found.lines())
    engine, identity = asked.engine, asked.identity
    kind = kind_at(place).of_filter(engine.backend.filter(identity) or "")
    if results is None or kind.results is None:
        return told
    gives = kind.given(engine, given, identity, results) if found.matches else kind.given_nothing(results)
    return told.with_results(kind.results, gives)


def explain_rank(event: Event, snapshot: str, subscription: str, top: Top) -> Answer:
    """Explain a rank, where one index knows all that compete for it."""
    from headgate.core.rooms import GRAPH, RANKING
    from headgate.core.snapshot import room_of
    from headgate.core.versions.locating import located
    from headgate.runtime.explaining import Explainer
    from headgate.runtime.questions import check_ranks

    place = located(snapshot)
    room = room_of(place)
    check_ranks(place, room, top)
    if room not in {RANKING, GRAPH}:
        raise SnapshotError(
            f"snapshot {snapshot} is in shards, where ranks are not explained: match with --top, or compile "
            "the subscriptions in one piece"
        )
    asked = Explainer.open(place, subscription)
    found = asked.engine.explain_rank(
        asked.entered(event), asked.identity, top.k, top.mode, factors=top.weighing, **top.path._asdict()
    )
    return Answer(_rank_as_json(found), found.lines())


def _rank_as_json(place: RankExplanation) -> dict[str, object]:
    found = asdict(place)
    for name in ("clauses", "enough"):
        if found[name] is not None:
            found[name] = [each._asdict() for each in getattr(place, name)]
    return {"rank": place.rank, "entered": place.entered, "short": place.short, **found}


LIMIT = 10


@cli.command()
@click.option(
    "--event",
    required=True,
    metavar="JSON",
    help="The event: a file, or its attributes, or the text of a document; - reads standard input.",
)
@click.option("--filter", "filter_text", metavar="TEXT", help="The filter to explain.")
@option_of(Backtest, "dialect")
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
@path_options
@format_option
@source_option
@item_option
@click.option(
    "--bindings",
    type=click.IntRange(0),
    metavar="N",
    help="RDF: show how variables are bound, at most N times.",
)
@click.option(
    "--tuples", type=click.IntRange(0), metavar="N", help="XML: show what the filter returns, at most N rows."
)
@options_of(Filters)
@quiet_option
@json_option
def explain(
    said: Filters,
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
    by: str | None,
    decay: float | None,
    form: str | None,
    source: str | None,
    item: int | None,
    bindings: int | None,
    tuples: int | None,
    *,
    hops: bool,
    why_not: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Say why an event matches a filter or not, clause by clause, with the nearest miss.

    \b
    Examples:
      headgate explain --filter "age > 30 AND topic = 'news'" --event '{"age": 35, "topic": "sport"}'
      headgate explain --filter "subset(tags, 'new')" --dialect labels --event '{"tags": ["new"]}'
      headgate explain --snapshot snapshot/ --subscription s1 --event event.json
      headgate explain --snapshot ranked/ --subscription s1 --event '{"age": 35}' --rank 10 --mode relaxed
      headgate explain --snapshot graph/ --subscription s1 --event '{"source": "pub-1", "age": 35}'
      headgate explain --why-not --snapshot snapshot/ --event '{"age": 35}' --limit 5 --within 2
      headgate explain --filter "ASK { ?x a <urn:Art> }" --dialect sparql --event x.ttl --bindings 10
      headgate explain --filter "//news[topic = 'art']//title{val}" --dialect xpath --event x.xml --tuples 10
    """
    given = (filter_text is not None, snapshot is not None, subscription is not None, why_not)
    if given not in {(True, False, False, False), (False, True, True, False), (False, True, False, True)}:
        raise click.UsageError("give --filter, or --snapshot and --subscription, or --snapshot and --why-not")
    if not why_not and (limit is not None or within is not None):
        raise click.UsageError("--limit and --within go with --why-not")
    if filter_text is None and dialect is not None:
        raise click.UsageError("--dialect goes with --filter")
    if filter_text is None and said != Filters():
        *most, last = (each.flag for each in settings_of(Filters))
        raise click.UsageError(f"{', '.join(most)} and {last} go with --filter: a snapshot has its own")
    weighing = read_given(setting_of(Best, "factors"), factors)
    wanted = wanted_top("--rank", Best(top=rank, mode=mode, factors=weighing, by=by, decay=decay, hops=hops))
    if wanted is not None and subscription is None:
        raise click.UsageError("--rank goes with --snapshot and --subscription")
    for option, rows in (("--bindings", bindings), ("--tuples", tuples)):
        if rows is not None and (why_not or wanted is not None):
            raise click.UsageError(f"{option} goes with --filter, or --snapshot and --subscription")
    from headgate.contents.kind import ALLOW
    from headgate.contents.registry import kind_of
    from headgate.tables.requests import read_taxonomy

    content = _content(snapshot, dialect)
    refuse_options(content)
    kind = kind_of(content)
    data = read_document(content, event, form, source, item) if kind.documents else _record(event)
    results = next((each for each in (bindings, tuples) if each is not None), None)
    if wanted is not None:
        told = explain_rank(data, str(snapshot), str(subscription), wanted)
    elif subscription is not None:
        told = explain_subscription(data, str(snapshot), subscription, results)
    elif why_not:
        near = _near_misses(str(snapshot), data, limit or LIMIT, within, quiet=quiet)
        told = Answer({"near_misses": [_as_json(miss) for miss in near]}, _near(near, within))
    else:
        if "unindexed" in kind.settings:
            # One filter is asked about one event in any case.
            said = replace(said, unindexed=said.unindexed or ALLOW)
        meant = said.filter_settings(dialect, read_taxonomy(said.taxonomy))
        told = _explain_filter(kind, data, str(filter_text), meant, results)
    tell(told.result, shown(told.lines), as_json=as_json)


def _content(snapshot: str | None, dialect: str | None) -> str:
    """Find the content room of the filters that are asked about."""
    from headgate.contents.registry import DEFAULT, content_at, content_of
    from headgate.core.versions.locating import located

    if snapshot is not None:
        return content_at(located(snapshot))
    return content_of([dialect or SQL], "the filter") or DEFAULT


def _record(given: str) -> Event:
    from headgate.core.event import Event

    return Event("", read_row(given))


def _explain_filter(
    kind: Kind, event: Event, text: str, wanted: FilterSettings, results: int | None
) -> Answer:
    """Explain a filter that stands alone."""
    from headgate.core.subscription import Subscription

    index = kind.room(wanted).build([Subscription(0, text, wanted.dialect)])
    found: Any = index.explain(event, 0)
    told = Answer(asdict(found), found.lines())
    if results is None or kind.results is None:
        return told
    return told.with_results(kind.results, kind.given(index, event, 0, results))


def _near_misses(
    snapshot: str, event: Event, limit: int, within: int | None, *, quiet: bool
) -> list[NearMiss]:
    from headgate.contents.registry import kind_at
    from headgate.core.snapshot import room_of
    from headgate.core.versions.locating import located
    from headgate.runtime.explaining import has_graph
    from headgate.runtime.progress import step

    place = located(snapshot)
    kind = kind_at(place)
    if not hasattr(kind.room(), "why_not"):
        raise SnapshotError(
            f"snapshot {snapshot} has filters of {kind.title}, and --why-not looks at records: ask for one "
            "with --subscription"
        )
    if has_graph(place):
        raise SnapshotError(
            f"snapshot {snapshot} has a graph, and --why-not looks at filters alone: "
            "ask for one with --subscription"
        )
    if room_of(place) != kind.name:
        raise SnapshotError(
            f"snapshot {snapshot} has ranks, and --why-not looks at filters alone: ask for one with "
            "--subscription, or compile the subscriptions with --no-ranked"
        )
    with step("opening the snapshot", quiet=quiet):
        index: Any = kind.room().open(place)
    with step(f"looking through {len(index):,} subscriptions", quiet=quiet):
        found: list[NearMiss] = index.why_not(event, limit, within)
    return found


def _near(found: list[NearMiss], within: int | None) -> list[str]:
    from headgate.records.explain.explain import clause_lines

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
