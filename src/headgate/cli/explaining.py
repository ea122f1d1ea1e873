"""The command that says why, and why not, wherever in a snapshot a subscription is."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from headgate.cli.documents import OneEvent, read_document, read_record, refuse_options
from headgate.cli.options import options_of
from headgate.cli.shell import cli, json_option, quiet_option, tell
from headgate.core.settings import setting, settings_of
from headgate.core.subscription import SQL, dialects
from headgate.errors import SnapshotError
from headgate.tables.settings import Best, Filters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.kind import FilterSettings, Kind, Results
    from headgate.core.event import Event
    from headgate.core.settings import Setting
    from headgate.engine.question import Top
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.records.explain.why_not import NearMiss


_COLOURS = {
    "match": "green",
    "held": "green",
    "passes": "green",
    "no match": "red",
    "failed": "red",
    "blocks": "red",
    "unknown": "yellow",
    "nearest miss": "cyan",
}
_WORD = re.compile(rf"( *)({'|'.join(sorted(_COLOURS, key=len, reverse=True))})(?=$|[ :])")
_LEAST = 32
"""No line is broken narrower."""
_GAP = re.compile(r" {3,}")


def shown(lines: list[str]) -> list[str]:
    """Write lines for where they go: a terminal gets them no wider than it is, and in colour."""
    if not sys.stdout.isatty():
        return lines
    width = max(shutil.get_terminal_size().columns, _LEAST)
    fitted = [part for line in lines for part in fit(line, width)]
    return [colour(line) for line in fitted] if has_colours() else fitted


def has_colours() -> bool:
    """Tell whether standard output is a terminal that shows colours, and nobody has asked for none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def fit(line: str, width: int) -> list[str]:
    """Break a line that is too wide: first where there is a gap, then between words; the rest hangs below.

    >>> fit("  failed  name LIKE '%smith%'   name = 'john' (it does not fit)", 34)
    ["  failed  name LIKE '%smith%'", "            name = 'john' (it does", '            not fit)']
    """
    if len(line) <= width:
        return [line]
    word = _WORD.match(line)
    hang = len(line) - len(line.lstrip())
    if word is not None and not line[word.end() :].startswith(":"):
        rest = line[word.end() :]
        hang = word.end() + len(rest) - len(rest.lstrip())
    pieces = _GAP.split(line[hang:].rstrip())
    parts: list[str] = []
    for number, piece in enumerate(pieces):
        before = " " * (hang + 2 * (number > 0))
        after = " " * (hang + 2)
        parts += textwrap.wrap(
            piece, width, initial_indent=before, subsequent_indent=after, break_on_hyphens=False
        )
    return [line[:hang] + parts[0][hang:], *parts[1:]] if parts else [line]


def colour(line: str) -> str:
    r"""Colour the word that says how it went, at the beginning of a line.

    >>> colour("  held    age > 30")
    '  \x1b[32mheld\x1b[0m    age > 30'
    """
    match_ = _WORD.match(line)
    if match_ is None:
        return line
    word = click.style(match_[2], fg=_COLOURS[match_[2]], bold=not match_[1] or None)
    return f"{match_[1]}{word}{line[match_.end() :]}"


class Answer(NamedTuple):
    """An answer, for machines and for people."""

    result: dict[str, Any]
    lines: list[str]

    def with_results(self, name: str, results: Results) -> Answer:
        """Add what a filter gives besides that it holds."""
        return Answer({**self.result, name: results.plain}, [*self.lines, *results.lines])


def explain_subscription(
    event: Event, snapshot: str, subscription: str, results: int | None = None
) -> Answer:
    """Explain a subscription; with `results`, list so many of what its filter gives if it matches."""
    from headgate.contents.registry import kind_at
    from headgate.core.versions.stores import located
    from headgate.runtime.engines import Runtime

    path = located(snapshot)
    engines = Runtime.open(path)
    identity = engines.named(subscription)
    verdict: Any = engines.explain(event, identity)
    about = {"matches": verdict.matches, **asdict(verdict)} if engines.graph else asdict(verdict)
    told = Answer(about, verdict.lines())
    engine = engines.engine_with(identity)
    kind = kind_at(path).of_filter(engine.backend.filter(identity) or "")
    if results is None or kind.results is None:
        return told
    return told.with_results(kind.results, kind.given(engine, engines.entered(event), identity, results))


def explain_rank(event: Event, snapshot: str, subscription: str, top: Top) -> Answer:
    """Explain a rank, where one index knows all that compete for it."""
    from headgate.core.rooms import GRAPH, RANKING
    from headgate.core.snapshot import room_of
    from headgate.core.versions.stores import located
    from headgate.runtime.engines import Runtime
    from headgate.runtime.questions import check_ranks

    path = located(snapshot)
    room = room_of(path)
    check_ranks(path, room, top)
    if room not in {RANKING, GRAPH}:
        raise SnapshotError(
            f"snapshot {snapshot} is in shards, where ranks are not explained: match with --top, or compile "
            "the subscriptions in one piece"
        )
    engines = Runtime.open(path)
    identity = engines.named(subscription)
    explanation = engines.engine_with(identity).explain_rank(
        engines.entered(event), identity, top.k, top.mode, factors=top.weighing, **top.path._asdict()
    )
    return Answer(_rank_as_json(explanation), explanation.lines())


def _rank_as_json(explanation: RankExplanation) -> dict[str, object]:
    fields = asdict(explanation)
    for name in ("clauses", "enough"):
        if fields[name] is not None:
            fields[name] = [each._asdict() for each in getattr(explanation, name)]
    return {"rank": explanation.rank, "entered": explanation.entered, "short": explanation.short, **fields}


LIMIT = 10
_TOGETHER = {(True, False, False, False), (False, True, True, False), (False, True, False, True)}
"""What may be given together: a filter, a snapshot, a subscription, and --why-not."""


@dataclass(frozen=True, kw_only=True)
class Explain(Filters, Best, OneEvent):
    """What is explained: a filter, a subscription of a snapshot, or which of a snapshot nearly matched."""

    event: str = setting(
        "the event: a file, or its attributes, or the text of a document; - reads standard input",
        metavar="JSON",
    )
    filter: str | None = setting("the filter to explain", metavar="TEXT")
    dialect: str | None = setting("what it is written in", listed=dialects, shown=f"`{SQL}`")
    snapshot: str | None = setting("or a snapshot, with --subscription or --why-not", metavar="DIRECTORY")
    subscription: str | None = setting("which subscription of the snapshot", metavar="ID")
    why_not: bool = setting("all of the snapshot: which subscriptions nearly matched", False)
    limit: int | None = setting("with --why-not: how many to show; 10 by default", least=1)
    within: int | None = setting("with --why-not: those with at most K failed clauses", metavar="K", least=1)
    bindings: int | None = setting("RDF: show how variables are bound, at most N times", least=0)
    tuples: int | None = setting("XML: show what the filter returns, at most N rows", least=0)


def _settings() -> Iterator[Setting]:
    """List the settings, its own first; the best are asked for by the rank of one subscription."""
    about = "why the subscription is among the best K, or not"
    for each in sorted(settings_of(Explain), key=lambda each: each.name not in Explain.__annotations__):
        if each.name == "top":
            yield replace(each, option="--rank", help=about, least=1, shown="")
        elif each.name != "top_column":
            yield each


@cli.command()
@options_of(Explain, _settings())
@quiet_option
@json_option
def explain(asked: Explain, *, quiet: bool, as_json: bool) -> None:
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
    chosen = (asked.filter is not None, asked.snapshot is not None, asked.subscription is not None)
    if (*chosen, asked.why_not) not in _TOGETHER:
        raise click.UsageError("give --filter, or --snapshot and --subscription, or --snapshot and --why-not")
    if not asked.why_not and (asked.limit is not None or asked.within is not None):
        raise click.UsageError("--limit and --within go with --why-not")
    if asked.filter is None and asked.dialect is not None:
        raise click.UsageError("--dialect goes with --filter")
    if asked.filter is None and any(each.given(asked) for each in settings_of(Filters)):
        *most, last = (each.flag for each in settings_of(Filters))
        raise click.UsageError(f"{', '.join(most)} and {last} go with --filter: a snapshot has its own")
    wanted = asked.best
    if wanted is not None and asked.subscription is None:
        raise click.UsageError("--rank goes with --snapshot and --subscription")
    for option, rows in (("--bindings", asked.bindings), ("--tuples", asked.tuples)):
        if rows is not None and (asked.why_not or wanted is not None):
            raise click.UsageError(f"{option} goes with --filter, or --snapshot and --subscription")
    from headgate.contents.kind import ALLOW
    from headgate.contents.registry import kind_of
    from headgate.tables.requests import read_taxonomy

    content = _content(asked.snapshot, asked.dialect)
    refuse_options(content)
    kind = kind_of(content)
    data = read_document(content, asked.event, asked) if kind.documents else read_record(asked.event)
    results = next((each for each in (asked.bindings, asked.tuples) if each is not None), None)
    if wanted is not None:
        told = explain_rank(data, str(asked.snapshot), str(asked.subscription), wanted)
    elif asked.subscription is not None:
        told = explain_subscription(data, str(asked.snapshot), asked.subscription, results)
    elif asked.why_not:
        near = _near_misses(str(asked.snapshot), data, asked.limit or LIMIT, asked.within, quiet=quiet)
        told = Answer({"near_misses": [_as_json(miss) for miss in near]}, _near(near, asked.within))
    else:
        if "unindexed" in kind.settings:
            # One filter is asked about one event in any case.
            asked = replace(asked, unindexed=asked.unindexed or ALLOW)
        meant = asked.filter_settings(asked.dialect, read_taxonomy(asked.taxonomy))
        told = _explain_filter(kind, data, str(asked.filter), meant, results)
    tell(told.result, shown(told.lines), as_json=as_json)


def _content(snapshot: str | None, dialect: str | None) -> str:
    """Find the content room of the filters that are asked about."""
    from headgate.contents.registry import DEFAULT, content_at, content_of
    from headgate.core.versions.stores import located

    if snapshot is not None:
        return content_at(located(snapshot))
    return content_of([dialect or SQL], "the filter") or DEFAULT


def _explain_filter(
    kind: Kind, event: Event, text: str, wanted: FilterSettings, results: int | None
) -> Answer:
    """Explain a filter that stands alone."""
    from headgate.core.subscription import Subscription

    index = kind.room(wanted).build([Subscription(0, text, wanted.dialect)])
    verdict: Any = index.explain(event, 0)
    told = Answer(asdict(verdict), verdict.lines())
    if results is None or kind.results is None:
        return told
    return told.with_results(kind.results, kind.given(index, event, 0, results))


def _near_misses(
    snapshot: str, event: Event, limit: int, within: int | None, *, quiet: bool
) -> list[NearMiss]:
    from headgate.contents.registry import kind_at
    from headgate.core.rooms import GRAPH, GRAPH_SHARDS
    from headgate.core.snapshot import room_of
    from headgate.core.versions.stores import located
    from headgate.runtime.progress import step

    path = located(snapshot)
    kind = kind_at(path)
    if not hasattr(kind.room(), "why_not"):
        raise SnapshotError(
            f"snapshot {snapshot} has filters of {kind.title}, and --why-not looks at records: ask for one "
            "with --subscription"
        )
    if room_of(path) in {GRAPH, GRAPH_SHARDS}:
        raise SnapshotError(
            f"snapshot {snapshot} has a graph, and --why-not looks at filters alone: "
            "ask for one with --subscription"
        )
    if room_of(path) != kind.name:
        raise SnapshotError(
            f"snapshot {snapshot} has ranks, and --why-not looks at filters alone: ask for one with "
            "--subscription, or compile the subscriptions with --no-ranked"
        )
    with step("opening the snapshot", quiet=quiet):
        index: Any = kind.room().open(path)
    with step(f"looking through {len(index):,} subscriptions", quiet=quiet):
        misses: list[NearMiss] = index.why_not(event, limit, within)
    return misses


def _near(misses: list[NearMiss], within: int | None) -> list[str]:
    from headgate.records.explain.explain import clause_lines

    lines = []
    for miss in misses:
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
