"""What an engine may be given, and what it takes it for: events, tables of events, subscriptions.

    one event            an Event, a mapping of attributes, or JSON: the text of one object
    many events          a list of these, or a table
    subscriptions        a Subscription, a mapping of its fields, a list of these, or a table

A table is what Arrow can read: its own batches and tables, and what has `__arrow_c_stream__`, as frames of
pandas and Polars do. All else is refused, in the words of whoever gave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from headgate.core.arguments import listed, told, usable_id, with_article
from headgate.core.event import (
    CONTENT_TYPE,
    FEED_TYPES,
    ID,
    JSON,
    SOURCE,
    Event,
    is_plain,
    media_type,
    read_object,
)
from headgate.core.subscription import Subscription
from headgate.core.values import find_name, fold
from headgate.engine.native import native_row, plain
from headgate.errors import EventError, HeadgateError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from headgate.contents.kind import Kind
    from headgate.core.event import Id
    from headgate.engine.backend import Column, Events

Model = TypeVar("Model")


class RefusedSubscription(NamedTuple):
    """A subscription that was refused: its row, counted from 0, its id if it has one, and why."""

    row: int
    id: Id | None
    reason: str


_STREAM, _ARRAY = "__arrow_c_stream__", "__arrow_c_array__"
_EVENTS = "give a table, or a list of events and mappings"
_ONE = "an event is an Event, a mapping of attributes, or JSON"
_TEXTS = (str, bytes, bytearray, memoryview)


def event_of(given: object, identity: Id = 0) -> Event:
    """Take an event, or make one of a mapping or of JSON; `identity` is the id of one that has none.

    A mapping is read as a row is: its `id` and `source` are those of the event, and `datacontenttype` and
    `data` make it a document. JSON is the text of one such object.

    >>> event_of({"id": "e1", "source": "pub", "age": 35}).source, event_of({"age": 35}).id
    ('pub', 0)
    >>> event_of(b'{"id": "e1", "age": 35}')
    Event(id='e1', data={'id': 'e1', 'age': 35}, time=None, source=None, content_type='application/json')
    """
    if type(given) is dict:
        return _of_row(native_row(given), identity)
    if isinstance(given, Event):
        return _taken(given)
    if isinstance(given, _TEXTS):
        return _of_row(_object(given), identity)
    if not isinstance(given, Mapping):
        many = ": for many events there are match_events and match_batch"
        hint = many if _is_table(given) or isinstance(given, list | tuple) else ""
        raise EventError(f"{_ONE}, not {told(given)}{hint}")
    return _of_row(native_row(given), identity)


def _object(given: Any) -> dict[str, Any]:
    """Read JSON, which has no values that need another look."""
    try:
        return read_object(given if isinstance(given, str | bytes) else bytes(given))
    except EventError as error:
        raise EventError(f"{_ONE}, and this text is none: {error}") from None


def _of_row(row: dict[Any, Any], identity: Id) -> Event:
    """Make an event of a row with values as Python has them."""
    if is_plain(row):
        own, source = row.get(ID), row.get(SOURCE)
        if own is None:
            own = identity
        if (type(own) is str or type(own) is int) and type(source) is not Decimal:
            return Event.record(own, row, source if type(source) is str or type(source) is int else None)
    row = _with_id(row)
    for name in row:
        if not isinstance(name, str):
            raise EventError(f"the attribute name {name!r} is not text")
    if any(fold(name) == ID and value is not None for name, value in row.items()):
        return Event.from_row(row)
    made = Event.from_row({**row, ID: identity})
    # Filters look at what was sent, and that has no id.
    return made if made.content_type != JSON else Event(identity, row, source=made.source)


def _with_id(row: dict[Any, Any]) -> dict[Any, Any]:
    """Have an id and a source that are decimals as numbers."""
    odd = [
        name for name, value in row.items() if isinstance(value, Decimal) and fold(str(name)) in {ID, SOURCE}
    ]
    return {**row, **{name: plain(row[name]) for name in odd}} if odd else row


def _taken(event: Event) -> Event:
    if event.content_type != JSON or "attributes" in vars(event):
        return event
    data = event.data
    if type(data) is not dict and not isinstance(data, Mapping):
        raise EventError(
            f"event {event.id!r} is {JSON}: its data is a mapping of attributes, not {told(data)}; "
            "a document needs its content_type"
        )
    row = native_row(data)
    return event if row is data else replace(event, data=row)


def events_of(given: object) -> list[Event]:
    """Take events: any iterable of events and mappings, or a table. One without an id has its row's number.

    >>> [event.id for event in events_of([{"age": 35}, Event("e2", {})])]
    [0, 'e2']
    """
    if _is_table(given):
        given = _table(given, EventError).to_pylist()
    return [event_of(each, row) for row, each in enumerate(listed(given, "events", EventError, _EVENTS))]


FEEDS = frozenset(FEED_TYPES.values())


def items_of(event: Event, kind: Kind) -> list[Event]:
    """List the events of a document: the items of a feed that is not read yet, else the event itself."""
    taken = event.content_type in FEEDS and event.content_type in kind.types.values()
    if not taken or not isinstance(event.data, str | bytes):
        return [event]
    (read,) = kind.read([event])
    if isinstance(read, EventError):
        raise EventError(f"event {event.id!r}: {read}")
    return list(read.events)


def with_items(batches: Iterable[tuple[Events, Column]], kind: Kind) -> Iterator[tuple[Events, Column]]:
    """Put the items of feeds in their place, each with its id."""
    for events, ids in batches:
        if not has_feeds(events, kind):
            yield events, ids
            continue
        read: Any = events
        if not isinstance(read, Sequence):
            rows: Any = zip(read.to_pylist(), ids.to_pylist(), strict=True)
            read = [event_of(row, identity) for row, identity in rows]
        items = [item for event in read for item in items_of(event, kind)]
        yield items, ids_of(items)


def has_feeds(events: Events, kind: Kind) -> bool:
    """Tell whether there are feeds among events, and filters that look at them."""
    if FEEDS.isdisjoint(kind.types.values()):
        return False
    if isinstance(events, Sequence):
        return any(event.content_type in FEEDS for event in events)
    place = find_name((CONTENT_TYPE,), events.schema.names)
    types = () if place is None else events.column(place).unique().to_pylist()
    return any(isinstance(name, str) and media_type(name) in FEEDS for name in types)


def asked_of(given: object) -> Iterator[tuple[Events, Column]]:
    """Take events for Arrow, in columns if they came so; with each part the ids, or numbers of rows."""
    import pyarrow as pa

    if not _is_table(given):
        events = events_of(given)
        yield events, ids_of(events)
        return
    table, begin = _table(given, EventError), 0
    names = [fold(name) for name in table.schema.names]
    for batch in _usual(table).combine_chunks().to_batches():
        end = begin + batch.num_rows
        yield batch, batch.column(names.index(ID)) if ID in names else pa.array(range(begin, end), pa.int64())
        begin = end


def ids_of(events: Iterable[Event]) -> Column:
    """Return the ids of events as a column."""
    return _ids([event.id for event in events])


def _ids(ids: list[Id]) -> Column:
    import pyarrow as pa

    kinds = {*map(type, ids)}
    kind = pa.int64() if kinds <= {int} else pa.string()
    try:
        return pa.array(ids if len(kinds) < 2 else [str(each) for each in ids], kind)
    except (ValueError, OverflowError, TypeError) as error:
        raise EventError(f"the ids of the events do not fit into a column of {kind}: {error}") from None


@overload
def subscriptions_of(given: object) -> list[Subscription]: ...


@overload
def subscriptions_of(
    given: object, refused: list[RefusedSubscription] | None
) -> list[Subscription | RefusedSubscription]: ...


def subscriptions_of(
    given: object, refused: list[RefusedSubscription] | None = None
) -> Sequence[Subscription | RefusedSubscription]:
    """Take subscriptions: one, a mapping of its fields, any iterable of these, or a table.

    One that is none is told in its place, and to `refused`, if there is such a list.

    >>> subscriptions_of([{"id": "s1", "filter": "age > 30", "score": 2}])[0].score
    2
    """
    taken: list[Subscription | RefusedSubscription] = []
    for row, each in enumerate(_rows(given, Subscription, "subscription", SubscriptionError)):
        try:
            taken.append(_model(each, Subscription, "subscription", SubscriptionError))
        except HeadgateError as error:
            if refused is None:
                raise
            identity = plain(each.get("id")) if isinstance(each, Mapping) else None
            usable = isinstance(identity, str | int) and not isinstance(identity, bool)
            refused.append(RefusedSubscription(row, identity if usable else None, str(error)))
            taken.append(refused[-1])
    return taken


def models_of(given: object, model: type[Model], what: str, error: type[HeadgateError]) -> list[Model]:
    """Take what users write down: objects of a class, or mappings and rows with the names of its fields."""
    return [_model(each, model, what, error) for each in _rows(given, model, what, error)]


def _rows(given: object, model: type[Any], what: str, error: type[HeadgateError]) -> list[Any]:
    if isinstance(given, model | Mapping):
        given = [given]
    if _is_table(given):
        table = _table(given, error)
        known = [name for name in table.schema.names if fold(name) in _names(model)]
        given = _usual(table.select(known)).to_pylist()
    need = f"give a table, or a list of {what}s or of mappings with their fields"
    return listed(given, f"{what}s", error, need)


def _model(given: object, model: type[Model], what: str, error: type[HeadgateError]) -> Model:
    if isinstance(given, model):
        return given
    if not isinstance(given, Mapping):
        need = f"give {with_article(model.__name__)}, or a mapping of its fields"
        raise error(f"{with_article(what)} is {told(given)}: {need}")
    names, values = _names(model), {}
    which = with_article(what) if given.get("id") is None else f"{what} {given['id']!r}"
    for name, value in given.items():
        field = fold(name) if isinstance(name, str) else None
        if field not in names or value is None:
            continue
        if field in values:
            raise error(f"{which} has two fields {field!r}: names that differ in case only are the same")
        values[field] = _fit(field, plain(value))
    for name, needed in names.items():
        if needed and name not in values:
            raise error(f"{which} has no {name!r}: its fields are {', '.join(names)}")
    return model(**values)


def _fit(field: str | None, value: Any) -> Any:
    """Read weights as they come out of a table: of a map as pairs, of a struct with nothing for some."""
    if field != "weights":
        return value
    if isinstance(value, list) and value and isinstance(value[0], list | tuple):
        value = dict(value)
    if isinstance(value, dict):
        return {name: weight for name, weight in value.items() if weight is not None}
    return value


def _names(model: type[Any]) -> dict[str, bool]:
    """List the fields of a class, and whether they must be given."""
    needed = ("id", "filter") if model is Subscription else ("id", "source", "target")
    return {field.name: field.name in needed for field in fields(model)}


def id_of(given: object) -> Id:
    """Take the id of a subscription."""
    return usable_id(plain(given))


def _is_table(given: object) -> bool:
    return hasattr(given, _STREAM) or hasattr(given, _ARRAY)


def _table(given: Any, error: type[HeadgateError]) -> pa.Table:
    """Read a table through Arrow's interface."""
    import pyarrow as pa

    try:
        if hasattr(given, _STREAM):
            return pa.RecordBatchReader.from_stream(given).read_all()
        return pa.Table.from_batches([pa.record_batch(given)])
    except (pa.ArrowException, TypeError, ValueError, AttributeError, NotImplementedError) as reason:
        raise error(f"{told(given)} is not a table that Arrow can read: {_line(reason)}") from None


def _usual(table: pa.Table) -> pa.Table:
    """Have texts in a type that filters compare, and ids and sources that are decimals as numbers."""
    import pyarrow as pa

    named = [_number_type if fold(field.name) in {ID, SOURCE} else _usual_type for field in table.schema]
    kinds = [usual(field.type) for field, usual in zip(table.schema, named, strict=True)]
    schema = pa.schema([field.with_type(kind) for field, kind in zip(table.schema, kinds, strict=True)])
    if schema == table.schema:
        return table
    try:
        return table.cast(schema)
    except pa.ArrowException as reason:
        raise EventError(f"a column of the table holds what does not fit: {_line(reason)}") from None


def _number_type(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return pa.int64() if kind.scale <= 0 and kind.precision <= 18 else pa.float64()
    return _usual_type(kind)


def _usual_type(kind: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    if types.is_string_view(kind):
        return pa.string()
    if types.is_list(kind) or types.is_large_list(kind):
        inner = _usual_type(kind.value_type)
        return kind if inner == kind.value_type else pa.list_(inner)
    if types.is_struct(kind):
        inside = [kind.field(number) for number in range(kind.num_fields)]
        usual = [field.with_type(_usual_type(field.type)) for field in inside]
        return kind if usual == inside else pa.struct(usual)
    return kind


def _line(reason: Exception) -> str:
    return str(reason).partition("\n")[0] or type(reason).__name__
