"""Computed attributes: what functions and expressions make of attributes, once an event, under own paths.

The path of an attribute is folded (`core/values.py`). So a path that begins with capitals is none that an
event can have: (LOWER, "name") is the lower case of `name`, and (EXPRESSION, "price * quantity") the product,
by the text of the expression. (PRESENT, "name") tells whether an event has `name`. Nothing beyond the events'
side of an index knows more of it: its lines, codes and grams are those of any attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.core.event import EVENT_TIME, WRITTEN_TIME
from headgate.core.text.alphabets import words
from headgate.core.values import PRESENT, dotted, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.core.values import Path
    from headgate.records.expressions.expression import Expression

LOWER = "LOWER"
"""The text in lower case, as `lower` of Spark has it."""
WORDS = "WORDS"
"""The words of the text, each once, as an array (`core/text/alphabets.py`)."""
EXPRESSION = "EXPRESSION"
"""What an expression gives, by its text."""
FUNCTIONS = frozenset({LOWER, WORDS, EXPRESSION, PRESENT})


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
        read = (own for each in expression_of(path).attributes for own in sources(each))
        return tuple(dict.fromkeys(own for own in read if own != EVENT_TIME))
    return sources(path[1:]) if is_computed(path) else (path,)


def only_source(path: Path) -> Path | None:
    """Return the one attribute whose value alone decides a computed one; None if there is no such.

    >>> only_source((LOWER, "a")), only_source((EXPRESSION, "a + 1")), only_source((EXPRESSION, "a + b"))
    (('a',), ('a',), None)
    """
    if path[0] not in (LOWER, EXPRESSION):
        return None
    read = expression_of(path).attributes if is_expression(path) else (path[1:],)
    return read[0] if len(read) == 1 and read[0][0] != PRESENT else None


def marked_as(paths: Iterable[Path]) -> str:
    """Return the mark of the names in paths (`core/values.py`); empty if they have none."""
    return mark_of(own for path in paths for own in sources(path))


def shown(path: Path) -> str:
    """Write a path for people.

    >>> shown((WORDS, "user", "name")), shown(("age",)), shown((EXPRESSION, "a + b")), shown(EVENT_TIME)
    ('words(user.name)', 'age', 'a + b', ':event_time')
    """
    if path == EVENT_TIME:
        return WRITTEN_TIME
    if is_expression(path):
        from headgate.records.names import plain_text

        return plain_text(path[1])
    if not is_computed(path):
        return dotted(path)
    return f"{'present' if path[0] == PRESENT else path[0].lower()}({shown(path[1:])})"


def text_form(value: object) -> str | None:
    """Return what LIKE sees; numbers with fraction and timestamps are NULL to it (a departure from Spark)."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


def value_of(path: Path, attributes: Mapping[Path, object]) -> object:
    """Return the value of an attribute, or whether there is one.

    >>> value_of(("a",), {("a",): None}), value_of((PRESENT, "a"), {("a",): None})
    (None, True)
    """
    return path[1:] in attributes if path[:1] == (PRESENT,) else attributes.get(path)


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
    if path[0] == PRESENT:
        return value_of(path, attributes)
    text = text_form(value_of(path[1:], attributes))
    if text is None:
        return None
    return text.lower() if path[0] == LOWER else list(dict.fromkeys(words(text)))
