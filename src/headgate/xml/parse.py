"""Filter text to the model: cut into words, then read at once if it is as usual, or by the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.subscription import TREE, XPATH
from headgate.errors import FilterError, SubscriptionError
from headgate.xml.grammar import Misplaced, tree_of
from headgate.xml.meaning import Reader
from headgate.xml.quick import quick_pattern
from headgate.xml.refusal import Refused, misplaced
from headgate.xml.text_limits import check_shape, check_text
from headgate.xml.words import cut, kinds_of, places

if TYPE_CHECKING:
    from headgate.xml.model import Pattern


def parse_filter(text: str, dialect: str = XPATH) -> Pattern:
    """Parse a filter; refuse what the language lacks, with position and reason.

    >>> [(node.label, node.returns) for node in parse_filter("//news[company = 'ACME']//headline{id}").nodes]
    [('news', ()), ('company', ()), ('headline', ('id',))]
    >>> parse_filter("//news[1]")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: [1] asks for a position, which is not supported: tell nodes apart by what they contain, at character 8: //news[⟪1]
    """  # noqa: E501 -- the message is one line
    check_dialect(dialect)
    words = cut(check_text(text))
    return quick_pattern(words, dialect) or _by_grammar(text, words, dialect)


def parse_by_grammar(text: str, dialect: str = XPATH) -> Pattern:
    """Parse a filter by the grammar alone: slower, and equal to `parse_filter`.

    >>> parse_by_grammar("//a[b]") == parse_filter("//a[b]")
    True
    """
    check_dialect(dialect)
    return _by_grammar(text, cut(check_text(text)), dialect)


def check_dialect(dialect: str) -> None:
    """Refuse a dialect that is not of the room."""
    if dialect not in (XPATH, TREE):
        raise SubscriptionError(
            f"dialect {dialect!r} is not for XML: filters of XML events are {XPATH!r} or {TREE!r}"
        )


def _by_grammar(text: str, words: list[str], dialect: str) -> Pattern:
    kinds = kinds_of(words, dialect)
    try:
        check_shape(kinds)
        return Reader(words, dialect).pattern(tree_of(kinds))
    except Misplaced as error:
        refused = misplaced(words, kinds, error.number, error.expected, dialect)
    except Refused as error:
        refused = error
    raise FilterError(refused.reason, text, places(text)[refused.number])
