"""Percolator queries to SQL.

A query matches or not, and so does each of its parts: `must_not` of a field that is missing matches. A
part is converted to a condition that is TRUE where it matches, or to one that is TRUE where it does not.
A field may hold many values, of which one must fit; null and an empty array are no value.

Filters have no mapping: values are compared by the types that they have. Texts are keywords.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

from headgate.records.importers import sql
from headgate.records.importers.reading import Refused, convert_json, text_of
from headgate.records.importers.sql import FALSE, TRUE, Sql, every, some

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.importers.reading import DocumentPath

QUERIES = (
    "bool",
    "constant_score",
    "dis_max",
    "exists",
    "ids",
    "match",
    "match_all",
    "match_none",
    "prefix",
    "range",
    "regexp",
    "term",
    "terms",
    "wildcard",
)
_ANALYSES = "it analyses texts by the mapping of the field, which filters do not have"
_REASONS = {
    "match_phrase": f"{_ANALYSES}: write term or wildcard",
    "multi_match": f"{_ANALYSES}: write bool of term",
    "query_string": "it is a language of its own: write bool, term and wildcard",
    "simple_query_string": "it is a language of its own: write bool, term and wildcard",
    "fuzzy": "filters compare texts exactly: write wildcard or regexp",
    "nested": "names in filters do not go into arrays of objects: send a field of its own",
    "script": "filters run no programs: write the condition in the dialect sql",
    "geo_distance": "filters know no places: send a field that says the area",
    "geo_bounding_box": "filters know no places: write range of the two coordinates",
}
_MOST_WAYS = 32
"""Ways to choose clauses of `should` that are written out; beyond, they are counted."""
_ONLY_SCORES = ("boost", "_name", "rewrite", "relation")


def to_sql(text: str) -> str:
    """Convert a query; `{"query": …}` around it may stay.

    >>> to_sql('{"bool": {"filter": [{"term": {"status": "new"}}, {"range": {"age": {"gte": 18}}}]}}')
    "(status = 'new' OR array_contains(status, 'new')) AND (age >= 18 OR exists(age, x -> x >= 18))"
    """
    return convert_json(text, _document, "a query")


def _document(given: Any) -> Sql:
    if isinstance(given, dict) and list(given) == ["query"]:
        return _query(given["query"], ("query",), holds=True)
    return _query(given, (), holds=True)


def _query(given: Any, path: DocumentPath, *, holds: bool) -> Sql:
    if not isinstance(given, dict) or len(given) != 1:
        raise Refused(path, 'a query is an object of one name: write {"term": {"field": "…"}}')
    ((kind, body),) = given.items()
    here = (*path, kind)
    if kind not in QUERIES:
        known = _REASONS.get(kind, f"those that are converted are {', '.join(QUERIES)}")
        raise Refused(here, f"the query {kind!r} is not converted: {known}")
    if not isinstance(body, dict):
        raise Refused(here, f"{kind} takes an object")
    match kind:
        case "bool":
            return _bool(body, here, holds=holds)
        case "constant_score":
            _known(body, ("filter", "boost", "_name"), here, kind)
            return _query(body.get("filter"), (*here, "filter"), holds=holds)
        case "dis_max":
            _known(body, ("queries", "tie_breaker", "boost", "_name"), here, kind)
            return _chosen(_clauses(body, "queries", here), 1, holds=holds)
        case "match_all" | "match_none":
            return TRUE if (kind == "match_all") == holds else FALSE
        case "exists":
            _known(body, ("field", "boost", "_name"), here, kind)
            return _exists(_field(body.get("field"), (*here, "field")), holds=holds)
        case "ids":
            _known(body, ("values", "boost", "_name"), here, kind)
            listed = body.get("values")
            if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
                raise Refused(here, "ids takes a list of texts as values")
            condition = sql.texts(sql.name("id"), listed) if listed else FALSE
            return condition if holds else sql.unless(condition)
    condition = _leaf(kind, body, here)
    return condition if holds else sql.unless(condition)


def _bool(body: dict[str, Any], path: DocumentPath, *, holds: bool) -> Sql:
    _known(
        body,
        ("must", "filter", "must_not", "should", "minimum_should_match", "boost", "_name"),
        path,
        "bool",
    )
    must = [*_clauses(body, "must", path), *_clauses(body, "filter", path)]
    without, should = _clauses(body, "must_not", path), _clauses(body, "should", path)
    least = _least(body.get("minimum_should_match"), len(should), 0 if must else 1, path)
    conditions = [_query(each, at, holds=holds) for each, at in must]
    conditions += [_query(each, at, holds=not holds) for each, at in without]
    if should:
        conditions.append(_chosen(should, least, holds=holds))
    return every(conditions) if holds else some(conditions)


def _clauses(body: dict[str, Any], name: str, path: DocumentPath) -> list[tuple[Any, DocumentPath]]:
    given = body.get(name)
    if given is None:
        return []
    if isinstance(given, list):
        return [(each, (*path, name, number)) for number, each in enumerate(given)]
    return [(given, (*path, name))]


def _least(given: Any, count: int, default: int, path: DocumentPath) -> int:
    """Return how many clauses of `should` must match."""
    if given is None:
        return default if count else 0
    match_ = re.fullmatch(r"(-?[0-9]{1,6})(%?)", str(given)) if isinstance(given, int | str) else None
    if match_ is None or isinstance(given, bool):
        reason = "minimum_should_match takes a number or a percentage here: write 2, -1, '75%' or '-25%'"
        raise Refused((*path, "minimum_should_match"), reason)
    asked = int(match_[1])
    if match_[2]:
        # The part that may be missing is rounded down, as the part that must be there is.
        asked = int(count * asked / 100)
    return max(0, count + asked if str(given).startswith("-") else asked)


def _chosen(clauses: Sequence[tuple[Any, DocumentPath]], least: int, *, holds: bool) -> Sql:
    """Convert that at least so many clauses match; or not."""
    conditions = [_query(each, path, holds=holds) for each, path in clauses]
    if not holds:
        # Fewer than `least` match where all but `least - 1` do not.
        least = len(conditions) - least + 1
    if least <= 0:
        return TRUE
    if least > len(conditions):
        return FALSE
    if comb(len(conditions), least) <= _MOST_WAYS or least in {1, len(conditions)}:
        if least == len(conditions):
            return every(conditions)
        return some(every(way) for way in combinations(conditions, least))
    counted = " + ".join(f"CASE WHEN {each.text} THEN 1 ELSE 0 END" for each in conditions)
    return Sql(f"{counted} >= {least}")


def _exists(name: str, *, holds: bool) -> Sql:
    if not holds:
        return some([Sql(f"{name} IS NULL"), Sql(f"forall({name}, x -> x IS NULL)")])
    scalar = every([Sql(f"{name} IS NOT NULL"), Sql(f"typeof({name}) NOT LIKE 'array%'")])
    return some([scalar, Sql(f"NOT forall({name}, x -> x IS NULL)")])


def _leaf(kind: str, body: dict[str, Any], path: DocumentPath) -> Sql:
    """Convert what a query asks of one field."""
    fields = [name for name in body if name not in _ONLY_SCORES]
    if len(fields) != 1:
        raise Refused(path, f"{kind} takes one field, and this has {len(fields)}")
    field, value = fields[0], body[fields[0]]
    here = (*path, field)
    name = _field(field, here)
    if kind == "terms":
        return _terms(name, value, here)
    if kind == "range":
        return sql.tested(name, _range(value, here))
    options: dict[str, Any] = {}
    if isinstance(value, dict):
        inner = {"match": "query", "wildcard": "wildcard" if "wildcard" in value else "value"}.get(
            kind, "value"
        )
        allowed = ("case_insensitive", "flags", "max_determinized_states", "operator", *_ONLY_SCORES)
        _known(value, (inner, *allowed), here, kind)
        options = value
        value = options.get(inner)
    folded = options.get("case_insensitive", False)
    if kind in {"term", "match"}:
        return _term(kind, name, value, here, folded=bool(folded))
    if not isinstance(value, str):
        raise Refused(here, f"{kind} takes a text, not {value!r}")
    if kind == "regexp":
        if options.get("flags", "ALL") != "ALL":
            raise Refused((*here, "flags"), "flags of regexp are not converted: leave them out")
        pattern, flags = _regex(value, here), "(?is)" if folded else "(?s)"
        return sql.tested(name, lambda operand: sql.whole_regex(operand, pattern, flags))
    written = f"{sql.as_pattern(value)}%" if kind == "prefix" else _wildcard(value)
    pattern = written.lower() if folded else written
    return sql.tested(name, lambda operand: sql.like(f"lower({operand})" if folded else operand, pattern))


def _term(kind: str, name: str, value: Any, path: DocumentPath, *, folded: bool) -> Sql:
    if kind == "match" and isinstance(value, str):
        reason = "match analyses texts by the mapping of the field, which filters do not have"
        raise Refused(path, f"{reason}: write term for the whole text")
    if folded and isinstance(value, str):
        wanted = sql.text(text_of(value, path).lower())
        return sql.tested(name, lambda operand: Sql(f"lower({operand}) = {wanted}"))
    literal = _literal(value, path)
    return some([sql.one_of(name, [literal]), sql.element_of(name, [literal])])


def _terms(name: str, value: Any, path: DocumentPath) -> Sql:
    if not isinstance(value, list):
        raise Refused(path, "terms takes a list of values; those of another document are not looked up")
    families: dict[str, list[Any]] = {}
    for number, each in enumerate(value):
        family = "text" if isinstance(each, str) else "truth" if isinstance(each, bool) else "number"
        families.setdefault(family, []).append(each)
        _literal(each, (*path, number))
    conditions = []
    for family, values in families.items():
        literals = (
            sql.numbers(values)
            if family == "number"
            else list(dict.fromkeys(_literal(each, path) for each in values))
        )
        conditions += [sql.one_of(name, literals), sql.element_of(name, literals)]
    return some(conditions)


def _literal(value: Any, path: DocumentPath) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return sql.text(text_of(value, path))
        case int() | Decimal() if sql.is_double(value):
            return sql.number(value)
    raise Refused(path, f"a value is a text, a number, true or false, not {value!r}")


def _range(value: Any, path: DocumentPath) -> Callable[[str], Sql]:
    if not isinstance(value, dict):
        raise Refused(path, 'range takes an object of bounds: write {"gte": 1, "lt": 5}')
    _known(value, ("gt", "gte", "lt", "lte", "format", "time_zone", *_ONLY_SCORES), path, "range")
    bounds = {sign: value[sign] for sign in ("gt", "gte", "lt", "lte") if value.get(sign) is not None}
    if "format" in value and value["format"] not in {"strict_date_optional_time", "date_optional_time"}:
        raise Refused((*path, "format"), "formats of dates are not converted: write 2024-12-31T23:59:59Z")
    if value.get("time_zone", "UTC") not in {"UTC", "Z", "+00:00"}:
        raise Refused((*path, "time_zone"), "filters are in UTC: write the zone into the bounds")
    texts = [each for each in bounds.values() if isinstance(each, str)]
    dates = bool(texts) and all(_DATE.fullmatch(each) for each in texts)
    compared: list[tuple[str, str]] = []
    for sign, each in bounds.items():
        here = (*path, sign)
        if isinstance(each, str) and (each.startswith("now") or "||" in each):
            raise Refused(
                here, "dates that depend on the clock are not converted: an event means the same at any time"
            )
        if isinstance(each, str) and dates:
            compared.append(_moment(sign, each, here))
        elif isinstance(each, bool) or (texts and not isinstance(each, str)):
            raise Refused(here, "the bounds of a range are all numbers or all texts")
        else:
            compared.append(({"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}[sign], _literal(each, here)))
    if not compared:
        raise Refused(path, 'range takes at least one bound: write {"gte": 1}')
    return lambda operand: every([Sql(f"{operand} {sign} {bound}") for sign, bound in compared])


_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)


def _moment(sign: str, text: str, path: DocumentPath) -> tuple[str, str]:
    """Return a bound that is a date: what is not given of it is filled up, for gt and lte to its end."""
    match_ = _DATE.fullmatch(text)
    assert match_ is not None
    year, month, day, hour, minute, second, fraction = (
        None if each is None else int(each) for each in match_.groups()[:7]
    )
    try:
        micro = 0 if fraction is None else int(match_[7].ljust(6, "0"))
        begin = dt.datetime(year or 1, month or 1, day or 1, hour or 0, minute or 0, second or 0, micro)
        if (match_[8] or "Z") != "Z":
            begin -= dt.timedelta(hours=int(match_[8][:3]), minutes=int(match_[8][0] + match_[8][4:]))
        upward = sign in {"gt", "lte"}
        if upward:
            begin = _end(begin, month, day, hour, minute, second, fraction)
    except (ValueError, OverflowError):
        raise Refused(path, f"{text!r} is not a date") from None
    written = f"TIMESTAMP '{begin.year:04}-{begin:%m-%d %H:%M:%S.%f}Z'"
    return {"gt": ">=", "gte": ">=", "lt": "<", "lte": "<"}[sign], written


def _end(begin: dt.datetime, *given: int | None) -> dt.datetime:
    """Return the first moment after a year, a month, a day and so on down to a millisecond."""
    month, day, *rest = given
    if month is None:
        return begin.replace(year=begin.year + 1)
    if day is None:
        return begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
    units = ("days", "hours", "minutes", "seconds")
    missing = (unit for unit, part in zip(units, rest, strict=True) if part is None)
    return begin + dt.timedelta(**{next(missing, "milliseconds"): 1})


def _wildcard(value: str) -> str:
    r"""Write `*` and `?` as LIKE has them.

    >>> print(_wildcard(r"a*b?\*%"))
    a%b_*\%
    """
    pattern, letters = [], iter(value)
    for letter in letters:
        if letter == "\\":
            pattern.append(sql.as_pattern(next(letters, "\\")))
        else:
            pattern.append({"*": "%", "?": "_"}.get(letter) or sql.as_pattern(letter))
    return "".join(pattern)


def _regex(value: str, path: DocumentPath) -> str:
    """Write a regular expression of Lucene for RLIKE: `^` and `$` are letters to Lucene."""
    pattern, letters, inside = [], iter(value), False
    for letter in letters:
        if letter == "\\":
            after = next(letters, "")
            if after.isalnum() and after not in "dDsSwW":
                raise Refused(path, f"\\{after} is not converted in regexp")
            pattern.append(f"\\{after}" if after else r"\\")
        elif letter in '~<>&@#"' and not inside:
            reason = (
                f"{letter} is an operator of Lucene that is not converted: write \\{letter} for the letter"
            )
            raise Refused(path, reason)
        elif letter in "^$" and not inside:
            pattern.append(f"\\{letter}")
        else:
            inside = letter == "[" or (inside and letter != "]")
            pattern.append(letter)
    return "".join(pattern)


def _field(given: Any, path: DocumentPath) -> str:
    """Write the name of a field: `name.keyword` is `name`, and `_id` is `id`."""
    if not isinstance(given, str) or not given or "*" in given:
        raise Refused(path, "the name of one field is expected here")
    parts = given.split(".")
    if parts[-1] == "keyword" and len(parts) > 1:
        parts.pop()
    if not all(parts):
        raise Refused(path, f"{given!r} is not the name of a field")
    return sql.name(*(["id"] if parts == ["_id"] else parts))


def _known(body: dict[str, Any], names: Sequence[str], path: DocumentPath, kind: str) -> None:
    odd = next((name for name in body if name not in names), None)
    if odd is not None:
        shown = ", ".join(name for name in names if name not in ("_name", "rewrite"))
        raise Refused((*path, odd), f"{odd!r} of {kind} is not converted: it takes {shown}")
