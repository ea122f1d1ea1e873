"""The values that an attribute of an event may have.

    kind        Python          Spark              JSON
    NULL        None            NULL               null, or absent
    BOOL        bool            BOOLEAN            true, false
    INT         int             BIGINT             a number without fraction or exponent
    FLOAT       float           DOUBLE             any other number
    DECIMAL     Decimal         DECIMAL            (a number is an INT or a FLOAT)
    STRING      str             STRING             a string
    TIMESTAMP   datetime        TIMESTAMP          (a string, cast where it is compared)
    ARRAY       list, tuple     ARRAY<one of them> an array
    OBJECT      dict            STRUCT             an object: only `IS [NOT] NULL` sees it

Nested objects are reached by dotted names: `{"user": {"age": 5}}` has the attributes `user` (OBJECT)
and `user.age` (INT). Names compare as in Spark, without regard to case.

A set of filters may want names to mean something else (`records/names.py`). Then the parts of its paths begin
with a mark, which says what, so that a path means the same wherever it is met:

    (user, age)               in any case, a part for each object
    (EXACT user, EXACT Age)   with its case
    (JOINED user.age,)        in any case; a dot in a name is as good as one that goes into an object
    (EXACT_JOINED user.Age,)  both
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Scalar: TypeAlias = bool | int | float | Decimal | str | dt.datetime | None
Value: TypeAlias = "Scalar | list[Value] | Mapping[str, Value]"
Path: TypeAlias = tuple[str, ...]
"""A dotted name, folded: `User.Age` is `("user", "age")`."""

EXACT, JOINED, EXACT_JOINED = "\x01", "\x02", "\x03"
"""Marks at the start of a part of a path."""
PRESENT = "\x04"
"""The first part of what tells whether an event has an attribute: TRUE or FALSE."""
MARKS = EXACT + JOINED + EXACT_JOINED

MAX_DEPTH = 32
"""How deep objects may nest in an event, and arrays in an attribute."""

MAX_DECIMAL = 76
"""Digits of a decimal, before and after the point: those of Arrow's widest; Spark has 38."""

SPELLINGS = 1 << 12
"""Names that are kept, at most."""
LONGEST = 64
"""Letters of a name that is kept, at most."""

_MARKED = frozenset(MARKS)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


class Kind(IntEnum):
    """What a value is; arrays are told apart by their elements."""

    NULL = 0
    BOOL = 1
    INT = 2
    FLOAT = 3
    STRING = 4
    TIMESTAMP = 5
    ARRAY = 6
    OBJECT = 7
    DECIMAL = 8


_KINDS: dict[type, Kind] = {
    type(None): Kind.NULL,
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    str: Kind.STRING,
    dt.datetime: Kind.TIMESTAMP,
    dt.date: Kind.TIMESTAMP,
    list: Kind.ARRAY,
    tuple: Kind.ARRAY,
    dict: Kind.OBJECT,
}


def kind_of(value: object) -> Kind:
    """Tell the kind of a value.

    >>> kind_of(True).name, kind_of(1).name, kind_of([1]).name
    ('BOOL', 'INT', 'ARRAY')
    """
    kind = _KINDS.get(type(value))
    if kind is None:
        raise EventError(
            f"a value of type {type(value).__name__} is not supported: use None, bool, int, float, "
            "Decimal, str, datetime, a list of these, or a dict"
        )
    return kind


def micros(moment: dt.date) -> int:
    """Count microseconds since 1970; a date is its midnight, a time without zone is UTC.

    >>> micros(dt.date(1970, 1, 2))
    86400000000
    """
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime(moment.year, moment.month, moment.day, tzinfo=dt.UTC)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - _EPOCH) // _MICROSECOND


def fold(name: str) -> str:
    """Fold a name for comparison, as Spark resolves columns by default."""
    return name.lower()


def part_of(name: str) -> str:
    """Return the part of a path that a written name stands for: folded, unless a mark says otherwise.

    >>> part_of("Age"), part_of(EXACT + "Age") == EXACT + "Age"
    ('age', True)
    """
    return name if name[:1] in _MARKED else name.lower()


def marked(names: tuple[str, ...], mark: str) -> tuple[str, ...]:
    r"""Write a mark before names; those that are joined become one.

    >>> marked(("user", "Age"), EXACT), marked(("user", "Age"), JOINED)
    (('\x01user', '\x01Age'), ('\x02user.age',))
    """
    if mark in (JOINED, EXACT_JOINED):
        joined = ".".join(names)
        return (mark + (joined if mark == EXACT_JOINED else fold(joined)),)
    return tuple(mark + name for name in names) if mark else names


def below(prefix: Path, name: str, mark: str) -> Path:
    r"""Return the path of a name in the object of another path.

    >>> below(("user",), "Age", ""), below((JOINED + "user",), "Age", JOINED)
    (('user', 'age'), ('\x02user.age',))
    """
    if mark in (JOINED, EXACT_JOINED):
        around = f"{prefix[0][1:]}." if prefix else ""
        return (mark + around + (name if mark == EXACT_JOINED else fold(name)),)
    return (*prefix, mark + name if mark else fold(name))


def mark_of(paths: Iterable[Path]) -> str:
    """Return the mark of paths, which is that of one set of filters; empty if there is none."""
    for path in paths:
        mark = path[-1][:1]
        if mark in _MARKED:
            return mark
    return ""


def same_name(part: str, name: str) -> bool:
    """Tell whether a name is that of a part of a path, which is not joined.

    >>> same_name("age", "Age"), same_name(EXACT + "age", "Age")
    (True, False)
    """
    return part[1:] == name if part[:1] == EXACT else fold(name) == part


def top_names(path: Path) -> set[str]:
    """List the columns, folded, that an attribute may be in.

    >>> top_names(("user", "age")), sorted(top_names((JOINED + "user.age",)))
    ({'user'}, ['user', 'user.age'])
    """
    first = path[0]
    if first[:1] not in _MARKED:
        return {first}
    pieces = fold(first[1:]).split(".")
    if first[:1] == EXACT:
        return {fold(first[1:])}
    return {".".join(pieces[:end]) for end in range(1, len(pieces) + 1)}


def find_name(path: Path, names: Sequence[str]) -> int | None:
    """Find the last name of a path among those of columns; refuse two of them that only case tells apart.

    >>> find_name(("age",), ["id", "Age"]), find_name(("sex",), ["id", "Age"])
    (1, None)
    """
    positions = [position for position, name in enumerate(names) if same_name(path[-1], name)]
    if len(positions) > 1:
        raise EventError(
            f"the column {dotted(path)} is given twice: names that differ in case only are the same"
        )
    return positions[0] if positions else None


def flatten(data: Mapping[str, object]) -> dict[Path, object]:
    """List the attributes of a record by folded path, nested objects included.

    Checked here, once for all rooms: types, the range of integers, text that UTF-8 cannot hold, depth,
    and names that only case tells apart.

    >>> flatten({"Age": 5, "user": {"City": "Bern"}})
    {('age',): 5, ('user',): {'City': 'Bern'}, ('user', 'city'): 'Bern'}
    """
    flat: dict[Path, object] = {}
    flatten_into(flat, data, ())
    return flat


def flatten_into(
    flat: dict[Path, object], data: Mapping[str, object], prefix: Path, part: Callable[[str], str] = fold
) -> None:
    """Do the same for an object within a record, whose own path is given; `part` makes one of a name."""
    if len(prefix) > MAX_DEPTH:
        raise EventError(f"attribute {dotted(prefix)}: objects nest deeper than {MAX_DEPTH}")
    for name, value in data.items():
        if not isinstance(name, str):
            raise EventError(f"the attribute name {name!r} is not text")
        path = (*prefix, part(name))
        if path in flat:
            raise EventError(
                f"attribute {dotted(path)} is given twice: names that differ in case only are the same"
            )
        check(value, path)
        flat[path] = value
        if type(value) is dict:
            flatten_into(flat, value, path, part)


def flatten_as(data: Mapping[str, object], mark: str) -> dict[Path, object]:
    r"""List the attributes of a record by paths with a mark.

    Where names are joined, `{"a.b": 1}` has an object `a`, as `{"a": {"b": 1}}` has.

    >>> flatten_as({"Age": 5, "age": 6}, EXACT)
    {('\x01Age',): 5, ('\x01age',): 6}
    >>> flatten_as({"User.age": 5}, JOINED)
    {('\x02user',): {}, ('\x02user.age',): 5}
    """
    flat: dict[Path, object] = {}
    if mark in (JOINED, EXACT_JOINED):
        _join_into(flat, data, "", mark, 1)
    else:
        flatten_into(flat, data, (), mark.__add__ if mark else fold)
    return flat


def _join_into(
    flat: dict[Path, object], data: Mapping[str, object], prefix: str, mark: str, depth: int
) -> None:
    if depth > MAX_DEPTH + 1:
        raise EventError(f"attribute {prefix[:-1]}: objects nest deeper than {MAX_DEPTH}")
    for name, value in data.items():
        if not isinstance(name, str):
            raise EventError(f"the attribute name {name!r} is not text")
        whole = prefix + (name if mark == EXACT_JOINED else fold(name))
        for dot in (position for position in range(len(prefix), len(whole)) if whole[position] == "."):
            above = flat.setdefault((mark + whole[:dot],), {})
            if type(above) is not dict:
                raise EventError(f"attribute {whole[:dot]} has a value, and {whole} goes into it: send one")
        path = (mark + whole,)
        check(value, path)
        if path in flat and not (type(value) is dict and type(flat[path]) is dict):
            raise EventError(
                f"attribute {whole} is given twice: a dot in a name is as good as an object, "
                + ("so send one" if mark == EXACT_JOINED else "and case does not tell names apart")
            )
        flat[path] = value
        if type(value) is dict:
            _join_into(flat, value, f"{whole}.", mark, depth + 1)


def check(value: object, path: Path, depth: int = 0) -> None:
    """Refuse a value that no column of Spark could hold as it is."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise EventError(
                f"attribute {dotted(path)}: the text holds a lone surrogate at character {error.start + 1}, "
                "which UTF-8 cannot carry"
            ) from None
    elif isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            shown = value if value.bit_length() < 1000 else f"a number of {value.bit_length()} bits"
            raise EventError(
                f"attribute {dotted(path)}: {shown} does not fit into 64 bits; send it as a string"
            )
    elif isinstance(value, list | tuple):
        if depth >= MAX_DEPTH:
            raise EventError(f"attribute {dotted(path)}: arrays nest deeper than {MAX_DEPTH}")
        for element in value:
            check(element, path, depth + 1)
    elif type(value) not in _KINDS:
        try:
            kind_of(value)
        except EventError as error:
            raise EventError(f"attribute {dotted(path)}: {error}") from None
    elif type(value) is Decimal:
        _check_decimal(value, path)


def _check_decimal(value: Decimal, path: Path) -> None:
    if not value.is_finite():
        raise EventError(f"attribute {dotted(path)}: no decimal is {value}; send it as a float")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if max(len(digits), len(digits) + exponent, -exponent) > MAX_DECIMAL:
        raise EventError(
            f"attribute {dotted(path)}: a decimal of more than {MAX_DECIMAL} digits is not supported; "
            "round it, or send it as a string"
        )


class CheckedObjects:
    """Objects that are checked and not flattened. Names that were seen before are not looked at again."""

    def __init__(self, part: Callable[[str], str] = fold) -> None:
        self._part = part
        """Makes the part of a path of a name: an object with two names of one part is refused."""
        self._spelled: dict[str, str] = {}
        self._distinct: set[str] = set()
        """Names of which no two have the same part."""

    def check(self, value: dict[str, Any], depth: int) -> None:
        """Refuse what `flatten_into` refuses, in whatever words; `depth` counts the objects around it."""
        if depth >= MAX_DEPTH:
            raise EventError(f"objects nest deeper than {MAX_DEPTH}")
        if not self._distinct.issuperset(value):
            self._learn(value)
        for each in value.values():
            kind = type(each)
            if kind is str:
                if not each.isascii():
                    check(each, ())
            elif kind is int:
                if not INT64_MIN <= each <= INT64_MAX:
                    check(each, ())
            elif kind is dict:
                self.check(each, depth + 1)
            elif kind is not float and kind is not bool and each is not None:
                check(each, ())

    def _learn(self, names: Iterable[object]) -> None:
        parts = set()
        for name in names:
            if not isinstance(name, str):
                raise EventError("the name of an attribute is not text")
            part = self._part(name)
            if part in parts:
                raise EventError("an attribute is given twice")
            parts.add(part)
            kept = len(self._spelled) < SPELLINGS and len(name) <= LONGEST
            # Of two spellings the first one is kept; objects with the other one come here each time.
            if kept and self._spelled.setdefault(part, name) == name:
                self._distinct.add(name)


def dotted(path: Path) -> str:
    """Write a path as users do.

    >>> dotted(("user", "age")), dotted((EXACT + "user", EXACT + "Age"))
    ('user.age', 'user.Age')
    """
    return ".".join([part[1:] if part[:1] in _MARKED else part for part in path])
