"""Memory, as machine code sees it: words fetched ahead of time, and arrays that are found by address.

Kernels call what stands here as any other function. A kernel that is called for one short question is better
given a table of addresses than thirty arrays: each of these takes a tenth of a microsecond to be looked at.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints

EACH = 3
"""Words of a table for an array: its address, its rows, and its columns."""

_READ, _KEEP, _DATA = 0, 3, 1
"""That it is to be read, to stay in all caches, and no code."""


def prefetch(array: NDArray[Any], at: int) -> None:
    """Ask for what stands at a place of an array, without waiting for it; the place may be any."""


def table_of(arrays: Sequence[NDArray[Any]]) -> Ints:
    """Write down where arrays lie; whoever asks a kernel by it must keep them."""
    table = np.zeros((len(arrays), EACH), np.int64)
    for place, array in enumerate(arrays):
        table[place] = row_of(array)
    return table.ravel()


def row_of(array: NDArray[Any]) -> tuple[int, int, int]:
    """Write down where one array lies, of one dimension or two."""
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError("an array in a table lies in one piece")
    rows, columns = array.shape if array.ndim == 2 else (len(array), 1)
    return array.ctypes.data, rows, columns


def vector(table: Ints, place: int, kind: Any) -> NDArray[Any]:
    """Return the array of one dimension that a table has at a place.

    >>> vector(table_of([np.zeros(2, np.uint8), np.arange(3, dtype=np.int32)]), 1, np.int32).tolist()
    [0, 1, 2]
    """
    return matrix(table, place, kind)[:, 0]


def matrix(table: Ints, place: int, kind: Any) -> NDArray[Any]:
    """Return the array of two dimensions that a table has at a place."""
    address, rows, columns = (int(word) for word in table[EACH * place : EACH * place + EACH])
    size = rows * columns * np.dtype(kind).itemsize
    held = (ctypes.c_char * size).from_address(address) if size else b""
    return np.frombuffer(held, kind).reshape(rows, columns)


@cache
def teach() -> None:
    """Tell numba what to make of the functions here."""
    # By name because few of numba's functions have types.
    extending: Any = import_module("numba.extending")
    types: Any = import_module("numba.core.types")
    cgutils: Any = import_module("numba.core.cgutils")
    arrays: Any = import_module("numba.np.arrayobj")
    ir: Any = import_module("llvmlite.ir")

    def type_prefetch(context: Any) -> Any:
        del context

        def typer(array: Any, at: Any) -> Any:
            fits = isinstance(array, types.Array) and array.ndim == 1 and isinstance(at, types.Integer)
            return types.none if fits else None

        return typer

    def lower_prefetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = arrays.make_array(signature.args[0])(context, builder, args[0])
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        place = builder.bitcast(builder.gep(array.data, [at]), cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(fetch, [place, word(_READ), word(_KEEP), word(_DATA)])
        return context.get_dummy_value()

    def typer_of(dimensions: int) -> Any:
        def of_context(context: Any) -> Any:
            del context

            def typer(table: Any, place: Any, kind: Any) -> Any:
                fits = isinstance(table, types.Array) and isinstance(place, types.Integer)
                return types.Array(kind.dtype, dimensions, "C") if fits else None

            return typer

        return of_context

    def lower_array(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.return_type
        table = arrays.make_array(signature.args[0])(context, builder, args[0])
        place = context.cast(builder, args[1], signature.args[1], types.intp)
        first = builder.mul(place, context.get_constant(types.intp, EACH))

        def word(number: int) -> Any:
            at = builder.add(first, context.get_constant(types.intp, number))
            return builder.load(builder.gep(table.data, [at]))

        item = context.get_constant(types.intp, np.dtype(str(kind.dtype)).itemsize)
        shape = [word(1 + number) for number in range(kind.ndim)]
        steps = [item] if kind.ndim == 1 else [builder.mul(shape[1], item), item]
        found = arrays.make_array(kind)(context, builder)
        data = builder.inttoptr(word(0), found.data.type)
        arrays.populate_array(found, data, shape, steps, item, None)
        return found._getvalue()  # noqa: SLF001 -- numba has no other name for it

    extending.type_callable(prefetch)(type_prefetch)
    extending.lower_builtin(prefetch, types.Array, types.Integer)(lower_prefetch)
    for function, dimensions in ((vector, 1), (matrix, 2)):
        extending.type_callable(function)(typer_of(dimensions))
        extending.lower_builtin(function, types.Array, types.Integer, types.NumberClass)(lower_array)
