"""Filter text to a tree pattern, or to an expression that lxml decides.

A text that is a tree pattern as usual is read as one. Anything else is read as XPath 1.0: what is an unusual
spelling of a tree pattern becomes that after all, and what is neither is refused, with the better of two
reasons: that of the parser which came further.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from lxml import etree

from headgate.contents.kind import REFUSE
from headgate.contents.protocol import Clause
from headgate.core.subscription import TREE, XPATH
from headgate.errors import FilterError
from headgate.xml.language import words
from headgate.xml.language.parse import check_dialect, parse_by_grammar, parse_filter, quick_pattern
from headgate.xml.language.refusal import RefusedFilterError, check_shape, check_text
from headgate.xml.language.splitting import clauses_of, names_of
from headgate.xml.language.words import cut, kinds_of, places
from headgate.xml.whole.model import STORED, WholeFilter, XPathSettings
from headgate.xml.whole.needs import needs_of
from headgate.xml.whole.parse import VagueRefusalError, parse_expression
from headgate.xml.whole.writing import Written

if TYPE_CHECKING:
    from headgate.xml.language.model import Pattern
    from headgate.xml.language.words import Kinds
    from headgate.xml.whole.syntax import Expression

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
    check_dialect(dialect)
    if dialect == TREE:
        return text, parse_filter(text, dialect)
    text = with_namespaces(check_text(text), settings)
    texts = cut(text)
    found = quick_pattern(texts, dialect)
    if found is not None:
        return text, found
    kinds = kinds_of(texts, dialect)
    try:
        check_shape(kinds)
        expression = parse_expression(texts, kinds)
    except RefusedFilterError as refused:
        return text, _otherwise(text, kinds, refused)
    if not _goes_beyond(texts, kinds):
        try:
            return text, parse_by_grammar(text, dialect)
        except FilterError:
            pass
    return text, _whole(text, expression, settings)


def with_namespaces(text: str, settings: XPathSettings) -> str:
    """Write namespaces in place of the prefixes that the set declares.

    >>> with_namespaces("//a:b[@a:c = 'a:d']", XPathSettings({"a": "urn:x"}))
    "//Q{urn:x}b[@Q{urn:x}c = 'a:d']"
    """
    if not settings.namespaces or ":" not in text:
        return text
    texts = cut(text)
    kinds = kinds_of(texts, XPATH)
    found = text
    behind = ""
    for place, word, kind in reversed(list(zip(places(text), texts, kinds, strict=False))):
        called, behind = behind == "(", word
        if kind not in (words.PREFIXED, words.WILD) or called:
            continue
        at = word[: len(word) - len(word.lstrip("@" + words.GAPS))]
        prefix, _, local = word[len(at) :].partition(":")
        space = settings.namespaces.get(prefix)
        if space is not None:
            found = f"{found[:place]}{at}Q{{{space}}}{local}{found[place + len(word) :]}"
    return found


@lru_cache(_KNOWN)
def expression_of(text: str) -> Expression:
    """Read the text of a filter that was taken as XPath 1.0."""
    texts = cut(text)
    return parse_expression(texts, kinds_of(texts, XPATH))


def clauses(text: str, dialect: str = XPATH, settings: XPathSettings = STORED) -> tuple[Clause, ...]:
    """Take a filter apart for ranking; one that lxml decides is one clause.

    >>> clauses("//a[b or c]")
    (Clause(filter='//a[b or c]', names=('b', 'c')),)
    """
    text, found = read_filter(text, dialect, settings)
    if not isinstance(found, WholeFilter):
        return clauses_of(found)
    names = dict.fromkeys(name for pattern in found.needs or () for name in names_of(pattern))
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
_BEYOND = frozenset(("or", "div", "mod", "+", "|", "..", "last()", "position()"))


def _goes_beyond(texts: list[str], kinds: Kinds) -> bool:
    """Tell at once of most expressions that they are no tree patterns."""
    return any(
        kind in (words.FUNCTION, words.AXIS, words.WILD, words.PARENT) or word in _BEYOND
        for word, kind in zip(texts, kinds, strict=True)
    )


def _otherwise(text: str, kinds: Kinds, refused: RefusedFilterError) -> Pattern:
    """Read what is no XPath 1.0 as a tree pattern; refuses what is neither, with the better reason."""
    at = places(text)[refused.number]
    try:
        return parse_by_grammar(text)
    except FilterError as error:
        further = error.position is None or error.position > at
        vague = isinstance(refused, VagueRefusalError) or kinds[refused.number : refused.number + 1] == (
            words.MARK,
        )
        same = error.position == at and vague
        # Without its marks it may be XPath.
        if (further and words.MARK not in kinds) or same:
            raise
    raise FilterError(refused.reason, text, at) from None
