"""Every format that is written to disk: its version, a small example, and what the example must answer.

A case writes what a version of Headgate writes, into a directory. It is packed into one file, named by format
and version, which stays in `fixtures` for good. Later versions open it, or say which command brings it up to
date.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headgate import Dissemination, Edge, Engine, Event, Node, Subscription
from headgate.core.snapshot import VERSION
from headgate.graph.base import LAYOUT as GRAPH
from headgate.plan.running.saved_plan import LAYOUT as PLAN
from headgate.plan.running.saved_plan import SavedPlan
from headgate.ranking.filters.base import LAYOUT as RANKED
from headgate.rdf.index.live import LAYOUT as RDF
from headgate.records.index.live import LAYOUT as RECORDS
from headgate.runtime.state import LAYOUT as STATE
from headgate.runtime.statistics import LAYOUT as STATISTICS
from headgate.runtime.statistics import read_statistics
from headgate.service.backup import back_up, check, restore
from headgate.service.envelope import sent_row
from headgate.service.resources import ConsumerBody, SubscriptionBody
from headgate.service.server import Server
from headgate.service.settings import Quotas, ServiceSettings
from headgate.service.storage.database import SERVER, TENANT
from headgate.xml.index.live import LAYOUT as XML
from tests.streaming.world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FIXTURES = Path(__file__).parent / "fixtures"
_XML = Event("x", "<news><title>Up</title></news>", content_type="xml")
_TURTLE = Event("t", "<urn:a> <urn:b> <urn:c> .", content_type="turtle")


@dataclass(frozen=True)
class Case:
    """A format: its version now, what writes an example into a directory, and what opens and asks it."""

    version: str
    write: Callable[[Path], None]
    ask: Callable[[Path], object]
    answer: object


def engine(*subscriptions: Subscription, **more: Any) -> Callable[[Path], None]:
    """Return what saves an engine."""
    return lambda place: Engine.build(list(subscriptions), **more).save(place / "snapshot")


def matches(*events: Any) -> Callable[[Path], object]:
    """Return what opens an engine, changes it and asks for matches."""

    def ask(place: Path) -> object:
        opened = Engine.open(place / "snapshot")
        return [sorted(map(str, opened.match(each))) for each in events]

    return ask


def _snapshot(layout: int) -> str:
    return f"{VERSION}.{layout}"


_RECORDS = (
    Subscription("cheap", "price < 10 AND topic = 'sport'"),
    Subscription("text", "title LIKE '%up%' OR NOT (size IN (1, 2, 3))"),
    Subscription("computed", "price * 2 > size + 1 AND upper(topic) RLIKE '^S'"),
)
_EVENTS = (
    {"id": 1, "price": 5, "topic": "sport", "size": 2},
    {"id": 2, "price": 50, "topic": "news", "size": 9},
)
_RANKS = (
    Subscription("first", "a = 1 AND b = 2", score=2.0, weights=(1.0, 3.0)),
    Subscription("second", "a = 1 OR b > 5", score=1.0, weights=(1.0,)),
)


def _top(place: Path) -> object:
    opened = Engine.open(place / "snapshot")
    return [
        [str(each.subscription) for each in opened.top({"id": 1, "a": 1, "b": 2}, 2, mode=mode)]
        for mode in ("exact", "relaxed")
    ]


_NODES = [Node("in"), Node("mid", "kind = 'open'"), Node("end")]
_EDGES = [Edge("in", "mid"), Edge("mid", "end", "n > 1")]


def _plan(place: Path) -> None:
    patterns = [
        Subscription("all", "//news{id}[author{val}]//title{val}", "xpath"),
        Subscription("titles", "//news//title{val}", "xpath"),
    ]
    event = Event("e1", "<news><author>Bo</author><title>Up</title></news>", content_type="xml")
    Dissemination.build(patterns, [event]).saved.save(place / "plan")


def _ask_plan(place: Path) -> object:
    found = SavedPlan.open(place / "plan")
    return [list(found.ids), found.views().column_names[:3], found.feeds().num_rows]


def _stream(place: Path) -> None:
    """Have a stream that took in changes, and whose files of events are gone."""
    world = World(place)
    Engine.build([Subscription("s1", "n > 10"), Subscription("s2", "n < 15")]).save(world.snapshot)
    world.send("1.jsonl", [{"id": 1, "n": 12}])
    world.change(
        "1.jsonl", [{"op": "subscribe", "id": "s3", "filter": "n = 20"}, {"op": "unsubscribe", "id": "s1"}]
    )
    world.run(finished="delete", stats=str(place / "statistics.parquet"))


def _ask_stream(place: Path) -> object:
    world = World(place)
    world.send("2.jsonl", [{"id": 2, "n": 20}, {"id": 3, "n": 12}])
    done = world.run()
    return [done.events, done.changes, done.version, sorted(world.matches())]


def _ask_statistics(place: Path) -> object:
    kept = read_statistics(place / "statistics.parquet")
    rows = kept.table.select(["subscription_id", "matches"]).to_pylist()
    return [kept.events, [tuple(row.values()) for row in rows]]


_CONTENTS = {
    "cheap": SubscriptionBody(filter="price < 10", consumer="me"),
    "limited": SubscriptionBody(filter="price > 0", consumer="other", limit=None),
    "titles": SubscriptionBody(filter="//news/title", dialect="xpath", consumer="me"),
}
_KEY = "key.txt"


def _served(place: Path, use: Callable[[Server], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        server = Server(ServiceSettings(data=str(place)))
        try:
            return await use(server)
        finally:
            await server.close()

    return asyncio.run(run())


def _service(place: Path) -> None:
    """Have a data directory with subscriptions, events, a consumer that is behind, a key and quotas."""

    async def fill(server: Server) -> None:
        server.keys.keep_quotas("default", Quotas(subscriptions=4))
        tenant = await server.tenant("default")
        for name, said in _CONTENTS.items():
            await tenant.put(name, said)
        await tenant.put_consumer(
            "hook", lambda _: ConsumerBody(url="https://example.com/hook", enabled=False)
        )
        for number in range(5):
            sent = sent_row({"id": f"e{number}", "price": 4 * number})
            await tenant.publish([sent.event], [sent.text])
        state = server.dispatchers["default"].state("me")
        await server.dispatchers["default"].acknowledge(state, 2)
        _, text = server.keys.add("default", ["admin"], note="of the fixture")
        (place / _KEY).write_text(text)

    _served(place / "data", fill)


def _ask_service(place: Path, data: str = "data") -> object:
    async def ask(server: Server) -> object:
        key = server.keys.find((place / _KEY).read_text())
        tenant = await server.tenant("default")
        dispatcher = server.dispatchers["default"]
        before = await dispatcher.pull(dispatcher.state("me"), dispatcher.state("me").cursor, 10, 1 << 20, 0)
        sent = sent_row({"id": "new", "price": 3})
        found = await tenant.publish([sent.event], [sent.text], named=True)
        return [
            [key.note, sorted(key.scopes), tenant.registry.quotas.subscriptions],
            [each.position for each in before.deliveries],
            [found.positions, [sorted(map(str, each)) for each in found.matches]],
            sorted(tenant.registry.revisions),
            sorted(each.id for each in tenant.store.consumers.all()),
            msgspec.json.decode(next(iter(tenant.store.log.read(1, 1))).texts[0])["data"],
        ]

    found = _served(place / data, ask)
    assert [each.damage for each in check(place / data)] == [[]]
    return found


_SERVICE = [
    ["of the fixture", ["admin"], 4],
    [3],
    [[6], [["cheap", "limited"]]],
    ["cheap", "limited", "titles"],
    ["hook", "me", "other"],
    {"id": "e0", "price": 0},
]


def _backup(place: Path) -> None:
    _service(place)
    back_up(place / "data", place / "copy")
    import shutil

    shutil.rmtree(place / "data")


def _ask_backup(place: Path) -> object:
    restore(place / "copy", place / "restored")
    return _ask_service(place, "restored")


_DATA = f"{SERVER.format}.{TENANT.format}"

CASES = {
    "records": Case(
        _snapshot(RECORDS), engine(*_RECORDS), matches(*_EVENTS), [["cheap", "computed"], ["text"]]
    ),
    "rdf": Case(
        _snapshot(RDF),
        engine(
            Subscription("a", "SELECT * WHERE { ?x <urn:b> ?y }", "sparql"),
            Subscription("b", "SELECT * WHERE { ?x <urn:b> <urn:d> }", "sparql"),
        ),
        matches(_TURTLE),
        [["a"]],
    ),
    "xml": Case(
        _snapshot(XML),
        engine(Subscription("t", "//news/title", "xpath"), Subscription("u", "//news[not(title)]", "xpath")),
        matches(_XML),
        [["t"]],
    ),
    "mixed": Case(
        f"{VERSION}.{RECORDS}.{XML}",
        engine(Subscription("t", "//news/title", "xpath"), Subscription("r", "price < 10")),
        matches(_XML, _EVENTS[0]),
        [["t"], ["r"]],
    ),
    "graph": Case(
        f"{VERSION}.{GRAPH}.{RECORDS}",
        engine(
            Subscription("e", "n < 9", node="end"),
            Subscription("m", "true", node="mid"),
            nodes=_NODES,
            edges=_EDGES,
        ),
        matches(
            {"id": 1, "source": "in", "kind": "open", "n": 2},
            {"id": 2, "source": "in", "kind": "open", "n": 1},
        ),
        [["e", "m"], ["m"]],
    ),
    "ranked": Case(
        f"{VERSION}.{RANKED}.{RECORDS}",
        engine(*_RANKS, ranked=True),
        _top,
        [["first", "second"], ["first", "second"]],
    ),
    "plan": Case(_snapshot(PLAN), _plan, _ask_plan, [["all", "titles"], ["view", "site", "level"], 0]),
    "stream": Case(str(STATE), _stream, _ask_stream, [2, 0, 1, [("1", "s2"), ("2", "s3"), ("3", "s2")]]),
    "statistics": Case(str(STATISTICS), _stream, _ask_statistics, [1, [("s2", 1), ("s3", 0)]]),
    "service": Case(_DATA, _service, _ask_service, _SERVICE),
    "backup": Case(_DATA, _backup, _ask_backup, _SERVICE),
}


def packed(folder: Path) -> bytes:
    """Pack a directory into one file; the same files give the same bytes."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as tar,
    ):
        for place in sorted(folder.rglob("*")):
            about = tarfile.TarInfo(str(place.relative_to(folder)))
            if place.is_symlink():
                about.type, about.linkname = tarfile.SYMTYPE, str(place.readlink())
                tar.addfile(about)
            elif place.is_dir():
                about.type, about.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(about)
            else:
                content = place.read_bytes()
                about.size = len(content)
                tar.addfile(about, io.BytesIO(content))
    return buffer.getvalue()


def unpack(file: Path, folder: Path) -> Path:
    """Unpack a file into a directory, and return that."""
    with tarfile.open(file) as tar:
        tar.extractall(folder, filter="data")
    return folder


def place_of(name: str, version: str | None = None) -> Path:
    """Return where the example of a format is."""
    return FIXTURES / f"{name}-{version or CASES[name].version}.tar.gz"
