"""The name that was likeliest meant by one that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def likeliest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that is most like another; None if none is.

    >>> likeliest("topc", ["age", "topic"]), likeliest("filtr", {"filter"}), likeliest("x", ["age"])
    ('topic', 'filter', None)
    """
    # Loaded where a name is wrong.
    import difflib

    close = difflib.get_close_matches(name, sorted(known), n=1)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask for the likeliest name at the end of a message; nothing if there is none.

    >>> "no column 'filtr'" + did_you_mean("filtr", ["id", "filter"])
    "no column 'filtr': did you mean 'filter'?"
    >>> did_you_mean("x", ["id"])
    ''
    """
    found = likeliest(name, known)
    return "" if found is None else f": did you mean {found!r}?"
