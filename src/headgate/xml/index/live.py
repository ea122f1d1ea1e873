"""A running index of patterns: base, a tail of small indexes, and how they become a new base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.living import LivingState
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.xml.answers.answers import prepared
from headgate.xml.index.base import Base
from headgate.xml.index.build import build
from headgate.xml.index.columns import compile_all, concatenate, take
from headgate.xml.index.matching import Matcher

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.xml.answers.answers import Prepared
    from headgate.xml.events.document import Document
    from headgate.xml.index.columns import Columns
    from headgate.xml.language.model import Pattern


LOOSE = 64
"""Filters of the last block before it is left alone."""


class Block(NamedTuple):
    """Filters from a place on."""

    begin: int
    columns: Columns
    matcher: Matcher

    @property
    def size(self) -> int:
        """Count the filters."""
        return self.columns.size


class TailView(NamedTuple):
    """The filters of a tail at one moment."""

    blocks: tuple[Block, ...]

    @property
    def size(self) -> int:
        """Count the filters."""
        return self.blocks[-1].begin + self.blocks[-1].size if self.blocks else 0

    def match(self, document: Document, left_out: dict[int, str] | None = None) -> NDArray[np.int64]:
        """List the places of the filters that hold, rising; what is too much goes to `left_out`."""
        found = [np.zeros(0, np.int64)]
        for block in self.blocks:
            own: dict[int, str] = {}
            found.append(block.matcher.match(document, own) + np.int64(block.begin))
            if left_out is not None:
                left_out |= {number + block.begin: why for number, why in own.items()}
        return np.concatenate(found)


class Tail:
    """Filters by place, in the order in which they came. One writes, any number read."""

    def __init__(self) -> None:
        self._view = TailView(())
        self._patterns: list[Pattern] = []

    def __len__(self) -> int:
        """Count the filters that readers can find."""
        return self._view.size

    def view(self) -> TailView:
        """Return the filters as they are now."""
        return self._view

    def pattern(self, place: int) -> Pattern:
        """Return a filter."""
        return self._patterns[place]

    def add(self, pattern: Pattern) -> None:
        """Append a filter."""
        blocks = self._view.blocks
        size = self._view.size
        # What an addition that failed has left.
        del self._patterns[size:]
        loose = size - _whole(blocks)
        kept = list(blocks[:-1] if loose else blocks)
        last = _block(size - loose, compile_all([*self._patterns[size - loose :], pattern]))
        while last.size >= LOOSE and kept and kept[-1].size == last.size:
            before = kept.pop()
            last = _block(before.begin, concatenate([before.columns, last.columns]))
        self._patterns.append(pattern)
        self._view = TailView((*kept, last))

    def columns(self) -> Columns:
        """Return the filters in columns."""
        blocks = self._view.blocks
        return concatenate([block.columns for block in blocks]) if blocks else compile_all([])


def ask_one(pattern: Pattern, document: Document) -> str:
    """Say why one pattern would be left out of a document, if it would."""
    left_out: dict[int, str] = {}
    _block(0, compile_all([pattern])).matcher.match(document, left_out)
    return left_out.get(0, "")


def _whole(blocks: tuple[Block, ...]) -> int:
    """Count the filters in blocks that are left alone."""
    return sum(block.size for block in blocks if block.size >= LOOSE)


def _block(begin: int, columns: Columns) -> Block:
    return Block(begin, columns, Matcher(build(columns), columns.labels))


FEW = 16
"""Ids that are looked up one by one; more of them by Arrow, all at once."""


class State(LivingState[Base, "Pattern"]):
    """Base and tail."""

    def __init__(self, base: Base) -> None:
        super().__init__(base)
        self.tail = Tail()

    @property
    def late(self) -> int:
        """Count the filters in the tail that readers can see."""
        return len(self.tail)

    def append(self, compiled: Pattern) -> None:
        """Append a filter to the tail. Writer only."""
        self.tail.add(compiled)

    def pattern(self, number: int) -> Pattern:
        """Return a filter."""
        base = len(self.base.ids)
        return self.base.prepared(number).pattern if number < base else self.tail.pattern(number - base)

    def prepared(self, number: int) -> Prepared:
        """Return a filter that is ready to be asked what it gives."""
        base = len(self.base.ids)
        return self.base.prepared(number) if number < base else prepared(self.tail.pattern(number - base))

    def match(self, document: Document, left_out: list[tuple[Id, str]]) -> NDArray[np.int64]:
        """List the numbers of the filters that hold: those of the base rising, then those of the tail.

        What is too much goes to `left_out`, with the reason.
        """
        # The tail as it is now, and what was removed last of all: an id that is taken away and given anew
        # meanwhile is not answered twice.
        view = self.tail.view()
        early: dict[int, str] = {}
        lately: dict[int, str] = {}
        found: NDArray[np.int64] = self.base.matcher.match(document, early).astype(np.int64)
        late = view.match(document, lately)
        if early or lately:
            left_out += self.named(early, lately)
        if self._gone:
            found = found[self.base.removed[found] == 0]
            late = late[self.tail_removed[late] == 0]
        return np.concatenate([found, late + len(self.base.ids)]) if len(late) else found

    def id_of(self, number: int) -> Id:
        """Return the id of a number."""
        base = len(self.base.ids)
        return self.base.ids[number] if number < base else self.tail_ids[number - base]

    def match_one(self, document: Document, left_out: list[tuple[Id, str]]) -> list[Id]:
        """List the ids that match, sorted; what is too much goes to `left_out`, with the reason."""
        found = self.match(document, left_out)
        ids: list[Any] = (
            [self.id_of(number) for number in found.tolist()]
            if len(found) < FEW
            else self.id_array(found).to_pylist()
        )
        if len(found) and found[-1] >= len(self.base.ids):
            ids.sort()
        return ids


class Moment(NamedTuple):
    """What is left of a state at one moment: which filters of the base, and which of the tail."""

    state: State
    kept: NDArray[np.int64]
    late: NDArray[np.int64]


def freeze(state: State) -> Moment:
    """Note what is left of a state. Writer only: no change may come in between."""
    return Moment(state, *map(np.flatnonzero, state.left()))


def compact(moment: Moment) -> State:
    """Build a state whose base holds all that was left; the given one is not changed."""
    state, kept, late = moment
    base = state.base
    columns = concatenate([take(base.columns, kept), take(state.tail.columns(), late)])
    ids = [*(base.ids[number] for number in kept.tolist()), *(state.tail_ids[n] for n in late.tolist())]
    texts = [*(base.filters.text(n) for n in kept.tolist()), *(state.tail_texts[n] for n in late.tolist())]
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    pool = TextPool.build([texts[place] for place in order.tolist()])
    return State(Base(Ids.of(ids), pool, take(columns, order)))
