"""What a job over ten rows takes, from the start of the command to its end: in this process, and on Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.kernels import COMMAND, best, cpu
from benchmarks.results import Result

FILTERS = {
    "records": ("sql", "age > {}"),
    "rdf": ("sparql", "ASK {{ ?x <urn:age> ?y FILTER(?y > {}) }}"),
    "xml": ("xpath", "//person[age > {}]"),
}
EVENTS = {
    "records": '{{"id": {0}, "age": {0}}}',
    "rdf": '{{"id": {0}, "datacontenttype": "text/turtle", "data": "<urn:x> <urn:age> {0} ."}}',
    "xml": '{{"id": {0}, "datacontenttype": "application/xml", "data": "<person><age>{0}</age></person>"}}',
}
GOALS = {"records": 0.95, "rdf": 2.5, "xml": 2.5}


def run(size: str) -> list[Result]:
    """Measure compile and match of ten subscriptions and ten events; `full` also on Spark."""
    results = []
    for content, goal in GOALS.items():
        with tempfile.TemporaryDirectory() as folder:
            compiling, matching = _commands(Path(folder), content)
            for name, words, limit in (("compile", compiling, None), ("match", matching, goal)):
                measure = best if size == "full" else cpu
                here = measure(COMMAND, *words, "--engine", "local")
                there = cpu(COMMAND, *words, "--engine", "spark") if size == "full" else None
                title = f"headgate {name}, {content}, ten rows"
                results.append(
                    Result(title, here, "CPU s", there, "on Spark", limit if size == "full" else None)
                )
    return results


def _commands(folder: Path, content: str) -> tuple[list[str], list[str]]:
    dialect, text = FILTERS[content]
    filters = "".join(f'{{"id": {number}, "filter": "{text.format(number)}"}}\n' for number in range(10))
    (folder / "subs.jsonl").write_text(filters, "utf-8")
    events = "".join(f"{EVENTS[content].format(number)}\n" for number in range(10))
    (folder / "events.jsonl").write_text(events, "utf-8")
    snapshot = str(folder / "snapshot")
    compiling = ["compile", "--subscriptions", str(folder / "subs.jsonl"), "--output", snapshot]
    matching = ["match", "--snapshot", snapshot, "--events", str(folder / "events.jsonl")]
    matching += ["--output", str(folder / "matches.jsonl"), "--quiet"]
    return [*compiling, "--dialect", dialect, "--quiet"], matching
