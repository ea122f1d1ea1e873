"""Computed attributes: what functions and expressions make of attributes, once an event, under own paths.

The path of an attribute is folded (`core/values.py`). So a path that begins with capitals is none that an
event can have: (LOWER, "name") is the lower case of `name`, and (EXPRESSION, "price * quantity") the product,
by the text of the expression. Nothing beyond the events' side of an index knows more of it: its lines, codes
and grams are those of any attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.core.event import EVENT_TIME
from headgate.core.text.words import words
from headgate.core.values import dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.values import Path
    from headgate.records.expressions.expression import Expression

LOWER = "LOWER"
"""The text in lower case, as `lower` of Spark has it."""
WORDS = "WORDS"
"""The words of the text, each once, as an array (`core/text/words.py`)."""
EXPRESSION = "EXPRESSION"
"""What an expression gives, by its text."""
FUNCTIONS = frozenset({LOWER, WORDS, EXPRESSION})


def is_computed(path: Path) -> bool:
    """Tell whether a path names what a function makes of an attribute.

    >>> is_computed((LOWER, "name")), is_computed(("lower", "name"))
    (True, False)
    """
    return path[:1] != () and path[0] in FUNCTIONS


def is_expression(path: Path) -> bool:
    """Tell whether a path names what an expression gives."""
    return path[:1] == (EXPRESSION,)


def expression_of(path: Path) -> Expression:
    """Return the expression of a path; each text is parsed once."""
    from headgate.records.expressions.expression import Expression

    return Expression.parse(path[1])


def sources(path: Path) -> tuple[Path, ...]:
    """Return the paths of the attributes that events have.

    >>> sources((LOWER, "user", "name")), sources(("user", "name")), sources((EXPRESSION, "a.b + c"))
    ((('user', 'name'),), (('user', 'name'),), (('a', 'b'), ('c',)))
    """
    if is_expression(path):
        return tuple(own for own in expression_of(path).attributes if own != EVENT_TIME)
    return (path[1:] if is_computed(path) else path,)


def shown(path: Path) -> str:
    """Write a path for people.

    >>> shown((WORDS, "user", "name")), shown(("age",)), shown((EXPRESSION, "a + b"))
    ('words(user.name)', 'age', 'a + b')
    """
    if is_expression(path):
        return path[1]
    return f"{path[0].lower()}({dotted(path[1:])})" if is_computed(path) else dotted(path)


def text_form(value: object) -> str | None:
    """Return what LIKE sees; numbers with fraction and timestamps are NULL to it (a departure from Spark)."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


def compute(path: Path, attributes: Mapping[Path, object]) -> Any:
    """Return what a computed attribute is for an event.

    >>> compute((LOWER, "name"), {("name",): "News"}), compute((LOWER, "name"), {("name",): 1.5})
    ('news', None)
    >>> compute((WORDS, "name"), {("name",): "No news is good: NO"})
    ['no', 'news', 'is', 'good']
    >>> compute((EXPRESSION, "a * 2"), {("a",): 3})
    6
    """
    if is_expression(path):
        return expression_of(path).of_attributes(attributes)
    text = text_form(attributes.get(path[1:]))
    if text is None:
        return None
    return text.lower() if path[0] == LOWER else list(dict.fromkeys(words(text)))
