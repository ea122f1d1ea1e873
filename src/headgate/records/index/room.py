"""The room of records with what names mean to its filters: all that is built through it is read by that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from headgate.core.rooms import RECORDS
from headgate.core.subscription import SQL
from headgate.records.index.index import RecordIndex
from headgate.records.names import USUAL, NameSettings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from headgate.contents.protocol import Clause
    from headgate.contents.scores import Scoring
    from headgate.core.interning import TextPool
    from headgate.core.subscription import Subscription
    from headgate.records.compiling import RecordCompiledFilters


@dataclass(frozen=True)
class RecordRoom:
    """What builds and opens indexes whose names mean something else than in Spark."""

    settings: NameSettings = USUAL
    room_name: ClassVar[str] = RECORDS
    dialect: ClassVar[str] = SQL
    always: ClassVar[str] = RecordIndex.always

    def build(self, subscriptions: Iterable[Subscription]) -> RecordIndex:
        """Index subscriptions."""
        return RecordIndex.build(subscriptions, settings=self.settings)

    def open(self, path: Path, *, verify: bool = True) -> RecordIndex:
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

    def compiled_clauses(self, texts: TextPool) -> RecordCompiledFilters:
        """Compile clauses in SQL, as `clauses` has written them."""
        return replace(RecordIndex.compiled_clauses(texts), settings=self.settings)

    # Texts that were read say for themselves what their names mean.
    scoring_text = staticmethod(RecordIndex.scoring_text)
    term_reader = staticmethod(RecordIndex.term_reader)
    clause_columns = staticmethod(RecordIndex.clause_columns)
    coded_clauses = staticmethod(RecordIndex.coded_clauses)
    event_coder = staticmethod(RecordIndex.event_coder)


def room_of(settings: NameSettings) -> type[RecordIndex] | RecordRoom:
    """Return what builds and opens indexes with some settings."""
    return RecordIndex if settings.usual else RecordRoom(settings)
