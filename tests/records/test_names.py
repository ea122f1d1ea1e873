"""What names mean: null told from missing, case and dots, by all roads of events, against a look-up."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Engine, Event, Subscription
from headgate.core.values import flatten_as
from headgate.errors import EventError, FilterError, SubscriptionError
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_filter
from headgate.records.names import EITHER, MISSING, NAME, NAMES, PATH, TOLD, NameSettings, plain_text
from headgate.records.reference import evaluate
from tests.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = [NameSettings(*each) for each in product((MISSING, TOLD), NAMES, (PATH, NAME, EITHER))]
WRITTEN = {
    "a": ("a",),
    "A": ("A",),
    "b": ("b",),
    "a.b": ("a", "b"),
    "A.b": ("A", "b"),
    "a.B.c": ("a", "B", "c"),
    "`a.b`": ("a.b",),
    "`A.b`.c": ("A.b", "c"),
}
KEYS = ["a", "A", "b", "B", "c", "a.b", "A.b", "b.c", "a.b.c"]
ABSENT = object()


def look_up(event: dict[str, Any], parts: tuple[str, ...], settings: NameSettings) -> Any:
    """Find the value of a name in an event, by going through all its keys."""
    if settings.names == "any_case":
        parts = tuple(part.lower() for part in parts)
    if settings.dots == NAME:
        parts = (".".join(parts),)
    if settings.dots == EITHER:
        return _either(event, ".".join(parts).split("."), settings)
    found: Any = event
    for part in parts:
        found = _items(found, settings).get(part, ABSENT) if isinstance(found, dict) else ABSENT
    return found


def _items(given: dict[str, Any], settings: NameSettings) -> dict[str, Any]:
    return {key.lower() if settings.names == "any_case" else key: value for key, value in given.items()}


def _either(given: dict[str, Any], parts: list[str], settings: NameSettings) -> Any:
    for key, value in _items(given, settings).items():
        own = key.split(".")
        if own == parts:
            return value
        if parts[: len(own)] == own and isinstance(value, dict):
            found = _either(value, parts[len(own) :], settings)
            if found is not ABSENT:
                return found
        if own[: len(parts)] == parts:
            return {}
    return ABSENT


FORMS: dict[str, Any] = {
    "{} IS NULL": lambda value: value in (None, ABSENT),
    "{} IS NOT NULL": lambda value: value not in (None, ABSENT),
    "{} = 1": lambda value: value == 1,
    "{} + 1 > 2": lambda value: value == 2,
    "NOT ({} <=> 1)": lambda value: value is ABSENT or value is None or value == 2,
    "coalesce({}, 5) = 5": lambda value: value is ABSENT or value is None,
}
ASKING: dict[str, Any] = {
    "present({})": lambda value: value is not ABSENT,
    "NOT present({})": lambda value: value is ABSENT,
    "present({0}) AND {0} IS NULL": lambda value: value is None,
    "if(present({0}), 1, 0) = 1": lambda value: value is not ABSENT,
    "lower(present({})) = 'false'": lambda value: value is ABSENT,
    "present({0}) OR {0} IS NULL": lambda value: value in (ABSENT, value),
}
# Nothing but NULL is known of an object where it is compared or computed with.
NO_OBJECTS = ("{} = 1", "{} + 1 > 2", "NOT ({} <=> 1)", "coalesce({}, 5) = 5")


def draw_event(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Draw an event of numbers, nulls and objects."""
    found: dict[str, Any] = {}
    for key in rng.sample(KEYS, rng.randrange(4)):
        found[key] = draw_event(rng, depth - 1) if depth and rng.random() < 0.4 else rng.choice([1, 2, None])
    return found


def expected(event: dict[str, Any], form: str, name: str, settings: NameSettings) -> bool:
    value = look_up(event, WRITTEN[name], settings)
    if isinstance(value, dict) and form in NO_OBJECTS:
        return False
    return bool({**FORMS, **ASKING}[form](value))


def filters(settings: NameSettings) -> dict[str, tuple[str, str]]:
    """List filters by id: each form of each name."""
    forms = [*FORMS, *ASKING] if settings.nulls == TOLD else list(FORMS)
    pairs = list(product(forms, WRITTEN))
    return {f"s{number:03}": pair for number, pair in enumerate(pairs)}


def column_batch(event: dict[str, Any]) -> pa.RecordBatch | None:
    """Write one event as columns; None if Arrow has no type for it."""
    if not event or "{}" in json.dumps(event):
        return None
    return pa.RecordBatch.from_pylist([event])


def refusal(event: dict[str, Any], settings: NameSettings) -> str | None:
    """Say why an event is refused; None if it is not."""
    try:
        flatten_as(event, settings.mark)
    except EventError as error:
        return str(error)
    return None


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(each.plain.values()) or "usual")
def test_all_roads_find_what_a_plain_look_up_finds(settings: NameSettings, tmp_path: Path) -> None:
    asked = filters(settings)
    given = [Subscription(each, form.format(name)) for each, (form, name) in asked.items()]
    half = len(given) // 2
    whole = RecordIndex.build(given, settings=settings)
    late = RecordIndex.build(given[:half], settings=settings)
    for each in given[half:]:
        late.subscribe(each)
    whole.save(tmp_path / "snapshot")
    opened = RecordIndex.open(tmp_path / "snapshot")
    assert opened.settings == settings
    refused = checked = 0
    for seed in seeds(16):
        rng = random.Random(seed)
        for event in (draw_event(rng) for _ in range(15)):
            reason = refusal(event, settings)
            if reason is not None:
                for index in (whole, late):
                    with pytest.raises(EventError) as raised:
                        index.match(Event(1, event))
                    assert str(raised.value) == reason
                refused += 1
                continue
            flat = flatten_as(event, settings.mark)
            right = [each for each, (form, name) in asked.items() if expected(event, form, name, settings)]
            trees = ((each, parse_filter(whole.filter(each))) for each in asked)
            assert [each for each, tree in trees if evaluate(tree, flat) is True] == right, event
            read = Event.from_json(json.dumps({"id": 1, **event}))
            for index in (whole, late, opened):
                assert index.match(Event(1, event)) == right, (event, settings)
                assert index.match(read) == right, (event, settings)
                many = index.match_batch([Event(1, event), Event(2, {})])
                assert (
                    many.filter(pa.array([each == 1 for each in many[0].to_pylist()]))[1].to_pylist() == right
                )
            batch = column_batch(event)
            if batch is not None:
                for index in (whole, late):
                    found = index.match_batch(batch, pa.array([1]))
                    assert found.column(1).to_pylist() == right, (event, settings)
            checked += 1
    assert checked > 5
    assert refused or settings.mark == "\x01"
    late.compact()
    assert late.match(Event(1, {"a": {"b": 1}})) == whole.match(Event(1, {"a": {"b": 1}}))


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(each.plain.values()) or "usual")
def test_texts_carry_what_names_mean(settings: NameSettings) -> None:
    for form, name in filters(settings).values():
        kept = settings.to_marked(form.format(name))
        assert settings.to_marked(kept) == kept
        if kept != form.format(name):
            assert print_filter(parse_filter(kept)) == kept
        plain = plain_text(kept)
        assert not set(plain) & set("\x01\x02\x03\x04")
        assert settings.to_marked(plain) == kept


def test_present_needs_the_setting() -> None:
    with pytest.raises(FilterError, match="present is not part of the filter language: it is for sets of"):
        Engine.build([Subscription("s", "present(a)")])
    for text in ("present(1)", "present(a, b)", "present()", "present(a + 1)"):
        with pytest.raises(FilterError, match="present takes one attribute"):
            Engine.build([Subscription("s", text)], nulls="told")


REFUSED = [
    (
        {"nulls": "told"},
        {"a": 1, "A": 2},
        "attribute a is given twice: names that differ in case only are the same",
    ),
    (
        {"dots": "either"},
        {"a.b": 1, "a": {"b": 2}},
        "attribute a.b is given twice: a dot in a name is as good as an object, and case does not tell names",
    ),
    (
        {"dots": "either", "names": "exact"},
        {"a.b": 1, "a": {"b": 2}},
        "attribute a.b is given twice: a dot in a name is as good as an object, so send one",
    ),
    ({"dots": "either"}, {"a": 1, "a.b": 2}, "attribute a has a value, and a.b goes into it: send one"),
    (
        {"dots": "either"},
        {"a.b": 2, "a": 1},
        "attribute a is given twice: a dot in a name is as good as an object",
    ),
]


@pytest.mark.parametrize(("said", "event", "reason"), REFUSED)
def test_events_that_mean_two_things_are_refused(
    said: dict[str, Any], event: dict[str, Any], reason: str
) -> None:
    engine = Engine.build([Subscription("s", "a.b = 1"), Subscription("t", "TRUE")], **said)
    with pytest.raises(EventError) as raised:
        engine.match(event)
    assert str(raised.value).startswith(reason)
    only = Engine.build([Subscription("t", "TRUE")], names="exact")
    assert only.match({"a": 1, "A": 2}) == ["t"]


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(
        SubscriptionError, match="names is 'yes': give 'any_case' or 'exact', for whether case"
    ):
        Engine.build([Subscription("s", "a = 1")], names="yes")
    with pytest.raises(SubscriptionError, match="settings of names are for filters of records"):
        Engine.build([Subscription("s", "//a", "xpath")], dots="name")
    with pytest.raises(FilterError, match="a name begins with a control character, which none may"):
        Engine.build([Subscription("s", "`\x01A` = 1")])
    with pytest.raises(FilterError, match="a name begins with a control character, which none may"):
        Engine.build([Subscription("s", "`\x02A` = 1")], names="exact")


def test_people_see_names_without_marks() -> None:
    engine = Engine.build(
        [Subscription("s", "present(Price) AND user.Name = 'x'"), Subscription("t", "Price * 2 > 4")],
        nulls="told",
        names="exact",
    )
    assert engine.filter("s") == "present(Price) AND user.Name = 'x'"
    told: Any = engine.explain({"price": 1, "user": {"Name": "y"}}, "s")
    assert [(each.text, each.attribute, each.held) for each in told.clauses] == [
        ("present(Price)", "present(Price)", False),
        ("user.Name = 'x'", "user.Name", False),
    ]
    told = engine.explain({"Price": 1}, "t")
    assert told.clauses[0].note.endswith("Price is 1")
    assert engine.index.attributes == ["Price", "user.Name"]
    missed = engine.index.why_not(Event(1, {"price": 1}))
    assert [each.filter for each in missed] == ["(Price * 2) > 4", "present(Price) AND user.Name = 'x'"]
    unknown = engine.unknown([{"price": 1}])
    assert unknown.names["Price"] == "price"


def test_graphs_and_rankings_keep_the_settings(tmp_path: Path) -> None:
    nodes, edges = [{"id": "p"}, {"id": "n", "filter": "Kind = 'x'"}], [{"source": "p", "target": "n"}]
    subscriptions: list[dict[str, Any]] = [
        {"id": "s", "filter": "present(Price) AND Price IS NULL", "node": "n"},
        {"id": "t", "filter": "price > 1 AND Price IS NULL", "node": "n", "weights": {"price": 2.0}},
    ]
    engine = Engine.build(subscriptions, nodes=nodes, edges=edges, nulls="told", names="exact")
    engine.save(tmp_path / "graph")
    again = Engine.open(tmp_path / "graph")
    again.subscribe(Subscription("u", "NOT present(PRICE)", node="n"))
    event = {"source": "p", "Kind": "x", "kind": "y", "Price": None, "price": 5}
    assert engine.match(event) == ["s", "t"]
    assert again.match(event) == ["s", "t", "u"]
    plain = [{name: each[name] for name in each if name != "node"} for each in subscriptions]
    ranked = Engine.build(plain, nulls="told", names="exact", ranked=True)
    ranked.save(tmp_path / "ranked")
    again = Engine.open(tmp_path / "ranked")
    again.subscribe(Subscription("u", "NOT present(PRICE)"))
    assert [each.subscription for each in again.top(event, 5)] == ["s", "t", "u"]
    assert next(each.subscription for each in again.top(event, 5, mode="relaxed")) == "t"


def test_a_usual_snapshot_says_nothing_of_names(tmp_path: Path) -> None:
    Engine.build([Subscription("s", "a = 1")]).save(tmp_path / "usual")
    Engine.build([Subscription("s", "a = 1")], nulls="told").save(tmp_path / "told")
    manifests = {
        name: next((tmp_path / name).rglob("manifest.json")).read_text() for name in ("usual", "told")
    }
    assert '"nulls"' not in manifests["usual"]
    assert '"nulls"' in manifests["told"]
    late = Engine.open(tmp_path / "told")
    late.subscribe(Subscription("t", "present(a)"))
    assert late.match({"a": None}) == ["t"]
