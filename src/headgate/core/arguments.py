"""What callers give to public functions: taken for what it is, or refused in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.errors import SnapshotError, SubscriptionError

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.errors import HeadgateError


def told(given: object) -> str:
    """Say what something is.

    >>> told(None), told(7), told("x")
    ('None', 'an int', 'a str')
    """
    return "None" if given is None else with_article(type(given).__name__)


def with_article(noun: str) -> str:
    """Write a noun with its article.

    >>> with_article("edge")
    'an edge'
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def listed(given: object, what: str, error: type[HeadgateError], need: str) -> list[Any]:
    """Take any iterable that is neither a text nor a mapping; `need` says what would be right."""
    if isinstance(given, Mapping | str | bytes | type) or not isinstance(given, Iterable):
        raise error(f"the {what} are {told(given)}: {need}")
    return list(given)


def is_id(given: object) -> bool:
    """Tell whether something may be an id: text or a whole number."""
    return isinstance(given, str | int) and not isinstance(given, bool)


def usable_id(given: object) -> Id:
    """Take the id of a subscription: text or a whole number."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise SubscriptionError(f"id {given!r} is not usable: give text or a whole number")
    return given


def check_like(identity: Id, *, numbered: bool) -> None:
    """Refuse an id that is text among numbers, or a number among texts."""
    if isinstance(identity, int) is not numbered:
        wanted = "whole numbers" if numbered else "text"
        raise SubscriptionError(f"id {identity!r} has the wrong type: ids here are {wanted}")


def check_id(identity: Id) -> None:
    """Refuse what is no id, or cannot be stored."""
    identity = usable_id(identity)
    if isinstance(identity, int):
        if not INT64_MIN <= identity <= INT64_MAX:
            raise SubscriptionError(f"id {identity} does not fit into 64 bits: give it as text")
        return
    try:
        identity.encode()
    except UnicodeEncodeError:
        raise SubscriptionError(f"id {identity!r} holds a lone surrogate, which UTF-8 cannot carry") from None


def place_of(given: object) -> Path:
    """Take the place of a snapshot: a path, or its text."""
    if not isinstance(given, str | os.PathLike):
        raise SnapshotError(f"the place of a snapshot is {told(given)}: give a path")
    try:
        text = os.fsencode(given)
    except UnicodeEncodeError:
        raise SnapshotError(f"the place of a snapshot is {given!r}, which is not a valid file name") from None
    if b"\0" in text:
        raise SnapshotError(f"the place of a snapshot is {given!r}, which is not a valid file name")
    return Path(os.fsdecode(text))


def source_of(given: object) -> Mapping[str, object] | None:
    """Take what a snapshot says that it was built from: a mapping that can be written as JSON."""
    if given is None:
        return None
    try:
        if isinstance(given, Mapping) and json.dumps(dict(given)):
            return given
    except (TypeError, ValueError, RecursionError):
        pass
    raise SnapshotError(f"the source of a snapshot is {given!r}: give a mapping that JSON can hold")


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
    meant = likeliest(name, known)
    return "" if meant is None else f": did you mean {meant!r}?"
