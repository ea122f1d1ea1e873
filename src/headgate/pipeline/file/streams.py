"""The table `[stream]`: its settings are those of `headgate stream`, field by field."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from headgate.pipeline.file.setting import Kind, Setting
from headgate.pipeline.file.settings import STREAM
from headgate.pipeline.run.stream_history import run_told
from headgate.runtime.questions import MODES
from headgate.spark.stream.request import check_request
from headgate.spark.stream.settings import ARCHIVE, FORMATS, StreamSettings, is_broker

if TYPE_CHECKING:
    import threading

    from headgate.pipeline.file.model import Pipeline
    from headgate.spark.session.session import Session
    from headgate.spark.stream.run import StreamResult

_KINDS = {
    "str": Kind.TEXT,
    "bool": Kind.FLAG,
    "int": Kind.WHOLE,
    "float": Kind.NUMBER,
    "Mapping[str, float]": Kind.NUMBERS,
    "Mapping[str, str]": Kind.TEXTS,
}
_PATHS = {
    **dict.fromkeys(("events", "changes"), Kind.INPUT),
    **dict.fromkeys(
        ("output", "state", "dead_letters", "rejected_changes", "metrics", "report"), Kind.OUTPUT
    ),
}
_CHOICES = {"format": FORMATS, "mode": MODES}
_DEFAULTS = {"output": "stream", "state": "stream-state"}
_SHOWN = {
    "content_type": "`events.format`",
    "dead_letters": "`OUTPUT-dead-letters`",
    "rejected_changes": "`OUTPUT-rejected-changes`",
}


@cache
def stream_settings() -> tuple[Setting, ...]:
    """List the settings of `[stream]`; the snapshot is the pipeline's own."""
    words = _words()
    found = []
    for each in fields(StreamSettings):
        if each.name == "snapshot":
            continue
        kind = _PATHS.get(each.name) or _KINDS[str(each.type).removesuffix(" | None")]
        default = _DEFAULTS.get(each.name, None if each.default is MISSING else each.default)
        found.append(
            Setting(
                STREAM,
                each.name,
                kind,
                default,
                words[each.name],
                choices=_CHOICES.get(each.name, ()),
                required=each.name == "events",
                shown=_SHOWN.get(each.name, ""),
            )
        )
    return tuple(found)


def _words() -> dict[str, str]:
    """Read what is written below each field of the stream's own settings."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(StreamSettings)))
    (made,) = tree.body
    assert isinstance(made, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for each in made.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            name = each.target.id
        elif name and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            found[name], name = str(each.value.value).rstrip("."), ""
    return found


def settings_of_stream(pipeline: Pipeline) -> StreamSettings:
    """Return what a stream is told; refuses what makes no sense."""
    found = _settings(pipeline)
    found.check()
    return found


def stream_places(pipeline: Pipeline) -> list[tuple[str, str, bool]]:
    """List the paths of a stream by their settings, and whether each is written; brokers are none."""
    if "events" not in (pipeline.stream or {}):
        return []
    settings = _settings(pipeline)
    paths = {name: getattr(settings, name) for name in _PATHS}
    paths |= {"dead_letters": settings.dead, "rejected_changes": settings.rejected}
    if is_broker(settings.output):
        # By default they are in the state then, which is the stream's own.
        paths |= {name: getattr(settings, name) for name in ("dead_letters", "rejected_changes")}
    return [
        (name, path, _PATHS[name] is Kind.OUTPUT)
        for name, path in paths.items()
        if path is not None and not (is_broker(path) and name in {"events", "changes", "output"})
    ]


def _settings(pipeline: Pipeline) -> StreamSettings:
    given: dict[str, Any] = dict(pipeline.stream or {})
    for name, default in _DEFAULTS.items():
        given.setdefault(name, str(pipeline.directory / default))
    if pipeline.events is not None:
        given.setdefault("content_type", pipeline.events.format)
    if given.get("window") == 0:
        given["window"] = None
    archive = str(given.get("finished", ""))
    if archive.startswith(ARCHIVE):
        given["finished"] = f"{ARCHIVE}{pipeline.directory / archive.removeprefix(ARCHIVE)}"
    return StreamSettings(snapshot=pipeline.compile.snapshot, **given)


def stream(
    session: Session, pipeline: Pipeline, stop: threading.Event | None, *, quiet: bool, command: str
) -> StreamResult:
    """Stream until the end, the time is over, or `stop` is set; `command` is for the page about it."""
    settings = settings_of_stream(pipeline)
    check_request(settings)
    return run_told(session, settings, stop=stop, quiet=quiet, command=command)
