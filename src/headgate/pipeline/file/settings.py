"""The settings of a pipeline file: a frozen dataclass for each of its tables, and one list of all settings.

Each setting is written down once, as a field with its kind, its default, what it may be and what it means.
The reader of files, the checks and the documentation go by `SETTINGS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.event import RDF_TYPES
from headgate.core.subscription import dialects
from headgate.pipeline.file.setting import Kind, Setting, made, settings_of
from headgate.workloads.catalogue import (
    EXCHANGE_SELECTIVITIES,
    NAMES,
    RANKING_SCORES,
    RDF_NAMES,
    SOCIAL_SELECTIVITIES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKLOADS = (*NAMES, "exchange", "social", "ranking", *RDF_NAMES, "xmark")
FORMATS = (*RDF_TYPES, "xml")
MODES = ("exact", "relaxed")
RULES = ("hash", "tenant", "access")
_SELECTIVITIES = tuple(sorted({*EXCHANGE_SELECTIVITIES, *SOCIAL_SELECTIVITIES}))


@dataclass(frozen=True, kw_only=True)
class About:
    """`[pipeline]`: what it is called, and where what it makes goes."""

    name: str = made(Kind.TEXT, "what the report is titled", shown="the file's name without its ending")
    directory: str = made(
        Kind.INPUT,
        "where outputs go, and what is remembered of each run; paths of outputs are relative to it",
        shown="a folder beside the file, named as it is without its ending",
    )


@dataclass(frozen=True, kw_only=True)
class Spark:
    """`[spark]`: where it runs. Answers do not depend on it."""

    master: str | None = made(
        Kind.TEXT, "a Spark master: `local[N]`, `spark://…`, `yarn`, `k8s://…`", shown="inside this process"
    )
    conf: Mapping[str, str] = made(Kind.TEXTS, "Spark's own settings, by their names", shown="none")


@dataclass(frozen=True, kw_only=True)
class Generate:
    """`[generate]`: tables that are made up, for demos and tests."""

    workload: str = made(Kind.TEXT, "which [workload](workloads.md)", required=True, choices=WORKLOADS)
    subscriptions: int | None = made(
        Kind.WHOLE, "how many subscriptions; graphs have none", least=0, shown="as `headgate generate`"
    )
    events: int | None = made(Kind.WHOLE, "how many events", least=0, shown="as `headgate generate`")
    seed: int = made(Kind.WHOLE, "the same seed gives the same rows", 1)
    format: str = made(Kind.TEXT, "of the tables", "parquet", choices=("parquet", "jsonl"))
    nodes: int | None = made(
        Kind.WHOLE, "`social`: how many persons", least=2, shown="as `headgate generate`"
    )
    edges: int | None = made(
        Kind.WHOLE, "`social`: who follows whom", least=4, shown="as `headgate generate`"
    )
    scale: int = made(Kind.WHOLE, "`exchange`: times the size of the paper's", 1, least=1, most=5)
    selectivity: str | None = made(
        Kind.TEXT,
        "`exchange`, `social`: the part of the filters that an event matches",
        choices=_SELECTIVITIES,
        shown="as `headgate generate`",
    )
    vocabulary: int | None = made(
        Kind.WHOLE, "`exchange`: values of each attribute", least=16, most=1_000_000, shown="4 to 86"
    )
    dimensions: int | None = made(Kind.WHOLE, "`ranking`: intervals of a subscription", least=1, shown="1")
    attributes: int | None = made(
        Kind.WHOLE, "`ranking`: attributes of events, where subscriptions have intervals for some", least=8
    )
    presence: float | None = made(
        Kind.NUMBER, "`ranking`: the part of `attributes` that an event has", least=0, most=1, shown="1"
    )
    skew_length: float = made(Kind.NUMBER, "`ranking`: higher for shorter intervals", 0.75)
    scores: str = made(Kind.TEXT, "`ranking`: what scores follow", "length", choices=RANKING_SCORES)
    match_ratio: float | None = made(
        Kind.NUMBER,
        "`paper`: the part of the subscriptions that an event matches",
        least=0,
        most=1,
        shown="0.001",
    )
    overlap: float | None = made(
        Kind.NUMBER, "`paper`: the part of the others that share edges", least=0, most=1, shown="0.5"
    )
    constrained: bool = made(Kind.FLAG, "`paper`: put bounds on variables", False)
    unique: int | None = made(
        Kind.WHOLE, "`xmark`: how many subscriptions are different", least=1, shown="all of them"
    )
    kilobytes: tuple[int, int] = made(
        Kind.PAIR,
        "`xmark`: the size of a document, at least and at most",
        (10, 40),
        least=1,
        most=10_000,
        shown="`[10, 40]`",
    )


@dataclass(frozen=True, kw_only=True)
class Subscriptions:
    """`[subscriptions]`: the filters, and what is said of all of them."""

    table: str | None = made(
        Kind.INPUT, "a [table](files.md#subscriptions) of them", shown="what `[generate]` makes"
    )
    dialect: str | None = made(
        Kind.TEXT,
        "what filters are written in whose rows name none",
        choices=dialects(),
        shown='`"sql"`, or what `[generate]` makes',
    )
    schema: str | None = made(
        Kind.INPUT, "records: a JSON file with the attributes' types; filters are checked"
    )
    sample: str | None = made(
        Kind.INPUT, "records: a table of events like those to come; filters are filed under rare values"
    )
    ranked: bool | None = made(
        Kind.FLAG, "rank subscriptions, or don't", shown="true if the table has `score` or `weights`"
    )
    taxonomy: tuple[str, ...] | None = made(
        Kind.INPUTS,
        "RDF: files of the [taxonomy](rdf-events.md#taxonomy)",
        shown="none, or what `[generate]` makes",
    )
    coerce: bool = made(Kind.FLAG, "RDF: read strings that are compared with numbers as numbers", False)
    injective: bool = made(Kind.FLAG, "RDF: different nodes of a filter are different nodes", False)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """`[graph]`: what lies between publishers and subscribers."""

    nodes: str | None = made(
        Kind.INPUT, "a table of its [nodes](files.md#graphs)", shown="what `[generate]` makes"
    )
    edges: str | None = made(Kind.INPUT, "a table of its edges", shown="what `[generate]` makes")


@dataclass(frozen=True, kw_only=True)
class Shards:
    """`[shards]`: how subscriptions are cut into parts. Answers do not depend on it."""

    count: int = made(Kind.WHOLE, "how many parts", 1, least=1, most=1_000)
    by: str = made(Kind.TEXT, "the rule", "hash", choices=RULES)
    column: str | None = made(
        Kind.TEXT,
        "`tenant`: the column that says whose a subscription is, by default `tenant`; `access`: an attribute",
    )


@dataclass(frozen=True, kw_only=True)
class Compile:
    """`[compile]`: where the snapshot goes."""

    snapshot: str = made(Kind.OUTPUT, "a directory for the snapshot", "snapshot")
    rejected: str | None = made(Kind.OUTPUT, "a table for refused rows", shown="`SNAPSHOT-rejected.jsonl`")


@dataclass(frozen=True, kw_only=True)
class Events:
    """`[events]`: what is matched."""

    table: str | None = made(
        Kind.INPUT,
        "a [table](files.md#events) of events, or files of documents",
        shown="what `[generate]` makes",
    )
    format: str | None = made(
        Kind.TEXT, "RDF, XML: what documents are written in that do not say so", choices=FORMATS
    )


@dataclass(frozen=True, kw_only=True)
class Match:
    """`[[match]]`: events to a table of matches; there may be several."""

    name: str = made(Kind.TEXT, "what the step is called", "matches")
    output: str | None = made(Kind.OUTPUT, "a table of matches", shown="`NAME.parquet`")
    rejected: str | None = made(Kind.OUTPUT, "a table for refused events", shown="`OUTPUT-rejected.jsonl`")
    top: int | None = made(Kind.WHOLE, "only the best of each event, so many", least=0, shown="all matches")
    mode: str | None = made(Kind.TEXT, "with `top`: what makes one better", choices=MODES, shown='`"exact"`')
    factors: Mapping[str, float] | None = made(
        Kind.NUMBERS, "`relaxed`: what the weights of an attribute's clauses are multiplied by"
    )
    tuples: str | None = made(Kind.OUTPUT, "XML: a table for what the patterns return")
    busiest: int = made(
        Kind.WHOLE,
        "the report: how many of the subscriptions with the most matches are listed; 0 does not sum up",
        10,
        least=0,
        most=1_000,
    )


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """`[[backtest]]`: one filter over the events; there may be several."""

    name: str = made(Kind.TEXT, "what the step is called", "backtest")
    filter: str = made(Kind.TEXT, "the filter to try", required=True)
    dialect: str | None = made(
        Kind.TEXT, "what it is written in", choices=dialects(), shown="as `subscriptions.dialect`"
    )
    output: str | None = made(Kind.OUTPUT, "a table for the events that it matches")


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """`[[what_if]]`: changed subscriptions against the events; there may be several."""

    name: str = made(Kind.TEXT, "what the step is called", "what-if")
    changes: str = made(Kind.INPUT, "a table of [changes](what-if.md)", required=True)
    output: str | None = made(
        Kind.OUTPUT, "a table of the matches that would come and go", shown="`NAME.parquet`"
    )
    effects: str | None = made(
        Kind.OUTPUT, "a table of the subscriptions that are concerned", shown="`NAME-effects.jsonl`"
    )
    rejected: str | None = made(Kind.OUTPUT, "a table for refused rows", shown="`OUTPUT-rejected.jsonl`")
    page: str | None = made(Kind.OUTPUT, "an HTML page of it", shown="`NAME.html`")
    top: int | None = made(
        Kind.WHOLE, "compare the best of each event, so many", least=0, shown="all matches"
    )
    noise: float = made(
        Kind.NUMBER, "the part of the events above which a subscription is noisy", 0.1, least=0, most=1
    )
    cost: bool = made(Kind.FLAG, "measure what an event costs before and after", True)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`[plan]`: a [network](plan.md) in which subscribers feed each other."""

    sample: str | None = made(Kind.INPUT, "a table of events, to estimate sizes", shown="`events.table`")
    output: str = made(Kind.OUTPUT, "a directory for the network", "network")
    rejected: str | None = made(
        Kind.OUTPUT, "a table for rows of the sample that are no events", shown="`OUTPUT-rejected.jsonl`"
    )
    page: str | None = made(Kind.OUTPUT, "draw it: `.html`, `.svg` or `.png`")
    sites: str | None = made(Kind.INPUT, "a table of sites, and what they can bear")
    fan_out: float | None = made(Kind.NUMBER, "views that a site feeds at most", least=0, shown="no bound")
    bandwidth: float | None = made(
        Kind.NUMBER, "bytes that a site can send for an event", least=0, shown="no bound"
    )
    cpu: float | None = made(Kind.NUMBER, "what a site can work for an event", least=0, shown="no bound")
    source_fan_out: float | None = made(
        Kind.NUMBER,
        "views that the publisher feeds at most",
        least=0,
        shown="those that it must, and a fifth more",
    )
    source_bandwidth: float | None = made(Kind.NUMBER, "bytes that it can send", least=0, shown="no bound")
    source_cpu: float | None = made(Kind.NUMBER, "what it can work", least=0, shown="no bound")
    rewritings: int = made(Kind.WHOLE, "for each view", 30, least=1)
    alpha: float = made(Kind.NUMBER, "what utilization weighs in the mixed cost", 0.0, least=0)
    beta: float = made(Kind.NUMBER, "what latency weighs in it", 1.0, least=0)
    relax: float = made(Kind.NUMBER, "by how much capacities may be passed to lower latency", 1.0, least=1)
    swaps: bool = made(Kind.FLAG, "move views aside to make room for others", True)
    time_limit: float = made(Kind.NUMBER, "seconds for the program", 300.0, least=0)
    gap: float = made(Kind.NUMBER, "how far from the optimum is good enough", 0.01, least=0)
    carries: str | None = made(
        Kind.TEXT,
        "records: what subscribers hold of an event",
        choices=("row", "key"),
        shown="records: required",
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """`[report]`: what is told of each run."""

    page: str = made(Kind.OUTPUT, "an HTML page", "report.html")
    json: str = made(Kind.OUTPUT, "the same for machines", "run.json")


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """`[metrics]`: counts and times for Prometheus."""

    file: str = made(
        Kind.OUTPUT, "a file in Prometheus' text format, as its node exporter reads them", "metrics.prom"
    )


class Shape(NamedTuple):
    """How a table of the file is read."""

    made: type[Any]
    many: bool = False
    """Whether there may be several, as an array of tables; each has a name."""


TABLES: dict[str, Shape] = {
    "pipeline": Shape(About),
    "spark": Shape(Spark),
    "generate": Shape(Generate),
    "subscriptions": Shape(Subscriptions),
    "graph": Shape(Graph),
    "shards": Shape(Shards),
    "compile": Shape(Compile),
    "events": Shape(Events),
    "match": Shape(Match, many=True),
    "backtest": Shape(Backtest, many=True),
    "what_if": Shape(WhatIf, many=True),
    "plan": Shape(Plan),
    "report": Shape(Report),
    "metrics": Shape(Metrics),
}
STREAM = "stream"
"""The table whose settings are those of `headgate stream`; they are kept where streams are."""


SETTINGS: tuple[Setting, ...] = tuple(
    setting for name, shape in TABLES.items() for setting in settings_of(name, shape.made)
)
"""All settings but those of `[stream]`."""
