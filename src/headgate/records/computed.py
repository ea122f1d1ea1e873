"""Computed attributes: what a function makes of an attribute's value, once an event, under a path of its own.

The path of an attribute is folded (`core/values.py`). So a path that begins with capitals is none that an
event can have, and (LOWER, "name") is the lower case of `name`. Nothing beyond the events' side of an index
knows more of it: its lines, codes and grams are those of any attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.text.words import words
from headgate.core.values import dotted

if TYPE_CHECKING:
    from headgate.core.values import Path

LOWER = "LOWER"
"""The text in lower case, as `lower` of Spark has it."""
WORDS = "WORDS"
"""The words of the text, each once, as an array (`core/text/words.py`)."""
FUNCTIONS = frozenset({LOWER, WORDS})


def is_computed(path: Path) -> bool:
    """Tell whether a path names what a function makes of an attribute.

    >>> is_computed((LOWER, "name")), is_computed(("lower", "name"))
    (True, False)
    """
    return path[:1] != () and path[0] in FUNCTIONS


def source(path: Path) -> Path:
    """Return the path of the attribute that events have.

    >>> source((LOWER, "user", "name")), source(("user", "name"))
    (('user', 'name'), ('user', 'name'))
    """
    return path[1:] if is_computed(path) else path


def shown(path: Path) -> str:
    """Write a path for people.

    >>> shown((WORDS, "user", "name")), shown(("age",))
    ('words(user.name)', 'age')
    """
    return f"{path[0].lower()}({dotted(path[1:])})" if is_computed(path) else dotted(path)


def text_form(value: object) -> str | None:
    """Return what LIKE sees; numbers with fraction and timestamps are NULL to it (a departure from Spark)."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


def compute(path: Path, value: object) -> str | list[str] | None:
    """Return what a computed attribute is for a value of its source.

    >>> compute((LOWER, "name"), "News"), compute((LOWER, "name"), 1.5)
    ('news', None)
    >>> compute((WORDS, "name"), "No news is good: NO")
    ['no', 'news', 'is', 'good']
    """
    text = text_form(value)
    if text is None:
        return None
    return text.lower() if path[0] == LOWER else list(dict.fromkeys(words(text)))
