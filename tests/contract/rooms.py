"""The content rooms, as their common tests see them. A room joins by adding itself to `ROOMS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from headgate import RecordIndex
from tests.records.random_filters import SCHEMA, random_event, random_filter

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    import pyarrow as pa

    from headgate.core.content import ContentRoom


@dataclass(frozen=True)
class Room:
    """A room's class, and how to draw filters and events for it."""

    name: str
    index: ContentRoom
    draw_filter: Callable[[random.Random], str]
    draw_row: Callable[[random.Random, int], dict[str, object]]
    schema: pa.Schema


ROOMS = [
    Room(
        name="records",
        index=RecordIndex,
        draw_filter=lambda rng: random_filter(rng, wild=True),
        draw_row=random_event,
        schema=SCHEMA,
    )
]
every_room = pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
