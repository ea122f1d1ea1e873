"""Events made ready to be matched: of records the columns that filters name, of documents what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.core.event import ID, SOURCE
from headgate.core.values import dotted, fold
from headgate.errors import TableError
from headgate.spark.match.document_matching import match_documents
from headgate.spark.match.graph_matching import match_graph_columns, match_graph_lines
from headgate.spark.match.graph_top import rank_graph_columns, rank_graph_lines
from headgate.spark.match.matching import PACKED, match_columns, match_lines
from headgate.spark.match.top_matching import rank_columns, rank_lines
from headgate.spark.tables.document_events import judge_documents
from headgate.spark.tables.events import Given, judge
from headgate.spark.tables.places import Format, check_input
from headgate.spark.tables.tables import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.core.values import Path
    from headgate.runtime.targets import Target
    from headgate.spark.match.graph_matching import Sources
    from headgate.spark.tables.events import Work


_COMPARABLE = (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_PLAIN: tuple[Work, Work] = (match_lines, match_columns)
_RANKED: tuple[Work, Work] = (rank_lines, rank_columns)
_GRAPH: tuple[Work, Work] = (match_graph_lines, match_graph_columns)
_RANKED_GRAPH: tuple[Work, Work] = (rank_graph_lines, rank_graph_columns)
"""What workers do with lines, and with columns."""


def read_records(
    session: SparkSession, path: str, target: Target, sources: Sources | None, *, best: bool
) -> Given:
    """Judge a table of records; `best` says that only the best of each event are asked for."""
    form = check_input(path)
    judged = judge(session, path, form, sources)
    if form is Format.JSONL:
        return Given(judged, judged.events, _work(target, best=best)[0])
    table = _needed(judged.events, target)
    unknown = _check_types(table, path, target)
    return Given(judged, _packed(table), _work(target, best=best)[1], unknown if judged.count else ())


def _work(target: Target, *, best: bool) -> tuple[Work, Work]:
    if target.graph:
        return _RANKED_GRAPH if best else _GRAPH
    return _RANKED if target.ranked else _PLAIN


def _needed(table: DataFrame, target: Target) -> DataFrame:
    """Keep the id, the source if there is a graph, and the columns that filters name."""
    wanted = {path[0] for path in target.attributes} | {ID, *([SOURCE] if target.graph else [])}
    return table.select(*[column(name) for name in table.columns if fold(name) in wanted])


def _packed(table: DataFrame) -> DataFrame:
    """Make one column of all: `mapInArrow` stumbles over dots and backticks in the names of columns."""
    return table.select(sf.struct(*map(column, table.columns)).alias(PACKED))


def _check_types(table: DataFrame, path: str, target: Target) -> tuple[str, ...]:
    """Refuse columns that filters compare and cannot: they would never match, and nobody would know.

    Returns the attributes that filters name and the table lacks.
    """
    unknown = []
    for attribute in target.attributes:
        kind = _find(table.schema, attribute, path)
        if kind is None:
            unknown.append(dotted(attribute))
        elif attribute in target.compared and not _comparable(kind):
            what = f"{path}: {dotted(attribute)} is {kind.simpleString()}, which filters cannot compare"
            hint = "double" if isinstance(kind, DecimalType) else "a type that filters know"
            raise TableError(f"{what}: cast it to {hint}")
    return tuple(sorted(unknown))


def _find(kind: DataType, attribute: Path, path: str) -> DataType | None:
    """Find the type of an attribute, through nested structs; into maps Spark would go, and filters cannot."""
    for place, name in enumerate(attribute):
        if isinstance(kind, MapType):
            what = f"{path}: {dotted(attribute[:place])} is {kind.simpleString()}"
            raise TableError(f"{what}, which {dotted(attribute)} cannot go into: make it a struct")
        fields = kind.fields if isinstance(kind, StructType) else []
        found = next((field for field in fields if fold(field.name) == name), None)
        if found is None:
            return None
        kind = found.dataType
    return kind


def _comparable(kind: DataType) -> bool:
    """Tell whether filters can see values of a type; an object is one, and never equal to anything."""
    if isinstance(kind, ArrayType):
        return _comparable(kind.elementType)
    return isinstance(kind, _COMPARABLE)


def read_given(
    session: SparkSession, path: str, content: str, sources: Sources | None, content_type: str | None
) -> Given:
    """Parse a table or folder of documents; workers find out by the snapshot what they are asked."""
    found = judge_documents(session, path, content, content_type, sources)
    return Given(found.judged, found.judged.events, match_documents, feeds=found.feeds)
