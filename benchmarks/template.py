"""Filters of one template, for which a broadcast join of plain Spark is exact and needs no UDF."""

from __future__ import annotations

import re
import tempfile
from functools import partial

import headgate.spark as hg
from benchmarks.pipeline import least
from benchmarks.results import Result
from headgate.spark.session.session import close_session, open_session

EVENTS = "id event_id, pmod(hash(id, 1), 1000) topic, pmod(hash(id, 2), 10000) price"
FILTERS = "string(id) subscription_id, id % 1000 t, t + 4 last, pmod(hash(id), 9000) low, low + 500 high"
PRICES = "AND price BETWEEN f.low AND f.high"
EQUAL, RANGES = f"topic = f.t {PRICES}", f"topic BETWEEN f.t AND f.last {PRICES}"
SIZES = {"quick": [(EQUAL, 500, 2_000), (RANGES, 500, 2_000)]}
SIZES["full"] = [(EQUAL, 10**5, 10**5), (EQUAL, 10**6, 10**5), (RANGES, 10**5, 10**4)]


def run(size: str) -> list[Result]:
    """Measure both at each size, from Parquet to Parquet; their matches must be the same."""
    session, found = open_session("local[2]"), []
    for template, filters, events in SIZES[size]:
        with tempfile.TemporaryDirectory() as here:
            for name, columns, rows in (("f", FILTERS, filters), ("e", EVENTS, events)):
                session.sql(f"SELECT {columns} FROM range({rows})").write.parquet(f"{here}/{name}")
                session.read.parquet(f"{here}/{name}").createOrReplaceTempView(name)
            text = re.sub(r"(f\.\w+)", r"', \1, '", template)
            texts = session.sql(f"SELECT subscription_id id, concat('{text}') filter FROM f")
            pairs = hg.match(session.table("e"), hg.compile(texts, f"{here}/snapshot"), id="event_id")
            select = "SELECT /*+ BROADCAST(f) */ event_id, subscription_id"
            join = session.sql(f"{select} FROM e JOIN f ON {template}").write.mode("overwrite")
            ours = least(3, partial(hg.write_parquet, pairs, f"{here}/ours", mode="overwrite"))
            theirs = least(3, partial(join.parquet, f"{here}/theirs"))
            matched, joined = (session.read.parquet(f"{here}/{name}") for name in ("ours", "theirs"))
            assert not matched.exceptAll(joined).count() + joined.exceptAll(matched).count()
            name = f"{filters:,} filters, `{template.replace('f.', '')}`, {events:,} events"
            times, unit = 1e6 / events, "µs of CPU an event"
            found.append(Result(name, sum(ours) * times, unit, sum(theirs) * times, "broadcast join"))
    close_session(session)
    return found
