"""Events over the wire, read together and one by one: the same of each, and the same said of a wrong one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import EventError
from headgate.service.envelope import BATCH, read_batch, read_envelope, read_events

if TYPE_CHECKING:
    from headgate.core.event import Event

TEXTS = st.sampled_from(["", "1.0", "e1", "/a", "t", "é", "2005-05-10T09:30:00Z", "application/xml"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS | st.just("type"), inner, max_size=3),
    max_leaves=4,
)
GOOD = st.fixed_dictionaries(
    {"specversion": st.just("1.0"), "id": st.just("e"), "source": st.just("/a"), "type": st.just("t")},
    optional={"data": VALUES, "time": TEXTS, "headgate": st.just("row"), "datacontenttype": TEXTS},
)
WRONG = st.dictionaries(
    st.sampled_from(["specversion", "id", "source", "type", "data", "data_base64", "time", "A"]), VALUES
)
BODIES = st.lists(GOOD | GOOD | GOOD | WRONG | VALUES, max_size=4).map(lambda rows: json.dumps(rows).encode())
BROKEN = st.sampled_from([b"", b"[", b"{}", b"[{}", b'["\\ud800"]', b"[" * 5_000, b'[{"a":\xff}]', b"null"])


def _told(read: Any) -> object:
    try:
        return [(each.id, each.data, each.time, each.source, each.content_type) for each in read()]
    except EventError as error:
        return str(error)


def _one_by_one(body: bytes) -> list[Event]:
    rows = json.loads(body)
    found = []
    for place, row in enumerate(rows):
        try:
            found.append(read_envelope(json.dumps(row).encode()).event)
        except EventError as error:
            raise EventError(f"event {place} of the batch: {error}") from None
    return found


@given(BODIES)
def test_together_is_one_by_one(body: bytes) -> None:
    expected = _told(lambda: _one_by_one(body))
    assert _told(lambda: read_events(body, BATCH, {})) == expected
    assert _told(lambda: [each.event for each in read_batch(body)]) == expected


@given(BODIES)
def test_what_is_kept_is_what_was_sent(body: bytes) -> None:
    try:
        found = read_batch(body)
    except EventError:
        return
    assert [json.loads(each.text) for each in found] == json.loads(body)


@given(BROKEN)
def test_what_is_no_batch(body: bytes) -> None:
    said = _told(lambda: [each.event for each in read_batch(body)])
    assert isinstance(said, str)
    assert _told(lambda: read_events(body, BATCH, {})) == said


def test_what_nests_too_deep() -> None:
    deep = b"[" * 5_000
    for kind in ("application/json", BATCH, "application/x-ndjson", "application/cloudevents+json"):
        assert "JSON" in str(_told(lambda kind=kind: read_events(deep, kind, {})))
    headers = {"ce-id": "e", "ce-source": "/a", "ce-type": "t", "ce-specversion": "1.0"}
    assert "JSON" in str(_told(lambda: read_events(deep, "application/json", headers)))
