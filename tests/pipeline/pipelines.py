"""Small pipelines in files, and what they write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.pipeline.file.read import read_pipeline
from tests.spark.files import get_table, put, put_lines

if TYPE_CHECKING:
    from headgate.pipeline.file.model import Pipeline
    from tests.spark.files import Row

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "pipelines"

SHOP = """
[subscriptions]
table = "subs.jsonl"
[events]
table = "events.jsonl"
[[match]]
name = "all"
output = "matches.jsonl"
[[match]]
name = "best"
output = "best.jsonl"
top = 2
busiest = 0
"""
SUBSCRIPTIONS: list[Row] = [
    {"id": "cheap", "filter": "price < 50", "score": 1},
    {"id": "shoes", "filter": "topic = 'shoes'", "score": 3},
    {"id": "both", "filter": "topic = 'shoes' AND price < 100", "score": 2},
    {"id": "broken", "filter": "price <", "score": 2},
]
EVENTS: list[Row] = [
    {"id": "e1", "topic": "shoes", "price": 40},
    {"id": "e2", "topic": "shoes", "price": 90},
    {"id": "e3", "topic": "books", "price": 10},
    {"topic": "books"},
]
MATCHES = {("e1", "cheap"), ("e1", "shoes"), ("e1", "both"), ("e2", "shoes"), ("e2", "both"), ("e3", "cheap")}


def shop(folder: Path, text: str = SHOP, sets: dict[str, Any] | None = None) -> Pipeline:
    """Write the shop's tables and its file into a folder, and read it."""
    if not (folder / "subs.jsonl").exists():
        put_lines(folder / "subs.jsonl", SUBSCRIPTIONS)
        put_lines(folder / "events.jsonl", EVENTS)
    return read_pipeline(Path(put(folder / "shop.toml", text)), sets)


def pairs(path: Path | str) -> set[tuple[Any, Any]]:
    """Return the matches of a table."""
    return {(row["event_id"], row["subscription_id"]) for row in get_table(Path(path))}
