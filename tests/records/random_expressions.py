"""Random expressions over all functions and operators, and rows of odd values for them.

Everything is drawn from one `random.Random`. An expression may be of types that Spark refuses, and may raise
for some rows; then both must say so.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.records.expressions import types
from tests.records.random_filters import quote

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

UTC = pa.timestamp("us", "UTC")
_ARROW: dict[str, tuple[pa.DataType, types.Type]] = {
    "i": (pa.int64(), types.LONG),
    "j": (pa.int64(), types.LONG),
    "Big": (pa.int64(), types.LONG),
    "f": (pa.float64(), types.DOUBLE),
    "g": (pa.float64(), types.DOUBLE),
    "s": (pa.string(), types.STRING),
    "r": (pa.string(), types.STRING),
    "number": (pa.string(), types.STRING),
    "moment": (pa.string(), types.STRING),
    "json": (pa.string(), types.STRING),
    "b": (pa.bool_(), types.BOOL),
    "c": (pa.bool_(), types.BOOL),
    "t": (UTC, types.TIMESTAMP),
    "v": (UTC, types.TIMESTAMP),
    "cost": (pa.decimal128(6, 2), types.decimal(6, 2)),
    "exact": (pa.decimal128(38, 18), types.decimal(38, 18)),
    "ints": (pa.list_(pa.int64()), types.array(types.LONG)),
    "reals": (pa.list_(pa.float64()), types.array(types.DOUBLE)),
    "tags": (pa.list_(pa.string()), types.array(types.STRING)),
    "items": (
        pa.list_(pa.struct([("price", pa.int64()), ("name", pa.string())])),
        types.array(types.Type("struct", fields=(("price", types.LONG), ("name", types.STRING)))),
    ),
    "none": (pa.null(), types.VOID),
}
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        **{name: kind for name, (kind, _) in _ARROW.items()},
        "user": pa.struct([("age", pa.int64()), ("name", pa.string())]),
    }
)
TYPES: dict[tuple[str, ...], types.Type] = {
    **{(name.lower(),): kind for name, (_, kind) in _ARROW.items()},
    ("user", "age"): types.LONG,
    ("user", "name"): types.STRING,
}
INTS = [-3, -1, 0, 1, 2, 3, 5, 7, 10, 100, 2147483647, -2147483648]
BIGS = [2**53 + 1, 2**63 - 1, -(2**63), 10**18, 3 * 10**9, 0, -1]
FLOATS = [
    -1.5,
    -0.0,
    0.0,
    0.1,
    1.0,
    2.5,
    3.0,
    -2.5,
    0.5,
    1e300,
    1e7,
    1e-4,
    123456.789,
    math.inf,
    -math.inf,
    math.nan,
]
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "News",
    "a,b,,c",
    "  x ",
    "it's",
    "zoë",
    "日本語",
    "🎈b",
    "12",
    "-7",
    "1.5",
    "x.y",
    "ABC",
    "aaa",
    "true",
    "Straße",
    "b|c",
    "50%",
    "a_b",
    "Hello World",
    "\t tab",
]
NUMBERS = [
    "12",
    " 7 ",
    "-3",
    "1.5",
    "1e2",
    "x",
    "",
    "9223372036854775808",
    "2147483648",
    "0",
    "NaN",
    "00012",
    ".5",
]
MOMENTS = [
    "2024-02-29",
    "2024-02-29 12:30:45.123456",
    "2023-12-31T23:59:59Z",
    "2024-1-1",
    "1999",
    "x",
    "0001-01-01",
    "2024-12-30 00:00:00+02:00",
]
JSONS = [
    '{"a": {"b": [1, 2.5, "x"]}, "c": null, "d": "é\\n"}',
    '{"a": 1}',
    "[1, 2]",
    "x",
    '{"a": {"b": []}}',
    '{"a": true}',
]
COSTS = [Decimal(each) for each in ("0.10", "-1.50", "2.50", "7.00", "1234.56", "9999.99", "0.00", "-0.01")]
EXACTS = [
    Decimal(each)
    for each in (
        "0.1",
        "0.100000000000000001",
        "1.5",
        "-2.5",
        "12345678901234567890.123456789012345678",
        "0",
        "3",
    )
]
INSTANTS = [
    dt.datetime(2024, 2, 29, 12, 30, 45, 123456, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    dt.datetime(2023, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2024, 12, 30, 1, tzinfo=dt.UTC),
    dt.datetime(1900, 3, 31, 5, 6, 7, tzinfo=dt.UTC),
]


def random_row(rng: random.Random, identity: int) -> dict[str, Any]:
    """Draw a row of `SCHEMA`; any attribute but the id may be NULL."""

    def maybe(pool: Sequence[Any]) -> Any:
        return None if rng.random() < 0.12 else rng.choice(pool)

    def several(pool: Sequence[Any]) -> Any:
        return None if rng.random() < 0.12 else [maybe(pool) for _ in range(rng.choice([0, 1, 2, 3]))]

    items = [{"price": maybe(INTS), "name": maybe(TEXTS)} for _ in range(3)]
    return {
        "id": identity,
        "i": maybe(INTS),
        "j": maybe(INTS),
        "Big": maybe(BIGS),
        "f": maybe(FLOATS),
        "g": maybe(FLOATS),
        "s": maybe(TEXTS),
        "r": maybe(TEXTS),
        "number": maybe(NUMBERS),
        "moment": maybe(MOMENTS),
        "json": maybe(JSONS),
        "b": maybe([True, False]),
        "c": maybe([True, False]),
        "t": maybe(INSTANTS),
        "v": maybe(INSTANTS),
        "cost": maybe(COSTS),
        "exact": maybe(EXACTS),
        "ints": several(INTS),
        "reals": several(FLOATS),
        "tags": several(TEXTS),
        "items": several(items),
        "none": None,
        "user": maybe([{"age": maybe(INTS), "name": maybe(TEXTS)}]),
    }


NUMBER, TEXT, TRUTH, DATE, STAMP, LIST = "number", "text", "truth", "date", "stamp", "list"
_NAMES = {
    NUMBER: ["i", "j", "Big", "f", "g", "cost", "exact", "user.age", "i", "f"],
    TEXT: ["s", "r", "user.name", "s"],
    TRUTH: ["b", "c"],
    DATE: ["moment", "t", "v"],
    STAMP: ["t", "v", "moment"],
    LIST: ["ints", "reals", "tags", "items"],
}
_ODD = [
    "i",
    "f",
    "s",
    "b",
    "t",
    "cost",
    "number",
    "none",
    "NULL",
    "ints",
    "moment",
    "DATE '2024-01-31'",
    "'x'",
    "1.5",
]
_CASTS = [
    "INT",
    "BIGINT",
    "DOUBLE",
    "STRING",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "DECIMAL(10, 2)",
    "DECIMAL(38, 6)",
    "DECIMAL(3,1)",
]


_OF_NUMBERS = ["abs", "floor", "ceil", "ceiling", "sign", "signum", "sqrt", "negative", "round"]
_OF_TEXTS = ["lower", "upper", "ucase", "lcase", "trim", "ltrim", "rtrim", "reverse"]
_PATHS = ["$.a", "$.a.b[1]", "$[0]", "$.d", "$.a.b", "$.c"]
_PATTERNS = ["a%", "%b%", "_", "A%", "%", "%1%"]
_REGEXES = [
    "a",
    "^a",
    "b$",
    "^$",
    "[a-c]+",
    r"\d",
    r"\s",
    "(?i)NEWS|x",
    "a.b",
    "(a|b){2}",
    "[^a]",
    r"\W$",
    "(?s).",
    "e+?",
    "ß",
]


class Drawing:
    """Draws expressions of a wanted kind; now and then one of another kind, to see what is refused."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.variables: list[tuple[str, str]] = []

    def any(self, depth: int = 3) -> str:
        """Draw an expression of any kind."""
        return self.of(self.rng.choice([NUMBER, NUMBER, TEXT, TEXT, TRUTH, TRUTH, DATE, STAMP, LIST]), depth)

    def of(self, kind: str, depth: int) -> str:
        """Draw an expression of a kind."""
        draw = self.rng.random()
        own = [name for name, each in self.variables if each == kind]
        if own and draw < 0.5:
            return self.rng.choice(own)
        if draw < 0.04:
            return self.rng.choice(_ODD)
        if depth <= 0 or draw < 0.25:
            return self.leaf(kind)
        if draw < 0.35:
            return self.choice(kind, depth - 1)
        made: dict[str, Callable[[int], str]] = {
            NUMBER: self.number,
            TEXT: self.text,
            TRUTH: self.truth,
            DATE: self.date,
            STAMP: self.stamp,
            LIST: self.list,
        }
        return made[kind](depth - 1)

    def pick(self, *options: str) -> str:
        """Pick one."""
        return self.rng.choice(options)

    def leaf(self, kind: str) -> str:
        """Draw an attribute or a literal."""
        if self.rng.random() < 0.7:
            return self.rng.choice(_NAMES[kind])
        match kind:
            case "number":
                return self.pick(
                    "0",
                    "1",
                    "2",
                    "-3",
                    "10",
                    "2147483647",
                    "9000000000",
                    "1.5",
                    "0.25",
                    "-2.50",
                    "1e0",
                    "2.5e0",
                    "1e300",
                    "3L",
                )
            case "text":
                return self.pick(*map(quote, TEXTS), "number", "'12'")
            case "truth":
                return self.pick("TRUE", "FALSE", "cast(NULL AS BOOLEAN)")
            case "date":
                return self.pick("DATE '2024-02-29'", "DATE '2023-01-31'", "'2024-03-01'")
            case "stamp":
                return self.pick("TIMESTAMP '2024-02-29 12:30:45.5'", "TIMESTAMP '1969-07-20 20:17:40Z'")
        return self.pick(
            "array(1, 2, 3)", "array('a', NULL)", "split(s, ',')", "array(i, j)", "array(1.5, f)"
        )

    def choice(self, kind: str, depth: int) -> str:
        """Draw one of the forms that any kind has."""
        a, b = self.of(kind, depth), self.of(kind, depth)
        test = self.of(TRUTH, depth)
        # Arrays are compared by no operator here.
        form = self.rng.choice([0, 1, 3, 5]) if kind == LIST else self.rng.randrange(8)
        if form == 0:
            return f"if({test}, {a}, {b})"
        if form == 1:
            tail = f" ELSE {b}" if self.rng.random() < 0.7 else ""
            more = f"WHEN {self.of(TRUTH, depth)} THEN {self.of(kind, depth)}"
            return f"CASE WHEN {test} THEN {a} {more}{tail} END"
        if form == 2:
            return f"CASE {a} WHEN {b} THEN {self.of(kind, depth)} ELSE {a} END"
        if form == 3:
            return f"{self.pick('coalesce', 'nvl', 'ifnull')}({a}, {b})"
        if form == 4:
            return f"nullif({a}, {b})"
        if form == 5:
            return f"nvl2({self.any(depth - 1)}, {a}, {b})"
        if form == 6:
            return f"{self.pick('greatest', 'least')}({a}, {b}, {self.of(kind, depth)})"
        return f"cast({self.any(depth)} AS {self.wanted(kind)})"

    def wanted(self, kind: str) -> str:
        """Draw a type to cast to."""
        if self.rng.random() < 0.15:
            return self.rng.choice(_CASTS)
        return {
            NUMBER: self.pick("INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 6)", "DECIMAL(3,1)"),
            TEXT: "STRING",
            TRUTH: "BOOLEAN",
            DATE: "DATE",
            STAMP: "TIMESTAMP",
        }.get(kind, "STRING")

    def number(self, depth: int) -> str:
        """Draw a number."""
        a, b = self.of(NUMBER, depth), self.of(NUMBER, depth)
        text = self.of(TEXT, depth)
        small = self.pick("0", "1", "2", "3", "-1", "-2", "i", "5", "100")
        form = self.rng.randrange(30)
        if form < 10:
            return f"({a} {self.pick('+', '-', '*', '/', '%', 'DIV', 'div', '+', '-', '*')} {b})"
        if form < 13:
            return f"{self.rng.choice(_OF_NUMBERS)}({a})"
        if form == 13:
            return f"round({a}, {self.pick('0', '1', '2', '-1', '-2', '5')})"
        if form == 14:
            return f"{self.pick('mod', 'pmod')}({a}, {b})"
        if form == 15:
            return f"(- {a})"
        if form < 19:
            return f"{self.pick('length', 'char_length', 'ascii', 'len')}({text})"
        if form == 19:
            return f"instr({text}, {self.of(TEXT, depth)})"
        if form == 20:
            return f"{self.pick('locate', 'position')}({self.of(TEXT, depth)}, {text}, {small})"
        if form < 24:
            part = self.pick(
                "year",
                "quarter",
                "month",
                "day",
                "dayofmonth",
                "dayofweek",
                "weekday",
                "dayofyear",
                "weekofyear",
                "unix_date",
            )
            return f"{part}({self.of(DATE, depth)})".replace("unix_date(", "unix_date(last_day(", 1) + ")" * (
                part == "unix_date"
            )
        if form < 26:
            part = self.pick("hour", "minute", "second", "unix_seconds", "unix_millis", "unix_micros")
            return f"{part}({'timestamp' if part.startswith('unix') else ''}({self.of(STAMP, depth)}))"
        if form == 26:
            return f"datediff({self.of(DATE, depth)}, {self.of(DATE, depth)})"
        if form == 27:
            return f"{self.pick('size', 'cardinality', 'array_max', 'array_min')}({self.of(LIST, depth)})"
        if form == 28:
            return self.pick(
                f"ints[{small}]",
                f"element_at(ints, {small})",
                f"get(reals, {small})",
                f"items[{small}].price",
                f"element_at(reals, {small})",
            )
        part = self.pick("YEAR", "MONTH", "DAY", "DOY", "QUARTER", "WEEK")
        return f"extract({part} FROM {self.of(STAMP, depth)})"

    def text(self, depth: int) -> str:
        """Draw a text."""
        a, b = self.of(TEXT, depth), self.of(TEXT, depth)
        n = self.pick("0", "1", "2", "3", "-1", "-2", "-5", "i", "5", "length(s)")
        form = self.rng.randrange(22)
        if form < 3:
            return f"{self.rng.choice(_OF_TEXTS)}({self.any(depth) if form == 0 else a})"
        if form < 6:
            return f"{self.pick('substring', 'substr')}({a}, {n}, {self.pick('0', '1', '2', '-1', '10')})"
        if form == 6:
            return f"substring({a}, {n})"
        if form == 7:
            return f"{self.pick('left', 'right')}({a}, {n})"
        if form == 8:
            return f"{self.pick('trim', 'ltrim', 'rtrim')}({b}, {a})"
        if form == 9:
            return f"trim({self.pick('BOTH', 'LEADING', 'TRAILING')} {b} FROM {a})"
        if form == 10:
            return f"concat({a}, {self.any(depth)}, {b})"
        if form == 11:
            return f"({a} || {self.any(depth)})"
        if form == 12:
            return f"concat_ws({a}, {b}, {self.pick('tags', 'i', 's', 'none')}, {self.of(TEXT, depth)})"
        if form == 13:
            return f"replace({a}, {b}, {self.of(TEXT, depth)})"
        if form == 14:
            return f"translate({a}, {b}, {self.of(TEXT, depth)})"
        if form == 15:
            return f"{self.pick('lpad', 'rpad')}({a}, {n}, {b})"
        if form == 16:
            return f"repeat({a}, {self.pick('0', '1', '3', '-1', 'size(tags)')})"
        if form == 17:
            return f"split({a}, {self.pick(*map(quote, [',', '[|]', 'a', 'b']))})[{self.pick('0', '1')}]"
        if form == 18:
            return f"split_part({a}, {self.pick(quote(','), quote('a'), quote(''), 'r')}, {n})"
        if form == 19:
            return f"get_json_object(json, {quote(self.rng.choice(_PATHS))})"
        if form == 20:
            return self.pick(
                f"tags[{n}]",
                f"element_at(tags, {n})",
                f"items[{n}].name",
                f"array_join(tags, {a})",
                f"array_join(tags, {a}, {b})",
            )
        return f"typeof({self.any(depth)})"

    def truth(self, depth: int) -> str:
        """Draw a condition."""
        kind = self.rng.choice([NUMBER, NUMBER, TEXT, DATE, STAMP, TRUTH])
        a, b = self.of(kind, depth), self.of(kind, depth)
        text = self.of(TEXT, depth)
        form = self.rng.randrange(22)
        if form < 7:
            return f"({a} {self.pick('=', '!=', '<', '<=', '>', '>=', '<=>', '==', '<>')} {b})"
        if form == 7:
            return f"({a} {self.pick('', 'NOT ')}BETWEEN {b} AND {self.of(kind, depth)})"
        if form < 10:
            items = ", ".join(self.of(kind, depth) for _ in range(self.rng.choice([1, 2, 3])))
            return f"({a} {self.pick('', 'NOT ')}IN ({items}))"
        if form == 10:
            return f"({self.any(depth)} IS {self.pick('', 'NOT ')}NULL)"
        if form < 13:
            return f"({self.of(TRUTH, depth)} {self.pick('AND', 'OR')} {self.of(TRUTH, depth)})"
        if form == 13:
            return f"(NOT {self.of(TRUTH, depth)})"
        if form == 14:
            sign = f"{self.pick('', 'NOT ')}{self.pick('LIKE', 'ILIKE', 'RLIKE')}"
            patterns = _REGEXES if sign.endswith("RLIKE") else _PATTERNS
            return f"({text} {sign} {quote(self.rng.choice(patterns))})"
        if form == 15:
            return f"{self.pick('startswith', 'endswith', 'contains')}({text}, {self.of(TEXT, depth)})"
        if form == 16:
            return f"{self.pick('isnull', 'isnotnull', 'isnan')}({self.of(NUMBER, depth)})"
        if form == 17:
            what = self.pick("TRUE", "FALSE", "DISTINCT FROM b")
            return f"({self.of(TRUTH, depth)} IS {self.pick('', 'NOT ')}{what})"
        if form == 18:
            return f"array_contains({self.of(LIST, depth)}, {self.any(depth)})"
        if form == 19:
            return f"arrays_overlap({self.of(LIST, depth)}, {self.of(LIST, depth)})"
        return f"{self.pick('exists', 'forall')}{self.function(depth, TRUTH)}"

    def function(self, depth: int, wanted: str) -> str:
        """Draw an array and a function of its elements."""
        name = f"x{len(self.variables)}"
        array, kind, used = self.rng.choice(
            [
                ("ints", NUMBER, name),
                ("reals", NUMBER, name),
                ("tags", TEXT, name),
                ("items", NUMBER, f"{name}.price"),
                ("items", TEXT, f"{name}.Name"),
            ]
        )
        if len(self.variables) > 1:
            return "(ints, y -> y > 1)"
        self.variables.append((used, kind))
        body = self.of(wanted, depth)
        self.variables.pop()
        return f"({array}, {name} -> {body})"

    def date(self, depth: int) -> str:
        """Draw a date."""
        a = self.of(DATE, depth)
        n = self.pick("0", "1", "-1", "31", "400", "length(s)", "-12")
        form = self.rng.randrange(6)
        if form == 0:
            return f"{self.pick('date_add', 'date_sub', 'add_months')}({a}, {n})"
        if form == 1:
            return f"last_day({a})"
        if form == 2:
            return f"trunc({a}, {self.pick(*map(quote, ['YEAR', 'month', 'WEEK', 'quarter', 'MM']))})"
        if form == 3:
            return f"{self.pick('to_date', 'date')}({self.of(STAMP, depth)})"
        if form == 4:
            year, month = self.pick("2024", "2023", "year(t)"), self.pick("1", "2", "13", "month(t)")
            return f"make_date({year}, {month}, {self.pick('1', '29', '31')})"
        return f"cast({self.of(STAMP, depth)} AS DATE)"

    def stamp(self, depth: int) -> str:
        """Draw a timestamp."""
        a = self.of(STAMP, depth)
        units = [
            "YEAR",
            "quarter",
            "MONTH",
            "WEEK",
            "DAY",
            "HOUR",
            "minute",
            "SECOND",
            "MILLISECOND",
            "MICROSECOND",
            "DD",
        ]
        if self.rng.random() < 0.5:
            return f"date_trunc({self.pick(*map(quote, units))}, {a})"
        return self.pick(
            f"to_timestamp({a})", f"cast({self.of(DATE, depth)} AS TIMESTAMP)", "cast(i AS TIMESTAMP)"
        )

    def list(self, depth: int) -> str:
        """Draw an array."""
        form = self.rng.randrange(5)
        if form == 0:
            return f"array({self.of(NUMBER, depth)}, {self.of(NUMBER, depth)})"
        if form == 1:
            return f"split({self.of(TEXT, depth)}, {quote(',')})"
        if form == 2:
            return f"transform{self.function(depth, self.rng.choice([NUMBER, TEXT]))}"
        if form == 3:
            return f"filter{self.function(depth, TRUTH)}"
        return self.leaf(LIST)


def random_expression(rng: random.Random) -> str:
    """Draw an expression."""
    return Drawing(rng).any(rng.choice([1, 2, 2, 3]))
