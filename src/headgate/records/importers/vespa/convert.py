"""Predicates to SQL.

A predicate holds or not, also where an attribute is missing: `country not in ['no']` then holds. What
`not` stands before is asked not to be TRUE, which is FALSE or NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import FilterError
from headgate.records.importers import sql
from headgate.records.importers.reading import checked
from headgate.records.importers.sql import FALSE, TRUE, Sql, every, some
from headgate.records.importers.vespa.model import Constant, InRange, InSet, Join, Not
from headgate.records.importers.vespa.parse import parse

if TYPE_CHECKING:
    from headgate.records.importers.vespa.model import Node


def to_sql(text: str) -> str:
    """Convert a predicate.

    >>> to_sql("gender in ['Female'] and age in [20..30]")
    "(gender = 'Female' OR array_contains(gender, 'Female')) AND (age BETWEEN 20 AND 30 OR \
exists(age, x -> x BETWEEN 20 AND 30))"
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(
            "the text holds a lone surrogate, which UTF-8 cannot carry", text, error.start
        ) from None
    return checked(_condition(parse(text), holds=True).text, text)


def _condition(node: Node, *, holds: bool) -> Sql:
    """Return what is TRUE where a predicate holds; or where it does not."""
    match node:
        case Constant(value):
            return TRUE if value == holds else FALSE
        case Not(child):
            return _condition(child, holds=not holds)
        case Join(both, children):
            found = [_condition(each, holds=holds) for each in children]
            return every(found) if both == holds else some(found)
        case InSet(name, values):
            return _asked(_in_set(sql.name(name), values), holds=holds)
        case InRange(name, low, high):
            return _asked(_in_range(sql.name(name), low, high), holds=holds)


def _asked(found: Sql, *, holds: bool) -> Sql:
    return found if holds else sql.unless(found)


def _in_set(name: str, values: tuple[str, ...]) -> Sql:
    """Compare texts; numbers and Booleans are the texts that they are written as."""
    plain = [sql.text(each) for each in dict.fromkeys(values) if not sql.casts(each)]
    found = [sql.one_of(name, plain)] if plain else []
    found += [sql.like(name, sql.as_pattern(each)) for each in dict.fromkeys(values) if sql.casts(each)]
    elements = [sql.text(each) for each in dict.fromkeys(values)]
    whole = [each for each in elements if _written_number(each[1:-1])]
    truths = [each[1:-1].upper() for each in elements if each in ("'true'", "'false'")]
    arrays = [elements, [each[1:-1] for each in whole], truths]
    return some([*found, *(sql.element_of(name, each) for each in arrays if each)])


def _written_number(text: str) -> bool:
    """Tell whether a text is a whole number as it is written."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def _in_range(name: str, low: int | None, high: int | None) -> Sql:
    def test(operand: str) -> Sql:
        if low is not None and high is not None:
            return Sql(f"{operand} BETWEEN {low} AND {high}")
        if low is None and high is None:
            return Sql(f"CAST({operand} AS BIGINT) IS NOT NULL")
        return Sql(f"{operand} >= {low}" if high is None else f"{operand} <= {high}")

    return some([test(name), sql.some_element(name, test("x"))])
