"""Event patterns to SQL.

A pattern names fields and lists what their values may be; an object goes deeper. A value that is an array
fits if one of its elements does, so every test is written twice: of the value, and of elements.
EventBridge casts nothing, and SQL does: where a cast could make a difference, the type is asked for, too.
"""

from __future__ import annotations

import ipaddress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headgate.records.importers import sql
from headgate.records.importers.reading import Refused, convert_json, text_of
from headgate.records.importers.sql import Sql, every, some

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.records.importers.reading import DocumentPath

OR = "$or"
OPERATORS = (
    "anything-but",
    "cidr",
    "equals-ignore-case",
    "exists",
    "numeric",
    "prefix",
    "suffix",
    "wildcard",
)
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_NUMBER = "typeof({}) <> 'string'"
"""What is compared with a number and is no string is a number."""


def to_sql(text: str) -> str:
    """Convert an event pattern.

    >>> to_sql('{"source": ["aws.ec2"], "detail": {"state": [{"exists": false}]}}')
    "(source = 'aws.ec2' OR array_contains(source, 'aws.ec2')) AND detail.state IS NULL"
    >>> to_sql('{"source": "aws.ec2"}')
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: the values of a field stand in a list: write ["aws.ec2"], at character 2: \
{⟪"source": "aws.ec2"}
    """
    return convert_json(text, _document, "an event pattern")


def _document(given: Any) -> Sql:
    if not isinstance(given, dict):
        raise Refused((), 'an event pattern is an object: write {"source": ["…"]}')
    return _pattern(given, (), ())


def _pattern(given: dict[str, Any], names: tuple[str, ...], path: DocumentPath) -> Sql:
    if not given:
        raise Refused(path, "an empty object matches nothing in EventBridge: name a field, or leave it out")
    return every([_field(key, value, names, (*path, key)) for key, value in given.items()])


def _field(key: str, value: Any, names: tuple[str, ...], path: DocumentPath) -> Sql:
    if key == OR:
        return _either(value, names, path)
    here = (*names, key)
    if isinstance(value, dict):
        return _pattern(value, here, path)
    if not isinstance(value, list):
        raise Refused(path, f"the values of a field stand in a list: write [{_shown(value)}]")
    if not value:
        raise Refused(path, "an empty list matches nothing: list at least one value")
    return _values(value, sql.name(*here), path)


def _either(value: Any, names: tuple[str, ...], path: DocumentPath) -> Sql:
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(each, dict) for each in value):
        raise Refused(path, f"{OR} takes a list of two patterns or more, each an object")
    conditions = []
    for number, each in enumerate(value):
        odd = next((key for key in each if key in OPERATORS), None)
        if odd is not None:
            reason = (
                f"{odd} is an operator, and a pattern in {OR} names fields: write {{field: [{{{odd!r}: …}}]}}"
            )
            raise Refused((*path, number, odd), reason)
        conditions.append(_pattern(each, names, (*path, number)))
    return some(conditions)


def _values(given: list[Any], name: str, path: DocumentPath) -> Sql:
    """Convert the list of a field: one of its values must fit."""
    strings: list[str] = []
    numbers: list[int | Decimal] = []
    conditions: list[Sql] = []
    for number, each in enumerate(given):
        here = (*path, number)
        match each:
            case str():
                strings.append(text_of(each, here))
            case bool():
                conditions.append(_boolean(each, name))
            case int() | Decimal():
                numbers.append(_number(each, here))
            case None if sql.told():
                conditions.append(some([_null(name), sql.some_element(name, Sql("x IS NULL"))]))
            case None:
                reason = (
                    "null is told from a missing field in EventBridge, and not by these filters: make them "
                    "with nulls='told', or write {\"exists\": false} if both will do"
                )
                raise Refused(here, reason)
            case dict():
                conditions.append(_operator(each, name, here))
            case _:
                raise Refused(
                    here, "a list in the list of a field is not part of event patterns: list its values"
                )
    exact = []
    if strings:
        literals = [sql.text(value) for value in dict.fromkeys(strings)]
        exact += [sql.texts(name, strings), sql.element_of(name, literals)]
    if numbers:
        literals = sql.numbers(numbers)
        exact += [
            every([sql.one_of(name, literals), Sql(_NUMBER.format(name))]),
            sql.element_of(name, literals),
        ]
    return some([*exact, *conditions])


def _boolean(value: bool, name: str) -> Sql:
    written = "TRUE" if value else "FALSE"
    return some(
        [Sql(f"typeof({name}) = 'boolean' AND {name} = {written}", 1), sql.element_of(name, [written])]
    )


def _operator(given: dict[str, Any], name: str, path: DocumentPath) -> Sql:
    if len(given) != 1:
        raise Refused(
            path, f"an operator is an object of one name, and this has {len(given)}: write one object each"
        )
    ((operator, value),) = given.items()
    here = (*path, operator)
    if operator == "exists":
        if not isinstance(value, bool):
            raise Refused(here, "exists takes true or false")
        return _exists(name, wanted=value)
    if operator == "anything-but":
        return _anything_but(value, name, here)
    return sql.tested(name, _test(operator, value, here))


def _null(name: str) -> Sql:
    """Write that a field is there, and null."""
    return every([sql.present(name), Sql(f"{name} IS NULL")])


def _exists(name: str, *, wanted: bool) -> Sql:
    """Write that a field is there, or not; where null is told, an object and an empty array are not."""
    if not sql.told():
        return Sql(f"{name} IS NOT NULL" if wanted else f"{name} IS NULL")
    kind = f"typeof({name})"
    objects = Sql(f"coalesce({kind} LIKE 'struct%' OR {kind} LIKE 'array<struct%', FALSE)")
    others = [objects, Sql(f"coalesce(size({name}) = 0, FALSE)")]
    there = sql.present(name)
    return every([there, *map(sql.negated, others)]) if wanted else some([sql.negated(there), *others])


def _test(operator: str, value: Any, path: DocumentPath) -> Callable[[str], Sql]:
    """Return what an operator asks of one value."""
    match operator:
        case "numeric":
            return _numeric(value, path)
        case "cidr":
            pattern = _network(value, path)
            return lambda operand: sql.whole_regex(operand, pattern)
        case "prefix" | "suffix" | "equals-ignore-case" | "wildcard":
            pattern, folded = _like(operator, value, path)
            return _pattern_test(pattern, folded=folded)
    known = ", ".join(OPERATORS)
    raise Refused(path, f"{operator!r} is not an operator of event patterns: they are {known}")


def _pattern_test(pattern: str, *, folded: bool) -> Callable[[str], Sql]:
    guarded = _may_be_other(pattern)

    def test(operand: str) -> Sql:
        condition = sql.like(f"lower({operand})" if folded else operand, pattern)
        if operand == "x":
            return every([Sql("typeof(x) = 'string'"), condition])
        return every([condition, sql.is_text(operand)]) if guarded else condition

    return test


def _may_be_other(pattern: str) -> bool:
    """Tell whether a pattern may fit what LIKE sees of numbers and Booleans: digits, a sign, true, false."""
    return set(pattern) <= set("-0123456789truefalse%_")


def _like(operator: str, value: Any, path: DocumentPath) -> tuple[str, bool]:
    """Return the pattern of LIKE that an operator stands for, and whether it is for texts in lower case."""
    folded = operator == "equals-ignore-case"
    if isinstance(value, dict) and operator in {"prefix", "suffix"}:
        if list(value) != ["equals-ignore-case"]:
            raise Refused(path, f"{operator} takes a text, or {{'equals-ignore-case': text}}")
        value, folded, path = value["equals-ignore-case"], True, (*path, "equals-ignore-case")
    if not isinstance(value, str):
        raise Refused(path, f"{operator} takes a text, not {_shown(value)}")
    text_of(value, path)
    if operator == "wildcard":
        return _wildcard(value, path), False
    written = sql.as_pattern(value.lower() if folded else value)
    return {"prefix": f"{written}%", "suffix": f"%{written}"}.get(operator, written), folded


def _wildcard(value: str, path: DocumentPath) -> str:
    pattern, letters = [], iter(value)
    for letter in letters:
        if letter == "\\":
            after = next(letters, "")
            if after not in {"*", "\\"}:
                raise Refused(path, "a backslash in a wildcard stands before * or another backslash only")
            pattern.append(sql.as_pattern(after))
        elif letter == "*":
            if pattern[-1:] == ["%"]:
                raise Refused(path, "two * side by side are not part of event patterns: write one")
            pattern.append("%")
        else:
            pattern.append(sql.as_pattern(letter))
    return "".join(pattern)


def _numeric(value: Any, path: DocumentPath) -> Callable[[str], Sql]:
    signs = ("=", "<", "<=", ">", ">=")
    if not isinstance(value, list) or len(value) not in {2, 4}:
        raise Refused(path, 'numeric takes a sign and a number, or two of each: write [">", 0, "<=", 5]')
    pairs = list(zip(value[::2], value[1::2], strict=True))
    for number, (sign, bound) in enumerate(pairs):
        if sign not in signs:
            raise Refused(
                (*path, 2 * number), f"{_shown(sign)} is not a sign of numeric: they are {', '.join(signs)}"
            )
        if isinstance(bound, bool) or not isinstance(bound, int | Decimal):
            raise Refused((*path, 2 * number + 1), f"numeric compares with a number, not {_shown(bound)}")
        _number(bound, (*path, 2 * number + 1))
    if len(pairs) == 2:
        (first, low), (second, high) = pairs
        if first not in {">", ">="} or second not in {"<", "<="} or low >= high:
            raise Refused(path, 'a numeric range goes from below to above: write [">", 0, "<=", 5]')

    def test(operand: str) -> Sql:
        compared = [Sql(f"{operand} {sign} {sql.number(bound)}") for sign, bound in pairs]
        return every([*compared, Sql(_NUMBER.format(operand))])

    return test


def _network(value: Any, path: DocumentPath) -> str:
    """Return the regular expression of the addresses of a network."""
    if not isinstance(value, str):
        raise Refused(path, f"cidr takes a network such as '10.0.0.0/24', not {_shown(value)}")
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise Refused(path, f"{value!r} is not a network: write '10.0.0.0/24'") from None
    if network.version == 6:
        reason = "cidr of IPv6 is not converted: an address has many spellings, and records compare texts"
        raise Refused(path, f"{reason}: send a field that says the network")
    whole, bits = divmod(network.prefixlen, 8)
    octets = list(network.network_address.packed)
    octet_patterns = [str(octet) for octet in octets[:whole]]
    if bits:
        octet_patterns.append(
            "(" + "|".join(map(str, range(octets[whole], octets[whole] + (1 << (8 - bits))))) + ")"
        )
    return "[.]".join([*octet_patterns, *[_OCTET] * (4 - len(octet_patterns))])


def _anything_but(value: Any, name: str, path: DocumentPath) -> Sql:
    """Convert `anything-but`: a value that is there and not one of these; of another type, it is not."""
    if isinstance(value, dict):
        return _but_like(value, name, path)
    listed = value if isinstance(value, list) else [value]
    if listed and all(isinstance(each, str) for each in listed):
        literals = [sql.text(text_of(each, path)) for each in dict.fromkeys(listed)]
        return _but(name, lambda operand: [sql.one_of(operand, literals)], strings=True)
    if listed and all(isinstance(each, int | Decimal) and not isinstance(each, bool) for each in listed):
        literals = sql.numbers(_number(each, path) for each in listed)
        return _but(name, lambda operand: [sql.one_of(operand, literals)], strings=False)
    raise Refused(
        path,
        "anything-but takes a text, a number, a list of texts or of numbers, or an object of one operator",
    )


def _but_like(value: dict[str, Any], name: str, path: DocumentPath) -> Sql:
    operators = ("prefix", "suffix", "equals-ignore-case", "wildcard")
    if len(value) != 1 or next(iter(value)) not in operators:
        raise Refused(path, f"anything-but takes an object of one operator: {', '.join(operators)}")
    ((operator, given),) = value.items()
    here = (*path, operator)
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise Refused(here, "an empty list says nothing: list at least one text")
    patterns = [_like(operator, each, here) for each in listed]

    def tests(operand: str) -> list[Sql]:
        return [sql.like(f"lower({operand})" if folded else operand, each) for each, folded in patterns]

    return _but(name, tests, strings=True)


def _but(name: str, tests: Callable[[str], list[Sql]], *, strings: bool) -> Sql:
    """Write that a value is there and all tests fail; what they cannot be asked of, fails them."""
    others = "'bigint', 'double', 'boolean', 'timestamp'" if strings else "'string', 'boolean', 'timestamp'"

    def fails(operand: str) -> list[Sql]:
        conditions = [every(map(sql.negated, tests(operand))), Sql(f"typeof({operand}) IN ({others})")]
        return [*conditions, sql.like(f"typeof({operand})", "decimal%")] if strings else conditions

    null = [_null(name)] if sql.told() else []
    return some([*fails(name), *null, sql.some_element(name, some([Sql("x IS NULL"), *fails("x")]))])


def _number(value: int | Decimal, path: DocumentPath) -> int | Decimal:
    if not sql.is_double(value):
        raise Refused(path, "the number does not fit into a double")
    return value


def _shown(value: Any) -> str:
    import json

    written = json.dumps(value, default=str, ensure_ascii=False)
    return written if len(written) <= 40 else f"{written[:39]}…"
