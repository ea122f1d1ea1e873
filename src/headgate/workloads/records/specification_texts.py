"""Specifications as text: filters in Spark SQL.

    cat03 = 'v17' AND cat05 IN ('v1', 'v9') AND num02 BETWEEN 10 AND 900
    (cat01 = 'v0' AND cat04 <> 'v3') OR (cat02 = 'v5' AND num07 >= 40)

Arrow joins the pieces, level by level, so no Python runs for a filter. One array of texts holds 2 GB at
most, which is about 14 million filters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.workloads.records.specification import Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.workloads.records.specification import Specification

    Ints = NDArray[np.int64]
    Texts = pa.Array[pa.Scalar[pa.lib.StringType]]

__all__ = ["texts"]

_FORMS = {
    Operator.EQ: (" = ", "", ""),
    Operator.IN: (" IN (", ", ", ")"),
    Operator.BETWEEN: (" BETWEEN ", " AND ", ""),
    Operator.GE: (" >= ", "", ""),
    Operator.LE: (" <= ", "", ""),
    Operator.NE: (" <> ", "", ""),
    Operator.NOT_IN: (" NOT IN (", ", ", ")"),
    Operator.NOT_BETWEEN: (" NOT BETWEEN ", " AND ", ""),
}
"""What stands before the operands, between them and after them."""


def texts(spec: Specification) -> Texts:
    """Write each filter."""
    if not spec.filters:
        return pa.array([], pa.string())
    conjunctions = _joined(_predicates(spec), spec.predicate_start, pa.scalar(" AND "))
    counts = np.diff(spec.conjunction_start)
    nested = np.repeat(counts > 1, counts).astype(np.int64)
    written = _glue(_take(["", "("], nested), conjunctions, _take(["", ")"], nested))
    return _joined(written, spec.conjunction_start, pa.scalar(" OR "))


def _predicates(spec: Specification) -> Texts:
    before, between, after = zip(*(_FORMS[each] for each in Operator), strict=True)
    operator = spec.operator.astype(np.int64)
    openings = [each.name + sign for each in spec.attributes for sign in before]
    return _glue(
        _take(openings, spec.attribute * len(Operator) + operator),
        _joined(_operands(spec), spec.operand_start, _take(between, operator)),
        _take(after, operator),
    )


def _operands(spec: Specification) -> Texts:
    quote = np.array([each.is_text for each in spec.attributes])[spec.attribute]
    quoted = np.repeat(quote, np.diff(spec.operand_start)).astype(np.int64)
    digits: Texts = pc.cast(pa.array(spec.operands), pa.string())
    return _glue(_take(["", "'v"], quoted), digits, _take(["", "'"], quoted))


def _joined(parts: Texts, starts: Ints, separator: Texts | pa.StringScalar) -> Texts:
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), parts)
    return cast("Texts", pc.binary_join(lists, separator))


def _glue(*parts: Texts) -> Texts:
    return pc.binary_join_element_wise(*parts, pa.repeat(pa.scalar(""), len(parts[0])))


def _take(names: Sequence[str], at: Ints) -> Texts:
    return pa.array(list(names), pa.string()).take(pa.array(at, pa.int64()))
