"""How much of what is generated is checked: a sixteenth in the ordinary run, nightly all of it."""

from __future__ import annotations

import os

from hypothesis import settings

NIGHTLY = os.environ.get("HEADGATE_TESTS") == "nightly"
JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in {"", "0"}


def share(count: int) -> int:
    """Give a sixteenth of a number, at least two of four or more; with the JIT off, a quarter of that.

    Nightly all of it; with the JIT off a quarter, which takes as long, at least two of four or more.
    """
    if NIGHTLY:
        return count if JIT else max(-(-count // 4), min(count // 2, 2))
    return max(-(-count // 16), min(count // 2, 2)) if JIT else max(count // 64, 1)


def seeds(count: int, first: int = 0) -> range:
    """Give the first share of the seeds from `first` on."""
    return range(first, first + share(count))


def examples(count: int) -> settings:
    """Let hypothesis draw a share of this many examples; everything else is as the profile says."""
    return settings(max_examples=share(count))
