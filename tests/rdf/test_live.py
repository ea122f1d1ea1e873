"""Readers while others write: no number beyond an array's end, no id twice, and the right answer at last."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Event, Subscription, Taxonomy
from headgate.rdf.events.encode import Layouts
from headgate.rdf.events.reading import make_graph, read_graph
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import SUBCLASS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


def test_readers_while_filters_come_and_go() -> None:
    stays = [Subscription(f"stays{n}", f"ASK {{ ?x <urn:p> <urn:{n}> }}", "sparql") for n in range(5)]
    index = RdfIndex.build(stays)
    index.compact_after = 50
    event = Event(
        "e", make_graph([("<urn:a>", "<urn:p>", f"<urn:{n}>") for n in range(400)]), content_type="nt"
    )
    always = {each.id for each in stays}
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                found = index.match(event)
                assert len(found) == len(set(found))
                assert always <= set(found)
        except BaseException as error:  # noqa: BLE001 -- raised below, in the test's own thread
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        for n in range(300):
            index.subscribe(Subscription(f"late{n}", f"ASK {{ ?x <urn:p> <urn:{n}> }}", "sparql"))
            if n % 3 == 0:
                index.unsubscribe(f"late{n}")
                index.subscribe(Subscription(f"late{n}", f"ASK {{ ?x <urn:p> <urn:{n}> }}", "sparql"))
    finally:
        done.set()
        sys.setswitchinterval(interval)
        for reader in readers:
            reader.join()
    assert not failures, failures[0]
    assert set(index.match(event)) == always | {f"late{n}" for n in range(300)}


class InBetweenError(Exception):
    """Comes in between."""


@contextmanager
def interrupted(seconds: float) -> Iterator[None]:
    def bang(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise InBetweenError

    before = signal.signal(signal.SIGALRM, bang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("before", [iter(range(moment)) for moment in range(60)])
def test_a_layout_is_of_its_version(before: Iterator[int]) -> None:
    """Another thread asks as well, between two instructions."""
    taxonomy, layouts = Taxonomy.of([("<urn:a>", SUBCLASS, "<urn:b>")]), Layouts()
    layouts.of(taxonomy, ())
    taxonomy.add(("<urn:c>", SUBCLASS, "<urn:d>"))

    def trace(frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes = True
        if frame.f_code is Layouts.of.__code__ and event == "opcode" and next(before, None) is None:
            layouts.of(taxonomy, ())
        return trace

    sys.settrace(trace)
    found = layouts.of(taxonomy, ())
    sys.settrace(None)
    assert [each.pool.size for _, each in (found, layouts.of(taxonomy, ()))] == [5, 5]


def test_an_interrupted_read_does_not_answer_the_next_one() -> None:
    own = "<urn:own> <urn:p> <urn:b> ."
    read_graph(own, "text/turtle")
    large = "".join(f"<urn:{n}> <urn:p> <urn:{n + 1}> .\n" for n in range(60_000))
    with interrupted(0.02), pytest.raises(InBetweenError):
        read_graph(large, "text/turtle")
    assert read_graph(own, "text/turtle").statements() == [("<urn:own>", "<urn:p>", "<urn:b>")]
