"""Reading a consumer's deliveries from the log, in bounded parts."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.service.storage.block import Block
    from headgate.service.storage.log import Log
    from headgate.service.tenant.names import Delivery, Names

MOST = 1_000
"""Deliveries of a part."""
MOST_BYTES = 256 << 10
"""Bytes of a part's events; one event may have more."""
_LOOKED = 20_000
"""Events of the log that are looked at for a part, whomever they are for."""


class Part(NamedTuple):
    """Some deliveries of a consumer, in order."""

    deliveries: list[Delivery]
    upto: int
    """The position up to which these are all."""
    first: int = 0
    """The first position that was still kept, if events after the wanted position were not; 0 otherwise."""


def read_log(
    log: Log, names: Names, consumer: int, after: int, last: int, most: int = MOST, size: int = MOST_BYTES
) -> Part:
    """Read deliveries of a consumer after a position, up to the last that is on disk. Made for threads."""
    blocks = log.read(after + 1, _LOOKED)
    begin = next(blocks, None)
    if begin is None or begin.first > after + 1:
        first = log.bounds().first
        passed = first if first > after + 1 else 0
    else:
        passed = 0
    if begin is None:
        return Part([], max(after, last), passed)
    return collect(chain((begin,), blocks), names, consumer, after, most, size)._replace(first=passed)


def collect(
    blocks: Iterable[Block], names: Names, consumer: int, after: int, most: int = MOST, size: int = MOST_BYTES
) -> Part:
    """Collect deliveries of a consumer from blocks, until there are enough."""
    found: list[Delivery] = []
    taken, upto, looked = 0, after, 0
    for block in blocks:
        for delivery in names.deliveries(block, consumer, after):
            if len(found) == most or (found and taken + len(delivery.text) > size):
                return Part(found, found[-1].position)
            found.append(delivery)
            taken += len(delivery.text)
        upto = max(upto, block.last)
        looked += len(block)
        if len(found) >= most or taken >= size or looked >= _LOOKED:
            break
    return Part(found, upto)
