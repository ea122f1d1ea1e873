"""Say why, and why not, for every event of a DataFrame."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.types import BooleanType, StringType

from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.runtime.targets import open_target, opened
from headgate.spark.frames.columns import WHAT, EventColumns, GivenEvents, check_frame, renamed
from headgate.spark.session.settings import worker_memory
from headgate.tables.frames.explaining import EXPLANATION, MATCHED, Asked, explain_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame

    from headgate.core.event import Id


def explain(
    events: DataFrame,
    snapshot: str | PathLike[str],
    subscription: Id,
    *,
    id: str = ID,  # noqa: A002 -- what people call it
    keep: Sequence[str] = (),
    source: str = SOURCE,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
    names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Say of each event whether a subscription gets it, and why: `event_id`, `matched`, `explanation`.

    The explanation is what `headgate explain` prints, in lines. `matched` is what `match` would say; where a
    filter is too expensive for an event it is NULL, and the explanation says so. The other arguments are as
    in `match`. Explaining is slow, some thousand events a second: select the events that you ask about.

    >>> why = explain(events.where("uuid = 'u1'"), "snapshot", "s1", id="uuid")  # doctest: +SKIP
    """
    check_frame(events, WHAT)
    target = open_target(os.fspath(snapshot))
    given = GivenEvents.of(events, EventColumns(id, source, data, content_type), target, format)
    kept = given.kept(keep)
    schema = given.schema([(MATCHED, BooleanType()), (EXPLANATION, StringType())], kept)
    asked = Asked(target.whole, opened(target.whole).named(subscription))
    memory = worker_memory(events.sparkSession)
    task = given.task(target.groups(memory)[0], target.sources(memory))
    explained = given.rows(kept).mapInArrow(partial(explain_frame, task=task, asked=asked), schema)
    return renamed(explained, names)
