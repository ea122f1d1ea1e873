"""Events made ready to be matched: of records the columns that filters name, of documents what was read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.contents.registry import kind_of
from headgate.core.event import ID, SOURCE
from headgate.core.values import dotted
from headgate.jobs.events import read_documents
from headgate.spark.frames.columns import EventColumns, needed, packed
from headgate.spark.tables.comparing import check_types
from headgate.spark.tables.events import judge
from headgate.spark.tables.rows import SparkRows
from headgate.spark.tables.tables import attribute_paths, column_names
from headgate.tables.event_rows import COLUMNS
from headgate.tables.places import Format, check_input
from headgate.tables.requests import are_documents, check_events
from headgate.tables.results import meant_by

if TYPE_CHECKING:
    from headgate.jobs.events import EventTable
    from headgate.runtime.targets import Sources, Target
    from headgate.spark.runner import SparkRunner


def read_table(
    runner: SparkRunner,
    path: str,
    target: Target,
    sources: Sources | None,
    content_type: str | None,
    *,
    texts: bool = True,
) -> EventTable[SparkRows]:
    """Judge a table of events, or a folder of documents, as the content of the filters wants it.

    Without `texts`, workers are left to find that a text of Parquet is not UTF-8, and that an event comes
    from nowhere.
    """
    session, kind = runner.session, kind_of(target.content)
    form = check_events(path, kind, content_type) if kind.documents else check_input(path)
    if are_documents(kind, form, lambda: [] if form is None else column_names(session, path, form)):
        return read_documents(runner, path, target.content, content_type, sources)
    assert form is not None, "only documents come in files of their own"
    looked_at = {ID, *([SOURCE] if target.graph else []), *needed(target)}
    judged = judge(
        session, path, form, sources, texts=looked_at if texts else (), mark=target.mark, placed=texts
    )
    if form is Format.JSONL:
        return judged
    table = judged.rows.frame
    unknown = check_types(table, path, target)
    if not judged.count:
        unknown = ()
    meant = meant_by(unknown, map(dotted, attribute_paths(table.schema, target.mark)))
    rows = packed(table, target, EventColumns(), (), form=COLUMNS, title=path)
    return replace(judged, rows=SparkRows(rows), unknown=unknown, meant=meant)
