"""Answers written to Parquet by the workers that found them.

That can be done for what `match` and the other functions return, as long as nothing was done to it since.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from headgate.errors import TableError
from headgate.spark.frames.columns import check_frame
from headgate.spark.tables.parts import PartsTask, codec_of, parts_of, sees_files, write_parts
from headgate.tables.places import is_remote, local

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from pyspark.sql import DataFrame

    from headgate.spark.tables.groups import Work

ERROR, OVERWRITE = MODES = ("error", "overwrite")
"""What becomes of a table that is there: it is kept, and refused; or it is replaced."""


class Answered(NamedTuple):
    """How an answer is found: what workers do with which rows."""

    rows: DataFrame
    works: Sequence[Work]
    columns: tuple[str, ...]
    """What workers call the columns of the answer, in their order."""


_ANSWERS: WeakKeyDictionary[DataFrame, Answered] = WeakKeyDictionary()


def answered(found: DataFrame, how: Answered) -> DataFrame:
    """Note how an answer is found; returns it."""
    _ANSWERS[found] = how
    return found


def write_parquet(found: DataFrame, path: str | PathLike[str], *, mode: str = ERROR) -> None:
    """Write what `match` and `top` return to Parquet, as `found.write.parquet(path)` does.

    The workers write it, which takes less CPU. Where they may not see this machine's files, or if something
    was done to the DataFrame since, Spark writes it. A table that is there is an error, unless `mode` is
    "overwrite"; then it stays as it is until the new one is whole.

    >>> write_parquet(match(events, "snapshot"), "matches.parquet")  # doctest: +SKIP
    """
    check_frame(found, "matches")
    place = os.fspath(path)
    if mode not in MODES:
        raise TableError(f"mode is {mode!r}: use {' or '.join(map(repr, MODES))}")
    if found.isStreaming:
        raise TableError("this DataFrame is a stream: use its writeStream")
    how = _ANSWERS.get(found)
    codec = codec_of(found.sparkSession)
    if how is None or codec is None or is_remote(place) or not sees_files(found.sparkSession):
        found.write.mode(mode).parquet(place)
        return
    if mode == ERROR and local(place).exists():
        raise TableError(f"{place} is there already: remove it, or give mode='overwrite'")
    called = dict(zip(how.columns, found.columns, strict=True))
    with parts_of(place) as (folder, files):
        files += [
            part.file for part in write_parts(how.rows, how.works, PartsTask(str(folder), codec, called))
        ]
        if not files:
            # Else the table would have no columns.
            none = found.sparkSession.createDataFrame([], found.schema)
            none.write.mode("append").parquet(f"file://{folder.parent}")
