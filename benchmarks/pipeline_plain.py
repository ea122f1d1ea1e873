"""The best that plain Spark does: an equality join with exploded events, then a pandas UDF that verifies.

filter      each of its conjunctions is filed under the equality or list that the fewest events fulfil
event       one row for each attribute that it has
join        on attribute and value; the table of the filters is small, and is broadcast
verify      all predicates of the conjunctions that are left, by NumPy, over whole batches
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyspark.sql import functions as sf

from headgate.workloads.records.specification import Operator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame, SparkSession

    from headgate.core.arrays import Ints
    from headgate.workloads.records.specification import Specification
    from headgate.workloads.records.synthetic import Synthetic


# By name because pandas has no types here, and these two of pyspark neither.
pd: Any = import_module("pandas")
_UDF: Any = import_module("pyspark.sql.pandas.functions")
SAMPLE = 5_000
"""Events by which the equality of a conjunction is chosen."""


class Predicates(NamedTuple):
    """What workers verify; they get it once, with the UDF."""

    start: Ints
    attribute: Ints
    kind: Ints
    """0 a list, 1 a range, 2 from the first on, 3 up to the last; 4 more if it is negated."""
    operand_start: Ints
    operands: Ints

    def holds(self, conjunctions: Ints, events: Ints) -> NDArray[np.bool_]:
        """Tell which conjunctions hold for their events, one row each."""
        counts = self.start[conjunctions + 1] - self.start[conjunctions]
        rows = np.repeat(np.arange(len(conjunctions)), counts)
        first = np.cumsum(counts) - counts
        each = (
            np.arange(counts.sum()) - np.repeat(first, counts) + np.repeat(self.start[conjunctions], counts)
        )
        value = events[rows, self.attribute[each]]
        kind = self.kind[each] % 4
        low = self.operands[self.operand_start[each]]
        high = self.operands[self.operand_start[each + 1] - 1]
        inside = ((value >= low) | (kind == 3)) & ((value <= high) | (kind == 2))
        sizes = self.operand_start[each + 1] - self.operand_start[each]
        at = np.repeat(np.arange(len(each)), sizes)
        begin = np.cumsum(sizes) - sizes
        operand = (
            np.arange(sizes.sum()) - np.repeat(begin, sizes) + np.repeat(self.operand_start[each], sizes)
        )
        listed = np.zeros(len(each), np.bool_)
        listed[at[self.operands[operand] == value[at]]] = True
        held = (np.where(kind == 0, listed, inside) != (self.kind[each] >= 4)) & (value >= 0)
        return np.asarray(np.logical_and.reduceat(held, first), np.bool_)


def prepare(
    session: SparkSession, workload: Synthetic, filters: int, seed: int
) -> tuple[DataFrame, Predicates]:
    """Return the table of keys (attribute, value, conjunction, subscription) and what is verified."""
    spec = workload.specification(np.arange(filters), seed)
    ids = workload.subscriptions(np.arange(filters), seed)["id"].to_pylist()
    drawn = workload.numbers(np.arange(SAMPLE), seed + 1)
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    negated = spec.is_operator(*(each for each in Operator if each.is_negation))
    kind = np.where(ranges, 1, 0)
    kind[spec.is_operator(Operator.GE)], kind[spec.is_operator(Operator.LE)] = 2, 3
    predicates = Predicates(
        spec.predicate_start, spec.attribute, kind + 4 * negated, spec.operand_start, spec.operands
    )
    rows = _keys(spec, predicates, drawn)
    owner = np.searchsorted(spec.conjunction_start, rows[:, 2], side="right") - 1
    table = pd.DataFrame(rows, columns=["attribute", "value", "conjunction"])
    table["subscription_id"] = [ids[number] for number in owner.tolist()]
    return session.createDataFrame(table).cache(), predicates


def _keys(spec: Specification, predicates: Predicates, drawn: Ints) -> Ints:
    """File each conjunction under the list that the fewest of some events fulfil."""
    frequency = [np.bincount(column[column >= 0], minlength=1) for column in drawn.T]
    first = spec.operand_start[:-1]
    counts = np.array(
        [
            frequency[attribute][value] if value < len(frequency[attribute]) else 0
            for attribute, value in zip(
                np.repeat(spec.attribute, np.diff(spec.operand_start)).tolist(),
                spec.operands.tolist(),
                strict=True,
            )
        ]
    )
    weight = np.add.reduceat(counts, first).astype(np.float64)
    weight[predicates.kind != 0] = np.inf
    found = []
    for number in range(len(spec.predicate_start) - 1):
        begin, end = spec.predicate_start[number : number + 2]
        best = begin + int(np.argmin(weight[begin:end]))
        if np.isinf(weight[best]):
            raise AssertionError("a conjunction without an equality would meet every event")
        operands = spec.operands[spec.operand_start[best] : spec.operand_start[best + 1]]
        found += [(int(spec.attribute[best]), value, number) for value in operands.tolist()]
    return np.array(found, np.int64)


def match(events: DataFrame, workload: Synthetic, keys: DataFrame, predicates: Predicates) -> DataFrame:
    """Join and verify: the pairs of events and subscriptions."""
    coded = sf.array(*(_code(each.name, text=each.is_text) for each in workload.attributes))

    def verify(conjunctions: Any, values: Any) -> Any:
        if not len(conjunctions):
            return pd.Series([], dtype=bool)
        return pd.Series(predicates.holds(conjunctions.to_numpy(), np.stack(values.to_numpy())))

    verified = _UDF.pandas_udf(verify, "boolean", _UDF.PandasUDFType.SCALAR)
    given = events.select(sf.col("id").alias("event_id"), coded.alias("values"))
    exploded = given.select("event_id", "values", sf.posexplode("values").alias("attribute", "value"))
    met = exploded.join(sf.broadcast(keys), ["attribute", "value"])
    held = met.where(verified("conjunction", "values"))
    # Two conjunctions of one filter may hold.
    return held.select("event_id", "subscription_id").distinct()


def _code(name: str, *, text: bool) -> Column:
    """Return the number of a value: texts are a letter and a number."""
    value = sf.substring(sf.col(name), 2, 20).cast("int") if text else sf.col(name).cast("int")
    return sf.coalesce(value, sf.lit(-1))
