"""The room's public class: all record filters, ready to match and to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headgate.contents.live import LiveIndex
from headgate.contents.portions import Portion
from headgate.contents.protocol import PAIRS, CheckCosts, slice_of
from headgate.core.ids import Ids, sorted_by_id
from headgate.core.interning import TextPool
from headgate.core.rooms import RECORDS
from headgate.core.subscription import SQL
from headgate.core.values import dotted
from headgate.errors import raise_first, tried
from headgate.records.computed import sources
from headgate.records.index.live import ROOM, Base, State
from headgate.records.index.matcher import Pairs
from headgate.records.names import USUAL, NameSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path as FilePath

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.contents.columns import ColumnFilters
    from headgate.contents.live import Moment
    from headgate.contents.protocol import Access, Clause, ClauseColumns
    from headgate.contents.scores import Scoring
    from headgate.core.arrays import Ints
    from headgate.core.event import Event, Id
    from headgate.core.subscription import Subscription
    from headgate.records.events.columns import Columns
    from headgate.records.explain.access import IndexUse
    from headgate.records.explain.explain import Explanation
    from headgate.records.explain.why_not import NearMiss
    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.index.build import Weigh
    from headgate.records.index.coded import CodedRecordClauses, RecordCoder
    from headgate.records.index.filter_planes import RecordFilterPlanes
    from headgate.records.programs.programs import Programs
    from headgate.records.programs.tokens import Program
    from headgate.records.scoring import RecordTerms


CHUNK = 10_000
"""Events encoded together, at most: what it costs to go through the columns is shared by them."""

__all__ = ["ROOM", "Pairs", "RecordIndex"]


class RecordReader:
    """What is the same whatever names mean: texts that were read say for themselves what theirs do."""

    room_name: ClassVar[Literal["records"]] = RECORDS
    dialect: ClassVar[str] = SQL
    """What `filter` and `clauses` write."""
    always: ClassVar[str] = "TRUE"
    """The filter that every event matches."""

    @staticmethod
    def scoring_text(scoring: Scoring) -> str:
        """Write such a score as text."""
        from headgate.records.scoring import print_score

        return print_score(scoring)

    @staticmethod
    def term_reader(terms: Sequence[str]) -> RecordTerms:
        """Return what computes the terms of such scores."""
        from headgate.records.scoring import RecordTerms

        return RecordTerms(terms)

    @staticmethod
    def clause_columns(texts: TextPool) -> list[ClauseColumns]:
        """Take apart filters in SQL that differ in their numbers only; the others are left out."""
        from headgate.records.language.clause_columns import split_columns

        return split_columns(texts)

    @staticmethod
    def coded_clauses(compiled: ColumnFilters) -> CodedRecordClauses:
        """Find the codes of clauses that were compiled."""
        from headgate.records.index.coded import code_clauses

        return code_clauses(compiled.columns)

    @staticmethod
    def event_coder(arrays: Mapping[str, NDArray[Any]]) -> RecordCoder:
        """Read what finds the codes of events, as it was saved."""
        from headgate.records.index.coded import RecordCoder

        return RecordCoder.from_arrays(arrays)


class RecordIndex(LiveIndex[State], RecordReader):
    """Record filters: match, and subscribe and unsubscribe while others match.

    Any number of threads may read while one or more write. What a reader sees is the state at some moment of
    its call. New filters go into a tail, which becomes a small index of its own from time to time; `compact`
    folds all of that into the base, which happens by itself, in a thread of its own, once they are a quarter
    of the base (`compact_after` is the least for it, None turns it off).

    >>> from headgate import Event, Subscription
    >>> from headgate.records.index.index import RecordIndex
    >>> index = RecordIndex.build([Subscription("s1", "age > 30"), Subscription("s2", "topic = 'news'")])
    >>> index.match(Event("e1", {"age": 35, "topic": "news"}))
    ['s1', 's2']
    >>> index.subscribe(Subscription("s3", "age < 40"))
    >>> index.unsubscribe("s2")
    >>> index.match(Event("e1", {"age": 35, "topic": "news"}))
    ['s1', 's3']
    """

    def __init__(self, base: Base, *, weigh: Weigh | None = None, compact_after: int | None = 16_384) -> None:
        super().__init__(State(base, weigh), compact_after)
        self._weigh = weigh
        self._use: IndexUse | None = None

    @classmethod
    def build(
        cls,
        subscriptions: Iterable[Subscription],
        *,
        sample: pa.RecordBatch | Columns | None = None,
        settings: NameSettings = USUAL,
    ) -> RecordIndex:
        """Parse and index subscriptions; refuses bad filters and repeated ids.

        `sample` holds some events like those to come, so that filters are found under rare values.
        `settings` say what names mean.
        """
        from headgate.records.language.dialects import to_sql
        from headgate.records.programs.binding import compile_filters

        ids, rows = sorted_by_id(subscriptions)
        ordered, refused = tried(rows, lambda row: to_sql(row.filter, row.dialect, settings))
        compiled = compile_filters(ordered)
        if refused or compiled.refused:
            kept = [row.id for row in rows if row.id not in refused]
            raise_first(refused | {kept[text.place]: text.error for text in compiled.refused})
        return cls.from_programs(
            ids, TextPool.build(ordered), compiled.programs, sample=sample, settings=settings
        )

    @classmethod
    def from_programs(
        cls,
        ids: Ids,
        filters: TextPool,
        programs: Programs,
        *,
        sample: pa.RecordBatch | Columns | None = None,
        settings: NameSettings = USUAL,
    ) -> RecordIndex:
        """Index filters that are parsed, in the order of their ids."""
        from headgate.records.index.build import build, by_events

        weigh = None if sample is None else by_events(sample)
        return cls(Base(ids, filters, build(programs, weigh), settings), weigh=weigh)

    @staticmethod
    def clauses(text: str, dialect: str = SQL) -> tuple[Clause, ...]:
        """Take a filter apart into what its topmost ANDs join; refuses a bad filter."""
        from headgate.records.language.splitting import split

        return split(text, dialect)

    @staticmethod
    def scoring(text: str) -> Scoring:
        """Parse a score that is an expression over attributes."""
        from headgate.records.scoring import parse_score

        return parse_score(text)

    @staticmethod
    def compiled_clauses(texts: TextPool, settings: NameSettings = USUAL) -> ColumnFilters:
        """Compile clauses in SQL, as `clauses` has written them."""
        from headgate.contents.columns import ColumnFilters
        from headgate.records.compiling import RecordContents
        from headgate.records.programs.binding import compile_filters

        compiled = compile_filters(texts)
        for refused in compiled.refused:
            raise refused.error
        return ColumnFilters(RecordContents(settings), compiled.programs)

    @classmethod
    def open(cls, path: FilePath, *, verify: bool = True) -> RecordIndex:
        """Open a snapshot, memory-mapped; see `headgate.core.snapshot` for what is refused."""
        return cls(Base.open(path, verify=verify))

    @property
    def built(self) -> BuiltIndex:
        """Return the arrays of the base."""
        return self._state.base.built

    @property
    def settings(self) -> NameSettings:
        """Return what names mean."""
        return self._state.base.settings

    @property
    def attributes(self) -> list[str]:
        """List the attributes that filters look at, by dotted name."""
        state = self._state
        paths = (*state.base.built.attributes, *state.tail.view().attributes)
        return sorted({dotted(own) for path in paths for own in sources(path)})

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted."""
        return self._state.match_one(event)

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`; later ones of the base are not checked.

        Asked again for the same event, the search goes on where it was.
        """
        return self._state.next(event, at_least)

    def numbers(self, event: Event, count: int | None = None, at_least: int | None = None) -> Ints:
        """List the first `count` matches from `at_least` on, rising; for ids that are whole numbers."""
        return self._state.numbers(event, count, at_least)

    def first_numbers(self, events: pa.RecordBatch | Sequence[Event], count: int) -> tuple[Ints, Ints]:
        """Do the same for each of many events: returns places of events, rising, and the matches."""
        state = self._state
        rows, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for begin in range(0, len(events), CHUNK):
            rows_of_some, ids = state.first_numbers(slice_of(events, begin, begin + CHUNK), count)
            rows.append(rows_of_some + begin)
            numbers.append(ids)
        return np.concatenate(rows), np.concatenate(numbers)

    def ask(
        self, events: pa.RecordBatch | Sequence[Event], ids: pa.Array[Any], most: int = PAIRS
    ) -> Iterator[Portion]:
        """Match events in order, so few at a time that no more than `most` pairs can come of them."""
        del ids
        state = self._state
        if state.late:
            for begin, end in self._steps(len(events), most, CHUNK):
                late = state.match(slice_of(events, begin, end))
                yield Portion(begin, end, late.events + begin, late.filters, state)
            return
        for begin, end, pairs in _pairs(state.base, events, most):
            yield Portion(begin, end, pairs.events, pairs.filters, state)

    def explain(self, event: Event, identity: Id) -> Explanation:
        """Say why an event matches a subscription or not, by clauses, and what the index does for it."""
        from headgate.records.explain.access import with_access
        from headgate.records.explain.explain import explain
        from headgate.records.programs.binding import parse_text

        state = self._state
        text = state.text(state.number_of(identity))
        expression = parse_text(text)
        told = explain(expression, event.attributes_as(state.base.settings.mark))
        return with_access(told, expression, *self.access([text]))

    def access(self, texts: Sequence[str], events: Sequence[Event] = ()) -> list[Access]:
        """Say by what events come to filters among those that are here, and how many of some events do."""
        from headgate.records.events.columns import EventColumns
        from headgate.records.explain.access import IndexUse

        state, use = self._state, self._use
        if use is None or not use.is_of(state):
            use = self._use = IndexUse(state, self._weigh)
        return use.access(texts, EventColumns(events) if events else None)

    def why_not(self, event: Event, limit: int = 10, within: int | None = None) -> list[NearMiss]:
        """List the subscriptions that nearly matched, fewest failed clauses first (at most `within`)."""
        from headgate.records.explain.why_not import why_not

        return why_not(self._state, event, limit, within)

    def check_costs(self, events: pa.RecordBatch | Sequence[Event]) -> CheckCosts:
        """Match some events again, and count what is checked; filters that came lately are left out."""
        from headgate.records.index.costs import count_checks

        base = self._state.base
        encoded = base.encode(events)
        candidates, work = (np.zeros(len(base.ids), np.int64) for _ in range(2))
        count_checks(base.built.arrays, encoded, len(events), base.removed, candidates, work)
        return CheckCosts(base.ids, np.where(base.removed, -1, candidates), work)

    def filter_planes(self, first: int, size: int) -> RecordFilterPlanes | None:
        """Return the filters for asking one by one: their ids are `first` and up.

        What is subscribed or unsubscribed later is not seen by it.
        """
        from headgate.records.index.filter_planes import RecordFilterPlanes

        if self._state.changed:
            self.compact()
        return RecordFilterPlanes(self._state.base, first, size)

    def _read(self, text: str, dialect: str) -> tuple[str, Program]:
        from headgate.records.language.dialects import to_sql
        from headgate.records.programs.binding import compile_filter

        written = to_sql(text, dialect, self.settings)
        return written, compile_filter(written)

    def settle(self) -> None:
        """Wait until what was subscribed lately is indexed, as far as it will be without a compaction."""
        self._state.tail.settle()

    def _rebuilt(self, moment: Moment[State]) -> State:
        return compact(moment, self._weigh)


def _pairs(
    base: Base, events: pa.RecordBatch | Sequence[Event], most: int
) -> Iterator[tuple[int, int, Pairs]]:
    """Match events; gives what holds for those from one to another, about `most` matches at most."""
    for first in range(0, len(events), CHUNK):
        # Encoded together, whatever comes of them: most of that costs the same for few.
        some = slice_of(events, first, first + CHUNK)
        encoded = base.encode(some)
        begin = 0
        while begin < len(some):
            end, pairs = base.matcher.match_some(encoded, begin, len(some), base.removed, most)
            yield first + begin, first + end, Pairs(pairs.events + first, pairs.filters)
            begin = end


def compact(moment: Moment[State], weigh: Weigh | None) -> State:
    """Build a state whose base holds all that was left; the given one is not changed.

    The base is read back from its arrays. Only filters that it keeps as trees are compiled again.
    """
    from headgate.records.index.build import build
    from headgate.records.index.restoring import read_programs
    from headgate.records.programs.binding import Binder
    from headgate.records.programs.programs import concatenate, take

    state, keep, late = moment
    base = state.base

    def again(f: int) -> Programs:
        binder = Binder()
        binder.add(base.filters.text(f))
        return binder.finish()

    left = read_programs(base.built, keep, again)
    programs = concatenate([left, state.tail.programs(late)])
    ids, filters, order = state.merged(keep, late)
    return State(Base(ids, filters, build(take(programs, order), weigh), base.settings), weigh)


@dataclass(frozen=True)
class RecordRoom(RecordReader):
    """What builds and opens indexes whose names mean something else than in Spark."""

    settings: NameSettings = USUAL

    def build(self, subscriptions: Iterable[Subscription]) -> RecordIndex:
        """Index subscriptions."""
        return RecordIndex.build(subscriptions, settings=self.settings)

    def open(self, path: FilePath, *, verify: bool = True) -> RecordIndex:
        """Open a snapshot, which has its own settings."""
        return RecordIndex.open(path, verify=verify)

    def clauses(self, text: str, dialect: str = SQL) -> tuple[Clause, ...]:
        """Take a filter apart; refuses a bad one."""
        from headgate.records.language.splitting import split

        return split(text, dialect, self.settings)

    def scoring(self, text: str) -> Scoring:
        """Parse a score that is an expression over attributes."""
        from headgate.records.scoring import parse_score

        return parse_score(text, self.settings)

    def compiled_clauses(self, texts: TextPool) -> ColumnFilters:
        """Compile clauses in SQL, as `clauses` has written them."""
        return RecordIndex.compiled_clauses(texts, self.settings)


def room_of(settings: NameSettings) -> type[RecordIndex] | RecordRoom:
    """Return what builds and opens indexes with some settings."""
    return RecordIndex if settings.usual else RecordRoom(settings)
