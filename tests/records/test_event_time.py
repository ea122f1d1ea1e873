"""The time of an event in expressions: `:event_time`."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

from headgate import Engine, Event, Subscription
from headgate.backtest.checking import check_filter
from headgate.contents.kind import FilterSettings
from headgate.errors import FilterError
from headgate.records.expressions.expression import Expression
from headgate.records.expressions.parse import spark_text
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_filter
from headgate.records.reference import matches
from tests.seeds import seeds

NIGHT = dt.datetime(2005, 5, 10, 23, 30, tzinfo=dt.UTC)
FILTERS = {
    "night": "hour(:event_time) >= 22",
    "late": "ship < :event_time - INTERVAL 1 DAY",
    "day": "date_trunc('DAY', :event_time) = TIMESTAMP'2005-05-10 00:00:00'",
    "none": ":event_time IS NULL",
    "before": "NOT :event_time + INTERVAL '90' MINUTES > TIMESTAMP'2005-05-11 00:00:00'",
    "same": ":event_time = time",
}


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        (Event(1, {}, NIGHT), ["day", "night"]),
        (Event(1, {"ship": dt.datetime(2005, 5, 9, 23, tzinfo=dt.UTC)}, NIGHT), ["day", "late", "night"]),
        (Event(1, {"time": "noon"}, NIGHT), ["day", "night"]),
        ({"time": "2005-05-10T23:30:00Z"}, ["day", "night", "same"]),
        ({"time": NIGHT}, ["day", "night", "same"]),
        ({"Time": "2005-05-11T01:30:00+02:00"}, ["day", "night", "same"]),
        ({"time": "2005-05-10T01:00:00"}, ["before", "day", "same"]),
        ({"time": "noon"}, ["none"]),
        ({"EVENT_TIME": "2005-05-10T23:30:00Z", ":event_time": NIGHT}, ["none"]),
        ({}, ["none"]),
    ],
)
def test_what_it_is(event: Any, wanted: list[str]) -> None:
    """The event's own time, else its attribute `time`, else NULL: for one event, many, and columns."""
    engine = Engine.build([{"id": name, "filter": text} for name, text in FILTERS.items()])
    assert engine.match(event) == wanted
    assert engine.match_events([event, {}]) == [wanted, ["none"]]
    for name in FILTERS:
        assert engine.explain(event, name).matches is (name in wanted)
    if not isinstance(event, Event) and "EVENT_TIME" not in event:
        table = pa.Table.from_pylist([{"id": 1, **event}])
        assert engine.match_batch(table)["subscription_id"].to_pylist() == wanted


@pytest.mark.parametrize("seed", seeds(96))
def test_the_index_agrees_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    units = ("DAY", "hours", "MINUTE", "SECONDS", "WEEK")

    def moment() -> str:
        shifts = [
            f" {rng.choice('+-')} INTERVAL {rng.randint(0, 40)} {rng.choice(units)}"
            for _ in range(rng.randint(0, 2))
        ]
        return ":event_time" + "".join(shifts)

    def condition() -> str:
        return rng.choice(
            [
                f"hour({moment()}) {rng.choice(['<', '>=', '='])} {rng.randrange(24)}",
                f"a {rng.choice(['<', '>', '<='])} {moment()}",
                f"date_trunc('{rng.choice(['DAY', 'MONTH'])}', {moment()}) <= {moment()}",
                f"datediff({moment()}, a) > {rng.randint(-3, 3)}",
                f"{moment()} BETWEEN a AND TIMESTAMP'2005-05-12 00:00:00'",
                f"b = year({moment()})",
            ]
        )

    def text() -> str:
        parts = [condition() for _ in range(rng.randint(1, 3))]
        return rng.choice([" AND ", " OR "]).join(
            f"NOT ({part})" if rng.random() < 0.3 else part for part in parts
        )

    def time() -> dt.datetime:
        return dt.datetime(2005, 5, rng.randint(8, 13), rng.randrange(24), rng.randrange(60), tzinfo=dt.UTC)

    texts = [text() for _ in range(20)]
    for each in texts:
        tree = parse_filter(each)
        assert parse_filter(print_filter(tree)) == tree
    engine = Engine.build([{"id": number, "filter": each} for number, each in enumerate(texts)])
    events = []
    for number in range(20):
        data: dict[str, Any] = {"a": rng.choice([time(), None, "x"]), "b": rng.choice([2005, 2004, None])}
        if rng.random() < 0.5:
            data["time"] = rng.choice([time(), time().isoformat(), None, 7, "soon"])
        events.append(Event(number, data, rng.choice([time(), None])))
    for event, found in zip(events, engine.match_events(events), strict=True):
        wanted = [
            number for number, each in enumerate(texts) if matches(parse_filter(each), event.attributes)
        ]
        assert found == wanted, event
        assert engine.match(event) == wanted, event


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a > now()", "now is not part of the filter language: it asks the clock"),
        ("a > current_timestamp()", "the event's own time is :event_time"),
        ("a = current_date", "the event's own time is :event_time"),
        ("a > :event_time - INTERVAL 1 MONTH", "for months there is add_months"),
        ("a > :event_time - INTERVAL b DAY", "INTERVAL takes a whole number of days"),
        ("a > :event_time - INTERVAL 99999999999999999 DAYS", "INTERVAL takes a whole number of days"),
        ("a - INTERVAL 1 DAY > b", "only :event_time takes one"),
        ("a > :other", "':' is not part of the filter language"),
        (":event_time", "a condition is expected"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FilterError) as refused:
        RecordIndex.clauses(text)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_it_is_no_name() -> None:
    """No attribute is called so, and no name that is like it is meant."""
    expression = Expression.parse(":Event_Time + INTERVAL 48 HOURS")
    assert expression.text == ":event_time + INTERVAL 2 DAY"
    assert Expression.parse("event_time").attributes == (("event_time",),)
    engine = Engine.build([{"id": 1, "filter": ":event_time > a"}])
    assert engine.unknown([Event(1, {"a": 1}, NIGHT)]) == ({}, {})


def test_it_is_shown_as_it_is_written() -> None:
    """Explanations, checks and refusals by a schema know it by the name that users write."""
    index = RecordIndex.build([Subscription(1, "a < :event_time - INTERVAL 1 DAY AND b = 1")])
    for event in (Event(1, {"b": 2}, NIGHT), Event(1, {"a": NIGHT})):
        found = index.explain(event, 1)
        assert "EVENT_TIME" not in str(found)
        assert ":event_time is" in found.clauses[0].note
    checked = check_filter("hour(:event_time) > 3 AND tme = 1", FilterSettings(), [Event(1, {"a": 1}, NIGHT)])
    assert checked.notes == ("no event has 'tme'",)
    assert checked.indexed_by == "tme and hour(:event_time)"
    schema = '{"a": "timestamp", "b": "int64"}'
    assert check_filter("a < :event_time", FilterSettings(schema=schema)).refused is None
    refused = check_filter("hour(:event_time) = 'x'", FilterSettings(schema=schema)).refused
    assert refused == ":event_time is timestamp, time is null, so hour(:event_time) = 'x' can never hold"


def test_texts_for_spark() -> None:
    text = "a = ':event_time' AND b < :EVENT_TIME -- :event_time"
    assert (
        spark_text(text, timed=False)
        == "a = ':event_time' AND b < try_cast(NULL AS TIMESTAMP) -- :event_time"
    )
