"""Kernels: plain loops over flat arrays, compiled to machine code; the one place that touches numba.

Arrays in, arrays out, no Python objects. Kernels release the GIL. `NUMBA_DISABLE_JIT=1` runs them as
ordinary Python.

    kernels.py       what the decorators make: numba is loaded when the first kernel is called
    store.py         files of machine code, of the package and of this user; what a processor can run
    sources.py       the digest that names a file: everything that a kernel's module imports
    signatures.py    the signatures that the product uses (signatures.json)
    notation.py      types of arguments as text
    memory.py        what kernels may ask of memory beyond Python's words: to be fetched ahead of time
    warming.py       compiles them all ahead of time, in processes of its own

Machine code is looked for in this order: in the user's cache, for exactly this processor; there, for the
baseline of all processors of the last ten years; in the package, for that baseline. What is nowhere is
compiled for this processor and kept in the user's cache.
"""

from headgate.core.jit.kernels import bare, bare_inner, inner, kernel

__all__ = ["bare", "bare_inner", "inner", "kernel"]
