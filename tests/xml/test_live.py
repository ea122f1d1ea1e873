"""Readers while others write: no id twice, nothing missed, and the right answer at last."""

from __future__ import annotations

import sys
import threading

import pytest

from headgate import Event, Subscription
from headgate.xml.events.reading import read_document
from headgate.xml.index.index import XmlIndex


def test_an_older_view_of_the_tail_stays_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no filter is lost if making a block is interrupted."""
    document = read_document("<r>" + "".join(f"<p{n}>{n}</p{n}>" for n in range(150)) + "</r>")
    event = Event("e", document, content_type="xml")
    index = XmlIndex.build([])
    for n in range(3):
        index.subscribe(Subscription(n, f"//p{n}", "xpath"))
    view = index._state.tail.view()  # noqa: SLF001 -- what a reader in another thread holds
    for n in range(3, 150):
        index.subscribe(Subscription(n, f"//p{n}[. = '{n}']", "xpath"))
        if n in (10, 80, 85):
            monkeypatch.setattr(index._state.base, "matcher_of", None)  # noqa: SLF001 -- what a block needs last
            with pytest.raises(TypeError):
                index.match(event)
            monkeypatch.undo()
    assert view.match(document, {}).tolist() == [0, 1, 2]
    assert index.match(event) == list(range(150))
    index.compact()
    assert index.match(event) == list(range(150))


def test_readers_while_filters_come_and_go() -> None:
    stays = [Subscription(f"stays{n}", f"/r[a/@x = '{n}']//b", "xpath") for n in range(5)]
    index = XmlIndex.build(stays)
    index.compact_after = 50
    text = "<r>" + "".join(f'<a x="{n}"/>' for n in range(200)) + "<c><b/></c></r>"
    event = Event("e", read_document(text), content_type="xml")
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
        for n in range(150):
            late = Subscription(f"late{n}", f"/r[c/b]/a[@x = '{n}']", "xpath")
            index.subscribe(late)
            if n % 3 == 0:
                index.unsubscribe(late.id)
                index.subscribe(late)
    finally:
        done.set()
        sys.setswitchinterval(interval)
        for reader in readers:
            reader.join()
    assert not failures, failures[0]
    assert set(index.match(event)) == always | {f"late{n}" for n in range(150)}


def test_threads_have_room_of_their_own() -> None:
    index = XmlIndex.build([Subscription(n, f"//a[b = {n}][c]", "xpath") for n in range(50)])
    documents = [read_document("<r>" + f"<a><b>{n}</b><c/></a>" * 40 + "</r>") for n in range(50)]
    wrong: list[int] = []

    def read(begin: int) -> None:
        for turn in range(200):
            n = (begin + turn) % 50
            if index.match_document(documents[n]).tolist() != [n]:
                wrong.append(n)

    threads = [threading.Thread(target=read, args=(begin,)) for begin in (0, 17, 34)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
