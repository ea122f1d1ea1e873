"""Planes say of every position what its conjunctions say, whatever the room they have."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest

from headgate.core import planes as kernels
from headgate.core.plane_build import Conjunctions, build_planes
from headgate.core.planes import ALL, ANY, ASK, NO, SCALAR, YES, Cells
from tests.seeds import seeds

pytestmark = pytest.mark.jit_off


class Check(NamedTuple):
    line: int
    kind: int
    ranges: list[tuple[int, int]]


Filter = list[tuple[bool, list[Check]]]
"""Conjunctions, and whether each must be asked about."""


def draw(rng: random.Random, codes: list[int], lists: set[int]) -> Filter:
    conjunctions = []
    for _ in range(rng.choice((0, 1, 1, 2, 3, 7))):
        checks = []
        for _ in range(rng.randrange(4)):
            line = rng.randrange(len(codes))
            kind = rng.choice((ANY, ALL)) if line in lists else SCALAR
            ends = sorted(rng.sample(range(codes[line]), min(codes[line], rng.choice((2, 4)))))
            pairs = list(zip(ends[::2], ends[1::2], strict=False)) or [(ends[0], ends[0])]
            checks.append(Check(line, kind, pairs))
        conjunctions.append((rng.random() < 0.1, checks))
    return conjunctions


def holds(check: Check, row: list[int], found: dict[int, list[int]]) -> bool:
    def inside(code: int) -> bool:
        return any(low <= code <= high for low, high in check.ranges)

    if check.kind == SCALAR:
        return inside(row[check.line])
    if check.kind == ANY:
        return any(inside(code) for code in found[check.line])
    return bool(row[check.line]) and all(inside(code) for code in found[check.line])


def verdict(conjunctions: Filter, row: list[int], found: dict[int, list[int]]) -> int:
    held = [asks for asks, checks in conjunctions if all(holds(check, row, found) for check in checks)]
    return NO if not held else (YES if not all(held) else ASK)


def pack(filters: list[Filter], codes: list[int]) -> Conjunctions:
    conjunctions = [each for one in filters for each in one]
    checks = [check for _, some in conjunctions for check in some]
    ranges = [pair for check in checks for pair in check.ranges]

    def starts(sizes: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int32)]).astype(np.int32)

    return Conjunctions(
        line_codes=np.array(codes, np.int32),
        conjunction_start=starts([len(one) for one in filters]),
        asks=np.array([asks for asks, _ in conjunctions], np.uint8),
        check_start=starts([len(some) for _, some in conjunctions]),
        check_line=np.array([check.line for check in checks], np.int32),
        check_kind=np.array([check.kind for check in checks], np.uint8),
        set_start=starts([len(check.ranges) for check in checks]),
        set_low=np.array([low for low, _ in ranges], np.int32),
        set_high=np.array([high for _, high in ranges], np.int32),
    )


@pytest.mark.parametrize("budget", [0, 20_000, 1 << 30])
@pytest.mark.parametrize("seed", seeds(6))
def test_planes_say_what_checks_say(seed: int, budget: int) -> None:
    rng = random.Random(seed)
    codes = [rng.choice((1, 3, 40, 700, 3000)) for _ in range(4)]
    lists = {3} if seed % 2 else set()
    filters = [draw(rng, codes, lists) for _ in range(rng.choice((1, 64, 200)))]
    planes = build_planes(pack(filters, codes), budget)
    planes.check()
    if budget == 0 and planes.present.shape[1] > 3:
        assert planes.present.shape[0] == 1
    rows = np.zeros(len(planes.axis_line), np.int32)
    for _ in range(40):
        row = [rng.randrange(count) for count in codes]
        found = {line: [rng.randrange(codes[line]) for _ in range(rng.randrange(3))] for line in lists}
        starts = np.zeros((4, 2), np.int64)
        for line in lists:
            row[line] = rng.randrange(2)
            found[line] = found[line] if row[line] else []
            starts[line] = 0, len(found[line])
        elements = [code for line in sorted(lists) for code in found[line]]
        cells = Cells(np.array([row], np.int32), starts, np.array(elements, np.int32))
        kernels.find_rows(planes, cells, 0, rows)
        expected = [verdict(one, row, found) for one in filters]
        for w in range(planes.present.shape[1]):
            sure, maybe = kernels.plane_word(planes, cells, 0, rows, w, ~np.uint64(0))
            for p in range(64 * w, min(64 * w + 64, len(filters))):
                bit = np.uint64(1) << np.uint64(p & 63)
                assert kernels.decide(planes, cells, 0, p) == expected[p]
                assert not sure & bit or expected[p] == YES
                assert sure & bit or maybe & bit or expected[p] == NO
                if budget > 20_000 and len(filters[p]) <= 4 and not any(asks for asks, _ in filters[p]):
                    coarse = any(codes[check.line] > 256 for _, some in filters[p] for check in some)
                    assert coarse or not maybe & bit
