"""Iterators that are gone through with a block open while an item is made, and not between items.

A generator with a `with` around a `yield` leaves the block open in whoever goes through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

_T = TypeVar("_T")


def within(block: Callable[[], AbstractContextManager[object]], items: Iterable[_T]) -> Iterator[_T]:
    """Go through items; each is made inside a block of its own.

    >>> from contextlib import nullcontext
    >>> list(within(nullcontext, iter("ab")))
    ['a', 'b']
    """
    left = iter(items)
    while True:
        with block():
            try:
                item = next(left)
            except StopIteration:
                return
        yield item
