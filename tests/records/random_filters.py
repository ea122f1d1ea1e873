"""Random filters, as text in all the language's spellings, and random events for them.

Everything is drawn from one `random.Random`, so a seed names a case and hypothesis can drive it.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

MOMENTS = pa.timestamp("us", "UTC")
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "i": pa.int64(),
    "Big": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "whole": pa.string(),
    "real": pa.string(),
    "day": pa.string(),
    "yes": pa.string(),
    "b": pa.bool_(),
    "t": MOMENTS,
    "ints": pa.list_(pa.int64()),
    "reals": pa.list_(pa.float64()),
    "tags": pa.list_(pa.string()),
    "flags": pa.list_(pa.bool_()),
    "times": pa.list_(MOMENTS),
    "cost": pa.decimal128(10, 2),
    "exact": pa.decimal128(38, 18),
    "giant": pa.decimal128(38, 0),
    "costs": pa.list_(pa.decimal128(10, 2)),
    "user": pa.struct(
        [("age", pa.int64()), ("first name", pa.string()), ("worth", pa.decimal128(12, 4))],
    ),
}
SCHEMA = pa.schema(_TYPES)

WORDS = [
    "",
    "a",
    "ab",
    "abc",
    "news",
    "News",
    "newt",
    "sport",
    "50%",
    "a_b",
    "x\\y",
    "it's",
    "zoë",
    "日本",
    "🎈🎈",
    "12",
    "ZOË news",
    "A b, A-B",
]
INTS = [-3, -1, 0, 1, 2, 5, 7, 12, 100]
BIGS = [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 10**18, 0]
FLOATS = [-1.5, -0.0, 0.0, 0.1, 1.0, 2.5, 7.0, 1e300, math.inf, -math.inf, math.nan, 5e-324]
WHOLES = ["5", " 7 ", "-3", "+1", "0012", "0", "9223372036854775807"]
REALS = ["1.5", "1e2", "NaN", "-Infinity", ".5", "7.", " 2.5 ", "0", "1d"]
DAYS = [
    "2024-01-01",
    "2024-02-29T12:30:00Z",
    "2023-12-31 23:59:59.999999",
    "2024-1-1",
    "2024",
    "2024-01-01T00:00:00+02:00",
]
YESES = ["yes", "NO", "true", "f", "1", "0"]
COSTS = [
    Decimal(each) for each in ("0.10", "-1.50", "2.50", "7.00", "12.00", "99999999.99", "0.00", "9007199.25")
]
EXACTS = [
    Decimal(each)
    for each in (
        "0.1",
        "0.100000000000000001",
        "0.099999999999999999",
        "1.5",
        "7.0000000000001",
        "-0.999999999999999999",
        "9007199254740993",
        "9223372036854775807.5",
        "9223372036854775808",
        "12345678901234567890.123456789012345678",
        "12345678901234567890.123456789012345679",
        "-99999999999999999999.999999999999999999",
    )
]
GIANTS = [
    Decimal(each)
    for each in (10**38 - 1, 10**38 - 2, -(10**38) + 1, 2**63, 2**63 - 1, 2**53 + 1, -(2**63), 0, 5, 7)
]
EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SHIFTS = [0, 1, -1, 1_000_000, 86_400_000_000, -43_200_000_000]


def random_event(rng: random.Random, identity: int) -> dict[str, object]:
    """Draw a row of `SCHEMA`; any attribute but the id may be NULL."""

    def maybe(draw: Callable[[], object]) -> object:
        return None if rng.random() < 0.15 else draw()

    def array(pool: list[object]) -> object:
        return [maybe(lambda: rng.choice(pool)) for _ in range(rng.choice([0, 1, 2, 3]))]

    moments: list[object] = [EPOCH + dt.timedelta(microseconds=shift) for shift in SHIFTS]
    return {
        "id": identity,
        "i": maybe(lambda: rng.choice(INTS)),
        "Big": maybe(lambda: rng.choice(BIGS)),
        "f": maybe(lambda: rng.choice(FLOATS)),
        "s": maybe(lambda: rng.choice(WORDS)),
        "whole": maybe(lambda: rng.choice(WHOLES)),
        "real": maybe(lambda: rng.choice(REALS)),
        "day": maybe(lambda: rng.choice(DAYS)),
        "yes": maybe(lambda: rng.choice(YESES)),
        "b": maybe(lambda: rng.random() < 0.5),
        "t": maybe(lambda: rng.choice(moments)),
        "ints": maybe(lambda: array([*INTS])),
        "reals": maybe(lambda: array([*FLOATS])),
        "tags": maybe(lambda: array([*WORDS])),
        "flags": maybe(lambda: array([True, False])),
        "times": maybe(lambda: array(moments)),
        "cost": maybe(lambda: rng.choice(COSTS)),
        "exact": maybe(lambda: rng.choice(EXACTS)),
        "giant": maybe(lambda: rng.choice(GIANTS)),
        "costs": maybe(lambda: array([*COSTS])),
        "user": maybe(
            lambda: {
                "age": maybe(lambda: rng.choice(INTS)),
                "first name": maybe(lambda: rng.choice(WORDS)),
                "worth": maybe(lambda: rng.choice(COSTS)),
            }
        ),
    }


def random_filter(rng: random.Random, depth: int = 3, *, wild: bool = False) -> str:
    """Draw a filter; without `wild`, one that Spark accepts and runs over `SCHEMA` without errors."""
    draw = rng.random()
    if depth == 0 or draw < 0.35:
        return _predicate(rng, wild=wild)
    if draw < 0.55:
        return f"{rng.choice(['NOT', 'not', '!'])} ({random_filter(rng, depth - 1, wild=wild)})"
    parts = [random_filter(rng, depth - 1, wild=wild) for _ in range(rng.choice([2, 2, 3]))]
    joined = rng.choice([" AND ", " and ", " OR ", " or "]).join(f"({part})" for part in parts)
    return joined if rng.random() < 0.5 else f"({joined})"


def quote(text: str) -> str:
    """Write a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _number(rng: random.Random) -> str:
    whole = str(rng.choice([*INTS, *BIGS]))
    real = rng.choice(["0.1", "2.5", "1.0", "-1.50", "7.0000000000001", "0.999999999999999999"])
    double = rng.choice(["1e0", "2.5e0", "-15e-1", "9007199254740992e0", "9.3e18", "1D", "0.1F", "-0e0"])
    return rng.choice([whole, whole, real, double, rng.choice(["5L", "7S", "2BD", "-3Y"])])


def _any_number(rng: random.Random) -> str:
    """Draw a number that may also lie beyond 64 bits, which only equality takes."""
    huge = rng.choice(["9223372036854775808", "-9223372036854775809", "99999999999999999999.5"])
    return huge if rng.random() < 0.2 else _number(rng)


def _decimal(rng: random.Random) -> str:
    """Draw a number that Spark compares with DECIMAL(38, 18) without rounding."""
    short = str(rng.choice([each for each in [*COSTS, *EXACTS] if abs(each) < 2**63 - 1]))
    return rng.choice([short, short, _number(rng)])


def _any_decimal(rng: random.Random) -> str:
    """Draw a number beyond 64 bits for equality, now and then."""
    return str(rng.choice(EXACTS)) if rng.random() < 0.5 else _any_number(rng)


def _any_giant(rng: random.Random) -> str:
    return str(rng.choice(GIANTS))


def _double(rng: random.Random) -> str:
    return rng.choice(
        ["0.1e0", "2.5e0", "7e0", "1e38", "-1e300", "9007199254740992e0", "9223372036854775807e0"]
    )


def _cost(rng: random.Random) -> str:
    return str(rng.choice(COSTS))


def _moment(rng: random.Random) -> str:
    return rng.choice(
        [
            "DATE '2024-01-01'",
            "DATE'2024-2-29'",
            "TIMESTAMP '2024-01-01 00:00:00'",
            "TIMESTAMP '2023-12-31T23:59:59.999999Z'",
            "TIMESTAMP'2024-01-01 00:00:00.000001'",
            "TIMESTAMP '2024-01-01 02:00:00+02:00'",
        ]
    )


def _boolean(rng: random.Random) -> str:
    return rng.choice(["TRUE", "false"])


def _word(rng: random.Random) -> str:
    return quote(rng.choice(WORDS))


def _pick(options: list[str]) -> Callable[[random.Random], str]:
    return lambda rng: quote(rng.choice(options))


def _integer(rng: random.Random) -> str:
    return str(rng.choice([*INTS, *BIGS]))


def _fraction(rng: random.Random) -> str:
    return rng.choice(["0.5", "1.5", "2.5e0", "100.0", "7e0"])


# For each attribute, the kinds of literal that Spark compares it with without an error on our values.
_SCALARS: dict[str, list[Callable[[random.Random], str]]] = {
    "i": [_number, _number, _pick(WHOLES)],
    "BIG": [_number, _number, _pick(WHOLES)],
    "f": [_number, _number, _pick(REALS)],
    "s": [_word],
    "whole": [_integer, _fraction, _pick(WHOLES)],
    "real": [_fraction, _pick(REALS)],
    "day": [_moment, _pick(DAYS)],
    "yes": [_boolean, _pick(YESES)],
    "b": [_boolean, _pick(YESES)],
    "t": [_moment, _pick(DAYS)],
    "cost": [_number, _decimal, _double, _pick(REALS)],
    "exact": [_decimal, _decimal, _double, _pick(REALS)],
    # With digits after the point, Spark rounds a literal beside a decimal that has no room for them.
    "giant": [_integer, _integer, _double, _pick(WHOLES)],
    "user.worth": [_number, _cost],
    "user.age": [_number, _pick(WHOLES)],
    "`User`.`first name`": [_word],
}
_ARRAYS: dict[str, Callable[[random.Random], str]] = {
    "ints": _number,
    "reals": _number,
    "tags": _word,
    "flags": _boolean,
    "times": _moment,
    "costs": _number,
}
# Spark refuses arrays_overlap of whole numbers or doubles with decimals, though not array_contains.
_OVERLAPS = {**_ARRAYS, "ints": _integer, "reals": _integer, "costs": _cost}
# Within forall, elements meet literals as scalars do, casts included.
_EVERY: dict[str, list[Callable[[random.Random], str]]] = {
    "ints": [_number, _pick(WHOLES)],
    "reals": [_number, _pick(REALS)],
    "tags": [_word],
    "flags": [_boolean, _pick(YESES)],
    "times": [_moment, _pick(DAYS)],
    "costs": [_number, _cost, _pick(REALS)],
}
TEXTS = {"s", "whole", "real", "day", "yes"}
_LARGE = {_number: _any_number, _decimal: _any_decimal, _integer: _any_giant}
_ALL_LITERALS = [
    _number,
    _decimal,
    _double,
    _word,
    _boolean,
    _moment,
    _pick(WHOLES),
    _pick(REALS),
    _pick(DAYS),
    _pick(YESES),
]
_PATTERNS = [
    "%",
    "a%",
    "%s",
    "%e%",
    "n_w%",
    "_",
    "__",
    "%b%c",
    "50\\%",
    "a\\_%",
    "%ë",
    "日_",
    "%🎈",
    "",
    "_%_",
    "1%",
    "t%",
    "N%",
    "%OË%",
]


def _predicate(rng: random.Random, *, wild: bool) -> str:
    draw = rng.random()
    if draw < 0.08:
        name = rng.choice([*_SCALARS, *_ARRAYS, "user"])
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if draw < 0.12:
        return rng.choice(
            ["b", "NOT b", "TRUE", "FALSE", "NULL", "i = NULL", "i <=> NULL", "NOT (s <=> NULL)"]
        )
    if draw < 0.2:
        pattern = rng.choice(_PATTERNS)
        name = rng.choice(["s", "s", "whole", "i", "b", "user.`first name`", "lower(s)"])
        if rng.random() < 0.25:
            patterns = ", ".join(f"'{rng.choice(_PATTERNS)}'" for _ in range(rng.choice([1, 2, 3])))
            how = f"{rng.choice(['LIKE', 'ILIKE'])} {rng.choice(['ANY', 'SOME', 'all'])}"
            return f"{name} {rng.choice(['', 'NOT '])}{how} ({patterns})"
        return f"{name} {rng.choice(['', 'NOT '])}{rng.choice(['LIKE', 'ILIKE', 'ilike'])} '{pattern}'"
    if draw < 0.24:
        return _folded_predicate(rng)
    if draw < 0.39:
        return _array_predicate(rng, wild=wild)
    if draw < 0.45:
        return _forall(rng, wild=wild)
    return _scalar_predicate(rng, wild=wild)


def _folded_predicate(rng: random.Random) -> str:
    name = rng.choice(["s", "s", "i", "b", "user.`first name`"])
    sign = rng.choice(["", "NOT "])
    form = rng.randrange(5)
    if form == 0:
        return f"{rng.choice(['lower', 'LCASE'])}({name}) {sign}IN ({_word(rng)}, {_word(rng)})"
    if form == 1:
        return f"lower({name}) {rng.choice(['=', '<>', '<', '>=', '<=>'])} {_word(rng)}"
    if form == 2:
        return f"{sign}contains({rng.choice([name, f'lower({name})'])}, {_word(rng)})"
    word = rng.choice(["news", "NEWS", "a", "zoë", "ZOË", "b", "日本", "12", "true", "a_b", "s", "50"])
    # Beyond ASCII, Spark folds and knows words by its Java; with U it is the same in all.
    pattern = quote(rf"(?iU)\b{word}\b")
    return f"{name} {sign}RLIKE {pattern}"


def _decimals_first(items: list[str]) -> list[str]:
    """Order a list for a STRING column: in `IN (1, 1.5)` Spark rounds the texts, not in `IN (1.5, 1)`."""
    return sorted(items, key=lambda item: not ("." in item or item.endswith("BD")))


def _array_predicate(rng: random.Random, *, wild: bool) -> str:
    name = rng.choice([*_ARRAYS, "s"] if wild else [*_ARRAYS])
    literal = rng.choice(_ALL_LITERALS) if wild else _ARRAYS[name]
    if rng.random() < 0.5:
        return f"array_contains({name}, {literal(rng)})"
    literal = literal if wild else _OVERLAPS[name]
    items = ", ".join(literal(rng) for _ in range(rng.choice([0, 1, 2, 3])))
    if items and name == "costs" and not wild:
        # Spark wants decimals of the same digits, and gives a list the most that one of it has.
        items += ", 99999999.99"
    if items and rng.random() < 0.15:
        items += ", NULL"
    return f"arrays_overlap({name}, array({items}))"


def _forall(rng: random.Random, *, wild: bool) -> str:
    name = rng.choice([*_EVERY, "s"] if wild else [*_EVERY])
    literal = rng.choice(_ALL_LITERALS if wild else _EVERY[name])
    variable = rng.choice(["x", "X", "`x`", name])
    if rng.random() < 0.3:
        return f"forall({name}, {variable} -> {variable.lower()} {rng.choice(['=', '=='])} {literal(rng)})"
    items = [literal(rng) for _ in range(rng.choice([1, 2, 4]))]
    if rng.random() < 0.15:
        items.append("NULL")
    null = f"{variable} IS NULL OR " if rng.random() < 0.3 else ""
    return f"FORALL({name}, {variable} -> {null}{variable} IN ({', '.join(items)}))"


def _scalar_predicate(rng: random.Random, *, wild: bool) -> str:
    name = rng.choice([*_SCALARS, *_ARRAYS] if wild else [*_SCALARS])
    literal = rng.choice(_ALL_LITERALS if wild else _SCALARS[name])
    draw = rng.random()
    if draw > 0.7 and literal in _LARGE and (literal is not _integer or name == "giant"):
        op = rng.choice(["=", "!=", "<=>", "IN"])
        other = _LARGE[literal](rng)
        return f"{name} {op} ({other})" if op == "IN" else f"{name} {op} {other}"
    if draw < 0.2:
        return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {literal(rng)} AND {literal(rng)}"
    if draw < 0.4:
        items = [literal(rng) for _ in range(rng.choice([1, 2, 4]))]
        if name in TEXTS and not wild:
            items = _decimals_first(items)
        if rng.random() < 0.15:
            items.append("NULL")
        return f"{name} {rng.choice(['', 'NOT '])}IN ({', '.join(items)})"
    op = rng.choice(["=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>"])
    return f"{literal(rng)} {op} {name}" if rng.random() < 0.15 else f"{name} {op} {literal(rng)}"
