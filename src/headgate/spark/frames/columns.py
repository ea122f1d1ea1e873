"""The columns of a DataFrame of events, made ready for workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from headgate.contents.protocol import EVENT_ID
from headgate.contents.registry import kind_of
from headgate.core.arguments import likeliest
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.core.values import fold
from headgate.engine.question import ALL
from headgate.errors import TableError
from headgate.spark.tables.comparing import check_types, is_comparable
from headgate.spark.tables.rows import mapped
from headgate.spark.tables.tables import column, id_type
from headgate.tables.event_rows import COLUMNS, DOCUMENTS, PACKED, REASON, ROW
from headgate.tables.frames.reading import KEPT
from headgate.tables.frames.rows import refused_frame
from headgate.tables.frames.task import FrameTask
from headgate.tables.places import no_column
from headgate.tables.requests import check_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType
    from typing_extensions import TypeIs

    from headgate.engine.question import Question
    from headgate.runtime.targets import Openable, Sources, Target

WHAT = "events"
"""What a DataFrame of events is called in messages."""


@dataclass(frozen=True)
class EventColumns:
    """Which columns play which part; `source` is for graphs, `data` and `content_type` for documents."""

    id: str = ID
    source: str = SOURCE
    data: str = DATA
    content_type: str = CONTENT_TYPE


def find(table: DataFrame, name: str, what: str) -> str:
    """Return the name of a column as the table has it: exactly, or else but for capitals."""
    if name in table.columns:
        return name
    alike = [each for each in table.columns if fold(each) == fold(name)]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise TableError(
            f"{WHAT}: {name!r} may be any of the columns {', '.join(alike)}: name {what} exactly"
        )
    raise TableError(no_column(WHAT, name, table.columns))


@dataclass(frozen=True)
class GivenEvents:
    """A DataFrame of events, and what is asked about them: both are fit for each other."""

    table: DataFrame
    columns: EventColumns
    target: Target
    form: str
    """Whether rows hold documents, or their columns are attributes; of several kinds, a row may be either."""
    content_type: str | None
    """The format of documents that name none."""

    @classmethod
    def of(cls, events: DataFrame, columns: EventColumns, target: Target, form: str | None) -> Self:
        """Check that there are events, and that they have a format if one is named."""
        check_frame(events, WHAT)
        kind = kind_of(target.content)
        named = fold(columns.content_type) in map(fold, events.columns)
        documents = kind.documents and (not kind.rows or named or form is not None)
        if form is not None and not kind.documents:
            raise TableError(f"format is {form!r}, and events of {kind.title} have none: leave it out")
        content_type = None if form is None else check_type(form, kind)
        return cls(events, columns, target, DOCUMENTS if documents else COLUMNS, content_type)

    @property
    def documents(self) -> bool:
        """Tell whether rows hold documents, though some may be records."""
        return self.form == DOCUMENTS

    @property
    def id_type(self) -> DataType:
        """Return the type of ids of events."""
        name = find(self.table, self.columns.id, "the id")
        id_type(self.table, name, WHAT)
        return next(field.dataType for field in self.table.schema if field.name == name)

    def kept(self, keep: Sequence[str]) -> list[str]:
        """Return the names of columns that are wanted beside the answers, as the table has them."""
        if isinstance(keep, str):
            raise TableError(f"keep is {keep!r}: give a list of names of columns")
        return [find(self.table, name, "what is kept") for name in keep]

    def rows(self, kept: Iterable[str], *, live: bool = False) -> DataFrame:
        """Return what workers get; filters that are `live` may come to look at anything."""
        return packed(self.table, self.target, self.columns, kept, form=self.form, live=live)

    def task(self, group: Openable, sources: Sources | None, question: Question = ALL) -> FrameTask:
        """Say what workers do; `sources` is where events may enter a graph."""
        task = FrameTask.of(self.target, group, self.form)
        return task._replace(content_type=self.content_type, sources=sources, question=question)

    def schema(self, told: Sequence[tuple[str, DataType]], kept: Iterable[str]) -> StructType:
        """Return the columns of a result: the event's id, what is told of it, and what is kept."""
        fields = [(EVENT_ID, self.id_type), *told]
        fields += [(name, self.table.schema[name].dataType) for name in kept]
        names = [fold(name) for name, _ in fields]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise TableError(
                f"column {twice} would be there twice: rename it in the events, or do not keep it"
            )
        return StructType([StructField(name, kind) for name, kind in fields])

    def refused(self, tasks: Iterable[FrameTask]) -> DataFrame:
        """List the rows that are no events: `event_id`, `reason`, and the `row` as JSON."""
        schema = self.schema([(REASON, StringType()), (ROW, StringType())], ())
        works = [partial(refused_frame, task=task) for task in tasks]
        return mapped(self.rows(self.table.columns), works, schema)


def is_frame(given: object) -> TypeIs[DataFrame]:
    """Tell whether something is a DataFrame, of whichever kind of session."""
    return hasattr(given, "mapInArrow")


def check_frame(frame: object, name: str) -> None:
    """Refuse what is no DataFrame."""
    if not is_frame(frame):
        raise TableError(f"{name} are {type(frame).__name__}: give a DataFrame of Spark")


def check_names(names: Iterable[str], columns: Sequence[str]) -> None:
    """Refuse other names for columns that a result does not have."""
    for name in names:
        if name not in columns:
            meant = likeliest(name, columns)
            hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(columns)}"
            raise TableError(f"names: the result has no column {name!r}: {hint}")


def renamed(frame: DataFrame, names: Mapping[str, str] | None) -> DataFrame:
    """Give other names to columns of a result."""
    others = names or {}
    check_names(others, frame.columns)
    return frame.select(*(column(name).alias(others.get(name, name)) for name in frame.columns))


def packed(
    table: DataFrame,
    target: Target,
    columns: EventColumns,
    kept: Iterable[str],
    *,
    form: str,
    live: bool = False,
    title: str = WHAT,
) -> DataFrame:
    """Select what workers get: the id, what filters look at, and what is kept of an event.

    All else goes into structs: `mapInArrow` stumbles over dots and backticks in the names of columns. Filters
    that are `live` may come to look at anything.
    """
    identity = find(table, columns.id, "the id")
    id_type(table, identity, WHAT)
    wanted = [column(name) for name in kept]
    rest = [sf.struct(*wanted).alias(KEPT)] if wanted else []
    if form == DOCUMENTS:
        rest += _document(table, columns, target)
    if form == COLUMNS or kind_of(target.content).rows:
        rest.append(_record(table, identity, columns, target, title, live=live))
    return table.select(column(identity).alias(ID), *rest)


def _record(
    table: DataFrame, identity: str, columns: EventColumns, target: Target, title: str, *, live: bool
) -> Column:
    """Pack the columns that filters name; the id and the source have these names, too."""
    wanted = target.columns
    if live:
        wanted = {ID, *map(fold, table.columns)}
        seen = {field.name: comparable(column(field.name), field.dataType) for field in table.schema}
        fields = {name: value for name, value in seen.items() if value is not None}
    else:
        fields = {name: column(name) for name in table.columns if fold(name) in wanted}
    if len({fold(name) for name in fields}) < len(fields):
        alike = sorted(fields, key=fold)
        raise TableError(
            f"{WHAT}: the names of {', '.join(alike)} differ in case only, which are the same: rename"
        )
    if ID in wanted and ID not in map(fold, fields):
        fields[ID] = column(identity)
    if target.graph:
        fields = {name: value for name, value in fields.items() if fold(name) != SOURCE}
        fields[SOURCE] = _source(table, columns)
    check_types(table, title, target)
    if not fields:
        # A struct has at least one field.
        fields[ID] = column(identity)
    return sf.struct(*(value.alias(name) for name, value in fields.items())).alias(PACKED)


def comparable(value: Column, kind: DataType) -> Column | None:
    """Return what filters can compare of a column, without the rest of its structs; None if that is nothing.

    A filter that comes later and names the rest finds no such attribute. It must not end the stream for the
    others.
    """
    if not isinstance(kind, StructType):
        return value if is_comparable(kind) else None
    fields = [(field, comparable(value.getField(field.name), field.dataType)) for field in kind]
    some = [(field.name, each) for field, each in fields if each is not None]
    if not some:
        return None
    if len(some) == len(kind) and not any(isinstance(field.dataType, StructType) for field in kind):
        return value
    whole = sf.struct(*(each.alias(name) for name, each in some))
    return sf.when(value.isNotNull(), whole)


def _document(table: DataFrame, columns: EventColumns, target: Target) -> list[Column]:
    data = find(table, columns.data, "the documents")
    fields = [column(data).alias(DATA)]
    none = sf.lit(None).cast("string")
    named = [name for name in table.columns if fold(name) == fold(columns.content_type)]
    fields.append((column(named[0]) if named else none).alias(CONTENT_TYPE))
    fields.append((_source(table, columns) if target.graph else none).alias(SOURCE))
    return fields


def _source(table: DataFrame, columns: EventColumns) -> Column:
    source = find(table, columns.source, "the source, where an event enters the graph")
    id_type(table, source, WHAT)
    return column(source)
