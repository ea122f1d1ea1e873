"""Documents that are made to harm: refused soon, each with a reason, and the process lives."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from headgate import Event
from headgate.errors import EventError
from headgate.rdf.events.feeds import read_feed
from headgate.rdf.events.isolation import Document, Isolation
from headgate.rdf.events.reading import DEFAULT_READER, Reader, read_graph, read_graphs
from headgate.rdf.events.screening import Limits
from headgate.rdf.events.triples import Settings
from tests.timing import thread_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 1.0
BUSY = 8
GOOD = "<urn:a> <urn:p> <urn:b> ."
RDF = '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e:">'
DEEP = 100_000
SIZE = 1 << 20


def filled(piece: bytes, before: bytes = b"") -> bytes:
    """Repeat a piece up to a size at which anything but linear time would show."""
    return before + piece * ((SIZE - len(before)) // len(piece))


def entity_bomb(levels: int) -> bytes:
    entities = [b'<!ENTITY a0 "aaaaaaaaaa">']
    entities += [b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, levels)]
    body = RDF.encode() + b"<e:a><e:p>&a%d;</e:p></e:a></r:RDF>" % (levels - 1)
    return b"<!DOCTYPE r:RDF [" + b"".join(entities) + b"]>" + body


def with_declaration(encoding: str) -> bytes:
    return f'<?xml version="1.0" encoding="{encoding}"?>{RDF}</r:RDF>'.encode()


DOCTYPE = '<!DOCTYPE x SYSTEM "file:///etc/passwd">'
EXTERNAL = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
BOMBS: dict[str, tuple[str, bytes, str]] = {
    "entity bomb": ("rdfxml", entity_bomb(10), "a DOCTYPE can declare entities"),
    "doctype": ("rdfxml", f"{DOCTYPE}{RDF}</r:RDF>".encode(), "a DOCTYPE can declare"),
    "external entity": ("rdfxml", f"{EXTERNAL}{RDF}<e:a><e:p>&e;</e:p></e:a></r:RDF>".encode(), "a DOCTYPE"),
    "doctype after a comment": ("rss", f"<!-- --> {DOCTYPE}{RDF}</r:RDF>".encode(), "a DOCTYPE can declare"),
    "doctype in UTF-16": ("rdfxml", f"{DOCTYPE}{RDF}</r:RDF>".encode("utf-16"), "in UTF-16: send UTF-8"),
    "UTF-16 without a mark": ("rdfxml", f"{DOCTYPE}{RDF}</r:RDF>".encode("utf-16-le"), "is NUL"),
    "UTF-32": ("rdfxml", f"{DOCTYPE}{RDF}</r:RDF>".encode("utf-32"), "in UTF-32: send UTF-8"),
    "UTF-7": ("rdfxml", with_declaration("UTF-7"), "the encoding 'UTF-7' is not read"),
    "EBCDIC": ("rdfxml", with_declaration("cp037"), "the encoding 'cp037' is not read"),
    "UTF-16 that is not": ("rdfxml", with_declaration("UTF-16"), "the encoding 'UTF-16' is not read"),
    "UTF-7 text": ("rdfxml", DOCTYPE.replace("<", "+ADw-").encode(), "not valid RDF/XML"),
    "JSON-LD 5,000 deep": ("jsonld", b'{"urn:p":' * 5000 + b"1" + b"}" * 5000, "nests 5,000 deep"),
    "JSON-LD lists": ("jsonld", b'{"@list":[' * 5000 + b"]}" * 5000, "nests 10,000 deep"),
    "JSON-LD arrays": ("jsonld", b"[" * DEEP, "nests 100,000 deep"),
    "JSON-LD contexts": ("jsonld", b'{"@context":' * 5000 + b"{}" + b"}" * 5000, "nests 5,001 deep"),
    "JSON-LD remote": ("jsonld", b'{"@context": "http://127.0.0.1:9/"}', "'http://127.0.0.1:9/' would have"),
    "JSON-LD file": ("jsonld", b'{"@context": "file:///etc/passwd"}', "'file:///etc/passwd' would have"),
    "JSON-LD import": (
        "jsonld",
        b'{"@context": {"@import": "http://127.0.0.1:9/"}}',
        "would have to be fetched",
    ),
    "Turtle brackets": ("turtle", b"<urn:a> <urn:p> " + b"[ <urn:p> " * DEEP, "nests 100,000 deep"),
    "Turtle lists": ("turtle", b"<urn:a> <urn:p> " + b"( " * DEEP, "nests 100,000 deep"),
    "Turtle lists, closed": (
        "turtle",
        b"<urn:a> <urn:p> " + b"(" * DEEP + b")" * DEEP + b".",
        "nests 100,000",
    ),
    "Turtle triple terms": ("turtle", b"<urn:a> <urn:p> " + b"<<( <urn:a> <urn:p> " * DEEP, "RDF 1.2"),
    "N-Triples triple terms": ("nt", b"<urn:a> <urn:p> " + b"<<( <urn:a> <urn:p> " * DEEP, "RDF 1.2"),
    "XML elements": ("rdfxml", RDF.encode() + b"<e:a><e:p>" * DEEP, "nest more than 100 deep"),
    "XML literal": (
        "rdfxml",
        RDF.encode() + b"<e:a><e:p r:parseType='Literal'>" + b"<b>" * DEEP,
        "nest more",
    ),
    "XML attributes": (
        "rdfxml",
        RDF.encode() + b"<e:a " + b"".join(b'e:p%d="x" ' % n for n in range(50_000)) + b"/></r:RDF>",
        "50,000 attributes",
    ),
    "long xml:base": (
        "rdfxml",
        RDF.encode()[:-1] + b" xml:base='http://a/" + b"a/" * DEEP + b"'>" + b"<e:a r:about='x'/>" * 50_000,
        "the base or prefix at byte",
    ),
    "long prefix": (
        "turtle",
        b"@prefix a: <http://a/" + b"a" * DEEP + b"> . " + b"a:a a:b a:c . " * 50_000,
        "the base or prefix at byte 2",
    ),
    "long vocabulary": (
        "jsonld",
        b'{"@context":{"@vocab":"http://a/' + b"a" * DEEP + b'"}' + b',"a":1' * 50_000 + b"}",
        "the base or prefix at byte",
    ),
    "giant document": ("turtle", b" " * (5 << 20), "the document has 5,242,880 bytes: 4,194,304 are allowed"),
    "giant literal": (
        "nt",
        b'<urn:a> <urn:p> "' + b"x" * (2 << 20) + b'" .\n',
        "a term has 2,097,154 characters",
    ),
    "giant literal in Turtle": ("turtle", b"<urn:a> <urn:p> '" + b"x" * (2 << 20) + b"' .", "a term has"),
    "giant number": ("turtle", b"<urn:a> <urn:p> " + b"1" * (2 << 20) + b" .", "a term has"),
    "many triples": ("turtle", b"<urn:a> <urn:p> " + b"1," * 200_000 + b"1 .", "more than 100,000 triples"),
    "many lines": ("nt", b"<urn:a> <urn:p> <urn:b> .\n" * 120_000, "more than 100,000 triples"),
    "quotes": ("turtle", filled(b'"'), "not valid Turtle"),
    "escaped quotes": ("turtle", filled(b'"""\\'), "not valid Turtle"),
    "mixed quotes": ("turtle", filled(b"\"'\\<#"), "not valid Turtle"),
    "open IRIs": ("turtle", filled(b"<a"), "not valid Turtle"),
    "prefixes": ("turtle", filled(b"prefix "), "not valid Turtle"),
    "JSON quotes": ("jsonld", filled(b'"\\'), "not valid JSON-LD"),
    "open comments": ("rdfxml", filled(b"<!--", b"<a>"), "not valid RDF/XML"),
    "open sections": ("rdfxml", filled(b"]]", b"<a><![CDATA["), "not valid RDF/XML"),
    "declarations": ("rdfxml", filled(b" xmlns:a=", b"<a "), "not valid RDF/XML"),
}


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    """Start the parser process, which is not part of what is timed; drop the bombs in the end."""
    read_graph(GOOD, "turtle")
    yield
    BOMBS.clear()
    DEADLY.clear()


def refused_soon(read: Callable[[], object]) -> str:
    """Return the reason of a refusal that comes in time: ours, and by the clock of a machine that is busy."""
    clock = time.perf_counter()
    with thread_time() as spent, pytest.raises(EventError) as caught:
        read()
    assert spent.seconds < SECONDS
    assert time.perf_counter() - clock < BUSY * SECONDS
    return str(caught.value)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_soon(name: str) -> None:
    kind, data, message = BOMBS[name]
    reason = refused_soon(lambda: read_graph(data, kind))
    assert message in reason
    assert "\n" not in reason
    assert len(read_graph(GOOD, "turtle").triples) == 1


@pytest.mark.parametrize("kind", ["turtle", "nt", "rdfxml", "jsonld", "rss"])
def test_truncated_and_random_documents(kind: str) -> None:
    rng = random.Random(kind)
    whole = {
        "turtle": b'@prefix e: <urn:e:> . e:a e:p "x"@en , [ e:q (1 2.5 """y""") ] .',
        "nt": b'<urn:a> <urn:p> "x"@en .\n_:b <urn:p> "1"^^<urn:t> .\n',
        "jsonld": b'{"@context": {"p": "urn:p"}, "@id": "urn:a", "p": [1, {"@list": ["x", true]}]}',
    }.get(kind, RDF.encode() + b'<e:a e:q="1"><e:p xml:lang="en">x&amp;</e:p></e:a></r:RDF>')
    documents: list[tuple[str | bytes, str]] = [(whole[:end], kind) for end in range(len(whole))]
    documents += [(rng.randbytes(rng.randrange(200)), kind) for _ in range(100)]
    for _ in range(200):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.choice(b"<>\"'[](){}\\#&;:@ \n\x00\xff\xc3a")
        documents.append((bytes(changed), kind))
    found = read_graphs(documents)
    assert len(found) == len(documents)
    for each in found:
        if isinstance(each, EventError):
            assert "the parser" not in str(each), "refused for a reason, not because the parser ended"
            assert "\n" not in str(each)


# Isolation alone: without screening these end or hang the process that parses them

CHAIN = ",".join(f'"a{n}":"a{n + 1}:x"' for n in range(50_000))
DEADLY: dict[str, tuple[str, bytes, str]] = {
    "entity bomb": ("application/rdf+xml", entity_bomb(10), ""),
    "JSON-LD 20,000 deep": ("application/ld+json", b'{"urn:p":' * 20_000 + b"1" + b"}" * 20_000, ""),
    "prefixes of prefixes": (
        "application/ld+json",
        f'{{"@context":{{{CHAIN},"a50000":"urn:x"}},"@id":"urn:a","a0":1}}'.encode(),
        "SIGSEGV",
    ),
    "triple terms": (
        "application/n-triples",
        b"<urn:a> <urn:p> " + b"<<( <urn:a> <urn:p> " * DEEP + b"<urn:a>" + b" )>>" * DEEP + b" .",
        "SIGSEGV",
    ),
    "elements": ("application/rdf+xml", RDF.encode() + b"<e:a><e:p>" * DEEP, "was not done after 0.4 s"),
}
SETTINGS = Settings(None, 1_000_000, 1 << 30, 1 << 30)
HASTY = Limits(seconds_a_mebibyte=0.0)


@pytest.fixture(scope="module")
def isolation() -> Iterator[Isolation]:
    isolation = Isolation(SETTINGS, HASTY)
    yield isolation
    isolation.close()


@pytest.mark.parametrize("name", DEADLY)
def test_isolation_alone_survives(name: str, isolation: Isolation) -> None:
    kind, data, message = DEADLY[name]
    (found,) = isolation.parse([Document(data, kind, "it")])
    assert isinstance(found, EventError)
    assert str(found).startswith("the parser ")
    assert str(found).endswith(": the document is refused")
    assert message in str(found)


def test_the_deadly_ones_are_deadly() -> None:
    kind, data, _ = DEADLY["triple terms"]
    code = (
        "import sys; from headgate.rdf.events.triples import *; "
        f"parse(sys.stdin.buffer.read(), {kind!r}, '', {SETTINGS!r})"
    )
    ended = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGSEGV


def test_only_the_guilty_are_refused(isolation: Isolation) -> None:
    kind, data, _ = DEADLY["triple terms"]
    documents = [Document(f"<urn:{n}> <urn:p> <urn:b> .\n".encode(), kind, "it") for n in range(40)]
    for n in (3, 4, 20, 39):
        documents[n] = Document(data, kind, "it")
    found = isolation.parse(documents)
    assert {n for n, each in enumerate(found) if isinstance(each, EventError)} == {3, 4, 20, 39}
    for n, each in enumerate(found):
        if not isinstance(each, EventError):
            assert each.text.startswith(f"<urn:{n}>".encode())


def test_a_process_that_is_killed_from_outside_is_replaced() -> None:
    """Once in each reading: a document that ends two processes is refused, whoever ended them."""
    reader = Reader()
    reader.read(GOOD, "turtle")
    killed: set[int] = set()

    def kill() -> None:
        pid = reader.pid
        if pid is not None:
            killed.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    for step in range(8):
        killer = threading.Timer(0.002 * step, kill)
        killer.start()
        found = reader.read_many([(f"<urn:a{n}> <urn:p> {n} .", "turtle") for n in range(200)])
        killer.join()
        assert [each for each in found if isinstance(each, EventError)] == []
    assert len(killed) > 1
    reader.close()


def test_a_process_that_hangs_is_replaced() -> None:
    reader = Reader(limits=Limits(seconds=0.1))
    reader.read(GOOD, "turtle")
    pid = reader.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # it does not use a processor: that is not the document's fault
    assert len(reader.read(GOOD, "turtle").triples) == 1
    assert reader.pid not in {None, pid}
    reader.close()


def test_threads_take_turns() -> None:
    reader = Reader()
    wrong: list[object] = []

    def read(number: int) -> None:
        for n in range(30):
            text = f"<urn:{number}> <urn:p> {n} ."
            if reader.read(text, "turtle").statements()[0][0] != f"<urn:{number}>":
                wrong.append((number, n))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    reader.close()


def _in_a_child(inherited: int | None, answers: multiprocessing.SimpleQueue[tuple[bool, int]]) -> None:
    reader = DEFAULT_READER
    fresh = reader.pid is None
    triples = len(reader.read(GOOD, "turtle").triples)
    answers.put((fresh and reader.pid != inherited, triples))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_process_of_its_own() -> None:
    read_graph(GOOD, "turtle")
    pid = DEFAULT_READER.pid
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_in_a_child, args=(pid, answers))
    child.start()
    assert answers.get() == (True, 1)
    child.join()
    assert child.exitcode == 0
    assert DEFAULT_READER.pid == pid
    assert len(read_graph(GOOD, "turtle").triples) == 1


def test_the_process_ends_with_its_parent() -> None:
    code = (
        "import os, time; from headgate.rdf.events.reading import *; "
        f"read_graph({GOOD!r}, 'turtle'); print(DEFAULT_READER.pid, flush=True); os._exit(1)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    pid = int(ended.stdout)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        if _is_zombie(pid):
            break
        time.sleep(0.01)
    else:
        pytest.fail("the parser process outlives its parent")


def _is_zombie(pid: int) -> bool:
    """Tell whether a process has ended and waits for somebody to notice, as orphans in a container do."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 -- not a file of ours
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_the_process_can_open_and_write_nothing() -> None:
    code = (
        "import socket\n"
        "from headgate.rdf.events import worker; worker.restrict(1 << 30)\n"
        "for attempt in (lambda: open('/dev/null'), socket.socket):\n"
        "    try: attempt()\n"
        "    except OSError: continue\n"
        "    raise SystemExit(1)\n"
        "try: bytearray(2 << 30)\n"
        "except MemoryError: raise SystemExit(7)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 7, ended.stderr


# Feeds

FEEDS = {
    "entity bomb": (entity_bomb(10), "the DOCTYPE in line 1 can declare entities"),
    "doctype": (b"<!DOCTYPE rss [<!ENTITY a 'b'>]><rss><channel><item/></channel></rss>", "can declare"),
    "doctype behind": (b"<rss><!DOCTYPE rss><channel><item/></channel></rss>", "the DOCTYPE in line 1 can"),
    "no feed": (b"<html><p>hello", "there is no channel and no item in it; not well-formed: "),
    "NULs": ("<rss><item/></rss>".encode("utf-16-le") + b"\0\0", "is NUL"),
    "giant": (b" " * (5 << 20), "the document has 5,242,880 bytes"),
    "a channel for each of many items": (
        b"<channel>%s</channel>" % b"".join(b"<a>%d</a>" % n for n in range(3000)) + b"<item/>" * 3000,
        "its items have more than 50,000 triples together",
    ),
    "many fields": (b"<channel>%s</channel><item/>" % (b"<a>1</a>" * 20_001), "more than 10,000 triples"),
    "a million items": (b"<rss>" + b"<item/>" * 590_000 + b"</rss>", "the feed has 590,000 items"),
    "a million items, open": (b"<item>" * 690_000, "too many items by line 1: 10,000 are"),
    "random": (random.Random(1).randbytes(100_000).replace(b"\0", b""), "there is no channel and no item"),
    "open comments": (filled(b"<!--"), "there is no channel and no item"),
    "open sections": (filled(b"<![CDATA["), "there is no channel and no item"),
    "open tags": (filled(b"<a "), "there is no channel and no item"),
    "deep": (filled(b"<a>"), "elements nest more than 100 deep in line 1"),
    "deep ends": (b"<a>" * 99 + filled(b"</b>"), "there is no channel and no item"),
    "open quotes": (filled(b"<a '"), "there is no channel and no item"),
    "attributes": (b"<a " + filled(b"a") + b">", "there is no channel and no item"),
    "many attributes": (
        b"<a %s>" % b" ".join(b"a%d='1'" % n for n in range(200_000)),
        "there is no channel and no item",
    ),
    "instructions": (filled(b"<?"), "there is no channel and no item"),
    "long base": (
        b"<rss xml:base='http://a.b/%s'><item><link>x</link></item></rss>" % (b"a" * 3000),
        "the base in line 1 has more than 2,048 characters",
    ),
}


@pytest.mark.parametrize("name", FEEDS)
def test_bad_feeds_are_refused_soon(name: str) -> None:
    data, message = FEEDS[name]
    reader = Reader(isolated=False, limits=Limits(triples=10_000))
    assert message in refused_soon(lambda: read_feed(Event("f", data, content_type="rss"), reader))


def test_a_feed_of_ampersands() -> None:
    with thread_time() as spent:
        (event,) = read_feed(
            Event("f", b"<item><title>" + filled(b"&a")[:1_000_000], content_type="rss")
        ).items
    assert spent.seconds < SECONDS
    assert event.id == "f#1"
