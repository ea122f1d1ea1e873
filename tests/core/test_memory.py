"""Arrays that kernels find by their addresses, and memory that is fetched ahead of time."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.core.jit import kernel
from headgate.core.jit.memory import EACH, matrix, prefetch, row_of, table_of, vector

pytestmark = pytest.mark.jit_off


@kernel
def _add_up(table: np.ndarray, fetched: int) -> tuple[int, int, int, int]:
    """Read all kinds of arrays by a table, and write to one."""
    short, wide, bits = vector(table, 0, np.int16), matrix(table, 1, np.uint64), vector(table, 2, np.uint8)
    prefetch(short, fetched)
    total, upper = 0, 0
    for i in range(len(short)):
        total += short[i]
    for i in range(wide.shape[0]):
        for j in range(wide.shape[1]):
            upper += int(wide[i, j]) * (10 * i + j)
    for i in range(len(bits)):
        bits[i] += 1
    return total, upper, wide.shape[0], wide.shape[1]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3), (3, 2)])
def test_arrays_are_found_by_address(shape: tuple[int, int]) -> None:
    short = np.arange(-5, 3, dtype=np.int16)
    wide = np.arange(shape[0] * shape[1], dtype=np.uint64).reshape(shape)
    bits = np.arange(4, dtype=np.uint8)
    wanted = sum(int(wide[i, j]) * (10 * i + j) for i in range(shape[0]) for j in range(shape[1]))
    # What is fetched may lie anywhere.
    for fetched in (0, -1, 1 << 40):
        assert _add_up(table_of([short, wide, bits]), fetched) == (short.sum(), wanted, *shape)
    assert bits.tolist() == [3, 4, 5, 6]


def test_a_row_of_a_table_may_be_put_in_the_place_of_another() -> None:
    table = table_of([np.zeros(2, np.int16), np.ones((1, 1), np.uint64), np.zeros(1, np.uint8)])
    other = np.full(5, 7, np.int16)
    table[:EACH] = row_of(other)
    assert _add_up(table, 0)[0] == 35


def test_an_array_that_does_not_lie_in_one_piece_is_refused() -> None:
    with pytest.raises(ValueError, match="lies in one piece"):
        row_of(np.zeros((4, 4), np.int32)[:, :2])
