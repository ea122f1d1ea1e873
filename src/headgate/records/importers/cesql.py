"""CloudEvents SQL 1.0 to SQL.

An expression has an error, or it is true or false, so a filter is converted twice: to a condition that is
TRUE where it is true, and to one that is TRUE where it is false. NOT takes the other of the two. An error
is neither: NULL, in SQL. AND and OR of CloudEvents SQL do not look at their right side if the left
decides, and pass an error of the left on:

    A AND B   is true where A is and B is; false where A is, or where A has no error and B is false
    A OR B    is true where A is, or where A has no error and B is true; false where A is and B is
"""

from __future__ import annotations

import re
from typing import NoReturn

from headgate.errors import FilterError
from headgate.records.importers import cesql_reference as reference
from headgate.records.importers import sql
from headgate.records.importers.cesql_parse import (
    BLANKS,
    LOGIC,
    MATH,
    ORDER,
    Binary,
    Call,
    Exists,
    In,
    Like,
    Minus,
    Name,
    Node,
    Not,
    Type,
    Value,
    parse,
    type_of,
)
from headgate.records.importers.cesql_reference import REQUIRED, Wrong
from headgate.records.importers.sql import FALSE, TRUE, Sql, every, some
from headgate.records.language.limits import MAX_CHARACTERS, checked

_OTHER = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def to_sql(text: str) -> str:
    """Convert a filter.

    >>> to_sql("type = 'a' OR NOT EXISTS subject AND hop < 3")
    "type = 'a' OR subject IS NULL AND CAST(hop AS INT) < 3"
    >>> to_sql("subject = 'a' OR type = 'b'")
    "subject = 'a' OR subject IS NOT NULL AND type = 'b'"
    """
    return checked(Converter(text).condition(parse(text), holds=True).text, text)


class Converter:
    """Converts the tree of one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def condition(self, node: Node, *, holds: bool) -> Sql:
        """Return what is TRUE where an expression is true without an error; or false, if `holds` is False."""
        condition = self._condition(self._folded(node), holds=holds)
        if len(condition.text) > MAX_CHARACTERS:
            self._refuse("as SQL the filter becomes too long: write it as several filters", node)
        return condition

    def _condition(self, node: Node, *, holds: bool) -> Sql:
        match node:
            case Value(value):
                return TRUE if self._constant(value, Type.BOOLEAN, node) == holds else FALSE
            case Name(name):
                return _truth(name, holds=holds)
            case Not(child):
                return self.condition(child, holds=not holds)
            case Exists(name):
                return Sql(_there(name, is_there=holds))
            case Like(child, pattern):
                return Sql(f"{self._seen(child)} {_not(holds)}LIKE {sql.text(_pattern(pattern))}")
            case In():
                return self._in(node, holds=holds)
            case Binary(sign, left, right) if sign in LOGIC:
                return self._logic(sign, left, right, holds=holds)
            case Binary(sign, left, right) if sign in ORDER:
                return Sql(f"{self._integer(left)} {sign if holds else _OTHER[sign]} {self._integer(right)}")
            case Binary(sign, left, right) if sign not in MATH:
                return self._equal(left, right, holds=holds == (sign == "="))
            case Call("IS_INT" | "IS_BOOL" | "BOOL", (child,)):
                return self._asked(node, child, holds=holds)
        if type_of(node) is Type.INTEGER:
            return Sql(f"{self._integer(node)} {'!=' if holds else '='} 0")
        return Sql(f"lower({self._string(node)}) = '{'true' if holds else 'false'}'")

    def _logic(self, sign: str, left: Node, right: Node, *, holds: bool) -> Sql:
        if sign == "XOR":
            one = every([self.condition(left, holds=True), self.condition(right, holds=not holds)])
            return some([one, every([self.condition(left, holds=False), self.condition(right, holds=holds)])])
        first, second = (self.condition(each, holds=holds) for each in (left, right))
        if (sign == "AND") == holds:
            return every([first, second])
        return some([first, every([self._sound(left, given=self._present(right, holds=holds)), second])])

    def _sound(self, node: Node, given: frozenset[str]) -> Sql:
        """Return what is TRUE where an expression has no error; attributes that are `given` are there."""
        node = self._folded(node)
        if self._fails_only_without(node):
            names = sorted(_names(node) - REQUIRED - given)
            return every([Sql(_there(name)) for name in names])
        return some([self.condition(node, holds=True), self.condition(node, holds=False)])

    def _present(self, node: Node, *, holds: bool) -> frozenset[str]:
        """Return attributes that must be there where a condition is TRUE."""
        match node:
            case Not(child):
                return self._present(child, holds=not holds)
            case Exists(name):
                return frozenset({name} if holds else ())
            case Binary(sign, left, right) if sign in LOGIC:
                both = (self._present(left, holds=holds), self._present(right, holds=holds))
                if sign != "XOR" and (sign == "AND") == holds:
                    return both[0] | both[1]
                # The left side is looked at in any case, and has no error.
                return both[0] & both[1]
        return frozenset() if _decides(node) else frozenset(_names(node))

    def _fails_only_without(self, node: Node) -> bool:
        """Tell whether an expression has an error only where one of its attributes is missing."""
        match node:
            case Value() | Exists():
                return True
            case Like(Name()):
                return True
            case Binary("=" | "!=", Name(), Value(str())):
                return True
            case Not(Like() | Exists() | Binary() as child):
                return self._fails_only_without(child)
        return False

    def _equal(self, left: Node, right: Node, *, holds: bool) -> Sql:
        """Convert `=`: the type of the right side is that in which they are compared."""
        left, right = self._folded(left), self._folded(right)
        kind = type_of(right)
        if kind is not None:
            return self._equal_as(kind, left, right, holds=holds)
        name = sql.name(_only(right))
        return some(
            every([Sql(f"typeof({name}) = '{spark}'"), self._equal_as(kind, left, right, holds=holds)])
            for spark, kind in (("string", Type.STRING), ("bigint", Type.INTEGER), ("boolean", Type.BOOLEAN))
            if self._can_be(left, kind)
        )

    def _equal_as(self, kind: Type, left: Node, right: Node, *, holds: bool) -> Sql:
        if kind is Type.BOOLEAN:
            ways = [(True, holds), (False, not holds)]
            return some(
                every([self.condition(left, holds=a), self.condition(right, holds=b)]) for a, b in ways
            )
        if kind is Type.INTEGER:
            return Sql(f"{self._integer(left)} {'=' if holds else '!='} {self._integer(right)}")
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Name) and isinstance(other, Value):
                return _text_equal(sql.name(one.name), reference.to_text(other.value), holds=holds)
        return Sql(f"{self._string(left)} {'=' if holds else '!='} {self._string(right)}")

    def _in(self, node: In, *, holds: bool) -> Sql:
        """Convert IN: the type of the left side is that in which they are compared."""
        child, items = self._folded(node.child), [self._folded(item) for item in node.items]
        kind = type_of(child)
        if kind is Type.BOOLEAN:
            ways = {bool(self._constant(self._value(item), kind, item)) for item in items}
            return some(self.condition(child, holds=way) for way in (True, False) if (way in ways) == holds)
        if kind is not None:
            write = self._integer if kind is Type.INTEGER else self._string
            listed = ", ".join(dict.fromkeys(write(item) for item in items))
            # One that has an error is an error of the whole, also where another one is found.
            sound = [Sql(f"{write(item)} IS NOT NULL") for item in items if not isinstance(item, Value)]
            return every([*sound, Sql(f"{write(child)} {_not(holds)}IN ({listed})")])
        name, values = sql.name(_only(child)), [self._value(item) for item in items]
        found = [_texts(name, [reference.to_text(each) for each in values], holds=holds)]
        for kind, spark in ((Type.INTEGER, "bigint"), (Type.BOOLEAN, "boolean")):
            cast = [_cast(each, kind) for each in values]
            if None not in cast:
                ordered: list[object] = [*(sorted(map(bool, cast)) if kind is Type.BOOLEAN else cast)]
                listed = ", ".join(dict.fromkeys(str(each).upper() for each in ordered))
                found.append(
                    every([Sql(f"typeof({name}) = '{spark}'"), Sql(f"{name} {_not(holds)}IN ({listed})")])
                )
        return some(found)

    def _value(self, item: Node) -> bool | int | str:
        if not isinstance(item, Value):
            reason = (
                "IN takes literals here: what is left of it gives the type, and an attribute's is not known"
            )
            self._refuse(f"{reason}; write STRING(…) or INT(…) around it", item)
        return item.value

    def _asked(self, node: Call, child: Node, *, holds: bool) -> Sql:
        child = self._folded(child)
        if node.name == "BOOL":
            return self.condition(child, holds=holds)
        known = type_of(child)
        if node.name == "IS_INT":
            whole = f"{self._integer(child)} IS NOT NULL" if holds else f"{self._integer(child)} IS NULL"
            there = Sql(f"{self._string(child)} IS NOT NULL")
            return Sql(whole) if holds else every([there, Sql(whole)])
        if known is None:
            name = _only(child)
            if holds:
                return some([_truth(name, holds=True), _truth(name, holds=False)])
            return every(
                [Sql(f"lower({sql.name(name)}) NOT IN ('true', 'false')"), sql.is_text(sql.name(name))]
            )
        if known is Type.STRING:
            return Sql(f"lower({self._string(child)}) {_not(holds)}IN ('true', 'false')")
        return Sql(f"{self._string(child)} IS NOT NULL") if holds else FALSE

    def _integer(self, node: Node) -> str:
        """Write an expression cast to Integer; an error is NULL."""
        node = self._folded(node)
        match node:
            case Value(value):
                return str(int(self._constant(value, Type.INTEGER, node)))
            case Name(name):
                return f"CAST({sql.name(name)} AS INT)"
            case Minus(child):
                return f"-({self._integer(child)})"
            case Binary("/", left, right):
                return f"CAST({self._integer(left)} div {self._integer(right)} AS INT)"
            case Binary(sign, left, right) if sign in MATH:
                return f"({self._integer(left)} {sign} {self._integer(right)})"
            case Call("LENGTH", (child,)):
                return f"length({self._string(child)})"
            case Call("ABS", (child,)):
                return f"abs({self._integer(child)})"
            case Call("INT", (child,)):
                return self._integer(child)
        if type_of(node) is Type.BOOLEAN:
            return self._chosen(node, "1", "0")
        return f"CAST({self._string(node)} AS INT)"

    def _string(self, node: Node) -> str:
        """Write an expression cast to String; an error is NULL."""
        node = self._folded(node)
        match node:
            case Value(value):
                return sql.text(reference.to_text(value))
            case Name(name):
                return f"CAST({sql.name(name)} AS STRING)"
            case Call(name, arguments) if type_of(node) is Type.STRING:
                return self._text_call(node, name, arguments)
        if type_of(node) is Type.BOOLEAN:
            return self._chosen(node, "'true'", "'false'")
        return f"CAST({self._integer(node)} AS STRING)"

    def _text_call(self, node: Node, name: str, arguments: tuple[Node, ...]) -> str:
        first = self._string(arguments[0])
        match name:
            case "LOWER" | "UPPER":
                return f"{name.lower()}({first})"
            case "TRIM":
                return f"trim(BOTH {sql.text(BLANKS)} FROM {first})"
            case "CONCAT" | "CONCAT_WS":
                parts = [self._string(each) for each in arguments]
                if name == "CONCAT_WS":
                    between = parts.pop(0)
                    parts = [each for part in parts for each in (between, part)][1:]
                return f"concat({', '.join(parts)})"
            case "LEFT" | "RIGHT":
                count = self._integer(arguments[1])
                taken = f"{name.lower()}({first}, {count})"
                return taken if _is_sound(arguments[1]) else f"CASE WHEN {count} >= 0 THEN {taken} END"
            case "SUBSTRING":
                return self._substring(node, first, arguments[1:])
        return first

    def _substring(self, node: Node, text: str, arguments: tuple[Node, ...]) -> str:
        given = [self._folded(each) for each in arguments]
        if not all(isinstance(each, Value) for each in given):
            self._refuse(
                "SUBSTRING takes numbers that are written out: what others give may lie outside", node
            )
        begin, *rest = (int(self._constant(self._value(each), Type.INTEGER, node)) for each in given)
        if rest and rest[0] < 0:
            self._refuse("SUBSTRING takes no negative length: this has an error for every event", node)
        if begin == 0:
            return f"CASE WHEN {text} IS NOT NULL THEN '' END"
        taken = f"substring({', '.join([text, str(begin), *map(str, rest)])})"
        return f"CASE WHEN length({text}) >= {abs(begin)} THEN {taken} END"

    def _seen(self, node: Node) -> str:
        """Write what LIKE looks at: it sees whole numbers and Booleans of attributes as texts."""
        return sql.name(node.name) if isinstance(node, Name) else self._string(node)

    def _chosen(self, node: Node, yes: str, no: str) -> str:
        true, false = self.condition(node, holds=True), self.condition(node, holds=False)
        return f"CASE WHEN {true.text} THEN {yes} WHEN {false.text} THEN {no} END"

    def _can_be(self, node: Node, kind: Type) -> bool:
        return not isinstance(node, Value) or _cast(node.value, kind) is not None

    def _folded(self, node: Node) -> Node:
        """Return the literal that an expression without attributes is."""
        if isinstance(node, Value) or _names(node) or _asks(node):
            return node
        try:
            return Value(reference.evaluate(node, {}), node.at)
        except Wrong as wrong:
            self._refuse(f"this has an error for every event: {wrong}", node)

    def _constant(self, value: bool | int | str, kind: Type, node: Node) -> bool | int | str:
        try:
            return reference.cast(value, kind)
        except Wrong as wrong:
            self._refuse(f"this has an error for every event: {wrong}", node)

    def _refuse(self, reason: str, node: Node) -> NoReturn:
        raise FilterError(reason, self._text, node.at)


def _truth(name: str, *, holds: bool) -> Sql:
    """Cast an attribute to Boolean: `true` and `false` in any case, and numbers."""
    own = sql.name(name)
    number = every([Sql(f"typeof({own}) = 'bigint'"), Sql(f"{own} {'!=' if holds else '='} 0")])
    return some([Sql(f"lower({own}) = '{'true' if holds else 'false'}'"), number])


def _text_equal(name: str, value: str, *, holds: bool) -> Sql:
    """Compare an attribute as a text: LIKE sees numbers and Booleans so, and `=` would cast the literal."""
    if holds and not sql.casts(value):
        return sql.one_of(name, [sql.text(value)])
    return Sql(f"{name} {_not(holds)}LIKE {sql.text(sql.as_pattern(value))}")


def _texts(name: str, values: list[str], *, holds: bool) -> Sql:
    if holds:
        return sql.texts(name, values)
    listed = ", ".join(sql.text(value) for value in dict.fromkeys(values))
    condition = Sql(f"{name} NOT IN ({listed})")
    return every([condition, sql.is_text(name)]) if any(map(sql.casts, values)) else condition


def _pattern(pattern: str) -> str:
    r"""Write a pattern for LIKE of SQL, where a backslash by itself is doubled.

    >>> print(_pattern(r"50\%_a\b"))
    50\%_a\\b
    """
    return re.sub(r"\\([%_])|\\", lambda found: f"\\{found[1]}" if found[1] else r"\\", pattern)


def _there(name: str, *, is_there: bool = True) -> str:
    return f"{sql.name(name)} IS {_not(not is_there)}NULL"


def _not(holds: bool) -> str:
    return "" if holds else "NOT "


def _cast(value: bool | int | str, kind: Type) -> bool | int | str | None:
    try:
        return reference.cast(value, kind)
    except Wrong:
        return None


def _is_sound(node: Node) -> bool:
    return isinstance(node, Value) and isinstance(node.value, int) and node.value >= 0


def _only(node: Node) -> str:
    assert isinstance(node, Name)
    return node.name


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Not(child) | Minus(child) | Like(child):
            return (child,)
        case In(child, items):
            return (child, *items)
        case Binary(_, left, right):
            return (left, right)
        case Call(_, arguments):
            return arguments
    return ()


def _names(node: Node) -> set[str]:
    """Return the attributes that are compared."""
    names, waiting = set(), [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Name):
            names.add(each.name)
        waiting.extend(_children(each))
    return names


def _decides(node: Node) -> bool:
    """Tell whether an expression has parts that are not looked at for every event."""
    return (isinstance(node, Binary) and node.sign in LOGIC) or any(
        _decides(each) for each in _children(node)
    )


def _asks(node: Node) -> bool:
    """Tell whether an expression asks whether something exists."""
    asked = isinstance(node, Exists) and node.name not in REQUIRED
    return asked or any(_asks(each) for each in _children(node))
