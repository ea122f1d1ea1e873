"""Streams by sequence number: what is read, what is gone, what is published; a server that comes and goes."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from headgate.brokers.nats import reading
from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import NatsSettings
from headgate.brokers.nats.stream import MESSAGE_ID, Outgoing, Stream
from headgate.errors import MachineError, TableError
from tests.lanes import some
from tests.nats.proxy import Proxy

if TYPE_CHECKING:
    from tests.nats.server import Server


def opened(server: Server, name: str, query: str = "") -> Stream:
    return Stream(NatsSettings.of(server.url(name, query)))


def numbers(stream: Stream, wanted: Range) -> list[int]:
    return [one.sequence for part in stream.messages(wanted) for one in part]


def test_ranges_are_read_exactly_and_again(server: Server) -> None:
    server.add("RANGES", "ranges.>")
    server.put("ranges.a", (b"%d" % n for n in range(7_000)))
    server.put("ranges.b", (b"%d" % n for n in range(5)))
    with opened(server, "RANGES") as stream:
        state = stream.state()
        assert (state.first, state.end, state.deleted) == (1, 7_006, 0)
        assert numbers(stream, Range(1, 7_006)) == list(range(1, 7_006))
        assert numbers(stream, Range(1, 7_006)) == list(range(1, 7_006))
        assert numbers(stream, Range(100, 103)) == [100, 101, 102]
        assert numbers(stream, Range(5, 5)) == []
        assert numbers(stream, Range(6_990, 7_003, "ranges.b")) == [7_001, 7_002]
        assert numbers(stream, Range(1, 7_000, "ranges.b")) == []
        (message,), *_ = stream.messages(Range(43, 44))
        assert (message.subject, message.data, message.headers) == ("ranges.a", b"42", None)
        assert stream.count(7_000) == 6


@pytest.mark.parametrize(
    "word", some([b"CONSUMER.CREATE", b"CONSUMER.MSG.NEXT", b"STREAM.MSG.GET", b"CONSUMER.DELETE"], 1)
)
def test_a_connection_lost_at_any_moment_loses_nothing(server: Server, word: bytes) -> None:
    name = f"CUT-{word.decode().replace('.', '-')}"
    server.add(name, f"{name}.>")
    for number in range(10):
        server.put(f"{name}.{'ab'[number % 2]}", [b"x"] * 10)
    server.delete(name, 50, *range(96, 101))
    ranges = {Range(1, 91): 89, Range(1, 101): 94, Range(1, 101, f"{name}.a"): 49}
    # Only where the end of a range is gone is the server asked whether more will come.
    asked = [wanted for wanted in ranges if wanted.stop > 91 or word != b"STREAM.MSG.GET"]
    for wanted in asked:
        proxy = Proxy(server.port, word)
        with Stream(NatsSettings.of(f"nats://127.0.0.1:{proxy.port}/{name}")) as stream:
            found = numbers(stream, wanted)
        proxy.close()
        assert (len(found), len(set(found)), proxy.cuts) == (ranges[wanted], ranges[wanted], 1)


def consumers(server: Server, name: str) -> list[str]:
    found = server.run(lambda client: client.jetstream().consumers_info(name))
    return [one.name for one in found]


def test_no_consumer_is_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_CHUNK", 100)
    server.add("CONSUMERS", "consumers")
    server.put("consumers", (b"%d" % n for n in range(450)))
    with opened(server, "CONSUMERS") as stream:
        parts = stream.messages(Range(1, 451))
        found = [len(next(parts)) for _ in range(2)]
        # One consumer serves all parts, and another takes its place when it is gone.
        (name,) = consumers(server, "CONSUMERS")
        server.run(lambda client: client.jetstream().delete_consumer("CONSUMERS", name))
        found += [len(part) for part in parts]
        assert sum(found) == 450
    assert consumers(server, "CONSUMERS") == []


def test_large_messages_share_a_consumer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 0)
    server.add("LARGE", "large")
    server.put("large", [b"x" * 500_000] * 5)
    with opened(server, "LARGE") as stream:
        parts = stream.messages(Range(1, 6))
        assert [len(next(parts)) for _ in range(2)] == [2, 2]
        assert len(consumers(server, "LARGE")) <= 1
        assert [len(part) for part in parts] == [1]
    assert consumers(server, "LARGE") == []


def test_gaps_are_passed_over_and_listed(server: Server) -> None:
    server.add("GAPS", "gaps")
    server.put("gaps", (b"%d" % n for n in range(20)))
    server.delete("GAPS", 5, 6, 20)
    with opened(server, "GAPS") as stream:
        assert numbers(stream, Range(1, 21)) == [*range(1, 5), *range(7, 20)]
        assert numbers(stream, Range(5, 7)) == []
        # The last one is gone, so nobody else can have its number.
        assert (stream.state().end, stream.deleted()) == (21, [5, 6, 20])
        server.purge("GAPS", 10)
        assert stream.state().first == 10
        server.purge("GAPS", 21)
        assert stream.state()[:3] == (21, 21, 0)


def test_headers_alone_can_be_read(server: Server) -> None:
    server.add("BARE", "bare")
    server.put("bare", [b"x" * 100], {"Nats-Msg-Id": "one"})
    with opened(server, "BARE") as stream:
        ((message,),) = stream.messages(Range(1, 2, bare=True))
        assert (message.data, (message.headers or {})[MESSAGE_ID]) == (b"", "one")


def test_what_is_published_twice_is_kept_once(server: Server) -> None:
    server.add("TWICE", "twice.>")
    messages = [Outgoing(f"twice.{n % 3}", b"%d" % n, {MESSAGE_ID: f"m{n}"}) for n in range(9_000)]
    with opened(server, "TWICE", "subject=twice.0") as stream:
        assert stream.publish(messages[:5_000]) == (5_000, 0)
        assert stream.publish(messages) == (9_000, 5_000)
        assert stream.state().end == 9_001
        with pytest.raises(TableError, match=r"no stream takes twice\.0"):
            stream.publish([Outgoing("elsewhere", b"", {})])
        with pytest.raises(TableError, match="larger than the 1,048,576 that the server takes"):
            stream.publish([Outgoing("twice.0", b"x" * 2**20, {MESSAGE_ID: "large"})])


def test_a_full_stream_is_told(server: Server) -> None:
    from nats.js.api import DiscardPolicy

    server.add("FULL", "full", max_msgs=2, discard=DiscardPolicy.NEW)
    with opened(server, "FULL") as stream, pytest.raises(MachineError, match="maximum messages exceeded"):
        stream.publish([Outgoing("full", b"", {MESSAGE_ID: str(n)}) for n in range(3)])


def test_a_server_that_comes_back_is_waited_for(own: Server) -> None:
    own.add("BACK", "back")
    own.put("back", (b"%d" % n for n in range(6_000)))
    with opened(own, "BACK") as stream:
        parts = stream.messages(Range(1, 6_001))
        first, created = next(parts), stream.state().created
        own.stop(signal.SIGKILL)
        starter = threading.Timer(0.5, own.start)
        starter.start()
        rest = [one.sequence for part in parts for one in part]
        starter.join()
        assert [one.sequence for one in first] + rest == list(range(1, 6_001))
        own.stop(signal.SIGKILL)
        starter = threading.Timer(0.5, own.start)
        starter.start()
        assert stream.publish([Outgoing("back", b"", {MESSAGE_ID: str(n)}) for n in range(10)]).messages == 10
        starter.join()
        assert (stream.state().end, stream.state().created) == (6_011, created)
