"""Hot loops over flat arrays that more than one room uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from headgate.core.interning import TextPool


@kernel
def search_text(pool: TextPool, first: int, last: int, texts: TextPool, out: NDArray[np.int64]) -> None:
    """Place each text among the sorted texts `first` to `last` of a pool.

    out[i] = 2r + 1 where text i equals the pool's r-th of that range, 2r where it would stand before
    the r-th. Bytes of UTF-8 sort as code points do, which is the order of Spark.
    """
    for i in range(len(texts.offsets) - 1):
        start, stop = texts.offsets[i], texts.offsets[i + 1]
        low, high = first, last
        found = False
        while low < high:
            middle = (low + high) // 2
            a, b = pool.offsets[middle], pool.offsets[middle + 1]
            j, k = a, start
            while j < b and k < stop and pool.data[j] == texts.data[k]:
                j += 1
                k += 1
            if j == b and k == stop:
                low = middle
                found = True
                break
            if k == stop or (j < b and texts.data[k] < pool.data[j]):
                high = middle
            else:
                low = middle + 1
        out[i] = 2 * (low - first) + (1 if found else 0)
