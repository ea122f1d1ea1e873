"""Shards that are not in one worker's memory together: groups of them, asked one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from headgate.errors import TableError
from headgate.runtime.questions import NOT_BY_EVENT
from headgate.spark.tables.rows import best_of, with_key
from headgate.tables.frames.task import FrameTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.engine.question import Question
    from headgate.runtime.targets import Target


class Grouped(NamedTuple):
    """What workers do, for each group of shards."""

    tasks: tuple[FrameTask, ...]

    @classmethod
    def of(cls, target: Target, memory: int, form: str, question: Question, **more: Any) -> Self:
        """Ask all groups the same; the first tells of what is no event."""
        first, *others = target.groups(memory)
        top = question.top
        if others and top is not None and top.column is not None:
            raise TableError(NOT_BY_EVENT.format(target.title))
        task = FrameTask.of(target, first, form)._replace(question=question, **more)
        task = task._replace(sources=target.sources(memory), keyed=bool(others) and top is not None)
        return cls((task, *(task._replace(group=each, sources=None, tells=False) for each in others)))

    @property
    def keyed(self) -> bool:
        """Tell whether each group finds the best of its own, of which the best of all are taken."""
        return self.tasks[0].keyed

    def rows(self, events: DataFrame) -> DataFrame:
        """Return events as workers get them. No shuffle."""
        return with_key(events) if self.keyed else events

    def best(self, matches: DataFrame, value: str) -> DataFrame:
        """Return what was asked for of what the groups found; of the best, shuffles those of each group."""
        top = self.tasks[0].question.top
        return best_of(matches, top.k, value) if self.keyed and top is not None else matches
