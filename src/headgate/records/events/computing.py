"""The columns of computed attributes: lower case, words and expressions, from those of their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.columns import picked
from headgate.core.interning import TextPool
from headgate.core.schema import arrow_kind
from headgate.core.text.alphabets import words
from headgate.core.values import Kind
from headgate.records.computed import LOWER, expression_of
from headgate.records.events.columns import Column, from_values, plain_column, python_values, text_forms
from headgate.records.expressions.columns import Numbers, compute, compute_texts
from headgate.records.expressions.texts import MAX_TEXT
from headgate.records.expressions.types import BOOL, DOUBLE, INT, LONG
from headgate.records.programs.leaves import float_keys

if TYPE_CHECKING:
    from headgate.core.values import Path
    from headgate.records.events.columns import BatchColumns
    from headgate.records.expressions.expression import Expression


def computed(path: Path, given: Column) -> Column:
    """Make the column of a computed attribute from that of its source; each text is looked at once."""
    code, pool = text_forms(given)
    if path[0] == LOWER and code is given.code and _is_ascii(given):
        lowered = _recoded(given, pc.call_function("ascii_lower", [given.texts.to_arrow()]))
        kind = np.where(given.kind == Kind.STRING, given.kind, np.uint8(Kind.NULL))
        start = np.zeros(len(code) + 1, np.int64)
        return Column(kind, np.zeros(len(code), np.int64), lowered.code, lowered.texts, start, None)
    there = code >= 0
    made = [text.lower() if path[0] == LOWER else list(dict.fromkeys(words(text))) for text in pool.texts()]
    column = from_values([*made, None])
    row_of = np.where(there, code, len(made))
    start = np.zeros(len(code) + 1, np.int64)
    if column.elements is None:
        return Column(
            column.kind[row_of], np.zeros(len(code), np.int64), column.code[row_of], column.texts, start, None
        )
    start, inside = picked(column.start, row_of)
    elements = column.elements
    own = plain_column(elements.kind[inside], np.zeros(len(inside), np.int64))
    own = own._replace(code=elements.code[inside], texts=elements.texts)
    return plain_column(column.kind[row_of], np.zeros(len(code), np.int64))._replace(
        start=start, elements=own
    )


def computed_batch(columns: BatchColumns, path: Path, known: dict[Path, Numbers | None]) -> Column:
    """Evaluate an expression for all rows; `known` are the columns that were read as numbers."""
    expression = expression_of(path)
    if not expression.attributes:
        return from_values([expression.of_values(())] * columns.count)
    arrays = [columns.array(own) for own in expression.attributes]
    numbers = {}
    for own, array in zip(expression.attributes, arrays, strict=True):
        if own not in known:
            known[own] = None if array is None else _numbers_of(columns, own, array)
        one = known[own]
        if one is not None:
            numbers[own] = one
    made = compute(expression.node, numbers) if numbers else None
    if made is not None:
        return _from_numbers(made, columns.count)
    if len(arrays) == 1 and arrays[0] is not None and arrow_kind(arrays[0].type) is Kind.STRING:
        return of_texts(expression, columns(expression.attributes[0]))
    given = [[None] * columns.count if array is None else python_values(array) for array in arrays]
    return from_values(list(map(expression.of_values, zip(*given, strict=True))))


def _numbers_of(columns: BatchColumns, path: Path, array: pa.Array[Any]) -> Numbers | None:
    """Return a column of numbers as NumPy has it; None if it is none."""
    kind = arrow_kind(array.type)
    if kind is Kind.INT and pa.types.is_integer(array.type):
        column = columns(path)
        return Numbers(column.number, column.kind == Kind.INT, LONG)
    if kind is Kind.FLOAT and pa.types.is_floating(array.type):
        values = np.asarray(array.cast(pa.float64()).fill_null(0.0), np.float64)
        return Numbers(values, np.asarray(array.is_valid()), DOUBLE)
    return None


def of_texts(expression: Expression, given: Column) -> Column:
    """Compute an expression of one text, once for each distinct text."""
    if given.texts.size and len(given.texts.data) < MAX_TEXT // 2 and given.texts.data.max(initial=0) < 128:
        made_texts = compute_texts(expression.node, given.texts.to_arrow())
        if isinstance(made_texts, pa.Array):
            return _recoded(given, made_texts)
    made = [expression.of_values((text,)) for text in given.texts.texts()]
    made.append(expression.of_values((None,)))
    row_of = np.where(given.code >= 0, given.code, len(made) - 1)
    column = from_values(made)
    if column.elements is not None or column.decimals is not None:
        return from_values([made[each] for each in row_of.tolist()])
    start = np.zeros(len(row_of) + 1, np.int64)
    return Column(column.kind[row_of], column.number[row_of], column.code[row_of], column.texts, start, None)


def _is_ascii(given: Column) -> bool:
    """Tell whether a column has texts, all of ASCII, and not too much of them."""
    return 0 < len(given.texts.data) < MAX_TEXT // 2 and given.texts.data.max() < 128


def _recoded(given: Column, texts: pa.Array[Any]) -> Column:
    """Put other texts in the place of those of a column, each once."""
    coded = texts.dictionary_encode()
    indices = np.asarray(coded.indices, np.int32)
    code = np.where(given.code >= 0, indices[given.code], np.int32(-1)).astype(np.int32)
    return given._replace(code=code, texts=TextPool.from_arrow(coded.dictionary))


def _from_numbers(made: Numbers, count: int) -> Column:
    """Make a column of what was computed in NumPy."""
    kind = {INT: Kind.INT, LONG: Kind.INT, DOUBLE: Kind.FLOAT, BOOL: Kind.BOOL}[made.type]
    values, there = (
        each if isinstance(each, np.ndarray) and each.shape == (count,) else np.broadcast_to(each, count)
        for each in (made.values, made.there)
    )
    number = float_keys(values.astype(np.float64)) if kind is Kind.FLOAT else values.astype(np.int64)
    return plain_column(np.where(there, np.uint8(kind), np.uint8(Kind.NULL)), number)
