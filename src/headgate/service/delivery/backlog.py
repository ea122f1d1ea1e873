"""How far consumers are behind: the events for each that are not acknowledged, counted in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.service.storage.block import Block
    from headgate.service.storage.log import Log
    from headgate.service.tenant.names import Names

LOOKED = 100_000
"""Events of the log that are looked at; a count that needs more says that it is not exact."""


class Behind(NamedTuple):
    """How far a consumer is behind."""

    events: int
    since: int | None
    """When the first of them was committed, in microseconds since 1970."""
    upto: int
    """The position up to which was counted."""


def count_behind(log: Log, names: Names, cursors: Mapping[int, int], last: int) -> dict[int, Behind]:
    """Count what came for consumers after their cursors, all by number. Made for threads."""
    begin = min(cursors.values())
    found, upto = count_blocks(log.read(begin + 1, LOOKED), names, cursors)
    if upto - begin < LOOKED:
        upto = max(upto, last)
    return {each: found.get(each, Behind(0, None, 0))._replace(upto=upto) for each in cursors}


def count_blocks(
    blocks: Iterable[Block], names: Names, cursors: Mapping[int, int], before: int = 1 << 62
) -> tuple[dict[int, Behind], int]:
    """Count what blocks have for consumers after their cursors, before a position; also the last position."""
    size = max(cursors) + 2
    after = np.full(size, 1 << 62, np.int64)
    for number, cursor in cursors.items():
        after[number] = cursor
    found: dict[int, Behind] = {}
    upto = 0
    for block in blocks:
        if block.first >= before:
            break
        upto = block.last
        # Nobody, and consumers that nobody asks for, are looked up in places that come after all positions.
        owners = names.owners(block.subscriptions)
        positions = block.first + block.rows()
        wanted = (after.take(owners, mode="clip") < positions) & (positions < before)
        if not wanted.any():
            continue
        # An event counts once, whatever the number of subscriptions.
        pairs = np.unique(np.stack([owners[wanted], positions[wanted]]), axis=1)[0]
        for number, count in zip(
            *(each.tolist() for each in np.unique(pairs, return_counts=True)), strict=True
        ):
            old = found.get(number)
            found[number] = (
                Behind(count, block.time, 0) if old is None else old._replace(events=old.events + count)
            )
    return found, upto
