"""Tables of filters: texts to programs on workers, carried as bytes, and programs to an index.

Against a schema, names and types that can never match are refused at once.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.contents import columns
from headgate.contents.columns import ColumnContents
from headgate.core.event import EVENT_TIME, TIME
from headgate.core.interning import TextPool
from headgate.core.schema import Type, read_schema
from headgate.core.values import MARKS, PRESENT, Kind, dotted
from headgate.errors import FilterError
from headgate.records.computed import LOWER, shown, sources
from headgate.records.expressions import types
from headgate.records.index.index import RecordIndex, RecordRoom
from headgate.records.keys import record_keys
from headgate.records.language.dialects import to_sql
from headgate.records.language.model import IsNull, Textual, predicates
from headgate.records.language.printing import print_filter
from headgate.records.language.rewrite import expand_between, resolve_nulls
from headgate.records.names import USUAL, plain_text
from headgate.records.programs.binding import Binder, compile_filters, parse_text
from headgate.records.programs.leaves import FACETS_OF_KIND, Facet, GlobLeaf, Quantifier
from headgate.records.programs.lowering import lower
from headgate.records.programs.programs import Programs, concatenate, take

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headgate.contents.columns import ColumnFilters
    from headgate.contents.protocol import Keys
    from headgate.core.ids import Ids
    from headgate.core.schema import Schema
    from headgate.core.values import Path as Attribute
    from headgate.records.events.columns import Columns
    from headgate.records.expressions.expression import Expression as Computed
    from headgate.records.language.model import Expression, Predicate
    from headgate.records.names import NameSettings


_STRING = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
# A variable, and all that its function says of it: up to the parenthesis that ends the call.
_LAMBDA = rf"""(?:\w+|`[^`]*`)\s*->(?:{_STRING}|[^'"()]|\((?:{_STRING}|[^'"()])*\))*"""
_SEEN = {**FACETS_OF_KIND, Kind.NULL: frozenset(Facet)}


def check_types(expression: Expression, schema: Schema, text: str) -> None:
    """Refuse a filter that names an unknown attribute or compares one with a literal of another type.

    >>> from headgate import Schema
    >>> from headgate.records.language.parse import parse_filter
    >>> text = "aeg > 30"
    >>> check_types(parse_filter(text), Schema.from_json({"age": "int64"}), text)
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: attribute aeg is not in the schema; age is, at character 1: ⟪aeg > 30
    """
    seen: Counter[Attribute] = Counter()
    for predicate in predicates(expression):
        computed = predicate.attribute.expression
        timed = computed is not None and EVENT_TIME in computed.attributes
        for path in predicate.attribute.sources:
            seen[path] += 1
            # `:event_time` reads the attribute `time` only where an event has no time of its own.
            if path not in schema.types and not (timed and path == (TIME,)):
                near = schema.nearest(path)
                reason = f"attribute {dotted(path)} is not in the schema" + (f"; {near} is" if near else "")
                raise FilterError(reason, text, _place(path, seen[path], text))
        if computed is not None:
            _check_computed(predicate, computed, schema, text)
            continue
        path = predicate.attribute.path
        if path[0] == PRESENT:
            continue
        kind = schema.types[path]
        for part in predicates(resolve_nulls(expand_between(predicate))):
            if not _able(part, kind):
                reason = f"{dotted(path)} is {kind}, so {plain_text(print_filter(part))} can never hold"
                raise FilterError(reason, text, _place(path, seen[path], text))


_TYPES = {
    Kind.BOOL: types.BOOL,
    Kind.INT: types.LONG,
    Kind.FLOAT: types.DOUBLE,
    Kind.STRING: types.STRING,
    Kind.TIMESTAMP: types.TIMESTAMP,
    Kind.DECIMAL: types.decimal(20, 4),
    Kind.NULL: types.VOID,
}
_KINDS_OF = {
    "boolean": Kind.BOOL,
    "int": Kind.INT,
    "bigint": Kind.INT,
    "double": Kind.FLOAT,
    "string": Kind.STRING,
    "date": Kind.TIMESTAMP,
    "timestamp": Kind.TIMESTAMP,
    "decimal": Kind.DECIMAL,
    "array": Kind.ARRAY,
    "struct": Kind.OBJECT,
    "void": Kind.NULL,
}


def _type_of(path: Attribute, schema: Schema) -> Type:
    """Return the type of what an expression reads."""
    if path[0] == PRESENT:
        return Type(Kind.BOOL)
    return Type(Kind.TIMESTAMP) if path == EVENT_TIME else schema.types.get(path, Type(Kind.NULL))


def _check_computed(predicate: Predicate, computed: Computed, schema: Schema, text: str) -> None:
    """Refuse an expression that the types of a schema make NULL, or what can never hold of it."""
    given = [_type_of(path, schema) for path in computed.attributes]
    if any((each.element if each.kind is Kind.ARRAY else each.kind) not in _TYPES for each in given):
        return
    kinds = tuple(
        types.array(_TYPES[each.element or Kind.NULL]) if each.kind is Kind.ARRAY else _TYPES[each.kind]
        for each in given
    )
    form = computed.form_of(kinds)
    listed = ", ".join(
        f"{shown(path)} is {each}" for path, each in zip(computed.attributes, given, strict=True)
    )
    if form.refused:
        raise FilterError(f"{listed}, and {form.refused}: {plain_text(computed.text)}", text, None)
    kind = _KINDS_OF[form.type.name]
    element = None if form.type.element is None else _KINDS_OF[form.type.element.name]
    for part in predicates(resolve_nulls(expand_between(predicate))):
        if kind is not Kind.NULL and not _able(part, Type(kind, element)):
            raise FilterError(f"{listed}, so {plain_text(print_filter(part))} can never hold", text, None)


def _place(path: Attribute, count: int, text: str) -> int | None:
    """Find where an attribute stands for the count-th time, with or without backticks, not in a string.

    Nor in a function of forall, whose variable may have the same name.
    """
    parts = [part[1:] if part[:1] in MARKS else part for part in path]
    names = (rf"(?:{re.escape(name)}|`{re.escape(name.replace('`', '``'))}`)" for name in parts)
    dotted_name = r"\s*\.\s*".join(names)
    pattern = rf"{_STRING}|{_LAMBDA}|(?<![\w.`])({dotted_name})(?![\w`]|\s*\.)"
    places = [
        match_.start(1) for match_ in re.finditer(pattern, text, re.IGNORECASE | re.DOTALL) if match_[1]
    ]
    return places[count - 1] if len(places) >= count else None


def _able(predicate: Predicate, found: Type) -> bool:
    if isinstance(predicate, IsNull):
        return True
    if isinstance(predicate, Textual) or predicate.attribute.function == LOWER:
        return Facet.TEXT in _SEEN[found.kind]
    # Both forms, because one of them may be empty for another reason: an empty list, say.
    for negated in (False, True):
        leaf = lower(predicate, negated=negated)
        if isinstance(leaf, GlobLeaf):
            return Facet.TEXT in _SEEN[found.kind]
        kind = found.kind
        if leaf.quantifier is not Quantifier.VALUE:
            if kind is not Kind.ARRAY:
                return kind is Kind.NULL
            kind = found.element if found.element is not None else Kind.NULL
        if any(facet in _SEEN[kind] for facet, _ in leaf.sets):
            return True
    return False


_PATHS = msgspec.json.Decoder(tuple[tuple[str, ...], ...])


def to_bytes(programs: Programs) -> bytes:
    """Write programs, with the paths of attributes as one text."""
    paths = TextPool.build([msgspec.json.encode(programs.attributes).decode()])
    return columns.to_bytes([*programs[:-1], paths])


def from_bytes(data: bytes | memoryview) -> Programs:
    """Read programs.

    >>> from headgate.records.programs.binding import compile_filters
    >>> from_bytes(to_bytes(compile_filters(["a = 'x' OR b.c"]).programs)).attributes
    (('a',), ('b', 'c'))
    """
    try:
        return columns.from_bytes(data, _programs)
    except msgspec.DecodeError:
        raise ValueError("these bytes are not programs") from None


def _programs(*parts: Any) -> Programs:
    *arrays, paths = parts
    return Programs._make([*arrays, _PATHS.decode(paths.text(0))])


class RecordWriter:
    """Lays the programs of filters one behind another, checked against a schema if there is one."""

    def __init__(self, schema: str | None, settings: NameSettings = USUAL) -> None:
        self._schema = schema
        self._settings = settings
        self._binder = Binder()

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it as SQL."""
        sql = to_sql(text, dialect, self._settings)
        if self._schema is not None:
            # Places are those in the text as written: its names stand there as well.
            check_types(parse_text(sql), read_schema(self._schema, self._settings.mark), text)
        self._binder.add(sql)
        return sql

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        return to_bytes(self._binder.finish())


@dataclass(frozen=True)
class RecordWriters(RecordRoom):
    """What workers need for filters of records: the schema, as JSON, and what names mean."""

    schema: str | None = None

    def writer(self, *, checked: bool = True) -> RecordWriter:
        """Begin."""
        return RecordWriter(self.schema if checked else None, self.settings)


@dataclass(frozen=True)
class RecordFinder:
    """Finds the keys of filters: values of one attribute."""

    path: Attribute | None
    demands: bool = False

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of filters as a writer has written them."""
        return [] if self.path is None else record_keys(from_bytes(payload), self.path)

    def of_compiled(self, compiled_filters: ColumnFilters) -> list[Keys]:
        """Find the keys of filters that were filed."""
        return [] if self.path is None else record_keys(compiled_filters.columns, self.path)


@dataclass(frozen=True)
class RecordContents(ColumnContents, RecordRoom):
    """The room of records, with a schema and a sample of events if they are given."""

    columns = staticmethod(_programs)
    take = staticmethod(take)
    concatenate = staticmethod(concatenate)

    schema: str | None = None
    sample: Columns | None = None

    @property
    def writers(self) -> RecordWriters:
        """Return what workers need."""
        return RecordWriters(self.settings, self.schema)

    def compiled(self, texts: Sequence[str]) -> Programs:
        """Compile filters in SQL."""
        return compile_filters(texts).programs

    def indexed(self, ids: Ids, texts: TextPool, columns: Programs) -> RecordIndex:
        """Index programs, in the order of their ids."""
        return RecordIndex.from_programs(ids, texts, columns, sample=self.sample, settings=self.settings)

    def named(self, columns: Programs) -> tuple[str, ...]:
        """List the attributes that filters name."""
        return tuple(sorted({dotted(own) for path in columns.attributes for own in sources(path)}))

    def finder(self, path: Attribute | None) -> RecordFinder:
        """Return what finds the keys of filters."""
        return RecordFinder(path)

    def counts(self, snapshot: Path) -> None:
        """Count nothing: the attributes say it."""
        del snapshot
