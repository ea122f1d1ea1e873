"""Carry out a saved plan for a DataFrame of events: every view gets what it would get in a network."""

from __future__ import annotations

import os
import pickle
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from headgate.contents.protocol import SUBSCRIPTION_ID
from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.core.snapshot import digest_of
from headgate.core.versions.stores import opened_at
from headgate.engine.views import views_in
from headgate.plan.running.saved_plan import SavedPlan
from headgate.runtime.targets import Group, Target
from headgate.spark.frames.columns import WHAT, EventColumns, GivenEvents, check_frame, renamed
from headgate.tables.frames.disseminating import (
    COUNTED,
    LEVEL,
    RESULT,
    PlanPlace,
    count_levels_frame,
    disseminate_frame,
)
from headgate.tables.requests import read_taxonomy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from headgate.core.versions.stores import Located


def disseminate(
    events: DataFrame,
    plan: str | PathLike[str],
    *,
    id: str = ID,  # noqa: A002 -- what people call it
    keep: Sequence[str] = (),
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
    taxonomy: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    counts: bool = False,
) -> DataFrame:
    """Give every view what a saved plan gives it, level by level: a row for each result.

    The columns are `event_id`, `subscription_id`, the `level` of the view, and `result`, what it gives as
    JSON, as sites of a network keep it. With `counts` the rows are levels instead: `level`, the results that
    its views `read` from those below, their `bytes`, and the `results` that they gave. Level 0 is the
    publisher, which reads events; rows that are none are `refused` there, and give nothing.

    `plan` is what `headgate plan` wrote, at a place that all machines see; `taxonomy` are the files of that
    of views over RDF. The other arguments are as in `match`.

    >>> given = disseminate(documents, "network", id="uuid")  # doctest: +SKIP
    """
    check_frame(events, WHAT)
    read = read_taxonomy(tuple(taxonomy))
    target = opened_at(os.fspath(plan), _target)
    given = GivenEvents.of(events, EventColumns(id, SOURCE, data, content_type), target, format)
    saved = PlanPlace(target.place, target.digest, None if read is None else pickle.dumps(read))
    task = given.task(Group(target.place, target.digest), None)
    kept = given.kept(() if counts else keep)
    rows = given.rows(kept, live=True)
    if counts:
        fields = [StructField(LEVEL, IntegerType()), *(StructField(each, LongType()) for each in COUNTED)]
        counted = rows.mapInArrow(partial(count_levels_frame, task=task, place=saved), StructType(fields))
        summed = counted.groupBy(LEVEL).agg(*(sf.sum(each).alias(each) for each in COUNTED))
        return renamed(summed.orderBy(LEVEL) if not events.isStreaming else summed, names)
    subscription: DataType = LongType() if target.numbered else StringType()
    told = [(SUBSCRIPTION_ID, subscription), (LEVEL, IntegerType()), (RESULT, StringType())]
    work = partial(disseminate_frame, task=task, place=saved)
    return renamed(rows.mapInArrow(work, given.schema(told, kept)), names)


def _target(found: Located) -> Target:
    """Verify a plan, and list what its views look at."""
    saved = SavedPlan.open(found.place)
    given, maker = views_in(saved)
    kind = kind_of(saved.about.get("content"))
    named, compared = kind.looked_at([maker.indexed(given)]) if kind.rows and given else (set(), set())
    return Target(
        found.name,
        digest_of(found.place),
        str(saved.about.get("content")),
        (),
        tuple(sorted(named)),
        frozenset(compared),
        numbered=saved.ids.numbered,
        graph=False,
    )
