"""What a filter that lxml decides gives for a document: what lxml selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.xml.answers.listing import Tuples
from headgate.xml.whole.evaluating import compiled, tree_of
from headgate.xml.whole.syntax import BOOLEAN

if TYPE_CHECKING:
    from headgate.contents.results import ResultRows
    from headgate.xml.events.document import Document
    from headgate.xml.events.subject import Subject
    from headgate.xml.whole.model import WholeFilter

MOST = 1_000_000
"""Rows of an answer, at most."""


class SelectedAnswer(NamedTuple):
    """What an expression selects in a document, as texts."""

    found: ResultRows

    @property
    def values(self) -> tuple[tuple[str, ...] | None, ...]:
        """Return what was selected, as one column."""
        return (tuple(row[0] for row in self.found.rows if row),)

    @property
    def contents(self) -> tuple[tuple[str, ...] | None, ...]:
        """Return the same, as elements are written with all that is in them."""
        return self.values

    def tuples(self, limit: int = 1000) -> Tuples:
        """List what was selected."""
        rows = tuple(self.found.rows[:limit])
        return Tuples(self.found.names, rows, self.found.complete and len(rows) == len(self.found.rows))

    def rows(self) -> int:
        """Count what was selected."""
        return len(self.found.rows)

    @property
    def nbytes(self) -> int:
        """Count the bytes that are sent."""
        return sum(len(text.encode()) for row in self.found.rows for text in row)

    def plain(self) -> list[dict[str, Any]]:
        """Return it for JSON."""
        return self.tuples(MOST).plain()


class PreparedExpression:
    """An expression that is asked about many documents."""

    def __init__(self, found: WholeFilter) -> None:
        self.pattern = found
        self._evaluation = compiled(found.text)
        self.returns = self._evaluation.type != BOOLEAN

    def answer(self, document: Document) -> SelectedAnswer | None:
        """Return what the expression selects; None if it does not hold."""
        return self._answer(document)

    def ask(self, subject: Subject) -> SelectedAnswer | None:
        """Return what the expression selects in a document that others are asked about too."""
        return self._answer(subject.document)

    def _answer(self, document: Document) -> SelectedAnswer | None:
        found = self._evaluation.results(tree_of(document), MOST)
        return SelectedAnswer(found) if found.rows else None

    def results(self, subject: Subject, limit: int) -> ResultRows:
        """Return what the expression selects as text; nothing if it does not hold."""
        return self._evaluation.results(tree_of(subject.document), limit)
