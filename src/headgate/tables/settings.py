"""What is asked of each job: one class a job, whose fields are its settings.

Commands, pipeline files, their docs and the dry run follow from these fields (`headgate.core.settings`). A
field's `key` says where it stands in a pipeline file, if not in the job's own table under its own name; None
is on the command line only. This module loads nothing large.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.contents.settings import REFUSED, Documents, PlainSettings
from headgate.core.ranks import EXACT, MODES, RELAXED
from headgate.core.settings import Count, Input, Output, Request, Share, setting, settings_of
from headgate.core.subscription import SQL, dialects
from headgate.engine.question import MatchSettings, Question, Top
from headgate.errors import TableError
from headgate.graph.path_cost import DECAY, MINUS, TIMES, PathCost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.contents.kind import FilterSettings
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.runtime.sharding import Sharding
    from headgate.tables.requests import WhatIfRequest

_ELSEWHERE = "It must be given if the output is on another file system."


@dataclass(frozen=True, kw_only=True)
class Where(Request):
    """Where a job runs. Its answers do not depend on it."""

    engine: str | None = setting(
        "where the job runs, on Spark or [in this process](cli.md#where-a-job-runs)",
        key=None,
        listed=("spark", "local"),
        shown="chosen by the size of the tables",
    )
    master: str | None = setting(
        "a Spark master: `local[N]`, `spark://…`, `yarn`, `k8s://…`",
        key="spark.master",
        metavar="URL",
        shown="inside this process",
    )
    conf: Mapping[str, str] = setting("a setting of Spark's own, by its name", {}, key="spark.conf")


@dataclass(frozen=True, kw_only=True)
class Best(Request):
    """Which of the matches are asked for."""

    top: int | None = setting(
        "only the best K of each event, with their scores and ranks; 0 is none",
        metavar="K",
        least=0,
        shown="all matches",
    )
    top_column: str | None = setting(
        "an attribute by which each event says how many it wants, K at most; one without a whole number "
        "there wants K",
        needs="top",
        metavar="NAME",
    )
    mode: str | None = setting(
        "what makes one better: its score if all clauses hold, or the weights of those that hold",
        needs="top",
        listed=MODES,
        shown=f"`{EXACT}`",
    )
    factors: Mapping[str, float] = setting(
        "what the weights of all clauses that look at an attribute are multiplied by; 0 drops them",
        {},
        needs=f"mode={RELAXED}",
        option="--factor",
    )
    by: str | None = setting(
        "in a graph: the cost of the way is subtracted from the score, or each step multiplies it",
        needs="top",
        listed=(MINUS, TIMES),
        shown=f"`{MINUS}`",
    )
    decay: float | None = setting(
        "what a step of cost 1 multiplies the score by",
        needs=f"by={TIMES}",
        least=0,
        most=1,
        shown=f"{DECAY}",
    )
    hops: bool = setting("in a graph: every edge costs 1, and nodes nothing", False, needs="top")

    @property
    def best(self) -> Top | None:
        """Return what is asked for, if not all matches are."""
        if self.top is None:
            return None
        path = PathCost.of(self.by or MINUS, DECAY if self.decay is None else self.decay, hops=self.hops)
        return Top.of(self.top, self.mode or EXACT, self.factors, path, self.top_column)


@dataclass(frozen=True, kw_only=True)
class Asked(Best, MatchSettings):
    """What is asked about events, as files and commands say it."""

    @property
    def question(self) -> Question:
        """Return it as it goes to what obeys it."""
        said = {each.name: getattr(self, each.name) for each in settings_of(MatchSettings)}
        return Question(self.best, **said)


@dataclass(frozen=True, kw_only=True)
class Match(Documents, Asked):
    """Match a table of events against a snapshot."""

    snapshot: Input = setting("what `compile` wrote", key="compile.snapshot", metavar="DIRECTORY")
    events: Input = setting("a [table](files.md#events) of events, or files of documents", key="events.table")
    output: Output = setting(
        "a table of matches, (`event_id`, `subscription_id`); with `top` also `score` and `rank`, and what "
        "other settings add"
    )
    rejected: Output | None = setting("a table for refused events", shown=REFUSED, more=_ELSEWHERE)
    graph: bool | None = setting(
        "insist that the snapshot has a graph, or has none; one that has is always matched with it",
        key=None,
        more="A graph cannot be left out: the filters alone would also reach subscriptions that no path "
        "leads to. Compile the subscriptions without the graph for that.",
    )
    tuples: Output | None = setting(
        "XML, without graph and ranks: a table for what the patterns return",
        more="Its columns are `event_id`, `subscription_id`, `tuple` (counted from 1), `name` and `value`; "
        "it has at most 1,000 tuples for an event and a subscription, and a row with the name `cut` if "
        "there are more, or `refused` if what a pattern returns is too much.",
    )
    stats: Output | None = setting(
        "a file to which [statistics of subscriptions](observing.md#statistics-of-subscriptions) are added",
        metavar="FILE",
        more="It is made if there is none. With `--top` only the best count.",
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what the job takes."""
        names = ("snapshot", "events", "output", "rejected", "graph", "tuples", "stats")
        options = {name: getattr(self, name) for name in names}
        return {**options, "question": self.question, "content_type": self.format}


@dataclass(frozen=True, kw_only=True)
class RdfFilters(Request, table="subscriptions"):
    """What is said of filters of RDF alone."""

    taxonomy: tuple[str, ...] = setting(
        "RDF: a file of the [taxonomy](rdf-events.md#taxonomy), which class and property lies below which",
        (),
        metavar="FILE",
        more="Its name ends in `.ttl`, `.nt`, `.rdf`, `.owl`, `.xml` or `.jsonld`.",
    )
    coerce: bool = setting(
        "RDF: read [strings that are compared with numbers](sparql.md#strings-that-are-numbers), times or "
        "truth values as such",
        False,
    )
    injective: bool = setting(
        "RDF: different nodes of a filter stand for different nodes of the event, different triples for "
        "different ones",
        False,
    )

    @property
    def options(self) -> Options | None:
        """Return what departs from SPARQL; none if nothing does."""
        from headgate.rdf.language.model import Options

        departs = self.coerce or self.injective
        return Options(coerce=self.coerce, injective=self.injective) if departs else None


@dataclass(frozen=True, kw_only=True)
class Filters(PlainSettings, RdfFilters):
    """What is said of filters."""

    def filter_settings(
        self, dialect: str | None, taxonomy: Taxonomy | None = None, **of_records: Any
    ) -> FilterSettings:
        """Return it as filters are built with it; files that it names have been read."""
        from headgate.contents.kind import FilterSettings

        return FilterSettings(
            dialect or SQL, taxonomy=taxonomy, options=self.options, **of_records, **self.plain
        )


@dataclass(frozen=True, kw_only=True)
class Compile(Filters):
    """Compile a table of subscriptions, or a graph of nodes and edges, to a snapshot."""

    subscriptions: Input | None = setting(
        "a [table](files.md#subscriptions) of subscriptions: `id`, `filter`, and perhaps `dialect`, "
        "`score`, `weights`; in a graph also `node`",
        key="subscriptions.table",
        more="Required without a graph.",
    )
    nodes: Input | None = setting(
        "a table of a graph's [nodes](files.md#graphs): `id`, and perhaps `filter`, `subscription`, `score`…",
        key="graph.nodes",
    )
    edges: Input | None = setting(
        "a table of its edges: `source`, `target`, and perhaps `filter`, `cost`…", key="graph.edges"
    )
    snapshot: Output = setting(
        "a directory for the snapshot, or `s3://…` or `gs://…`",
        option="--output",
        metavar="PLACE",
        more="A snapshot there gets a new version.",
    )
    changes: Input | None = setting(
        "the log of [changes](streaming.md#changes-of-subscriptions) that the tables contain so far: the "
        "folder or `nats://…` of a stream",
        metavar="PLACE",
        more="Its position before the tables are read is written into the snapshot, and a stream applies "
        "what comes after it. Without it the snapshot contains none.",
    )
    rejected: Output | None = setting("a table for refused rows", shown=REFUSED)
    dialect: str | None = setting(
        "what filters are written in whose rows name no dialect",
        key="subscriptions.dialect",
        listed=dialects,
        shown=f"`{SQL}`",
    )
    schema: Input | None = setting(
        "records: a JSON file with the attributes' types; filters are checked against it",
        key="subscriptions.schema",
        metavar="FILE",
    )
    sample: Input | None = setting(
        "records: a table of events like those to come; filters are indexed by values that few of them have",
        key="subscriptions.sample",
        more="The first 4,096 are looked at. Matching is quicker, the answers are the same.",
    )
    ranked: bool | None = setting(
        "rank subscriptions, or don't",
        key="subscriptions.ranked",
        shown="if the table has a column `score` or `weights`",
        more="In JSON lines, if a row has one. Without these columns, every score is 0 and every weight 1. "
        "Graphs have scores in any case; theirs is whether clauses are ranked as well, by default if there "
        "is a column `weights`.",
    )
    shards: Count | None = setting(
        "the number of [parts](sharding.md) of subscriptions, or of a graph; each has its own subscribers",
        key="shards.count",
        metavar="K",
        least=1,
        most=1_000,
        shown="1",
        more="`auto` is as many as the memory of a worker asks for. In a graph each also has all "
        "intermediaries. The answers are the same; a worker that matches "
        "has one shard at a time in memory, and events are read once for each.",
    )
    shard_by: str | None = setting(
        "which part a subscription is in: by its id, by a column of the table, or by what its filter demands",
        key="shards.by",
        needs="shards",
        listed=("hash", "tenant", "access"),
        shown="`hash`",
    )
    shard_column: str | None = setting(
        "for `tenant` the table's column, by default `tenant`; for `access` of records the events' "
        "attribute, which must be given",
        key="shards.column",
        needs="shards",
        metavar="NAME",
    )

    @property
    def tables(self) -> list[str]:
        """List the tables that are compiled."""
        return [table for table in (self.nodes, self.edges, self.subscriptions) if table is not None]

    @property
    def sharding(self) -> Sharding:
        """Return how subscriptions are cut."""
        from headgate.runtime.sharding import Sharding

        return Sharding.of(self.shards or 1, self.shard_by or "hash", self.shard_column)

    @property
    def types(self) -> str | None:
        """Read the file of the schema."""
        return None if self.schema is None else read_text(self.schema)

    def wanted(self, taxonomy: Taxonomy | None = None) -> FilterSettings:
        """Return what is said of all filters."""
        return self.filter_settings(self.dialect, taxonomy, schema=self.types, sample=self.sample)

    def arguments(self, wanted: FilterSettings) -> dict[str, Any]:
        """Return what the job takes besides the tables and the snapshot."""
        options = {"rejected": self.rejected, "ranked": self.ranked, "sharding": self.sharding}
        return {**options, "changes": self.changes, "wanted": wanted}


@dataclass(frozen=True, kw_only=True)
class Backtest(Filters, Documents):
    """Try one filter over historic events."""

    filter: str = setting("the filter to try", metavar="TEXT")
    events: Input = setting(
        "a [table](files.md#events) of historic events, or files of documents", key="events.table"
    )
    dialect: str | None = setting("what it is written in", listed=dialects, shown=f"`{SQL}`")
    output: Output | None = setting("a table for the events that it matches", shown="they are only counted")

    @property
    def written_in(self) -> str:
        """Return the dialect, also where none was given."""
        return self.dialect or SQL

    def wanted(self, taxonomy: Taxonomy | None = None) -> FilterSettings:
        """Return what is said of the filter."""
        return self.filter_settings(self.written_in, taxonomy)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what the job takes; reads the files of the taxonomy."""
        from headgate.tables.requests import read_taxonomy

        wanted = self.wanted(read_taxonomy(self.taxonomy))
        options = {"content_type": self.format, "output": self.output}
        return {"filter_text": self.filter, "events": self.events, "wanted": wanted, **options}


@dataclass(frozen=True, kw_only=True)
class WhatIf(Documents, Best):
    """Try changed subscriptions over historic events, against a snapshot."""

    changes: Input = setting("a table of [changes](what-if.md)")
    snapshot: Input | None = setting(
        "the subscriptions as they are", key="compile.snapshot", metavar="DIRECTORY"
    )
    subscriptions: Input | None = setting(
        "the same as a table, compiled for this; `--dialect`, `--taxonomy`, `--coerce`, `--injective`, "
        "`--nulls`, `--names` and `--dots` are about its filters",
        key=None,
    )
    events: Input = setting(
        "a [table](files.md#events) of historic events, or files of documents", key="events.table"
    )
    output: Output | None = setting("a table of the matches that would come and go")
    effects: Output | None = setting(
        "a table of the subscriptions that are concerned, noisiest first",
        shown="`OUTPUT-effects.jsonl`",
        more=_ELSEWHERE,
    )
    rejected: Output | None = setting(
        "a table for refused rows of changes and events", shown=REFUSED, more=_ELSEWHERE
    )
    page: Output | None = setting("a page with pictures (`.html`)", option="--report", metavar="FILE")
    noise: Share = setting("the part of the events above which a subscription is noisy", 0.1, least=0, most=1)
    cost: bool = setting(
        "measure size and speed before and after, for which the whole snapshot is written again", True
    )

    def request(self, snapshot: str) -> WhatIfRequest:
        """Return what is asked of changes to a snapshot."""
        from headgate.tables.requests import WhatIfRequest

        return WhatIfRequest(
            self.changes, snapshot, self.events, self.best, self.format, self.noise, self.cost
        )


def read_text(path: str) -> str:
    """Read a small file that a setting names."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TableError(f"{path} cannot be read: {reason}") from None
