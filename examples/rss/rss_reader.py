"""An RSS reader: a folder of feeds, and for each subscriber the titles of the items that are for it.

Run it with `python rss_reader.py feeds subscriptions.jsonl topics.ttl`. What was refused or forgiven goes to
stderr.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headgate import Event, Options, Subscription, Taxonomy
from headgate.errors import EventError, FilterError
from headgate.rdf.events.feeds import read_feed
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "PREFIX rss: <http://purl.org/rss/1.0/> SELECT ?title { ?item a rss:item ; rss:title ?title }"


def read_items(folder: Path) -> Iterator[Event]:
    """Read the feeds of a folder: one event for each item. Feeds that cannot be read are passed over."""
    for path in sorted(folder.glob("*.rss")):
        try:
            feed = read_feed(Event(path.name, path.read_bytes(), content_type="rss"))
        except EventError as error:
            print(f"{path.name}: refused: {error}", file=sys.stderr)
            continue
        for note in feed.notes:
            print(f"{path.name}: {note}", file=sys.stderr)
        yield from feed.items


def subscribe_all(index: RdfIndex, path: Path) -> None:
    """Subscribe with the filters of a file. Those that are refused are passed over."""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        try:
            index.subscribe(Subscription(row["id"], row["filter"], row["dialect"]))
        except FilterError as error:
            print(f"{row['id']}: refused: {error}", file=sys.stderr)


def main(
    folder: str = "feeds", subscriptions: str = "subscriptions.jsonl", topics: str = "topics.ttl"
) -> None:
    """Print for each subscriber its items."""
    # Dates of feeds are strings: `coerce` reads them as dates where a filter compares them with one.
    taxonomy = Taxonomy.read(Path(topics).read_bytes(), "turtle")
    index = RdfIndex.build([], taxonomy=taxonomy, options=Options(coerce=True))
    subscribe_all(index, Path(subscriptions))
    titles = RdfIndex.build([Subscription("title", TITLE, "sparql")])

    found: dict[object, list[str]] = {identity: [] for identity in index.ids}
    for item in read_items(Path(folder)):
        rows = titles.bindings(item, "title", 1).rows
        title = parts(rows[0][0]).lexical if rows else "(no title)"
        for identity in index.match(item):
            found[identity].append(f"{item.id}  {title}")
    print("\n\n".join("\n  ".join((str(identity), *lines)) for identity, lines in found.items()))


if __name__ == "__main__":
    main(*sys.argv[1:])
