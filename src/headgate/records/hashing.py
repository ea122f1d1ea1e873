"""The hash of a pair of atoms, the same for building and for matching."""

from __future__ import annotations

import numpy as np

from headgate.core.jit import inner


@inner
def pair_hash(a: int, b: int) -> np.uint64:
    """Mix two atoms: the low byte is the fingerprint, the rest chooses the slot."""
    code = (np.uint64(a) << np.uint64(32)) | np.uint64(b)
    code *= np.uint64(0x9E3779B97F4A7C15)
    code ^= code >> np.uint64(29)
    code *= np.uint64(0xBF58476D1CE4E5B9)
    return code ^ (code >> np.uint64(32))


@inner
def pair_slot(code: np.uint64, slots: int) -> np.int64:
    """Choose the slot of a hash, from its upper half: any number of slots will do."""
    return np.int64(((code >> np.uint64(32)) * np.uint64(slots)) >> np.uint64(32))
