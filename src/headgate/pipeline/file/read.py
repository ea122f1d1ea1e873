"""A pipeline file to a `Pipeline`: every setting is checked, and all problems are told at once."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from headgate.pipeline.file import settings as given
from headgate.pipeline.file.model import Pipeline, beside
from headgate.pipeline.file.setting import Kind, PipelineError, Problem, Setting, nearest, settings_of, wrong
from headgate.pipeline.file.settings import STREAM, TABLES
from headgate.pipeline.file.together import together

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
            if table not in {*TABLES, STREAM} or not key:
                right = "write table.key=value" if not key else nearest(table, [*TABLES, STREAM])
                self.refuse(where, "there is no such setting", right)
            elif table in TABLES and TABLES[table].many:
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
        default = str(settings_of(table, TABLES[table].made)[0].default)
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
            if name not in {*TABLES, STREAM}:
                self.refuse(name, "there is no such table", nearest(name, [*TABLES, STREAM]))
        stem = self.file.stem
        said = {"name": stem, "directory": stem, **self._table("pipeline", raw.get("pipeline"))}
        about = self._make("pipeline", said, self.file.parent)
        if about is not None and "://" in about.directory:
            right = "name a folder; outputs may be elsewhere, each by a URI of its own"
            self.refuse("pipeline.directory", f"{about.directory} is not on this machine", right)
        if about is None:
            return None
        folder = Path(about.directory)
        one: dict[str, Any] = {}
        many: dict[str, tuple[Any, ...]] = {}
        for table, shape in TABLES.items():
            if table == "pipeline":
                continue
            if shape.many:
                many[table] = self._several(table, raw.get(table), folder)
            elif table in raw:
                one[table] = self._make(table, self._table(table, raw[table]), folder)
        if self.problems:
            return None
        pipeline = Pipeline(
            file=self.file,
            about=about,
            spark=one.get("spark") or given.Spark(conf={}),
            generate=one.get("generate"),
            subscriptions=one.get("subscriptions"),
            graph=one.get("graph"),
            shards=one.get("shards") or given.Shards(),
            compile=_completed(one.get("compile"), folder),
            events=one.get("events"),
            matches=many["match"],
            backtests=many["backtest"],
            what_ifs=many["what_if"],
            plan=one.get("plan"),
            report=one.get("report") or self._make("report", {}, folder),
            metrics=one.get("metrics"),
            stream=self._stream(raw.get(STREAM), folder),
        )
        self.problems += together(pipeline)
        return pipeline

    def _table(self, name: str, raw: object) -> Raw:
        if raw is None:
            return {}
        if isinstance(raw, dict):
            return raw
        self.refuse(name, f"it is {_kind(raw)}", f"write a table, [{name}]")
        return {}

    def _several(self, table: str, raw: object, folder: Path) -> tuple[Any, ...]:
        """Read an array of tables, or one table; names tell them apart."""
        entries = [] if raw is None else [raw] if isinstance(raw, dict) else raw
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            self.refuse(table, f"it is {_kind(raw)}", f"write a table, [[{table}]]")
            return ()
        found = [
            self._make(table, each, folder, number if len(entries) > 1 else 0)
            for number, each in enumerate(entries, 1)
        ]
        names = Counter(each.name for each in found if each is not None)
        for name, times in names.items():
            if times > 1:
                self.refuse(table, f"{times} of them are named {name!r}", "give each a name of its own")
        return tuple(found)

    def _stream(self, raw: object, folder: Path) -> Raw | None:
        """Read `[stream]`, whose settings are kept where streams are."""
        if raw is None:
            return None
        from headgate.pipeline.file.streams import stream_settings

        settings = {each.name: each for each in stream_settings()}
        return self._values(STREAM, settings, self._table(STREAM, raw), folder)

    def _make(self, table: str, raw: Raw, folder: Path, number: int = 0) -> Any:
        """Make a table of what the file says; None if a setting is wrong."""
        settings = {each.name: each for each in settings_of(table, TABLES[table].made)}
        label = f"{table}[{number}]" if number else table
        before = len(self.problems)
        values = self._values(label, settings, raw, folder)
        if TABLES[table].many and "name" in values and not _NAME.match(values["name"]):
            self.refuse(f"{label}.name", f"{values['name']!r} is no name", "use letters, digits and . _ -")
        if len(self.problems) > before:
            return None
        if table == "spark":
            values.setdefault("conf", {})
        for key, ending in _NAMED.get(table, {}).items():
            stem = values.get("name") or settings["name"].default
            values.setdefault(key, str(folder / f"{stem}{ending}"))
        if "rejected" in settings and values.get("rejected") is None and "output" in values:
            values["rejected"] = beside(values["output"], "rejected", folder)
        return TABLES[table].made(**values)

    def _values(self, label: str, settings: dict[str, Setting], raw: Raw, folder: Path) -> Raw:
        """Check what a table says, and say where its paths lead."""
        values: Raw = {}
        for key, value in raw.items():
            if key not in settings:
                self.refuse(f"{label}.{key}", "there is no such setting", nearest(key, settings))
                continue
            problem = wrong(settings[key], value)
            if problem is not None:
                self.refuse(f"{label}.{key}", *problem)
                continue
            values[key] = self._placed(settings[key], value, folder)
        for setting in settings.values():
            if setting.required and setting.name not in raw:
                self.refuse(f"{label}.{setting.name}", "it is missing", setting.words)
            if setting.kind is Kind.OUTPUT and setting.name not in raw and setting.default is not None:
                values[setting.name] = self._placed(setting, setting.default, folder)
        return values

    def _placed(self, setting: Setting, value: Any, folder: Path) -> Any:
        """Say where a path leads: inputs from the file, outputs from the pipeline's directory."""
        if setting.kind is Kind.OUTPUT:
            return place(value, folder)
        if setting.kind is Kind.INPUT:
            return place(value, self.file.parent)
        if setting.kind is Kind.INPUTS:
            return tuple(place(each, self.file.parent) for each in value)
        if setting.kind is Kind.PAIR:
            return tuple(value)
        return value


def place(path: str, folder: Path) -> str:
    """Return where a path of the file leads to.

    >>> place("a/b.csv", Path("jobs")), place("s3a://b/c", Path("jobs")), place("/x", Path("jobs"))
    ('jobs/a/b.csv', 's3a://b/c', '/x')
    """
    # Without what leads up: the folder may not be there yet.
    return path if "://" in path else os.path.normpath(folder / path)


def _completed(compiled: given.Compile | None, folder: Path) -> given.Compile:
    """Name the snapshot and its rejected table where the file does not."""
    snapshot = compiled.snapshot if compiled else str(folder / "snapshot")
    rejected = (compiled.rejected if compiled else None) or beside(snapshot, "rejected", folder)
    return given.Compile(snapshot=snapshot, rejected=rejected)


def _kind(value: object) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), type(value).__name__)
