"""Values and predicates at the edges of every type, all over one attribute `a`."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import product

from headgate.records.language.model import Op
from headgate.records.language.parse import parse_filter


def _split(text: str, mark: str = " ") -> list[str]:
    return text.split(mark)


_BIG, _LAST = 2**53, 2**63 - 1
WHOLES = [0, 1, -1, _BIG - 1, _BIG, _BIG + 1, -_BIG - 1, 10**18, _LAST, _LAST - 1, -_LAST - 1, _LAST - 1023]
FLOATS = [0.0, -0.0, 1.0, 1.5, -1.5, 0.1, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308]
FLOATS += [math.inf, -math.inf, math.nan, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 9223372036854774784.0]
FLOATS += [1e18, math.nextafter(1.0, 2)]
_DECIMALS = "0 0.1 0.1000000000000000000001 0.0999999999999999999999 1.50 -1.5 9007199254740993 1e18 1"
_DECIMALS += " 0.999999999999999999 9223372036854775807.5 9223372036854775808 9007199254740993.5"
_DECIMALS += " -9223372036854775807.000000000000000001"
DECIMALS = [Decimal(text) for text in [*_split(_DECIMALS), "9" * 38, "9" * 37 + "8", "-1e-76", "1e75"]]
TEXTS = ["", " ", " 1 ", "\t1\n", " yes "]
TEXTS += _split(
    "a news newsy 日本 🎈 0 +1 -0 01 1.0 1.5 1e0 true TRUE f NaN -inf Infinity 1d 0x1p0 1970-01-01"
)
TEXTS += _split("9223372036854775807 9223372036854775808 9007199254740993 9007199254740993.0 0001-01-01")
TEXTS += ["1970-1-1 00:00:00.000001", "1969-12-31T23:59:59.999999Z", "9999-12-31 23:59:59.999999"]
TEXTS += ["1970-01-01 00:00:00+00:01"]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICRO = dt.timedelta(microseconds=1)
MOMENTS = [EPOCH, EPOCH + MICRO, EPOCH - MICRO, EPOCH.replace(tzinfo=None), EPOCH.date()]
MOMENTS += [dt.datetime.min, dt.datetime.max]
SCALARS: list[object] = [None, True, False, *WHOLES, *FLOATS, *DECIMALS, *TEXTS, *MOMENTS]
ARRAYS: list[object] = [[], [None], [1, None], [_BIG + 1], [0.0], [math.nan], ["a"], ["1", "news"], [True]]
ARRAYS += [[EPOCH], [1, "a", True], [[1]], [{"x": 1}], [-0.0, 1.5], (1, 2)]
ARRAYS += [[Decimal("0.10"), None], [*DECIMALS], [1, Decimal("1.5")]]
ARRAYS += [["1", None], [1, 1.0], [None, " 1 ", "1.5"], ["1970-01-01", EPOCH], [True, "yes"], [None, None]]
VALUES: list[object] = [*SCALARS, *ARRAYS, {"x": 1}]

NUMBERS = _split("0 1 -1 9007199254740992 9007199254740993 9223372036854775807 -9223372036854775808")
NUMBERS += _split("0.0 1.0 1.5 -1.5 0.1 1BD 0.1F 9007199254740993.0 0.999999999999999999")
NUMBERS += _split("9223372036854775806.999999999999999999 -9223372036854775807.000000000000000001")
NUMBERS += _split("0e0 -0e0 1e0 1.5e0 1e-1 5e-324 1.7976931348623157e308 9007199254740992e0 1e18 1e300")
NUMBERS += _split("9223372036854775807e0 -9223372036854775808e0 9223372036854774784e0")
BEYOND = _split("9223372036854775808 -9223372036854775809 9223372036854775807.5 99999999999999999999.5")
BEYOND += ["9" * 38]
STRINGS = _split("|a|news|日本|1| 1 |1.5|true|no|NaN|-Infinity|1e0|9007199254740993|1970-01-01|0x1p0", "|")
STRINGS += ["1970-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"]
OTHERS = ["TRUE", "FALSE", "DATE '1970-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'"]
OTHERS += ["TIMESTAMP '1970-01-01 00:00:00.000001'", "TIMESTAMP '1969-12-31 23:59:59.999999'"]
LITERALS = [*NUMBERS, *(f"'{text}'" for text in STRINGS), *OTHERS]
LISTS = ["NULL", "1, NULL", "1.0, 9007199254740993", "9007199254740993, 1e0", "1, 9007199254740993", "1.5, 1"]
LISTS += ["1, 1234567", "0.1, 0.099999999999999999"]
LISTS += ["'1', 'x'", "'true', 'no'", "'a', 'b'", "DATE '1970-01-01', TIMESTAMP '1970-01-01 00:00:00.000001'"]
PATTERNS = _split("|%|_|1%|%1|t%|%e|news%|n_ws|日%|-%|9%7", "|")

FILTERS = [f"a {op.value} {literal}" for literal in [*LITERALS, "NULL"] for op in Op]
FILTERS += [f"a {op} {literal}" for literal in BEYOND for op in ("=", "!=", "<=>")]
FILTERS += [f"array_contains(a, {literal})" for literal in [*LITERALS, *BEYOND]]
FILTERS += [f"a IN ({items})" for items in [*LITERALS, *BEYOND, *LISTS]]
FILTERS += [f"arrays_overlap(a, array({items}))" for items in ["", *LITERALS[::3], *BEYOND, *LISTS]]
FILTERS += [f"forall(a, x -> x IN ({items}))" for items in [*LITERALS, *BEYOND, *LISTS]]
FILTERS += [f"forall(a, x -> x IS NULL OR x IN ({items}))" for items in [*LITERALS[::3], *LISTS]]
FILTERS += ["forall(a, x -> x IS NULL)"]
FILTERS += [f"a BETWEEN {low} AND {high}" for low, high in product(LITERALS[::6], LITERALS[::7])]
FILTERS += [f"a LIKE '{pattern}'" for pattern in PATTERNS]
FILTERS += ["a", "a IS NULL"]
FILTERS += [f"NOT ({text})" for text in FILTERS]
TREES = [parse_filter(text) for text in FILTERS]
