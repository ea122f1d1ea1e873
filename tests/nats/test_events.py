"""What becomes of a message and its headers: the event that the stream job reads from the row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from headgate.brokers.nats.reading import Message, as_row
from headgate.core.event import Event
from headgate.stream.reading import SourceReading, read_given
from headgate.stream.sources.nats_log import as_batch

if TYPE_CHECKING:
    from headgate.errors import EventError

CLOUD = {"ce-id": "c1", "CE-Source": "a%20b", "ce-time": "2026-05-01T10:00:00Z", "ce-specversion": "1.0"}
XML = '<?xml version="1.0" encoding="UTF-8"?><a>ü</a>'.encode()


def message(data: bytes, headers: dict[str, str] | None = None) -> Message:
    return Message(7, 1_777_777_777_000_000_123, "events.x", data, headers)


def read(one: Message, content: str = "records") -> Event | EventError:
    ((given,),) = read_given([as_batch([one])], SourceReading(content, None, "time"))
    return given.event


def event(one: Message, content: str = "records") -> Event:
    found = read(one, content)
    assert isinstance(found, Event)
    return found


@pytest.mark.parametrize(
    "headers",
    [None, {"other": "x"}, {"Content-Type": "application/json; charset=utf-8"}, {"content-type": ""}],
)
def test_a_record_stays_as_it_is(headers: dict[str, str] | None) -> None:
    assert as_row(message(b'{"id": 1}', headers)) == (b'{"id": 1}', None, "events.x")


def test_a_record_gets_what_cloudevents_say_of_it() -> None:
    found = event(message(b'{"n": 3}', CLOUD))
    assert (found.id, found.source) == ("c1", "a b")
    own = json.loads(as_row(message(b'{"id": "own", "n": 3}', CLOUD)).value)
    assert own["id"] == "own"
    envelope = {"id": "c2", "source": "s", "specversion": "1.0", "type": "t", "data": {"n": 4}}
    structured = message(json.dumps(envelope).encode(), {"content-type": "application/cloudevents+json"})
    assert json.loads(as_row(structured).value) == {"id": "c2", "source": "s", "n": 4}
    envelope["data"] = {"id": "inner", "source": "inner", "time": "inner", "n": 5}
    structured = message(json.dumps(envelope).encode(), {"content-type": "application/cloudevents+json"})
    assert json.loads(as_row(structured).value) == {"id": "c2", "source": "s", "time": "inner", "n": 5}
    for broken in (b"no JSON", b"[1]"):
        assert as_row(message(broken, CLOUD)).value == broken


def test_a_document_has_an_id_of_its_own() -> None:
    found = event(message(XML, {"content-type": "application/xml"}), "xml")
    assert found.id == "events.x/7"
    assert event(message(XML, {"content-type": "application/xml", "Nats-Msg-Id": "m"}), "xml").id == "m"
    binary = event(message(XML, {**CLOUD, "ce-datacontenttype": "text/xml"}), "xml")
    assert (binary.id, binary.source) == ("c1", "a b")
    envelope = {"id": "c2", "datacontenttype": "application/xml", "data": XML.decode()}
    structured = message(json.dumps(envelope).encode(), {"content-type": "application/cloudevents+json"})
    assert event(structured, "xml").id == "c2"


def test_a_document_in_another_encoding_goes_to_the_parser_as_it_is() -> None:
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?><a>ü</a>'.encode("latin-1")
    row = as_row(message(latin, {"content-type": "application/xml"}))
    assert row == (latin, "application/xml", "events.x/7")
    assert event(message(latin, {"content-type": "application/xml"}), "xml").id == "events.x/7"
