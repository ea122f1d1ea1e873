"""Which content room a table of filters is for: its column `dialect` says it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql import functions as sf

from headgate.contents import RDF, XML, content_of, quoted
from headgate.core.subscription import SQL
from headgate.core.values import fold
from headgate.errors import HeadgateError, TableError
from headgate.rdf.model import Options
from headgate.rdf.taxonomy import Taxonomy
from headgate.spark.compiling import DIALECT, FILTER, UNUSUAL, read_row
from headgate.spark.rdf_contents import RdfContents
from headgate.spark.record_contents import RecordContents
from headgate.spark.sampling import read_sample
from headgate.spark.tables import (
    VALUE,
    Format,
    check_input,
    column,
    column_names,
    for_reading,
    read_columns,
)
from headgate.spark.xml_contents import XmlContents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, SparkSession

    from headgate.spark.contents import Contents


@dataclass(frozen=True)
class Wanted:
    """What is said of all filters of a job."""

    dialect: str = SQL
    """That of rows that name none."""
    schema: str | None = None
    """The attributes' types, as JSON; for records."""
    sample: str | None = None
    """A table of events; for records."""
    taxonomy: Taxonomy | None = None
    """For RDF."""
    options: Options | None = None
    """For RDF."""

    def check(self) -> None:
        """Refuse what cannot go together, whatever the tables hold."""
        if self._for_records and self._for_rdf:
            raise TableError(
                "a schema and a sample are for filters of records, a taxonomy and options for those of RDF: "
                "give the ones or the others"
            )

    @property
    def _for_records(self) -> bool:
        return self.schema is not None or self.sample is not None

    @property
    def _for_rdf(self) -> bool:
        return self.taxonomy is not None or self.options is not None

    def contents(self, session: SparkSession, tables: Sequence[str]) -> Contents:
        """Choose the room that the filters of tables are for; refuses a mixture, and what does not fit."""
        dialects = {each for path in tables for each in dialects_of(session, path, self.dialect)}
        what = f"the filters of {' and '.join(tables)}"
        content = content_of(dialects, what) or content_of([self.dialect], what)
        spoken = quoted(sorted(dialects)) if dialects else "none"
        if content in {RDF, XML} and self._for_records:
            raise TableError(
                f"a schema and a sample are for filters of records, and {what} are {spoken}: leave them out"
            )
        if content == RDF:
            taxonomy = Taxonomy() if self.taxonomy is None else self.taxonomy
            return RdfContents(taxonomy, self.options or Options())
        if self._for_rdf:
            raise TableError(
                f"a taxonomy and options are for filters of RDF, and {what} are {spoken}: leave them out, or "
                "say --dialect sparql"
            )
        if content == XML:
            return XmlContents()
        sample = None if self.sample is None else read_sample(session, self.sample)
        return RecordContents(self.schema, sample)


def dialects_of(session: SparkSession, path: str, default: str) -> set[str]:
    """List the dialects of a table's filters; those that name none have the default."""
    form = check_input(path)
    if form is Format.JSONL:
        return _of_lines(session, path, default)
    names = {fold(name): name for name in column_names(session, path, form)}
    if FILTER not in names:
        return set()
    table = read_columns(session, path, form, typed=False)
    table = table.where(column(names[FILTER]).isNotNull())
    if DIALECT not in names:
        return set() if table.isEmpty() else {default}
    said = sf.coalesce(column(names[DIALECT]).cast("string"), sf.lit(default))
    return {row[0] for row in table.select(said).distinct().collect()}


def _of_lines(session: SparkSession, path: str, default: str) -> set[str]:
    lines = session.read.text(for_reading(path))
    if lines.where(mentions(DIALECT)).isEmpty():
        return set() if lines.where(mentions(FILTER)).isEmpty() else {default}
    found = lines.select(sf.col(VALUE).cast("binary")).mapInArrow(
        partial(_find_dialects, default=default), f"{DIALECT} string"
    )
    return {row[0] for row in found.distinct().collect()}


def mentions(*names: str) -> Column:
    """Tell which lines of JSON may have one of some fields: names may be written with escapes."""
    line = sf.lower(VALUE)
    hints = [line.contains(hint) for hint in ("\\u00", *(f'"{name}"' for name in names))]
    return reduce(or_, hints)


class _Row(msgspec.Struct, gc=False):
    filter: Any = None
    dialect: Any = None


_ROWS = msgspec.json.Decoder(_Row)


def _find_dialects(batches: Iterable[pa.RecordBatch], default: str) -> Iterator[pa.RecordBatch]:
    """List the dialects of the filters of each batch; lines that cannot be read are for the job to refuse."""
    for batch in batches:
        found = {each for line in batch[VALUE].to_pylist() if (each := _dialect(line, default)) is not None}
        yield pa.RecordBatch.from_pydict({DIALECT: pa.array(sorted(found), pa.string())})


def _dialect(line: bytes | None, default: str) -> str | None:
    if not line or not line.strip():
        return None
    try:
        row = _ROWS.decode(line)
        text, dialect = row.filter, row.dialect
        if text is None or dialect is None:
            # Names have no case.
            given = read_row(line)
            text, dialect = given.get(FILTER), given.get(DIALECT)
    except (*UNUSUAL, HeadgateError):
        return None
    return None if text is None else default if dialect is None else str(dialect)
