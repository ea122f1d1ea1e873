"""What this process does of the match job: all events are read before the first is matched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.jobs.match import FoundMatches, columns_of, matches_schema
from headgate.local.events import read_events
from headgate.runtime.targets import opened
from headgate.tables.frames.report import Reporter
from headgate.tables.frames.rows import match_given
from headgate.tables.frames.task import FrameTask
from headgate.tables.places import UnsureError
from headgate.tables.writing import write_table, writing

if TYPE_CHECKING:
    from headgate.core.ids import Ids
    from headgate.jobs.match import MatchTask
    from headgate.local.events import LocalEvents
    from headgate.local.runner import LocalRunner
    from headgate.runtime.targets import Group, Target


def whole(target: Target, memory: int) -> Group:
    """Return all shards of a snapshot together; one that is too large for this process is left to Spark."""
    groups = target.groups(memory)
    if len(groups) > 1:
        raise UnsureError(
            f"{target.title} is too large for one process: its shards are asked by workers of Spark"
        )
    return groups[0]


@dataclass
class LocalMatching:
    """One run."""

    runner: LocalRunner
    asked: MatchTask
    group: Group
    given: LocalEvents = field(init=False)

    def read(self, events: str) -> None:
        """Read a table of events."""
        target = self.asked.target
        sources = target.sources(self.runner.memory)
        self.given = read_events(self.runner, events, target, sources, self.asked.content_type)

    def match(self, output: str) -> FoundMatches:
        """Match them, and write the matches."""
        target, top, results, _, counts = self.asked
        given = self.given
        task = FrameTask(
            self.group, target.content, given.form, target.numbered, top=top, results=results, tells=False
        )
        report = Reporter(0, counts=counts)
        columns, schema, matches = columns_of(task), matches_schema(task, given.id_type), 0
        with writing(output, schema) as write:
            for found in match_given(given.read, task, report):
                # Where another event has text for an id, all have.
                write(found.select(list(columns)).rename_columns(list(columns.values())).cast(schema))
                matches += found.num_rows
        return FoundMatches(given.count, matches, given.rejected, [report.done()])

    def write_tuples(self, output: str) -> None:
        """Write what patterns over XML return."""
        from headgate.tables.frames.tuples import tuples_of, tuples_schema

        target, given = self.asked.target, self.given
        schema = tuples_schema(given.id_type, numbered=target.numbered)
        with writing(output, schema) as write:
            for shard in target.shards:
                for batch in tuples_of((each.batch for each in given.read), shard, schema):
                    write(batch)

    def write_refused(self, told: pa.Table, output: str) -> None:
        """Write the rows that are no events, and others after them."""
        write_table(pa.concat_tables([self.given.refused.collect(), told]), output)

    def ids(self) -> list[Ids]:
        """List the ids of the subscriptions."""
        return opened(self.group).ids
