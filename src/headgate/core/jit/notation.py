"""The types of a kernel's arguments as text.

int64                        a number
int32:1C                     an array: one dimension, C order; `r` behind it is read-only, `u` unaligned
(int64, float64)             a tuple
a.module.Name(x=int64, …)    a named tuple, with its fields in their order
none, omitted(5)             no value, a default
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

# By name because few of numba's functions have types.
types: Any = import_module("numba.core.types")
_numpy_support: Any = import_module("numba.np.numpy_support")
_TOKEN = re.compile(r"[\w.:]+|[(),=]|'[^']*'|-")


def describe(args: Iterable[Any]) -> str:
    """Write the types of a kernel's arguments.

    >>> describe([types.int64, types.Array(types.int32, 1, "C", readonly=True)])
    'int64, int32:1Cr'
    """
    return ", ".join(_describe(each) for each in args)


def _describe(kind: Any) -> str:
    if isinstance(kind, types.Array):
        flags = ("" if kind.mutable else "r") + ("" if kind.aligned else "u")
        return f"{kind.dtype}:{kind.ndim}{kind.layout}{flags}"
    if isinstance(kind, types.BaseNamedTuple):
        made = kind.instance_class
        fields = ", ".join(
            f"{name}={_describe(each)}" for name, each in zip(kind.fields, kind.types, strict=True)
        )
        return f"{made.__module__}.{made.__qualname__}({fields})"
    if isinstance(kind, types.BaseTuple):
        return f"({describe(kind.types)})"
    if isinstance(kind, types.Omitted):
        return f"omitted({kind.value!r})"
    return str(kind)


def parse(text: str) -> tuple[Any, ...]:
    """Read types back from their text.

    >>> parse("int64, (uint8:2C, none)")
    (int64, Tuple((Array(uint8, 2, 'C', False, aligned=True), none)))
    """
    tokens = _TOKEN.findall(text)
    tokens.append("")
    kinds, at = _parse_list(tokens, 0)
    if tokens[at]:
        raise ValueError(f"{text!r} is not a signature: {tokens[at]!r} is not expected")
    return tuple(kinds)


def _parse_list(tokens: list[str], at: int) -> tuple[list[Any], int]:
    kinds = []
    while tokens[at] not in {"", ")"}:
        kind, at = _parse_one(tokens, at)
        kinds.append(kind)
        if tokens[at] == ",":
            at += 1
    return kinds, at


def _parse_one(tokens: list[str], at: int) -> tuple[Any, int]:
    name = tokens[at]
    if name == "(":
        inside, at = _parse_list(tokens, at + 1)
        return types.BaseTuple.from_types(tuple(inside)), at + 1
    if name == "omitted":
        end = tokens.index(")", at)
        return types.Omitted(ast.literal_eval("".join(tokens[at + 2 : end]))), end + 1
    if tokens[at + 1] != "(":
        return _parse_plain(name), at + 1
    module, _, qualname = name.rpartition(".")
    made = getattr(import_module(module), qualname)
    fields = {}
    at += 2
    while tokens[at] != ")":
        field = tokens[at]
        fields[field], at = _parse_one(tokens, at + 2)
        at += tokens[at] == ","
    if tuple(fields) != made._fields:
        raise ValueError(f"{name} has the fields {', '.join(made._fields)} and not {', '.join(fields)}")
    return types.BaseTuple.from_types(tuple(fields.values()), made), at + 1


def _parse_plain(name: str) -> Any:
    dtype, _, shape = name.partition(":")
    number = types.none if dtype == "none" else _numpy_support.from_dtype(np.dtype(dtype))
    if not shape:
        return number
    dimensions, layout, flags = int(shape[0]), shape[1], shape[2:]
    return types.Array(number, dimensions, layout, readonly="r" in flags, aligned="u" not in flags)
