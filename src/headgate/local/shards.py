"""Subscriptions to shards in this process: rows surveyed, placed, and built shard by shard."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.runtime.progress import step
from headgate.runtime.shards import ShardPlacement
from headgate.tables.accepted import number_rows
from headgate.tables.lines import ORDER
from headgate.tables.shards.rows import (
    ATTRIBUTES,
    HOME,
    KEYS,
    PLACED,
    SURVEYED,
    BuildSettings,
    CompileSettings,
    ShardResult,
    place_rows,
    save_built,
    staging,
    survey_rows,
    survey_settings,
    write_shard,
)
from headgate.tables.writing import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from headgate.contents.protocol import Contents
    from headgate.runtime.sharding import Sharding
    from headgate.tables.places import Format


def compile_shards(
    lines: Iterable[pa.RecordBatch],
    form: Format,
    contents: Contents,
    output: Path,
    sharding: Sharding,
    *,
    rejected: str,
    dialect: str,
    ranked: bool,
    source: Mapping[str, object],
    quiet: bool,
) -> ShardResult:
    """Cut the rows of a table into shards, as `spark.shards.compile_shards` does."""
    reading = CompileSettings(contents.writers, dialect, ranked)
    finder, column = survey_settings(contents, sharding)
    with step("parsing filters", quiet=quiet) as parsing:
        surveyed = pa.Table.from_batches(survey_rows(lines, reading, finder, column), SURVEYED)
        accepted = number_rows(surveyed, form)
        write_table(accepted.refused, rejected)
    with step(f"building {sharding.count} shards", quiet=quiet) as building, staging(output) as stage:
        rows = surveyed.take(accepted.rows).sort_by([(name, "ascending") for name in ORDER])
        keyed = rows.num_rows - rows[KEYS].null_count
        placing = ShardPlacement(sharding, keyed, rows.num_rows - keyed)
        counts = None
        if sharding.demands(contents.name):
            counts = Counter(key for each in rows[KEYS].to_pylist() for key in each or ())
        numbered = accepted.ids.numbered
        placed = pa.Table.from_batches(
            place_rows(rows.combine_chunks().to_batches(), placing, numbered, counts), PLACED
        )
        homes = placed[HOME].to_numpy()
        made = BuildSettings(str(stage), contents, reading, numbered)
        built = [
            write_shard(placed.filter(pa.array(homes == number)).to_batches(), made, number, str(number))
            for number in range(sharding.count)
        ]
        save_built(built, stage, output, sharding, contents, ranked=ranked, source=source)
    return ShardResult(
        rows.num_rows,
        accepted.refused.num_rows,
        tuple(sorted({name for row in built for name in row[ATTRIBUTES]})),
        parsing.seconds,
        building.seconds,
    )
