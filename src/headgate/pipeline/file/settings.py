"""The tables of a pipeline file: whose settings each holds.

A job's own table has the settings of its request; those that several jobs share stand in tables of their own
(`[spark]`, `[subscriptions]`, `[events]`…), as the fields' keys say. What is here besides is about pipelines
alone, and what differs in a file from the command line (`_OTHERWISE`), with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.settings import Input, Output, Request, setting, settings_of
from headgate.plan.settings import Plan
from headgate.stream.settings import StreamSettings
from headgate.tables import settings as asked
from headgate.workloads.settings import Generate

if TYPE_CHECKING:
    from headgate.core.settings import Setting


@dataclass(frozen=True, kw_only=True)
class About(Request):
    """`[pipeline]`: what it is called, and where what it makes goes."""

    name: str = setting("what the report is titled", "", shown="the file's name without its ending")
    directory: Input = setting(
        "where outputs go, and what is remembered of each run; paths of outputs are relative to it",
        "",
        shown="a folder beside the file, named as it is without its ending",
    )


@dataclass(frozen=True, kw_only=True)
class Match(asked.Match):
    """`[[match]]`: events to a table of matches; there may be several."""

    name: str = setting("what the step is called", "matches")
    busiest: int = setting(
        "the report: how many of the subscriptions with the most matches are listed; 0 does not sum up",
        10,
        least=0,
        most=1_000,
    )


@dataclass(frozen=True, kw_only=True)
class Backtest(asked.Backtest):
    """`[[backtest]]`: one filter over the events; there may be several."""

    name: str = setting("what the step is called", "backtest")


@dataclass(frozen=True, kw_only=True)
class WhatIf(asked.WhatIf):
    """`[[what_if]]`: changed subscriptions against the events; there may be several."""

    name: str = setting("what the step is called", "what-if")


@dataclass(frozen=True, kw_only=True)
class Report(Request):
    """`[report]`: what is told of each run."""

    page: Output = setting("an HTML page", "report.html")
    json: Output = setting("the same for machines", "run.json")


@dataclass(frozen=True, kw_only=True)
class Metrics(Request):
    """`[metrics]`: counts and times for Prometheus."""

    file: Output = setting(
        "a file in Prometheus' text format, as its node exporter reads them", "metrics.prom"
    )


_MADE = {"shown": "what `[generate]` makes"}
_NAMED = {"required": False, "shown": "`NAME.parquet`"}
_OTHERWISE: dict[str, dict[str, Any]] = {
    # Generated tables need not be named.
    "subscriptions.table": _MADE,
    "subscriptions.dialect": {"shown": '`"sql"`, or what `[generate]` makes'},
    "subscriptions.taxonomy": {"shown": "none, or what `[generate]` makes"},
    "graph.nodes": _MADE,
    "graph.edges": _MADE,
    "events.table": {**_MADE, "required": False},
    # Steps read them, not people.
    "generate.format": {"default": "parquet"},
    # The directory is the pipeline's, so outputs in it have names.
    "compile.snapshot": {"required": False, "default": "snapshot"},
    "compile.rejected": {"shown": "`SNAPSHOT-rejected.jsonl`"},
    "match.output": _NAMED,
    "what_if.output": _NAMED,
    "what_if.effects": {"shown": "`NAME-effects.jsonl`"},
    "what_if.page": {"shown": "`NAME.html`"},
    "plan.output": {"required": False, "default": "network"},
    "stream.output": {"required": False, "default": "stream"},
    "stream.state": {"required": False, "default": "stream-state"},
    # What several jobs ask of the same events and filters is said once.
    "backtest.dialect": {"shown": "as `subscriptions.dialect`"},
    "plan.sample": {"required": False, "shown": "`events.table`"},
    "stream.content_type": {"shown": "`events.format`"},
}


class Table(NamedTuple):
    """A table of the file."""

    settings: tuple[Setting, ...]
    made: type[Any]
    """The request that it is for, or the first of several."""
    many: bool = False
    """Whether there may be several, as an array of tables; each has a name."""


_OWNERS: dict[str, type[Any]] = {
    "pipeline": About,
    "spark": asked.Where,
    "generate": Generate,
    "subscriptions": asked.Compile,
    "graph": asked.Compile,
    "shards": asked.Compile,
    "compile": asked.Compile,
    "events": asked.Match,
    "match": Match,
    "backtest": Backtest,
    "what_if": WhatIf,
    "plan": Plan,
    "report": Report,
    "metrics": Metrics,
    "stream": StreamSettings,
}
MANY = ("match", "backtest", "what_if")
"""Tables of which there may be several."""


def _table(name: str, made: type[Any]) -> Table:
    settings = [
        replace(each, **_OTHERWISE.get(f"{name}.{each.where}", {}))
        for each in settings_of(made)
        if each.key is not None and (each.key.rpartition(".")[0] or _home(made)) == name
    ]
    return Table(tuple(sorted(settings, key=lambda each: each.name != "name")), made, name in MANY)


def _home(made: type[Any]) -> str:
    """Name the job's own table: the last that is of its class."""
    return "match" if made is asked.Match else [name for name, each in _OWNERS.items() if each is made][-1]


TABLES: dict[str, Table] = {name: _table(name, made) for name, made in _OWNERS.items()}
SETTINGS: dict[str, Setting] = {
    f"{name}.{each.where}": each for name, table in TABLES.items() for each in table.settings
}
"""All settings, by where they stand."""
