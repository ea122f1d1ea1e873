"""Tables in files: JSON lines, CSV and Parquet, in and out.

JSON lines are read as text and parsed by us, so that every malformed line is kept with its reason and every
event keeps the types that it was sent with. CSV gets the types that Spark infers over the whole file. Parquet
has its own.
"""

from __future__ import annotations

import shutil
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from headgate.core.event import DATA, ID
from headgate.core.values import fold
from headgate.errors import TableError
from headgate.runtime.rows import REPLACEMENT
from headgate.spark.session.session import discard, spark_errors
from headgate.tables import lines, places
from headgate.tables.lines import BLOCK, BROKEN, FILE, POSITION, VALUE
from headgate.tables.packed import writing
from headgate.tables.writing import beside, quoted, replacing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import DataType


def are_utf8(values: Iterable[tuple[Column, DataType]]) -> Column | None:
    """Tell whether all texts in values of some types are UTF-8; None if there can be none. NULL is."""
    flags = [_is_utf8(value, kind) for value, kind in values if _has_texts(kind)]
    return reduce(and_, flags) if flags else None


def _has_texts(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_texts(field.dataType) for field in kind)
    if isinstance(kind, MapType):
        return _has_texts(kind.keyType) or _has_texts(kind.valueType)
    return _has_texts(kind.elementType) if isinstance(kind, ArrayType) else isinstance(kind, StringType)


def _is_utf8(value: Column, kind: DataType) -> Column:
    if isinstance(kind, StructType):
        inner = are_utf8((value.getField(field.name), field.dataType) for field in kind)
    elif isinstance(kind, MapType):
        entries = ((sf.map_keys(value), kind.keyType), (sf.map_values(value), kind.valueType))
        inner = are_utf8((values, ArrayType(inside)) for values, inside in entries)
    elif isinstance(kind, ArrayType):
        inner = sf.forall(value, lambda each: _is_utf8(each, kind.elementType))
    else:
        inner = sf.is_valid_utf8(value)
    assert inner is not None, "it has texts"
    return sf.coalesce(inner, sf.lit(True))


# A line of CSV that ends inside quotes: whole fields, then one that is opened and not closed.
_ENDS_OPEN = r'^(?:(?:"[^"]*+(?:""[^"]*+)*+"[^,]*+|(?!")[^,]*+),)*+"[^"]*+(?:""[^"]*+)*+\z'


def column(name: str) -> Column:
    """Name a column whatever signs its name has."""
    return sf.col("`" + name.replace("`", "``") + "`")


def id_type(table: DataFrame, name: str, title: str) -> str:
    """Return of which type the ids in a column are, `long` or `string`; refuses types that no id has."""
    kind = next(field.dataType for field in table.schema if field.name == name)
    if not isinstance(kind, IntegralType | StringType):
        raise TableError(f"{title}: column {name} is {kind.simpleString()}: cast it to string or bigint")
    return "long" if isinstance(kind, IntegralType) else "string"


def check_columns(table: DataFrame, path: str, *wanted: str) -> None:
    """Refuse a table that lacks a column altogether; a table without any columns is an empty file."""
    lines.check_columns([name for name in table.columns if name != BROKEN], path, *wanted)


def read_lines(session: SparkSession, path: str, *wanted: str) -> DataFrame:
    """Read a table as one JSON object a row, whatever its format. No shuffle.

    Columns: those of `ORDER`, `value` (bytes; NULL for a broken CSV line) and `BROKEN`. CSV and Parquet must
    have the columns `wanted`; JSON lines are judged one by one.
    """
    form = places.check_input(path)
    none = sf.lit(None).cast("string")
    if is_empty(path):
        return lines_of(_nothing(session), sf.lit(""), sf.lit(0).cast("long"), none)
    if form is places.Format.JSONL:
        table, line = read_text(session, path), sf.col(VALUE)
    else:
        table, line = read_columns(session, path, form, typed=False), None
        check_columns(table, path, *wanted)
    # One file needs no name in every row.
    file = sf.col("_metadata.file_path") if len(table.inputFiles()) > 1 else sf.lit("")
    broken = sf.col(BROKEN) if line is None and BROKEN in table.columns else none
    if form is places.Format.PARQUET and (whole := texts_are_utf8(table.schema)) is not None:
        broken = sf.when(~whole, _as_json(table))
    return lines_of(table, file, sf.col("_metadata.file_block_start"), broken, line)


_AS_JSON = {"ignoreNullFields": "true", "timeZone": "UTC"}
"""How rows are written, whatever the session says."""


def lines_of(
    table: DataFrame, file: Column, block: Column, broken: Column, line: Column | None = None
) -> DataFrame:
    """Return rows as `read_lines` does: with their places, and as lines of JSON unless they are some."""
    if line is None:
        line = _as_json(table)
    return table.select(
        file.alias(FILE),
        block.alias(BLOCK),
        sf.monotonically_increasing_id().alias(POSITION),
        sf.when(broken.isNull(), line).cast("binary").alias(VALUE),
        broken.alias(BROKEN),
    )


def is_empty(path: str) -> bool:
    """Tell a folder on this machine without files: Spark refuses to say what columns it has."""
    return not places.is_remote(path) and not places.table_files(path)


def _nothing(session: SparkSession) -> DataFrame:
    """Return a table without rows and columns."""
    return session.range(0).select()


def _as_json(table: DataFrame) -> Column:
    fields = [_readable(each) for each in table.schema if each.name != BROKEN]
    return sf.to_json(sf.struct(*fields), _AS_JSON) if fields else sf.lit("{}")


def texts_are_utf8(fields: Iterable[StructField]) -> Column | None:
    """Tell whether the texts of a row are UTF-8; None if there are none. Binary `data` is text, too."""
    values: list[tuple[Column, DataType]] = []
    for each in fields:
        document = fold(each.name) == DATA and isinstance(each.dataType, BinaryType)
        value = column(each.name)
        values.append((value.cast("string"), StringType()) if document else (value, each.dataType))
    return are_utf8(values)


def source_of(path: str) -> list[str]:
    """List what Spark is to read for a table: its path, or what fits a pattern."""
    return [path] if places.is_remote(path) else [places.for_reading(each) for each in places.roots_of(path)]


def reader(session: SparkSession, path: str) -> DataFrameReader:
    """Return a reader for a table; below the folder before a pattern's signs, folders name columns."""
    if not places.is_pattern(path):
        return session.read
    return session.read.option("basePath", f"file://{places.base_of(path).absolute()}")


def read_text(session: SparkSession, path: str) -> DataFrame:
    """Read lines; what folders name is added to those that are JSON objects, as `add_fields` does."""
    lines = reader(session, path).text(source_of(path))
    names = [name for name in lines.columns if name != VALUE]
    if not names:
        return lines
    text = sf.trim(VALUE, sf.lit(" \t"))
    body = text.substr(sf.lit(1), sf.length(text) - 1)
    written = sf.to_json(sf.struct(*map(column, names)))
    inner = sf.substring(written, 2, 1 << 30)
    comma = sf.when(body.rlike(r"\A\{[ \t]*\z"), "").otherwise(",")
    fits = text.startswith("{") & text.endswith("}") & (written != "{}")
    return lines.select(sf.when(fits, sf.concat(body, comma, inner)).otherwise(sf.col(VALUE)).alias(VALUE))


def _readable(field: StructField) -> Column:
    """Return a column for JSON, which would write bytes as base64."""
    value = column(field.name)
    binary = isinstance(field.dataType, BinaryType)
    return value.cast("string").alias(field.name) if binary else value


def read_columns(
    session: SparkSession, path: str, form: places.Format, *, typed: bool = True, texts: Iterable[str] = (ID,)
) -> DataFrame:
    """Read a CSV or Parquet table with its columns; the columns `texts` of CSV are text whatever is there."""
    if is_empty(path):
        return _nothing(session)
    if form is places.Format.CSV:
        return read_csv(session, path, typed=typed, texts=texts)
    return read_parquet(session, path)


def column_names(session: SparkSession, path: str, form: places.Format) -> list[str]:
    """List the columns of a CSV or Parquet table, from its header or footer alone."""
    if is_empty(path):
        return []
    if form is places.Format.CSV:
        return reader(session, path).csv(source_of(path), header=True, quote='"', escape='"').columns
    return read_parquet(session, path).columns


def read_parquet(session: SparkSession, path: str) -> DataFrame:
    """Read Parquet; what Spark refuses about the file is told with the file's name.

    Files may differ in their columns, and all of them count: Spark by itself takes those of one file, and
    what only the others have would be missing without a word.
    """
    try:
        with spark_errors():
            merging = reader(session, path).option("mergeSchema", _has_files(path))
            return merging.parquet(*source_of(path))
    except TableError as error:
        hint = ": write timestamps in microseconds" if "NANOS" in str(error) else ""
        drift = _drift(path) if "CANNOT_MERGE_SCHEMAS" in str(error) else None
        raise TableError(drift or f"{path} cannot be read. {error}{hint}") from None


def _drift(path: str) -> str | None:
    """Say which column of a folder of Parquet files has several types; None if that cannot be told."""
    seen: dict[str, tuple[str, pa.DataType]] = {}
    for file in [] if places.is_remote(path) else places.table_files(path):
        for field in pq.read_schema(file):
            first, kind = seen.setdefault(fold(field.name), (file.name, field.type))
            if kind != field.type:
                return (
                    f"{path}: column {field.name} is {kind} in {first} and {field.type} in {file.name}: "
                    "give it one type, or keep the files in folders of their own"
                )
    return None


def _has_files(path: str) -> bool:
    """Tell whether a table may be several files; to look into each of them takes time."""
    return places.is_remote(path) or len(places.table_files(path)) > 1


def read_csv(session: SparkSession, path: str, *, typed: bool, texts: Iterable[str] = (ID,)) -> DataFrame:
    """Read CSV with a header, quotes doubled inside quotes; lines that do not fit go to `BROKEN`.

    With `typed`, Spark infers the types (one more pass) of all columns but `texts`; without, all are text.
    """
    source = source_of(path)
    places.check_header(path)
    spans, strange = _looked_at(session, source, typed=typed)
    options = {
        # With pruning, whether a line counts as broken would depend on the columns that a query asks for.
        "columnPruning": "false",
        "header": "true",
        "quote": '"',
        "escape": '"',
        # Only a file without values that span lines can be read in parts.
        "multiLine": str(not typed or spans).lower(),
        # In one file Spark's names for nameless columns are not a mismatch.
        "enforceSchema": str(places.is_remote(path) or places.local(path).is_file()).lower(),
    }
    plain = reader(session, path).options(**options).csv(source, inferSchema=typed and not strange)
    if not plain.columns:
        return plain
    known = _inferred(plain) if typed and strange else plain.schema
    plainly = {name for name in plain.columns if fold(name) in texts}
    large = [
        each.name for each in known if isinstance(each.dataType, DecimalType) and each.name not in plainly
    ]
    read = {*large, *plainly}
    fields = [StructField(each.name, StringType()) if each.name in read else each for each in known]
    schema = StructType([*fields, StructField(BROKEN, StringType())])
    reading = reader(session, path).options(**options, columnNameOfCorruptRecord=BROKEN)
    table = reading.schema(schema).csv(source)
    table = _whole(table, plain.columns, large) if large else table
    if not strange:
        return table
    line = sf.to_csv(sf.struct(*map(column, plain.columns)), _QUOTES)
    return table.withColumn(BROKEN, sf.coalesce(sf.col(BROKEN), sf.when(_are_strange(table.schema), line)))


_QUOTES = {"quote": '"', "escape": '"'}


def _looked_at(session: SparkSession, source: list[str], *, typed: bool) -> tuple[bool, bool]:
    """Find out whether a quoted value of CSV files spans lines, and whether bytes are not UTF-8."""
    line = sf.col(VALUE)
    quotes = sf.length(line) - sf.length(sf.replace(line, sf.lit('"'), sf.lit("")))
    opened = (quotes % 2 == 1) & line.rlike(_ENDS_OPEN) if typed else sf.lit(False)
    strange = ~sf.is_valid_utf8(line)
    flags = session.read.text(source).agg(sf.bool_or(opened), sf.bool_or(strange)).collect()[0]
    return bool(flags[0]), bool(flags[1])


def _are_strange(fields: Iterable[StructField]) -> Column:
    """Tell rows with the replacement character: Spark's reader puts it for what is not UTF-8."""
    texts = [each.name for each in fields if isinstance(each.dataType, StringType) and each.name != BROKEN]
    marked = [sf.coalesce(column(name).contains(REPLACEMENT), sf.lit(False)) for name in texts]
    return reduce(or_, marked, sf.lit(False))


def _inferred(plain: DataFrame) -> StructType:
    """Infer the types of columns of texts from the rows that are UTF-8: the others will be refused."""
    good = plain.where(~_are_strange(plain.schema))
    lines = good.select(sf.to_csv(sf.struct(*map(column, plain.columns)), _QUOTES).alias(VALUE))
    schema = plain.sparkSession.read.options(**_QUOTES).csv(lines, inferSchema=True).schema
    if len(schema) != len(plain.columns):
        return plain.schema
    return StructType(
        [
            StructField(each.name, other.dataType if isinstance(each.dataType, StringType) else each.dataType)
            for each, other in zip(plain.schema, schema, strict=True)
        ]
    )


def _whole(table: DataFrame, names: list[str], large: list[str]) -> DataFrame:
    """Make columns whole numbers; lines with one beyond 64 bits are broken, as they are in JSON lines.

    Spark would infer decimals. Nor could it be told the type: whether a line is broken then depends on the
    columns that a query asks for.
    """
    numbers = {name: column(name).try_cast("bigint") for name in large}
    beyond = [column(name).isNotNull() & number.isNull() for name, number in numbers.items()]
    line = sf.to_csv(sf.struct(*map(column, names)))
    broken = sf.coalesce(sf.col(BROKEN), sf.when(reduce(or_, beyond), line))
    return table.withColumns({**numbers, BROKEN: broken})


def to_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Hand a table to Spark; in one piece, because Spark loses what follows an empty batch."""
    return session.createDataFrame(table.combine_chunks())


def write_table(table: DataFrame, path: str) -> None:
    """Write a table: one file for JSON lines and CSV, a directory for Parquet. Replaces what was there.

    Rows come in the order of their partitions; nothing is seen at `path` before all is written.
    """
    form = places.check_output(path)
    if places.is_remote(path):
        table.write.mode("overwrite").parquet(path)
        return
    if form is places.Format.PARQUET:
        with replacing(path, discard) as folder:
            table.write.mode("overwrite").parquet(f"file://{folder}")
        return
    with beside(path, discard) as (target, folder):
        parts, whole = folder / "parts", folder / target.name
        _write_parts(table, form, parts)
        with writing(whole) as out:
            if form is places.Format.CSV:
                out.write((",".join(map(quoted, table.columns)) + "\n").encode())
            for part in sorted(parts.glob("part-*")):
                with part.open("rb") as file:
                    shutil.copyfileobj(file, out, 1 << 20)
        whole.replace(target)
        shutil.rmtree(folder)


def _write_parts(table: DataFrame, form: places.Format, parts: Path) -> None:
    writer = table.write.mode("overwrite")
    if form is places.Format.JSONL:
        writer.json(f"file://{parts}", ignoreNullFields=False)
    else:
        writer.csv(
            f"file://{parts}",
            header=False,
            quote='"',
            escape='"',
            # Spark would trim ids.
            ignoreLeadingWhiteSpace=False,
            ignoreTrailingWhiteSpace=False,
            timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        )
