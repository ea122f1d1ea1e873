"""Try one filter over a DataFrame of events of the past."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from headgate.backtest.one_filter import NAME, FilterEngine, Pattern, check_paths
from headgate.contents.kind import FilterSettings
from headgate.contents.registry import DEFAULT, content_of, kind_of, strange, titles_of
from headgate.core.event import CONTENT_TYPE, DATA, ID
from headgate.core.subscription import SQL
from headgate.errors import TableError
from headgate.runtime.targets import Target
from headgate.spark.frames.columns import WHAT, EventColumns, GivenEvents, check_frame
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.comparing import attribute_paths
from headgate.tables.frames.rows import COUNTED, count_frame, keep_frame
from headgate.tables.requests import read_taxonomy
from headgate.tables.settings import Filters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Backtest:
    """What a filter would have matched. Nothing runs before a DataFrame, or a number, is asked for."""

    matching: DataFrame = field(repr=False)
    """The events that match, with their columns."""
    refused: DataFrame = field(repr=False)
    """Rows that are no events: `event_id`, `reason`, `row`; and documents that the filter is too much for."""
    counts: DataFrame = field(repr=False)
    """One row: `events`, `matches`, `refused`."""

    @property
    def events(self) -> int:
        """Count the events."""
        return self._counted[0]

    @property
    def matches(self) -> int:
        """Count the events that match; of a feed, its items."""
        return self._counted[1]

    @property
    def rejected(self) -> int:
        """Count the rows that are no events."""
        return self._counted[2]

    @property
    def share(self) -> float:
        """Return the share of events that match; 0 without any event."""
        return self.matches / self.events if self.events else 0.0

    @cached_property
    def _counted(self) -> tuple[int, int, int]:
        if self.counts.isStreaming:
            raise TableError(f"{WHAT} are a stream, which has no end to count to: write `matching`")
        with spark_errors():
            events, matches, refused = self.counts.collect()[0]
        return events, matches, refused


def backtest(
    events: DataFrame,
    filter: str,  # noqa: A002 -- what people call it
    *,
    dialect: str = SQL,
    taxonomy: Sequence[str] = (),
    coerce: bool = False,
    injective: bool = False,
    namespaces: Mapping[str, str] | None = None,
    unindexed: str | None = None,
    nulls: str | None = None,
    names: str | None = None,
    dots: str | None = None,
    id: str = ID,  # noqa: A002 -- what people call it
    keep: Sequence[str] | None = None,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
) -> Backtest:
    """Say what a filter would have matched: the events, and how many.

    The filter need not be subscribed to. It is asked as a subscription would be, by the workers; of columns
    that have one type each, as those of a DataFrame, it says what `events.where(filter)` does in a session
    with ANSI mode and UTC. An attribute that no column has is refused, because most often it is misspelt.

    `keep` names the columns of `matching`, which are all by default. `dialect`, `taxonomy`, `coerce`,
    `injective`, `namespaces`, `unindexed`, `nulls`, `names` and `dots` are as in `compile`, the others as in
    `match`.

    >>> done = backtest(events, "age > 30")  # doctest: +SKIP
    >>> done.matches, done.events, done.matching.show()  # doctest: +SKIP
    """
    check_frame(events, WHAT)
    content = content_of([dialect], NAME) or DEFAULT
    options = Filters(coerce=coerce, injective=injective).options
    wanted = FilterSettings(
        dialect,
        taxonomy=read_taxonomy(tuple(taxonomy)),
        options=options,
        namespaces=namespaces or None,
        unindexed=unindexed,
        nulls=nulls,
        names=names,
        dots=dots,
    )
    wrong = strange(kind_of(content), wanted)
    if wrong is not None:
        owners, settings = wrong
        raise TableError(
            f"{settings} are for filters of {titles_of(owners)}, and the filter is {dialect!r}: "
            "leave them out"
        )
    pattern = Pattern(filter, content, wanted)
    index = pattern.indexed()
    named, compared = kind_of(content).looked_at([index])
    target = Target(
        NAME,
        "",
        content,
        (),
        tuple(sorted(named)),
        frozenset(compared),
        numbered=False,
        graph=False,
        mark=pattern.mark,
    )
    columns = EventColumns(id, data=data, content_type=content_type)
    given = GivenEvents.of(events, columns, target, format)
    if not given.documents:
        check_paths(attribute_paths(events.schema, pattern.mark), pattern, index, "the DataFrame")
    task = given.task(FilterEngine(pattern), None)
    kept = events.columns if keep is None else given.kept(keep)
    matching = StructType([events.schema[name] for name in kept])
    numbers = StructType([StructField(name, LongType()) for name in COUNTED])
    counted = given.rows(()).mapInArrow(partial(count_frame, task=task), numbers)
    return Backtest(
        given.rows(kept).mapInArrow(partial(keep_frame, task=task), matching),
        given.refused([task._replace(exceeded=given.documents)]),
        counted.agg(*(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in COUNTED)),
    )
