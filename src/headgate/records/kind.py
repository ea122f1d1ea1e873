"""Records: Boolean expressions over the attributes of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.contents.kind import Kind, in_order
from headgate.contents.settings import NAMES
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
    from headgate.records.index.index import RecordIndex, RecordRoom
    from headgate.records.names import NameSettings


class Records(Kind):
    """Rows with attributes."""

    name = RECORDS
    title = "records"
    dialects = (SQL, LABELS, *FOREIGN)
    settings = frozenset({"schema", "sample", *NAMES})

    def plain(self, text: str) -> str:
        """Return a filter without the marks of its names."""
        from headgate.records.names import plain_text

        return plain_text(text)

    def room(self, wanted: FilterSettings | None = None) -> type[RecordIndex] | RecordRoom:
        """Return what builds and opens indexes: a schema is for compiling only."""
        from headgate.records.index.index import room_of

        return room_of(_settings(wanted))

    def room_at(self, path: Path) -> type[RecordIndex] | RecordRoom:
        """Return what opens a snapshot, with the names that it was built with."""
        from headgate.records.index.index import room_of

        return room_of(self._settings_at(path))

    def mark_at(self, path: Path) -> str:
        """Return what stands before names to the filters of a snapshot."""
        return self._settings_at(path).mark

    @staticmethod
    def _settings_at(path: Path) -> NameSettings:
        from headgate.contents.protocol import about_filters
        from headgate.records.index.live import MEANING
        from headgate.records.names import NameSettings

        return NameSettings.of(about_filters(path, RECORDS).get(MEANING))

    def compiler(self, wanted: FilterSettings, read_sample: Callable[[str], Any]) -> RecordContents:
        """Return what compiles tables of filters."""
        from headgate.records.compiling import RecordContents

        sample = None if wanted.sample is None else read_sample(wanted.sample)
        return RecordContents(_settings(wanted), wanted.schema, sample)

    def looked_at(self, indexes: Sequence[Any]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """List what filters look at, and what of it they compare, if events are rows."""
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

        columns = EventColumns(events) if events else None
        return find_access(filed.columns, columns)

    def views(
        self,
        subscriptions: Sequence[Subscription],
        *,
        carries: str | None = None,
        wanted: FilterSettings | None = None,
    ) -> Views:
        """Make views: what they give is ROW, or KEY if `carries` says so."""
        from headgate.records.language.dialects import to_sql
        from headgate.records.views.views import ROW, RecordViews

        settings = _settings(wanted)
        texts = [to_sql(each.filter, each.dialect, settings) for each in subscriptions]
        return RecordViews.build(texts, carries or ROW)

    def views_at(
        self, path: Path, *, carries: str | None = None, order: Sequence[int] | None = None
    ) -> tuple[Ids, Views]:
        """Make views of a snapshot's filters."""
        from headgate.records.index.live import Base
        from headgate.records.views.views import ROW, RecordViews

        base = Base.open(path, verify=True)
        return base.ids, RecordViews.build(in_order(base.filters.texts(), order), carries or ROW)


def _settings(wanted: FilterSettings | None) -> NameSettings:
    """Return what is said of names; refuses what means nothing."""
    from headgate.records.names import NameSettings

    return NameSettings.of(None if wanted is None else vars(wanted))


KIND = Records()
