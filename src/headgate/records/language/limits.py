"""Limits of filters: they keep one subscriber from hurting the others.

A filter is parsed in milliseconds, and no nesting exhausts a stack: the parser counts before it goes deeper.
"""

from __future__ import annotations

from headgate.errors import FilterError

MAX_CHARACTERS = 262_144
MAX_DEPTH = 64
"""Open parentheses and runs of NOT or signs, together."""
MAX_LIST = 10_000
"""Commas between two parentheses, plus one."""
MAX_CLAUSES = 10_000
"""Occurrences of AND and OR, plus one."""
MAX_NAME_PARTS = 32
"""Names between dots."""


def check_length(text: str) -> None:
    """Refuse a text for its size."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(
            f"the filter has {len(text):,} characters and at most {MAX_CHARACTERS:,} are taken", text, None
        )


def checked(sql: str, written: str, instead: str = ": write it as several filters") -> str:
    """Refuse a filter of another dialect that has become too long."""
    if len(sql) > MAX_CHARACTERS:
        reason = f"as SQL the filter has {len(sql):,} characters and at most {MAX_CHARACTERS:,} are taken"
        raise FilterError(f"{reason}{instead}", written, None)
    return sql


def check_text(text: str) -> None:
    """Refuse a text for its size or its encoding, before anything reads it."""
    check_length(text)
    if not text.strip():
        raise FilterError("the filter is empty: write TRUE to match every event", text, None)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(
            "the filter holds a lone surrogate, which UTF-8 cannot carry", text, error.start
        ) from None
