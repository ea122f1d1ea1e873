"""What a job runs on: this process, or a session of Spark. A job is written once, as steps over rows.

    table(path).lines() ──► map ──► kept ──► collect | write

`headgate.local.runner` is the one in this process, `headgate.spark.runner` the one on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from headgate.contents.kind import Kind
    from headgate.core.values import Path
    from headgate.jobs.events import EventTable, JudgeTask
    from headgate.jobs.match import Matching, MatchTask
    from headgate.records.language.model import Expression
    from headgate.runtime.progress import Timing
    from headgate.runtime.targets import Target
    from headgate.tables.change_set import ChangeSet
    from headgate.tables.places import Format

Batches = Iterable[pa.RecordBatch]
Work = Callable[..., Iterator[pa.RecordBatch]]
"""Makes batches of those of a part, whose number is `part` where it is asked for. It goes to workers."""

_Shared_co = TypeVar("_Shared_co", covariant=True)
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Rows(Protocol):
    """Rows in parts, computed when they are asked for, and each time, unless they are kept."""

    def map(self, work: Work, schema: pa.Schema, *, numbered: bool = False) -> Rows:
        """Have workers go through each part; with `numbered`, work gets its number, too. No shuffle."""

    def filtered(self, work: Work) -> Rows:
        """Have workers leave out some rows of each part. No shuffle."""

    def parsed(self, title: str) -> Rows:
        """Return lines of JSON, the column `value`, as columns; each has one type, as Spark infers it."""

    def where(self, sql: str, tree: Expression, title: str) -> Rows:
        """Return the rows for which Spark SQL says that a filter holds."""

    @property
    def names(self) -> list[str]:
        """List the columns."""

    def attributes(self, mark: str = "") -> list[Path]:
        """List the columns by path, nested ones included; `mark` says what names mean."""

    def select(self, *columns: str) -> Rows:
        """Return some columns. No shuffle."""

    def having(self, column: str) -> Rows:
        """Return the rows whose column is not NULL. No shuffle."""

    def lacking(self, column: str) -> Rows:
        """Return the rows whose column is NULL. No shuffle."""

    def then(self, others: Self) -> Rows:
        """Return these rows and others with the same columns after them. No shuffle."""

    def sorted(self, *columns: str) -> Rows:
        """Sort all rows, downwards by a column with `-` before its name. Shuffles."""

    def parted(self, column: str, count: int, *order: str) -> Rows:
        """Have the rows of number n in part n, in an order, and no others. Shuffles."""

    def gathered(self, *columns: str) -> Rows:
        """Have rows that are equal in some columns in one part. Shuffles."""

    def firsts(self, column: str, *order: str) -> tuple[Rows, Rows]:
        """Tell the first of the rows with one value from the others. Shuffles values, and what is repeated.

        `order` tells all rows apart by its last column.
        """

    def counted(self, column: str) -> Rows:
        """Count the rows of each value, as the column `count`. Shuffles."""

    def summed(self, column: str, *sums: str) -> Rows:
        """Sum up columns of the rows of each value. Shuffles sums."""

    def coalesced(self, name: str, kind: pa.DataType, *columns: str) -> Self:
        """Add a column: of each row the first of some others that is not NULL, of a type. No shuffle."""

    def count(self) -> int:
        """Count all rows."""

    def head(self, count: int) -> pa.Table:
        """Return the first rows."""

    def collect(self) -> pa.Table:
        """Return all rows."""

    def kept(self) -> AbstractContextManager[Rows]:
        """Compute them once, and keep them while they are asked several times."""

    def write(self, path: str) -> None:
        """Write a table, in the order of the parts; nothing is seen at its place before all is written."""


class Table(Protocol):
    """A table as it is given: in files, or in memory."""

    @property
    def name(self) -> str:
        """Return what it is called in messages."""

    @property
    def form(self) -> Format:
        """Return its format."""

    def columns(self) -> list[str] | None:
        """List its columns; None for JSON lines."""

    def lines(self, *required: str, even: bool = False) -> Rows:
        """Read it as `tables.lines.LINES`: one JSON object a row. It must have some columns.

        With `even`, rows are cut so that all cores have as much to do, and come in any order.
        """

    def typed(self) -> Rows:
        """Read the columns of CSV or Parquet with their types, without the rows that are none."""


class Shared(Protocol[_Shared_co]):
    """A value that workers have."""

    @property
    def value(self) -> _Shared_co:
        """Return it."""


class Runner(Protocol):
    """Where a job runs, and what it has there."""

    @property
    def quiet(self) -> bool:
        """Tell whether progress is not shown."""

    @property
    def apart(self) -> bool:
        """Tell whether workers are on other machines."""

    @property
    def parts(self) -> int:
        """Return into how many parts work is cut, so that a slow one does not keep all others waiting."""

    @property
    def memory(self) -> int:
        """Return how many bytes of snapshots a worker should have in memory at once."""

    @property
    def building_memory(self) -> int:
        """Return how many bytes a worker may take to build a shard."""

    def working(self) -> AbstractContextManager[Self]:
        """Yield the runner for a job, with the settings that answers depend on; errors come out as ours."""

    def step(
        self, title: str, *, rows: int | None = None, noun: str = "rows"
    ) -> AbstractContextManager[Timing]:
        """Show that the body is running, and how far it is, of so many `rows` if that is known."""

    def table(self, path: str) -> Table:
        """Return a table in files."""

    def rows(self, table: pa.Table) -> Rows:
        """Return the rows of a table in memory."""

    def numbers(self, count: int, parts: int | None = None) -> Rows:
        """Return the numbers from 0 on as the column `id`, in some parts, or as many as keep cores busy."""

    def shared(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Give workers a value that is large, once."""

    def changing(self, paths: Iterable[str | None]) -> AbstractContextManager[ChangeSet]:
        """Have tables that are written take their places together after the block."""

    def matching(self, asked: MatchTask) -> AbstractContextManager[Matching]:
        """Yield what the match job does here."""

    def documents(self, path: str, kind: Kind, form: Format | None) -> Rows:
        """Return documents as they came: rows of a table as one JSON object each, or files if it is None."""

    def judged(self, asked: JudgeTask) -> EventTable[Rows]:
        """Tell the events of a table with columns from rows that are none."""

    def packed(self, rows: Any, target: Target, title: str) -> tuple[Rows, tuple[str, ...]]:
        """Return what workers get of events in columns, and the attributes that these lack.

        Refuses columns that filters compare and cannot.
        """


def job(do: Callable[Concatenate[Any, _Given], _Result]) -> Callable[Concatenate[Runner, _Given], _Result]:
    """Have a job work as its runner wants it."""

    @wraps(do)
    def run(runner: Runner, /, *args: _Given.args, **options: _Given.kwargs) -> _Result:
        with runner.working() as own:
            return do(own, *args, **options)

    return run
