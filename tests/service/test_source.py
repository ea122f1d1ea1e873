"""The log of a service as a source: every event once, clear words about losses, and filters see the same."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import AsyncClient, Client, Engine, Subscription
from headgate.client.asking import KeptEvent, KeptEvents
from headgate.client.log import LogSettings
from headgate.errors import HeadgateError, ServiceError, TableError
from headgate.local.small_streams import why_stream
from headgate.service.backup import back_up, restore
from headgate.service.envelope import event_of, read_sent
from headgate.service.storage.store import Store
from headgate.stream.reading import SourceReading, read_given
from headgate.stream.sources import service_log
from headgate.stream.sources.service_log import ServiceLog, as_lines, as_table
from tests.seeds import examples
from tests.streaming.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.core.event import Event
    from headgate.errors import EventError
    from tests.service.servers import Served, Servers

FILTERS = {"s1": "n > 10", "s2": "n < 15", "s3": "type = 'order' AND data.type = 'new'"}


@pytest.fixture(scope="module")
def server(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server that the tests of this module share."""
    found = servers.start(tmp_path_factory.mktemp("source") / "data")
    yield found
    found.stop()


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a stream with three subscriptions."""
    made = World(tmp_path)
    Engine.build([Subscription(name, text) for name, text in FILTERS.items()]).save(made.snapshot)
    return made


def kept(*texts: bytes) -> list[KeptEvent]:
    return [
        KeptEvent(cursor=number, time=1.5, matches=["a"], event=msgspec.Raw(text))
        for number, text in enumerate(texts, 1)
    ]


async def _kept(address: str, after: int) -> KeptEvents:
    async with AsyncClient(address) as client:
        return await client.kept(after=after, limit=1)


def through(text: bytes, content: str = "records") -> Event | EventError:
    """Read an event that is kept as a stream does."""
    ((row,),) = read_given([as_lines(kept(text))], SourceReading(content, None, "time"))
    return row.event


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-9, 10**15)
    | st.floats(allow_nan=False, width=32)
    | st.text('aé"\\')
)
NAMES = st.sampled_from(["id", "ID", "n", "type", "data", "source", "time", "headgate", "datacontenttype"])
DATA = st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES, max_size=2), max_size=4)
CONTEXT = st.fixed_dictionaries(
    {"specversion": st.just("1.0"), "id": st.text("ab", min_size=1), "source": st.sampled_from(["/", "/a"])}
    | {"type": st.just("t")},
    optional={"time": st.just("2026-01-01T10:00:00Z"), "headgate": st.just("odd"), "subject": st.just("s")},
)


@examples(400)
@given(DATA, CONTEXT, st.sampled_from(["row", "event", "base64", "value"]))
def test_filters_see_in_a_stream_what_they_see_in_the_service(
    data: dict[str, Any], context: dict[str, Any], how: str
) -> None:
    """Attributes, source and time of rows and CloudEvents are the same."""
    sent: dict[str, Any] = {**context, "data": data}
    if how == "row":
        sent = data
    elif how == "base64":
        sent = {**context, "data_base64": base64.b64encode(json.dumps(data).encode()).decode()}
    elif how == "value":
        sent = {**context, "data": list(data.values())}
    try:
        (published,) = read_sent(json.dumps(sent).encode(), "application/json", {})
        expected = event_of(msgspec.json.decode(published.text))
        attributes = dict(expected.attributes)
    except HeadgateError:
        return
    found = through(published.text)
    assert not isinstance(found, HeadgateError), found
    seen = dict(found.attributes)
    if how == "row" and not any(name.lower() == "id" and value is not None for name, value in data.items()):
        # A row without an id is given the one that the service made up.
        assert seen.pop(("id",)) == expected.id
        attributes.pop(("id",), None)
    if how == "row":
        # Only CloudEvents have a time there; a stream takes it from the attribute that it is told.
        seen.pop(("EVENT_TIME",), None)
    assert (seen, str(found.id)) == (attributes, expected.id)
    # Of a row without a source, the envelope has one; that of an empty text is told apart by nobody.
    assert str(found.source or None) == str(expected.source)


def test_documents_and_columns() -> None:
    """Documents stay what they are, also those that are no text; a table has what is known of an event."""
    about = {
        "specversion": "1.0",
        "id": "d",
        "source": "/a",
        "type": "t",
        "datacontenttype": "application/xml",
    }
    plain = json.dumps({**about, "data": "<a/>"}).encode()
    wide = "<?xml version='1.0' encoding='utf-16'?><a/>".encode("utf-16")
    packed = json.dumps({**about, "data_base64": base64.b64encode(wide).decode()}).encode()
    for text, data in ((plain, "<a/>"), (packed, wide)):
        found = through(text, "xml")
        assert not isinstance(found, HeadgateError), found
        assert (found.id, found.data, found.source, found.content_type) == (
            "d",
            data,
            "/a",
            "application/xml",
        )
    broken = through(json.dumps({**about, "data_base64": "*"}).encode(), "xml")
    assert str(broken) == "data_base64 is not base64"
    (row,) = read_sent(b'{"id": 7, "n": 1.50}', "application/json", {})
    table = as_table(kept(plain, packed, row.text)).to_pylist()
    assert [each["data"] for each in table] == ["<a/>", None, '{"id": 7, "n": 1.50}']
    assert [each["source"] for each in table] == ["/a", "/a", None]
    assert [each["cursor"] for each in table] == [1, 2, 3]
    assert table[2] | {"event": "", "data": ""} == {
        "cursor": 3,
        "committed": table[0]["committed"],
        "id": "7",
        "source": None,
        "type": "headgate.row",
        "time": None,
        "datacontenttype": "application/json",
        "data": "",
        "matches": ["a"],
        "event": "",
    }
    assert table[0]["committed"].timestamp() == 1.5


def test_an_address_is_read() -> None:
    """Settings stand behind it, the key does not; what cannot be is told in one line."""
    made = LogSettings.of("http://h:1/?start=5&on_loss=go-on", {"max_rows": "7", "start": "new"}, max_rows=9)
    assert made == LogSettings("http://h:1", start="5", max_rows=9, on_loss="go-on")
    assert "secret" not in repr(LogSettings.of("http://h", key="secret"))
    for address, told in (
        ("http://ann:secret@h", "has no user, password or @: its key is in HEADGATE_KEY"),
        ("http://h?key=secret", "has no key: put it into HEADGATE_KEY"),
        ("http://h?start=0", "start is first, new or a cursor, not '0'"),
        ("http://h?max_rows=x", "max_rows is a whole number, not 'x'"),
        ("http://h?max_rows=0", "max_rows is at least 1, not 0"),
        ("http://h?on_loss=x", "on_loss is fail or go-on, not 'x'"),
        ("http://h?stop=1", "there is no setting 'stop' of a service: known are start, max_rows, partitions"),
        ("http://h?start", "'start' has no value"),
    ):
        with pytest.raises(TableError) as error:
            LogSettings.of(address)
        assert told in str(error.value)
        assert "secret" not in str(error.value)
    with (
        pytest.raises(ServiceError, match="does not answer"),
        closing(ServiceLog(LogSettings.of("http://127.0.0.1:9"), patient=False)) as log,
    ):
        log.state()


def test_a_stream_reads_each_event_once(
    server: Served, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch after batch, run after run; rows and CloudEvents; what is refused has its address."""
    monkeypatch.setattr(service_log, "PAGE", 3)
    address = server.address
    with Client(address) as client:
        client.publish([{"id": number, "n": number} for number in range(25)])
        assert why_stream(world.settings(events=address)) is None
        first = world.run(events=address, max_rows=10)
        assert (first.batches, first.events, first.malformed, first.stopped) == (3, 25, 0, "once")
        order = {
            "specversion": "1.0",
            "id": "o",
            "source": "/",
            "type": "order",
            "data": {"type": "new", "n": 12},
        }
        document = {"id": "x", "datacontenttype": "application/xml", "data": "<a/>"}
        client.publish([order, document, {"n": 3}, {"id": 7, "n": 7}])
        second = world.run(events=address)
        assert (second.batches, second.events, second.malformed, second.duplicate) == (1, 2, 1, 1)
        assert world.run(events=address).batches == 0
        bad = {row["kind"]: row for row in world.dead()}
        assert bad["malformed"]["origin"] == "/v1/events/27"
        assert "these filters look at records" in bad["malformed"]["reason"]
        assert client.kept(after=26, limit=1).items[0].cursor == 27
        assert asyncio.run(_kept(address, 26)) == client.kept(after=26, limit=1)
        made_up = msgspec.json.decode(client.kept(after=27, limit=1).items[0].event)["id"]
    assert world.matches() == {
        **{(str(number), "s1"): 1 for number in range(11, 25)},
        **{(str(number), "s2"): 1 for number in range(15)},
        **{("o", name): 1 for name in FILTERS},
        (made_up, "s2"): 1,
    }
    new = World(world.root / "new")
    Engine.build([Subscription("all", "n IS NOT NULL")]).save(new.snapshot)
    assert new.run(events=f"{address}?start=new").batches == 0
    assert new.run(events=f"{address}?start=25").events == 4
    with pytest.raises(TableError, match="a service is a source of events alone"):
        world.run(output=address)


RUN = """
import json, sys
from headgate.local.stream import run_stream
from headgate.stream.settings import StreamSettings
run_stream(StreamSettings(**json.loads(sys.argv[1])), quiet=True)
"""


def test_killed_in_the_middle_nothing_is_lost_or_doubled(server: Served, world: World) -> None:
    """Killed among sixty batches, and run to the end, while events come and their numbers have begun."""
    with Client(server.address) as client:
        start = client.publish({"id": "begin", "n": 0}).events[0].cursor
        client.publish([{"id": f"k{number}", "n": 12} for number in range(299)])
    settings = world.settings(events=f"{server.address}?start={start}", max_rows=5)
    names = ("snapshot", "events", "output", "state", "changes", "format", "once", "max_rows")
    said = json.dumps({name: getattr(settings, name) for name in names})
    process = subprocess.Popen([sys.executable, "-c", RUN, said])
    offsets = world.state / "spark" / "offsets"
    while process.poll() is None and len(list(offsets.glob("[0-9]*"))) < 8:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    begun = len(list(offsets.glob("[0-9]*")))
    assert 8 <= begun < 60
    done = world.run(events=f"{server.address}?start=new", max_rows=5)
    assert 60 - begun <= done.batches <= 61 - begun
    expected = {(f"k{number}", name): 1 for number in range(299) for name in ("s1", "s2")}
    assert world.matches() == {**expected, ("begin", "s2"): 1}


def test_what_is_forgotten_or_another_log_is_told(servers: Servers, tmp_path: Path, world: World) -> None:
    """A stream ends in one line where retention has passed it, and after a restore; a key is needed."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    server = servers.start(data)
    with Client(server.address) as client:
        client.publish([{"id": f"a{number}", "n": 1} for number in range(5)])
        assert world.run(events=server.address).events == 5
        for number in range(5):
            client.publish({"id": f"b{number}", "n": 1})
    back_up(data, copy)
    server.stop()
    store = Store(data / "tenants" / "default")
    store.log.append([], [store.log.trimming(9)])
    store.close()
    again = servers.start(data)
    with pytest.raises(TableError) as told:
        world.run(events=again.address)
    assert str(told.value) == (
        f"{again.address}: the log begins at cursor 9, and 6 is the next to be read: up to 3 events were "
        "forgotten unread, by the service's retention; on_loss=go-on goes on without them"
    )
    assert world.run(events=f"{again.address}?on_loss=go-on").events == 2
    fresh = World(tmp_path / "fresh")
    Engine.build([Subscription("all", "n = 1")]).save(fresh.snapshot)
    assert fresh.run(events=again.address).events == 2
    again.stop()

    restore(copy, tmp_path / "restored")
    restored = servers.start(tmp_path / "restored")
    with pytest.raises(TableError, match="cursor 10 was read of another log: this one was made again"):
        world.run(events=restored.address)
    files = World(tmp_path / "files")
    Engine.build([Subscription("all", "n = 1")]).save(files.snapshot)
    files.send("1.jsonl", [{"id": 1, "n": 1}])
    files.run()
    with pytest.raises(TableError, match="a stream that reads from another kind of source"):
        files.run(events=restored.address)

    made = restored.ask("POST", "/v1/keys", {"scopes": ["admin"]})["text"]
    with pytest.raises(ServiceError, match="GET /v1/events"):
        fresh.run(events=restored.address)
    assert (
        World(fresh.root, {"state": str(tmp_path / "other")})
        .run(events=restored.address, options={"service.key": made}, output=str(tmp_path / "matches"))
        .events
        == 10
    )


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_reads_the_log(
    spark: SparkSession,
    servers: Servers,
    tmp_path: Path,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a table and as a stream of DataFrames, and as `headgate stream`, which goes on in this process."""
    from pyspark.sql import functions as sf

    import headgate.spark as hg

    server = servers.start(tmp_path / "data")
    key = server.ask("POST", "/v1/keys", {"scopes": ["admin"]})["text"]
    monkeypatch.setenv("HEADGATE_KEY", key)
    with Client(server.address) as client:
        client.subscribe("stored", "n = 12")
        client.publish([{"id": f"e{number}", "n": number} for number in range(20)])
        hg.register_source(spark)
        table = spark.read.format("headgate").option("address", server.address).load()
        assert [row.cursor for row in table.orderBy("cursor").collect()] == list(range(1, 21))
        assert [row.id for row in table.where("size(matches) = 1").collect()] == ["e12"]
        table.explain(extended=True)
        assert key not in capsys.readouterr().out

        def records(events: Any) -> Any:
            return events.select(sf.from_json("data", "id string, n int, type string").alias("r")).select(
                "r.*"
            )

        found = hg.match(records(table), str(world.snapshot)).collect()
        assert {(row.event_id, row.subscription_id) for row in found} == {
            *((f"e{number}", "s1") for number in range(11, 20)),
            *((f"e{number}", "s2") for number in range(15)),
        }

        def drain(number: int) -> int:
            arriving = spark.readStream.format("headgate").option("address", server.address)
            matched = hg.match(records(arriving.option("max_rows", "7").load()), str(world.snapshot))
            writing = matched.writeStream.option("checkpointLocation", str(tmp_path / "check"))
            query = writing.trigger(availableNow=True).format("parquet").start(str(tmp_path / "frames"))
            query.awaitTermination()
            assert len(query.recentProgress) == number
            return int(spark.read.parquet(str(tmp_path / "frames")).count())

        assert drain(3) == len(found)
        client.publish({"id": "more", "n": 12})
        assert drain(1) == len(found) + 2

        assert world.run(spark, events=server.address).events == 21
        client.publish([{"id": f"f{number}", "n": 12} for number in range(5)])
        assert world.run(events=server.address, max_rows=2).batches == 3
        client.publish([{"id": f"g{number}", "n": 12} for number in range(5)])
        assert world.run(spark, events=server.address).events == 5
        assert sum(world.matches().values()) == len(found) + 2 + 20
        assert max(world.matches().values()) == 1

    for option, told in (("key", "is no option"), ("stop", "there is no setting 'stop'")):
        reading = spark.read.format("headgate").option("address", server.address).option(option, "x")
        with pytest.raises(Exception, match=told):
            reading.load().count()
    with pytest.raises(Exception, match="has columns of its own"):
        spark.read.format("headgate").schema("n int").option("address", server.address).load().count()


_CONNECTED = """
import json, sys
from pyspark.sql import SparkSession
import headgate.spark as hg

address, key, place = sys.argv[1:]
spark = SparkSession.builder.remote("local[1]").getOrCreate()
hg.register_source(spark, key=key)
table = spark.read.format("headgate").option("address", address).load()
found = [[row.id for row in table.orderBy("cursor").collect()]]
for _ in range(2):
    events = spark.readStream.format("headgate").option("address", address).load()
    writing = events.writeStream.format("parquet").option("checkpointLocation", place + "/checkpoint")
    writing.option("path", place + "/events").trigger(availableNow=True).start().awaitTermination(120)
    found.append(sorted(row.id for row in spark.read.parquet(place + "/events").collect()))
spark.stop()
open(place + "/found.json", "w").write(json.dumps(found))
"""


@pytest.mark.nightly
@pytest.mark.spark
def test_a_client_of_spark_connect_reads_the_log(servers: Servers, tmp_path: Path) -> None:
    """In a process of its own: pyspark decides once whether it is a client."""
    server = servers.start(tmp_path / "data")
    key = server.ask("POST", "/v1/keys", {"scopes": ["admin"]})["text"]
    with Client(server.address, key=key) as client:
        client.publish([{"id": f"e{number}"} for number in range(5)])
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK_"))}
    env |= {"PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", _CONNECTED, server.address, key, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4_000:]
    ids = [f"e{number}" for number in range(5)]
    assert json.loads((tmp_path / "found.json").read_text()) == [ids, ids, ids]
