"""Tables of events: which rows are events, and why the others are not. The same for every job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import IntegralType, StringType

from headgate.core.event import ID
from headgate.core.values import fold
from headgate.errors import TableError
from headgate.spark.matching import NUMBERS, REASON, ROW, SURVEY_DDL, TEXTS, survey_lines
from headgate.spark.tables import (
    BROKEN,
    VALUE,
    WHOLE,
    Format,
    check_columns,
    column,
    for_reading,
    read_columns,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REASON = "_headgate_reason"
_NO_ID = "the event has no id: give the field 'id' as text or a whole number"
_MISFIT = "the line does not fit the header, or a value its column's type"


@dataclass(frozen=True)
class Judged:
    """The events of a table, the rows that are none, and what is known of the ids."""

    events: DataFrame
    """JSON lines: bytes, refused lines among them. Else all columns of the rows that are events."""
    refused: DataFrame
    """Columns `row` and `reason`."""
    count: int
    rejected: int
    id_type: str
    """`long` or `string`."""
    cached: DataFrame | None = None

    def forget(self) -> None:
        """Free what was kept in memory; the job is done."""
        if self.cached is not None:
            self.cached.unpersist()


def judge(session: SparkSession, path: str, form: Format) -> Judged:
    """Tell the events of a table from rows that are none. No shuffle."""
    if form is Format.JSONL:
        return _judge_lines(session, path)
    return _judge_columns(read_columns(session, path, form), path, form)


def _judge_lines(session: SparkSession, path: str) -> Judged:
    lines = session.read.text(for_reading(path)).select(sf.col(VALUE).cast("binary"))
    # Cached, because it is asked three times and is small: one row a batch and the refused lines.
    survey = lines.mapInArrow(survey_lines, SURVEY_DDL).persist()
    sums = [sf.sum(NUMBERS).alias(NUMBERS), sf.sum(TEXTS).alias(TEXTS), sf.count(REASON).alias(REASON)]
    totals = survey.agg(*sums).collect()[0]
    numbers, texts = totals[NUMBERS] or 0, totals[TEXTS] or 0
    refused = survey.where(sf.col(REASON).isNotNull()).select(ROW, REASON)
    return Judged(lines, refused, numbers + texts, totals[REASON], "string" if texts else "long", survey)


def _judge_columns(table: DataFrame, path: str, form: Format) -> Judged:
    if not table.columns:
        empty = table.sparkSession.createDataFrame([], f"{ROW} string, {REASON} string")
        return Judged(table.select(sf.lit("").alias(ID)).limit(0), empty, 0, 0, "string")
    check_columns(table, path, ID)
    names = [name for name in table.columns if name != BROKEN]
    name = next(name for name in names if fold(name) == ID)
    kind = table.schema[name].dataType
    if not isinstance(kind, IntegralType | StringType):
        raise TableError(f"{path}: column {name} is {kind.simpleString()}: cast it to string or bigint")
    identity = column(name)
    broken = sf.col(BROKEN) if BROKEN in table.columns else sf.lit(None).cast("string")
    reason = sf.when(broken.isNotNull(), sf.lit(_MISFIT)).when(identity.isNull(), sf.lit(_NO_ID))
    table = table.withColumn(_REASON, reason)
    good = sf.col(_REASON).isNull()
    totals = table.agg(
        sf.count_if(good).alias("good"),
        sf.count_if(~good).alias("bad"),
        sf.bool_and(sf.when(good, identity.cast("string").rlike(rf"^({WHOLE})\z"))).alias("whole"),
    ).collect()[0]
    # CSV has text only, so it is read.
    whole = isinstance(kind, IntegralType) or (form is Format.CSV and totals["whole"] is True)
    id_type = "long" if whole else "string"
    row = sf.coalesce(broken, sf.to_json(sf.struct(*map(column, names))))
    refused = table.where(~good).select(row.alias(ROW), sf.col(_REASON).alias(REASON))
    events = table.where(good).drop(_REASON, BROKEN).withColumn(name, identity.cast(id_type))
    return Judged(events, refused, totals["good"], totals["bad"], id_type)
