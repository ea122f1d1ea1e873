"""The room's public class: all patterns over XML documents, ready to match and to change."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headgate.contents.columns import ColumnContents, ColumnFinder, ColumnWriters
from headgate.contents.documents import DocumentIndex
from headgate.contents.protocol import SnapshotCounts, filters_in
from headgate.core.event import Event
from headgate.core.omission import tell_all
from headgate.core.rooms import XML
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import XPATH
from headgate.errors import EventError
from headgate.xml.events.reading import document_of
from headgate.xml.events.subject import Subject
from headgate.xml.explain.explain import Explanation, WholeExplanation, explain, explain_whole
from headgate.xml.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.xml.index.live import ROOM, SETTINGS, Base
from headgate.xml.language.model import ANY, ANY_ATTRIBUTE, WORD_MARK
from headgate.xml.language.printing import print_pattern
from headgate.xml.whole.reading import WholeFilter, XPathSettings, clauses, read_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headgate.contents.protocol import Clause, Keys
    from headgate.contents.results import ResultRows
    from headgate.core.arrays import Ints
    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.subscription import Subscription
    from headgate.core.values import Path as Attribute
    from headgate.xml.answers.answers import Answer
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Pattern
    from headgate.xml.whole.evaluating import SelectedAnswer


__all__ = ["ROOM", "XmlIndex", "XmlRoom"]


class XmlIndex(DocumentIndex[Base]):
    """Patterns over XML: match, and subscribe and unsubscribe while others match.

    Any number of threads may read while one or more write. What a reader sees is the state at some moment of
    its call. New filters go into a tail, which `compact` folds into the base; that happens by itself, in a
    thread of its own, once the tail is a quarter of the base (`compact_after` is the least tail for it, None
    turns it off).

    >>> from headgate import Event, Subscription
    >>> from headgate.xml.index.index import XmlIndex
    >>> index = XmlIndex.build([Subscription("s1", "//item[price > 10]/name{val}", "xpath")])
    >>> event = Event("e1", "<shop><item><name>pen</name><price>12</price></item></shop>", content_type="xml")
    >>> index.match(event)
    ['s1']
    >>> index.answers(event)["s1"].values[-1]
    ('pen',)
    """

    room_name: ClassVar[Literal["xml"]] = XML
    dialect = XPATH
    """What `filter` and `clauses` write."""
    always = "/*{}"
    """The filter that every event matches."""
    _document = staticmethod(document_of)
    _print = staticmethod(print_pattern)

    @staticmethod
    def _parse(text: str, dialect: str = XPATH) -> Pattern | WholeFilter:
        return read_filter(text, dialect)[1]

    @classmethod
    def build(cls, subscriptions: Iterable[Subscription], *, settings: XPathSettings = SETTINGS) -> XmlIndex:
        """Parse and index subscriptions; refuses bad filters and repeated ids."""
        writer = Writer()
        ids, filters = cls._read_all(subscriptions, writer, FilterReader(settings))
        return cls.from_columns(ids, filters, writer.columns(), settings=settings)

    @classmethod
    def from_columns(
        cls, ids: Ids, filters: TextPool, columns: Columns, *, settings: XPathSettings = SETTINGS
    ) -> XmlIndex:
        """Index filters that are in columns, in the order of their ids."""
        return cls(Base(ids, filters, columns, settings=settings))

    @staticmethod
    def clauses(text: str, dialect: str = XPATH) -> tuple[Clause, ...]:
        """Take a filter apart into its paths, from root to leaf; refuses a bad filter."""
        return clauses(text, dialect, SETTINGS)

    @property
    def settings(self) -> XPathSettings:
        """Return what is said of all filters."""
        return self._state.base.settings

    def _read(self, text: str, dialect: str) -> tuple[str, Pattern | WholeFilter]:
        return FilterReader(self.settings)(text, dialect)

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> XmlIndex:
        """Open a snapshot, memory-mapped."""
        return cls(Base.open(path, verify=verify))

    def match_document(self, document: Document) -> Ints:
        """List the numbers of the matches: places among the ids, if nothing changed since it was built."""
        return self._state.match(document, [])

    @staticmethod
    def _documents(texts: Sequence[tuple[str, str]], identities: pa.Array[Any]) -> list[Document]:
        return [_document(*each, identity) for each, identity in zip(texts, identities, strict=True)]

    def answer(self, event: Event, identity: Id) -> Answer | SelectedAnswer | None:
        """Return what a subscription gives for an event, None if it does not match."""
        state = self._state
        answer: Answer | SelectedAnswer | None = state.prepared(state.number_of(identity)).ask(
            Subject(document_of(event))
        )
        return answer

    def answers(
        self, event: Event, refused: dict[Id, str] | None = None
    ) -> dict[Id, Answer | SelectedAnswer]:
        """Return what each subscription gives that matches an event and returns anything, by id.

        One that would return too much of the document is put into `refused`, with the reason, and the others
        are answered; without that, the event is refused, with the id.
        """
        state, document = self._state, document_of(event)
        subject = Subject(document)
        answers: dict[Id, Answer | SelectedAnswer] = {}
        left_out: list[tuple[Id, str]] = []
        numbers = state.match(document, left_out).tolist()
        tell_all(event.id, left_out)
        for number in numbers:
            prepared = state.prepared(number)
            if not prepared.returns:
                continue
            identity = state.id_of(number)
            try:
                given = prepared.ask(subject)
            except EventError as error:
                if refused is None:
                    raise EventError(f"subscription {identity!r}: {error}") from None
                refused[identity] = str(error)
                continue
            if given is not None:
                answers[identity] = given
        return answers

    def results(self, event: Event, ids: Sequence[Id], limit: int) -> list[ResultRows | EventError | None]:
        """Return the tuples of some filters for an event, which is read once, ids of nodes as text.

        One that returns too much has the reason in its place, and None stands for no filter.
        """
        state, subject = self._state, Subject(document_of(event))
        results: list[ResultRows | EventError | None] = []
        for number in state.find_all(ids):
            try:
                results.append(None if number < 0 else state.prepared(number).results(subject, limit))
            except EventError as error:
                results.append(error)
        return results

    def explain(self, event: Event, identity: Id) -> Explanation | WholeExplanation:
        """Say why an event matches a subscription or not, node by node."""
        state = self._state
        filter_ = state.pattern(state.number_of(identity))
        document = document_of(event)
        return (
            explain_whole(filter_, document)
            if isinstance(filter_, WholeFilter)
            else explain(filter_, document)
        )


@dataclass(frozen=True)
class FilterReader:
    """Reads filters of a set; can be sent to workers."""

    settings: XPathSettings = SETTINGS

    def __call__(self, text: str, dialect: str) -> tuple[str, Pattern | WholeFilter]:
        """Read a filter; one of the tree notation becomes XPath."""
        written, filter_ = read_filter(text, dialect, self.settings)
        if dialect != XPATH and not isinstance(filter_, WholeFilter):
            written = print_pattern(filter_)
        return written, filter_


@dataclass(frozen=True)
class XmlRoom(ColumnContents):
    """The room with what is said of its filters: all that is built through it is read by that."""

    columns = Columns
    take = staticmethod(take)
    concatenate = staticmethod(concatenate)

    settings: XPathSettings = SETTINGS
    room_name: ClassVar[str] = XML
    dialect: ClassVar[str] = XPATH
    always: ClassVar[str] = XmlIndex.always

    def build(self, subscriptions: Iterable[Subscription]) -> XmlIndex:
        """Index subscriptions."""
        return XmlIndex.build(subscriptions, settings=self.settings)

    def open(self, path: Path, *, verify: bool = True) -> XmlIndex:
        """Open a snapshot, which has its own settings."""
        return XmlIndex.open(path, verify=verify)

    def clauses(self, text: str, dialect: str) -> tuple[Clause, ...]:
        """Take a filter apart; refuses a bad one."""
        return clauses(text, dialect, self.settings)

    @property
    def writers(self) -> ColumnWriters:
        """Return what workers need."""
        return ColumnWriters(XPATH, FilterReader(self.settings), Writer, clauses)

    def compiled(self, texts: Sequence[str]) -> Columns:
        """Compile filters in XPath."""
        return compile_all([read_filter(text)[1] for text in texts])

    def indexed(self, ids: Ids, texts: TextPool, columns: Columns) -> XmlIndex:
        """Index patterns, in the order of their ids."""
        return XmlIndex.from_columns(ids, texts, columns, settings=self.settings)

    def finder(self, path: Attribute | None) -> ColumnFinder:
        """Return what finds the keys of patterns: labels."""
        del path
        return ColumnFinder(Columns, xml_keys)

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Count what a snapshot holds: different paths from the roots of patterns to nodes, and labels."""
        each_counts = [open_snapshot(each, XML, verify=False).counts for each in filters_in(snapshot, XML)]
        names = ("paths", "labels", "verified", "unindexed")
        counts = {name: sum(each[name] for each in each_counts) for name in names}
        line = f"over {counts['paths']:,} paths of {counts['labels']:,} labels"
        if counts["verified"]:
            line += f" (lxml decides {counts['verified']:,}, {counts['unindexed']:,} of them for every event)"
        return SnapshotCounts(counts, line)


def _document(data: str, content_type: str, identity: pa.Scalar[Any]) -> Document:
    """Read a document; refuses one that cannot be read with the id of its event."""
    try:
        return document_of(Event(identity.as_py(), data, content_type=content_type))
    except EventError as error:
        raise EventError(f"event {identity.as_py()!r}: {error}") from None


def xml_keys(columns: Columns) -> list[Keys]:
    """List the labels that patterns demand: every one that is named without a wildcard.

    >>> from headgate.xml.index.columns import compile_all
    >>> from headgate.xml.language.parse import parse_filter
    >>> [sorted(keys) for keys in xml_keys(compile_all([parse_filter("//news[*]/@id", "xpath")]))]
    [['@id', 'news']]
    """
    labels = columns.labels.texts()
    wide = ("*:", "@*:", WORD_MARK)
    plain = [label not in {ANY, ANY_ATTRIBUTE} and not label.startswith(wide) for label in labels]
    used = [
        frozenset(labels[label] for label in columns.label[begin:end].tolist() if plain[label])
        for begin, end in pairwise(columns.node_start.tolist())
    ]
    # Of several patterns one must hold: what all of them demand.
    return [
        frozenset.intersection(*used[begin:end]) or None if begin < end else None
        for begin, end in pairwise(columns.first.tolist())
    ]
