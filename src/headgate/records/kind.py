"""Records: Boolean expressions over the attributes of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.contents.kind import Kind, in_order
from headgate.core.rooms import RECORDS
from headgate.core.subscription import FOREIGN, LABELS, SQL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Access, Contents
    from headgate.contents.views import Views
    from headgate.core.event import Event
    from headgate.core.ids import Ids
    from headgate.core.subscription import Subscription
    from headgate.records.compiling import RecordContents
    from headgate.records.index.index import RecordIndex


class Records(Kind):
    """Rows with attributes."""

    name = RECORDS
    title = "records"
    dialects = (SQL, LABELS, *FOREIGN)
    settings = frozenset({"schema", "sample"})

    def room(self, wanted: FilterSettings | None = None) -> type[RecordIndex]:
        """Return what builds and opens indexes: a schema is for compiling only."""
        del wanted
        from headgate.records.index.index import RecordIndex

        return RecordIndex

    def compiler(self, wanted: FilterSettings, read_sample: Callable[[str], Any]) -> RecordContents:
        """Return what compiles tables of filters."""
        from headgate.records.compiling import RecordContents

        return RecordContents(wanted.schema, None if wanted.sample is None else read_sample(wanted.sample))

    def check_filter(self, text: str, dialect: str) -> None:
        """Refuse a bad filter."""
        from headgate.records.language.dialects import to_sql
        from headgate.records.language.parse import parse_filter

        parse_filter(to_sql(text, dialect))

    def attributes(self, snapshots: Sequence[Path]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """List the attributes that verified filters name, and those that they compare."""
        return self.looked_at([self.room().open(place, verify=False) for place in snapshots])

    def looked_at(self, indexes: Sequence[Any]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """List the same of filters that are indexed."""
        from headgate.records.computed import sources
        from headgate.records.events.encode import compared

        named = {own for index in indexes for path in index.built.attributes for own in sources(path)}
        seen = {
            own
            for index in indexes
            for number in compared(index.built)
            for own in sources(index.built.attributes[number])
        }
        return named, seen

    def access(self, contents: Contents, filed: Any, events: Sequence[Event]) -> list[Access]:
        """Say by what events come to filters; a sample of events decides it, too."""
        del contents
        from headgate.records.events.columns import EventColumns
        from headgate.records.explain.access import find_access

        columns = EventColumns([event.attributes for event in events]) if events else None
        return find_access(filed.programs, columns)

    def views(
        self, subscriptions: Sequence[Subscription], *, carries: str | None = None, taxonomy: Any = None
    ) -> Views:
        """Make views: what they give is ROW, or KEY if `carries` says so."""
        del taxonomy
        from headgate.records.language.dialects import to_sql
        from headgate.records.views.views import ROW, RecordViews

        texts = [to_sql(each.filter, each.dialect) for each in subscriptions]
        return RecordViews.build(texts, carries or ROW)

    def views_at(
        self, path: Path, *, carries: str | None = None, order: Sequence[int] | None = None
    ) -> tuple[Ids, Views]:
        """Make views of a snapshot's filters."""
        from headgate.records.index.live import Base
        from headgate.records.views.views import ROW, RecordViews

        base = Base.open(path, verify=True)
        return base.ids, RecordViews.build(in_order(base.filters.texts(), order), carries or ROW)


KIND = Records()
