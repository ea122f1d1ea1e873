"""What XML patterns return for the events that they match: a table of its own beside the matches."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.spark.tables.tables import write_table
from headgate.tables.tuples import tuples_of, tuples_schema

if TYPE_CHECKING:
    from headgate.runtime.targets import Target


def write_tuples(events: DataFrame, target: Target, id_type: str, output: str) -> None:
    """Write what patterns return: a row for each value of each tuple.

    Columns: event_id, subscription_id, `tuple` (counted from 1 for each pair), `name` and `value`. An `id` is
    written as pre,post,level.
    """
    schema = tuples_schema(id_type, numbered=target.numbered)
    works = [partial(tuples_of, shard=shard, schema=schema) for shard in target.shards]
    found = [events.mapInArrow(work, from_arrow_schema(schema)) for work in works]
    write_table(reduce(DataFrame.union, found), output)
