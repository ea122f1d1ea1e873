"""Filter text to a tree pattern, or to an expression that lxml decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lxml import etree
from msgspec.structs import replace

from headgate.contents.kind import ALLOW, REFUSE
from headgate.contents.protocol import Clause
from headgate.contents.settings import check_plain
from headgate.core.arguments import told
from headgate.core.subscription import TREE, XPATH, check_dialect
from headgate.core.text.cutting import RefusedFilterError
from headgate.core.values import fold
from headgate.errors import FilterError, SubscriptionError
from headgate.xml.language import words
from headgate.xml.language.grammar import parse_expression
from headgate.xml.language.model import ROOT, WORD, Pattern
from headgate.xml.language.parse import pattern_of, placed
from headgate.xml.language.printing import print_pattern
from headgate.xml.language.refusal import check_text
from headgate.xml.language.words import cut, kind_of, places
from headgate.xml.whole.needs import needs_of
from headgate.xml.whole.writing import Written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.xml.language.syntax import Expression


BY_PATTERN, BY_LXML, EVERY_TIME = 0, 1, 2
"""How a filter is decided: by its pattern; by lxml, if one of its patterns holds; by lxml in any case."""


@dataclass(frozen=True)
class WholeFilter:
    """An expression of XPath 1.0 that is no tree pattern.

    `needs` are patterns of which one holds for every document that matches; None if there are none, and every
    document is asked. lxml decides for those that have one.
    """

    text: str
    needs: tuple[Pattern, ...] | None

    @property
    def indexed(self) -> bool:
        """Tell whether the index leads to it."""
        return self.needs is not None


@dataclass(frozen=True)
class XPathSettings:
    """What is said of all filters of a set: namespaces by prefix, and whether any expression is taken.

    >>> XPathSettings({"dc": "http://purl.org/dc/elements/1.1/"}).unindexed
    'refuse'
    """

    namespaces: Mapping[str, str] = field(default_factory=dict)
    unindexed: str = REFUSE

    def __post_init__(self) -> None:
        """Refuse what is no prefix, no namespace, or no word for what is not indexed."""
        given: Any = self.namespaces
        if not hasattr(given, "items"):
            raise SubscriptionError(
                f"the namespaces are {told(given)}: give them by prefix, as {{'dc': 'http://…'}}"
            )
        for prefix, space in given.items():
            # A name is one word; with others before and behind it, so is the name of something.
            if not isinstance(prefix, str) or cut(f"x:{prefix}") != [f"x:{prefix}"] or "*" in prefix:
                raise SubscriptionError(f"the prefix {prefix!r} is no name: give one such as dc")
            if not isinstance(space, str) or not space.strip() or "{" in space or "}" in space:
                raise SubscriptionError(f"the namespace of {prefix!r} is {space!r}: give it as text")
        check_plain(self)

    def plain(self) -> dict[str, Any]:
        """Return it for a snapshot."""
        return {"namespaces": dict(self.namespaces), "unindexed": self.unindexed}

    @classmethod
    def of(cls, plain: Mapping[str, Any] | None) -> XPathSettings:
        """Return what `plain` gave."""
        return cls() if plain is None else cls(plain["namespaces"], plain["unindexed"])


STORED = XPathSettings(unindexed=ALLOW)
"""How filters are read that were taken before."""


_KNOWN = 1 << 12


def read_filter(
    text: str, dialect: str = XPATH, settings: XPathSettings = STORED
) -> tuple[str, Pattern | WholeFilter]:
    """Read a filter; returns it with namespaces in place of prefixes, and what it means.

    >>> read_filter("//dc:title", settings=XPathSettings({"dc": "urn:dc"}))[0]
    '//Q{urn:dc}title'
    >>> read_filter("//a[b or c]")[1].indexed
    True
    >>> read_filter("not(//a)", settings=XPathSettings())
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: nothing in the filter can be indexed, so every document would be asked: say what must be there, or allow it for the set (unindexed)
    """  # noqa: E501 -- the message is one line
    check_dialect(dialect, (XPATH, TREE), "XML events")
    text = check_text(text)
    if dialect == XPATH:
        text = with_namespaces(text, settings)
    texts = cut(text)
    try:
        expression = parse_expression(texts, dialect)
        try:
            return text, pattern_of(expression, texts, dialect)
        except RefusedFilterError as more:
            _check_plain(texts, dialect, more)
    except RefusedFilterError as refused:
        raise placed(refused, text) from None
    return text, _whole(text, expression, settings)


def _check_plain(texts: list[str], dialect: str, more: RefusedFilterError) -> None:
    """Refuse an expression that is no tree pattern if something in it goes with tree patterns alone."""
    if dialect == TREE or any(word.startswith(WORD) for word in texts):
        raise more
    for number, word in enumerate(texts):
        if word[0] == "{":
            raise RefusedFilterError(
                "marks go with tree patterns only, and this filter asks for more: leave the marks out", number
            )


def with_namespaces(text: str, settings: XPathSettings) -> str:
    """Write namespaces in place of the prefixes that the set declares.

    >>> with_namespaces("//a:b[@a:c = 'a:d']", XPathSettings({"a": "urn:x"}))
    "//Q{urn:x}b[@Q{urn:x}c = 'a:d']"
    """
    if not settings.namespaces or ":" not in text:
        return text
    texts = cut(text)
    written = text
    behind = ""
    for index, word in reversed(list(zip(places(text), texts, strict=False))):
        called, behind = behind == "(", word
        if called or kind_of(word) not in (words.PREFIXED, words.WILD):
            continue
        at = word[: len(word) - len(word.lstrip("@" + words.GAPS))]
        prefix, _, local = word[len(at) :].partition(":")
        space = settings.namespaces.get(prefix)
        if space is not None:
            written = f"{written[:index]}{at}Q{{{space}}}{local}{written[index + len(word) :]}"
    return written


@lru_cache(_KNOWN)
def expression_of(text: str) -> Expression:
    """Read the text of a filter that was taken as XPath 1.0."""
    return parse_expression(cut(text), XPATH)


def clauses(text: str, dialect: str = XPATH, settings: XPathSettings = STORED) -> tuple[Clause, ...]:
    """Take a filter apart for ranking, each clause a filter of its own; one that lxml decides is one clause.

    A pattern has one for each path from the document to a leaf, with the tests of all its nodes, named by the
    label of its leaf. They return nothing. When the filter holds, all of them do; the converse is not true:
    `//a[b][c]` asks for one `a`, where its two clauses may find two.

    >>> for clause in clauses("//News[company = 'ACME']/Item{cont}[@id]//text()"):
    ...     print(clause)
    Clause(filter="//News/company = 'ACME'", names=('company',))
    Clause(filter='//News/Item/@id{}', names=('@id',))
    Clause(filter='//News/Item//text(){}', names=('text()',))
    >>> clauses("//a[b or c]")
    (Clause(filter='//a[b or c]', names=('b', 'c')),)
    """
    text, filter_ = read_filter(text, dialect, settings)
    if not isinstance(filter_, WholeFilter):
        return _clauses_of(filter_)
    names = dict.fromkeys(name for pattern in filter_.needs or () for name in _names_of(pattern))
    return (Clause(text, tuple(names)),)


def _whole(text: str, expression: Expression, settings: XPathSettings) -> WholeFilter:
    """Make the filter of an expression; refuses what lxml refuses, and what nothing leads to."""
    if settings is not STORED:
        try:
            written = Written(expression)
            etree.XPath(f"boolean({written.text})", namespaces=written.namespaces or None)(_NOTHING)
        except etree.XPathError as error:
            raise FilterError(f"lxml does not evaluate the filter: {error}", text, None) from None
    needs = needs_of(expression)
    if needs is None and settings.unindexed == REFUSE:
        raise FilterError(
            "nothing in the filter can be indexed, so every document would be asked: say what must be there, "
            "or allow it for the set (unindexed)",
            text,
            None,
        )
    return WholeFilter(text, needs)


_NOTHING = etree.fromstring("<nothing/>")


def _clauses_of(pattern: Pattern) -> tuple[Clause, ...]:
    """Take a pattern apart."""
    return tuple(
        Clause(print_pattern(_path(pattern, leaf)), (fold(pattern.nodes[leaf].label),))
        for leaf in _leaves(pattern)
    )


def _names_of(pattern: Pattern) -> tuple[str, ...]:
    """List what the clauses of a pattern are named by, each once."""
    return tuple(dict.fromkeys(fold(pattern.nodes[leaf].label) for leaf in _leaves(pattern)))


def _leaves(pattern: Pattern) -> list[int]:
    return [index for index, children in enumerate(pattern.children) if not children]


def _path(pattern: Pattern, leaf: int) -> Pattern:
    """Keep the nodes from the document to a leaf."""
    path = [leaf]
    while pattern.nodes[path[-1]].parent != ROOT:
        path.append(pattern.nodes[path[-1]].parent)
    return Pattern(
        tuple(
            replace(pattern.nodes[index], parent=number - 1, returns=())
            for number, index in enumerate(reversed(path))
        )
    )
