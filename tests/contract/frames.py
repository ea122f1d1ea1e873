"""DataFrames as surfaces, in sessions whose settings are other than ours: tables, streams, Spark Connect."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import headgate.spark as hg
from headgate.core.rooms import RECORDS
from tests.contract.jobs import Batch, explained, newest, put_events, refused_in, schema_of
from tests.contract.refusals import key_of
from tests.contract.surfaces import Told, table_lines
from tests.spark.files import put

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headgate.core.event import Id
    from tests.contract.surfaces import Match, Refusal, Shape
    from tests.contract.world import Question, World
    from tests.spark.files import Row

HOSTILE = (
    {
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.adaptive.enabled": "true",
    },
    {
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
    },
    {
        "spark.sql.session.timeZone": "Pacific/Auckland",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.legacy.allowHashOnMapType": "true",
    },
)
"""Settings that change what Spark itself answers, or what it hands to workers."""


def hostile(spark: SparkSession, number: int) -> SparkSession:
    """Make a session with one of these."""
    session = spark.newSession()
    for name, value in HOSTILE[number % len(HOSTILE)].items():
        session.conf.set(name, value)
    return session


def pairs_in(rows: Iterable[dict[str, Any]]) -> Counter[Match]:
    """Read matches: a row each, or an array of them for each event."""
    pairs: Counter[Match] = Counter()
    for row in rows:
        for each in row.get("matches", [row]):
            if not isinstance(each, dict):
                pairs[row["event"], each] += 1
            elif "rank" in each:
                pairs[row["event"], each["subscription_id"], each["value"], each["rank"]] += 1
            else:
                pairs[row["event"], each["subscription_id"]] += 1
    return pairs


def filled(row: Mapping[str, Any], fields: Iterable[pa.Field[Any]]) -> dict[str, Any]:
    """Add what a row lacks of some columns, as NULL."""
    found: dict[str, Any] = {}
    for field in fields:
        value = row.get(field.name)
        struct = field.type if isinstance(field.type, pa.StructType) else None
        found[field.name] = value if value is None or struct is None else filled(value, struct)
    return found


class Frames(Batch):
    """`headgate.spark.match`, `top` and `refused`; snapshots are compiled in this process."""

    name, spark, here = "frames", True, True

    def __init__(self, world: World, shape: Shape) -> None:
        super().__init__(world, shape)
        self.columns = True
        self._number = len(shape.form) + shape.sharding.count + 2 * world.graph + world.ranked
        self._session: SparkSession | None = None
        self._explained: dict[Id, dict[Id, list[Told]]] = {}

    @property
    def session(self) -> SparkSession:
        """Return a session that is not ours."""
        if self._session is None:
            self._session = hostile(self._snapshots.spark, self._number)
        return self._session

    @property
    def _place(self) -> str:
        return put_events(self._snapshot.parent / "frame", self.world, "parquet")

    def _events(self) -> DataFrame:
        return self.session.read.parquet(self._place)

    def match(self, question: Question) -> Counter[Match]:
        """Ask for rows, or with a graph for arrays."""
        before = dict(self.session.conf.getAll)
        top, shape = question.top, "arrays" if self.world.graph else "rows"
        given: dict[str, Any] = {"shape": shape, "names": {"event_id": "event"}}
        if top is None:
            found = hg.match(self._events(), self._snapshot, **given)
        else:
            factors = dict(top.factors) or None
            found = hg.top(
                self._events(),
                self._snapshot,
                top.k,
                top.mode,
                factors=factors,
                **top.path._asdict(),
                **given,
            )
        rows = [row.asDict(recursive=True) for row in found.collect()]
        assert dict(self.session.conf.getAll) == before
        return pairs_in(rows)

    def explain(self, event: Row, subscription: Id) -> Told:
        """Explain a subscription for all events, and compare with the command: columns have NULL for all."""
        if subscription not in self._explained:
            told: dict[Id, list[Told]] = {}
            for row in hg.explain(self._events(), self._snapshot, subscription).collect():
                found = Told(row["matched"], row["explanation"].splitlines())
                told.setdefault(row["event_id"], []).append(found)
            self._explained[subscription] = told
        # Among documents, what is NULL is not there.
        whole = filled(event, schema_of(self.world)) if self.world.content == RECORDS else event
        wanted = explained(self._snapshot, self.world, whole, subscription)
        # Events may share an id.
        assert wanted in self._explained[subscription][event["id"]], (wanted, self._explained)
        return super().explain(event, subscription)

    def refused(self) -> Counter[Refusal]:
        """Ask for the rows that are no events."""
        rows = hg.refused(self._events(), self._snapshot).collect()
        return Counter((key_of(row["row"]), row["reason"]) for row in rows)


class FrameStream(Frames):
    """`headgate.spark.each_batch` over a streaming DataFrame, with changes or without."""

    name, changes = "frame stream", True
    _root: Path
    _refused: list[dict[str, Any]]

    def match(self, question: Question) -> Counter[Match]:
        """Run a query over all events, once; the changes are there before it begins."""
        folder = self._snapshot.parent
        root = self._root = folder / f"frames-{len(list(folder.glob('frames-*')))}"
        changes = self.world.changes if question.changed else []
        put(root / "changes" / "1.jsonl", table_lines(changes, self.world.bad_changes if changes else ()))
        found: list[dict[str, Any]] = []
        refused = self._refused = []

        def write(matches: DataFrame, rows: DataFrame, batch: int) -> None:
            del batch
            for frame, told in ((matches, found), (rows, refused)):
                told += [row.asDict(recursive=True) for row in frame.collect()]

        top, shape = question.top, "arrays" if self.world.graph else "rows"
        given: dict[str, Any] = {"shape": shape, "names": {"event_id": "event"}, "fold": 1}
        if top is not None:
            given |= {
                "k": top.k,
                "mode": top.mode,
                "factors": dict(top.factors) or None,
                **top.path._asdict(),
            }
        before = dict(self.session.conf.getAll)
        batches = hg.each_batch(root / "changes", self._snapshot, write, state=root / "state", **given)
        events = self._events()
        arriving = self.session.readStream.schema(events.schema).parquet(self._place)
        place = str(root / "checkpoint")
        writing = arriving.writeStream.foreachBatch(batches).option("checkpointLocation", place)
        writing.trigger(availableNow=True).start().awaitTermination()
        batches.close()
        assert dict(self.session.conf.getAll) == before
        return pairs_in(found)

    def refused(self) -> Counter[Refusal]:
        """Return what was handed over beside the matches."""
        return Counter((key_of(row["row"]), row["reason"]) for row in self._refused)

    def refused_changes(self) -> Counter[Refusal]:
        """Read the changes that were refused."""
        return refused_in(self._root / "state" / "rejected-changes")

    def explain(self, event: Row, subscription: Id) -> Told:
        """Run the command over the snapshot into which the changes were folded."""
        return explained(newest(self._root / "state"), self.world, event, subscription)
