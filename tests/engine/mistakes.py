"""Typical mistakes, and what is said about each: a table in a file, and how its rows are tried.

A row is what was typed, in Python with the names of `make_world`, or in a shell in the folder that it fills,
and below it what is said. `python -m tests.engine.mistakes` writes what is said anew: look at the difference.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import shlex
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import headgate
from headgate import Edge, Engine, Event, Node, Subscription, Taxonomy
from headgate.errors import HeadgateError

TABLE = Path(__file__).with_suffix(".txt")


class Mistake(NamedTuple):
    """What was typed, and what is said."""

    typed: str
    said: str


def mistakes(text: str) -> list[Mistake]:
    """Read the table."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) % 2 == 0
    return [Mistake(typed, said) for typed, said in zip(lines[::2], lines[1::2], strict=True)]


PEOPLE = [{"id": "adults", "filter": "age >= 18"}, {"id": "news", "filter": "topic = 'news'"}]
PIPELINE = '[events]\ntable = "events.jsonl"\n[subscriptions]\ntable = "subs.jsonl"\n'
FILES: dict[str, str] = {
    "subs.jsonl": '{"id": "s1", "filter": "age > 30"}\n',
    "events.jsonl": '{"id": "e1", "age": 35}\n',
    "events.csv": "name,age\nann,35\n",
    "no-filter.csv": "id,rule\ns1,age > 30\n",
    "subs.txt": "age > 30\n",
    "subs.xlsx": "PK",
    "broken.parquet": "no Parquet",
    "nodes.jsonl": '{"id": "pub"}\n',
    "edges.jsonl": '{"source": "pub", "target": "nowhere"}\n',
    "not.toml": "[pipeline\n",
    "unknown.toml": PIPELINE + "[matching]\ntop = 3\n",
    "misspelt.toml": PIPELINE.replace("table", "tabel", 1),
    "elsewhere.toml": PIPELINE + "[compile]\nshards = 4\n",
    "wrong.toml": PIPELINE + '[[match]]\ntop = "three"\n',
    "missing.toml": PIPELINE.replace("events.jsonl", "gone.jsonl") + "[[match]]\n",
    "nothing.toml": '[events]\ntable = "events.jsonl"\n',
    "schema.json": '{"age": "number"}',
    "sites.csv": "id,cpu\na,1\n",
}


def make_world(folder: Path) -> dict[str, Any]:
    """Write the files that commands name, and return the names that expressions use."""
    for name, content in FILES.items():
        (folder / name).write_text(content, "utf-8")
    (folder / "inbox").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "letter.txt").write_text("dear\n", "utf-8")
    people = Engine.build(PEOPLE)
    people.save(folder / "snapshot")
    net = Engine.build(
        [Subscription("s1", "age > 30", node="net")],
        nodes=[Node("pub"), Node("net", "topic = 'sport'")],
        edges=[Edge("pub", "net")],
    )
    net.save(folder / "graph")
    art = Engine.build([Subscription("art", "ASK { ?x a <urn:Art> }", "sparql")])
    shop = Engine.build([Subscription("pens", "//item[price > 10]", "xpath")])
    art.save(folder / "rdf")
    shop.save(folder / "xml")
    changed = Engine.open(folder / "snapshot")
    changed.subscribe({"id": "old", "filter": "age > 80"})
    return {
        "pd": import_module("pandas"),
        "pa": pa,
        "pickle": pickle,
        **{name: getattr(headgate, name) for name in headgate.__all__},
        "Taxonomy": Taxonomy,
        "people": people,
        "ranked": Engine.build([{"id": "s1", "filter": "age > 30", "score": 2.0}]),
        "net": net,
        "art": art,
        "shop": shop,
        "changed": changed,
        "sql": partial(_one, "sql"),
        "labels": partial(_one, "labels"),
        "sparql": partial(_one, "sparql"),
        "tuples": partial(_one, "tuples"),
        "xpath": partial(_one, "xpath"),
        "tree": partial(_one, "tree"),
        "turtle": lambda text: Event("e1", text, content_type="text/turtle"),
        "xml": lambda text: Event("e1", text, content_type="application/xml"),
        "Event": Event,
        "json": json,
    }


def _one(dialect: str, text: str) -> Engine:
    """Build an engine of one filter."""
    return Engine.build([Subscription("s1", text, dialect)])


def attempt(typed: str, world: dict[str, Any]) -> str:
    """Do what was typed, and return what is said about it; anything but an error of ours is no answer."""
    if typed.startswith("$ "):
        return _run(shlex.split(typed[2:])[1:])
    try:
        done = eval(typed.removeprefix(">>> "), dict(world))
    except HeadgateError as error:
        return f"{type(error).__name__}: {error}"
    return f"no error: {done!r}"


def _run(arguments: list[str]) -> str:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["headgate", *arguments]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            import_module("headgate.cli").main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    if code in {1, 2} and not out.getvalue():
        return err.getvalue().removesuffix("\n")
    return f"no error: exit code {code}, {(out.getvalue() + err.getvalue())!r}"


def main() -> None:
    """Write the messages of the table anew."""
    text = TABLE.read_text("utf-8")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        world = make_world(Path(folder))
        found = []
        for line in text.splitlines():
            if line.startswith((">>> ", "$ ")):
                found += [line, attempt(line, world).replace(folder, "FOLDER")]
            elif line.startswith("#") or not line:
                found.append(line)
        os.chdir(here)
    TABLE.write_text("\n".join(found) + "\n", "utf-8")


if __name__ == "__main__":
    main()
