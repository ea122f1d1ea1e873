"""A pipeline file to a `Pipeline`: every setting is checked, and all problems are told at once."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.core.settings import Problem, SettingKind, nearest, read_values, settings_of
from headgate.core.subscription import SQL
from headgate.pipeline.file import settings as given
from headgate.pipeline.file.model import DOCUMENTS, Pipeline, PipelineError, generated
from headgate.pipeline.file.settings import SETTINGS, TABLES
from headgate.pipeline.file.together import together
from headgate.plan.settings import Plan
from headgate.stream.settings import ARCHIVE, StreamSettings, is_broker
from headgate.tables.places import beside
from headgate.tables.settings import Compile, Where
from headgate.workloads.settings import Generate

_NAMED = {
    "match": {"output": ".parquet"},
    "what_if": {"output": ".parquet", "effects": "-effects.jsonl", "page": ".html"},
}
"""Outputs that are called after their table's name."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*\Z")

Raw = dict[str, Any]


def read_pipeline(file: Path, overrides: dict[str, Any] | None = None) -> Pipeline:
    """Read a pipeline file; refuses it with all that is wrong.

    `overrides` are values for some settings by `table.key`, or `table.name.key` where there are several.
    """
    raw = _parse(file)
    reader = _Reader(file)
    reader.override(raw, overrides or {})
    pipeline = reader.read(raw)
    if reader.problems or pipeline is None:
        raise PipelineError(str(file), reader.problems)
    return pipeline


def _parse(file: Path) -> Raw:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise PipelineError(str(file), [Problem("", f"the file cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        raise PipelineError(str(file), [Problem("", f"the file is not UTF-8: {error}")]) from None
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(str(file), [Problem("", f"not valid TOML: {error}")]) from None


class _Reader:
    """Reads one file, and notes what is wrong on the way."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def refuse(self, where: str, why: str, right: str = "") -> None:
        self.problems.append(Problem(where, why, right))

    def override(self, raw: Raw, overrides: dict[str, Any]) -> None:
        """Put values into what the file says."""
        for where, value in overrides.items():
            table, _, key = where.partition(".")
            if table not in TABLES or not key:
                right = "write table.key=value" if not key else nearest(table, TABLES)
                self.refuse(where, "there is no such setting", right)
            elif TABLES[table].many:
                self._override_one(raw, table, key, value)
            elif table == "spark" and key.startswith("conf."):
                inside = raw.setdefault(table, {}).setdefault("conf", {})
                inside[key.removeprefix("conf.")] = str(value)
            else:
                raw.setdefault(table, {})[key] = value

    def _override_one(self, raw: Raw, table: str, key: str, value: Any) -> None:
        """Put a value into one of several tables: that of a name, or the only one."""
        entries = raw.setdefault(table, [{}])
        entries = [entries] if isinstance(entries, dict) else entries
        default = str(SETTINGS[f"{table}.name"].default)
        name, dot, rest = key.partition(".")
        chosen = [each for each in entries if dot and each.get("name", default) == name]
        if not dot and len(entries) == 1:
            chosen, rest = entries, key
        if len(chosen) == 1:
            chosen[0][rest] = value
            return
        known = [str(each.get("name", default)) for each in entries]
        why = (
            f"there are {len(entries)} tables [[{table}]]" if not dot else f"there is no [[{table}]] {name!r}"
        )
        self.refuse(f"{table}.{key}", why, f"write {table}.NAME.key=value with one of {', '.join(known)}")

    def read(self, raw: Raw) -> Pipeline | None:
        """Read all tables; None if some could not be made."""
        for name in raw:
            if name not in TABLES:
                self.refuse(name, "there is no such table", nearest(name, TABLES))
        stem = self.file.stem
        about_values = {"name": stem, "directory": stem, **self._table("pipeline", raw.get("pipeline"))}
        about = given.About(**self._values("pipeline", about_values, self.file.parent))
        if "://" in about.directory:
            right = "name a folder; outputs may be elsewhere, each by a URI of its own"
            self.refuse("pipeline.directory", f"{about.directory} is not on this machine", right)
        if self.problems and not about.directory:
            return None
        folder = Path(about.directory)
        one: dict[str, Raw] = {}
        many: dict[str, list[Raw]] = {}
        for name, table in TABLES.items():
            if table.many:
                many[name] = self._several(name, raw.get(name), folder)
            elif name != "pipeline" and (name in raw or name in _ALWAYS):
                one[name] = self._values(name, self._table(name, raw.get(name)), folder)
        if self.problems:
            return None
        pipeline = _pipeline(self.file, about, one, many)
        self.problems += together(pipeline)
        return pipeline

    def _table(self, name: str, raw: object) -> Raw:
        if raw is None:
            return {}
        if isinstance(raw, dict):
            return raw
        self.refuse(name, f"it is {_kind(raw)}", f"write a table, [{name}]")
        return {}

    def _several(self, table: str, raw: object, folder: Path) -> list[Raw]:
        """Read an array of tables, or one table; names tell them apart."""
        entries = [] if raw is None else [raw] if isinstance(raw, dict) else raw
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            self.refuse(table, f"it is {_kind(raw)}", f"write a table, [[{table}]]")
            return []
        tables = []
        default = SETTINGS[f"{table}.name"].default
        for number, each in enumerate(entries, 1):
            label = f"{table}[{number}]" if len(entries) > 1 else table
            values = {"name": default, **self._values(table, each, folder, label)}
            if not _NAME.match(values["name"]):
                self.refuse(
                    f"{label}.name", f"{values['name']!r} is not a name", "use letters, digits and . _ -"
                )
            for key, ending in _NAMED.get(table, {}).items():
                values.setdefault(key, str(folder / f"{values['name']}{ending}"))
            tables.append(values)
        for name, times in Counter(each["name"] for each in tables).items():
            if times > 1:
                self.refuse(table, f"{times} of them are named {name!r}", "give each a name of its own")
        return tables

    def _values(self, table: str, raw: Raw, folder: Path, label: str = "") -> Raw:
        """Check what a table says, add what it is by default, and say where its paths lead."""
        settings = TABLES[table].settings
        values, problems = read_values(settings, raw, label or table)
        self.problems += problems
        for each in settings:
            value = values.get(each.name)
            if value is None and each.default not in (None, (), {}):
                value = values[each.name] = each.default
            if value is not None and each.kind.is_path:
                base = folder if each.kind is SettingKind.OUTPUT else self.file.parent
                paths = [place(path, base) for path in (value if isinstance(value, tuple) else (value,))]
                values[each.name] = tuple(paths) if isinstance(value, tuple) else paths[0]
        return values


_ALWAYS = ("compile", "report")
"""Tables that are there also if the file does not have them."""


def _pipeline(file: Path, about: given.About, one: dict[str, Raw], many: dict[str, list[Raw]]) -> Pipeline:
    """Make the requests of all jobs: each takes what other tables say for it."""
    folder = Path(about.directory)
    generate = Generate(**one["generate"]) if "generate" in one else None

    def made(name: str) -> str | None:
        return generated(generate, folder, name)

    tables: Raw = {name: made(name) for name in ("subscriptions", "nodes", "edges")}
    if (taxonomy := made("taxonomy")) is not None:
        tables["taxonomy"] = (taxonomy,)
    said = {**tables, **_joined(one, "subscriptions", "graph", "shards", "compile")}
    if generate is not None and said["subscriptions"] == tables["subscriptions"]:
        said.setdefault("dialect", DOCUMENTS.get(generate.workload, SQL))
    compiled = Compile(**_rejecting(said, said["snapshot"], folder))
    events = one.get("events", {})
    table, form = events.get("events") or made("events"), events.get("format")
    shared = {
        "compile.snapshot": compiled.snapshot,
        "events.table": table,
        "events.format": form,
        "subscriptions.taxonomy": compiled.taxonomy,
        "subscriptions.coerce": compiled.coerce,
        "subscriptions.injective": compiled.injective,
        **{f"subscriptions.{name}": value for name, value in compiled.plain.items()},
    }

    def ask(request: type[Any], values: Raw) -> Any:
        names = {each.name: each.key for each in settings_of(request)}
        taken = {name: shared[key] for name, key in names.items() if key in shared}
        output = values.get("output") if "rejected" in names else None
        return request(**_rejecting({**taken, **values}, output, folder))

    plan, stream = one.get("plan"), one.get("stream")
    return Pipeline(
        file=file,
        about=about,
        spark=Where(**one.get("spark", {})),
        generate=generate,
        compile=compiled,
        events=table,
        format=form,
        matches=tuple(ask(given.Match, each) for each in many["match"]),
        backtests=tuple(
            ask(given.Backtest, {"dialect": compiled.dialect, **each}) for each in many["backtest"]
        ),
        what_ifs=tuple(ask(given.WhatIf, each) for each in many["what_if"]),
        plan=None if plan is None else ask(Plan, {"sample": table, **plan}),
        report=given.Report(**one["report"]),
        metrics=given.Metrics(**one["metrics"]) if "metrics" in one else None,
        stream=None
        if stream is None
        else _streamed(ask(StreamSettings, {"content_type": form, **stream}), folder),
    )


def _joined(one: dict[str, Raw], *tables: str) -> Raw:
    return {name: value for table in tables for name, value in one.get(table, {}).items()}


def _rejecting(values: Raw, output: str | None, folder: Path) -> Raw:
    """Name the table of refused rows after the output, unless it has a name."""
    if output is not None and "rejected" not in values:
        return {**values, "rejected": beside(output, "rejected", folder)}
    return values


def _streamed(stream: StreamSettings, folder: Path) -> StreamSettings:
    """Say where the other outputs of a stream go. With a broker they are in the state, its own."""
    if stream.finished.startswith(ARCHIVE):
        kept = folder / stream.finished.removeprefix(ARCHIVE)
        stream = replace(stream, finished=f"{ARCHIVE}{kept}")
    if is_broker(stream.output):
        return stream
    return replace(stream, dead_letters=stream.dead, rejected_changes=stream.rejected)


def place(path: str, folder: Path) -> str:
    """Return where a path of the file leads to.

    >>> place("a/b.csv", Path("jobs")), place("s3a://b/c", Path("jobs")), place("/x", Path("jobs"))
    ('jobs/a/b.csv', 's3a://b/c', '/x')
    """
    # Without what leads up: the folder may not be there yet.
    return path if "://" in path else os.path.normpath(folder / path)


def _kind(value: object) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), type(value).__name__)
