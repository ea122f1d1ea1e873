"""Predicates of the model to leaves: the one place that knows how Spark compares types.

Each literal type sees an attribute on certain facets, and on each of them a comparison is an interval of
keys. `<` against the decimal 1.5 is `key < 2` for whole numbers, `key < key(1.5)` for doubles, for decimals
(whose keys are others, see `decimals`) and for texts cast to double.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from headgate.core.casts import INT64_MAX, INT64_MIN, to_bool, to_double, to_int, to_timestamp
from headgate.records.computed import WORDS
from headgate.records.language import model
from headgate.records.language.patterns import ANY_CHARACTER, ANY_TEXT, tokens
from headgate.records.programs.decimals import (
    decimal_key,
    decimal_text,
    double_cuts,
    is_short,
)
from headgate.records.programs.intervals import Cut, Intervals, after, before, number, union
from headgate.records.programs.leaves import (
    Facet,
    GlobLeaf,
    Leaf,
    Quantifier,
    element_leaf,
    float_key,
    line,
    outside,
    value_leaf,
)

_FULL = {Facet.PRESENT: (line(Facet.PRESENT),)}
_ARRAY = {Facet.ARRAY: (line(Facet.ARRAY),)}
_DECIMALS = (Facet.DECIMAL, Facet.LONG_DECIMAL)


class Place(NamedTuple):
    """Where a literal lies on a facet's line: keys below it end at `low`, keys above it begin at `high`.

    The keys between the two cuts equal the literal; there are none when 1.5 meets whole numbers.
    """

    low: Cut
    high: Cut


_SHORT = 256
"""Characters of a predicate whose leaf is kept; a literal counts as eight."""


def lower(predicate: model.Predicate, *, negated: bool) -> Leaf:
    """Make the leaf that is true exactly when the predicate (or its negation) is TRUE.

    BETWEEN and comparisons with NULL are gone by now (see `rewrite`). Those of short predicates are kept,
    because subscriptions repeat them; long ones seldom are the same, and would fill the memory.
    """
    return (lower_again if _is_short(predicate) else _lower)(predicate, negated=negated)


def _is_short(predicate: model.Predicate) -> bool:
    match predicate:
        case model.Comparison(literal=literal) | model.ArrayContains(literal=literal):
            return not isinstance(literal.value, str) or len(literal.value) <= _SHORT
        case model.In() | model.ArraysOverlap() | model.ForAll():
            literals = predicate.literals
            texts = [each.value for each in literals[: _SHORT // 8] if isinstance(each.value, str)]
            return len(literals) < _SHORT // 8 and sum(map(len, texts)) <= _SHORT
        case model.Like(pattern=text) | model.HasWord(word=text):
            return len(text) <= _SHORT
    return True


def _lower(predicate: model.Predicate, *, negated: bool) -> Leaf:
    path = predicate.attribute.key
    match predicate:
        case model.IsNull():
            return value_leaf(path, _FULL) if negated else value_leaf(path, {}, on_null=True)
        case model.Comparison(op, _, literal):
            sets = {facet: _compare(op, place, facet) for facet, place in _places(literal).items()}
            null_safe = op is model.Op.NULL_SAFE_EQ
            return value_leaf(path, outside(sets) if negated else sets, on_null=null_safe and negated)
        case model.Truth():
            wanted = model.Literal(model.LiteralType.BOOL, not negated)
            return value_leaf(path, {facet: (place,) for facet, place in _places(wanted).items()})
        case model.In(_, literals):
            sets = points(literals)
            if negated and model.NULL in literals:
                sets = {}
            return value_leaf(path, outside(sets) if negated else sets)
        case model.Like():
            return _like(predicate, negated=negated)
        case model.HasWord(_, word):
            # Words that no filter names are left out of events: they lie in the complement of every word.
            sets_of_word: dict[Facet, Intervals] = {Facet.STRING: ((before(word), after(word)),)}
            quantifier = Quantifier.ALL if negated else Quantifier.ANY
            return element_leaf(
                (WORDS, *path), quantifier, outside(sets_of_word) if negated else sets_of_word
            )
        case model.ArrayContains(_, literal):
            return _elements(path, (literal,), negated=negated)
        case model.ArraysOverlap(_, literals):
            if not literals:
                return value_leaf(path, _ARRAY if negated else {})
            return _elements(path, literals, negated=negated)
        case model.ForAll():
            return _forall(predicate, negated=negated)
    raise AssertionError(f"{type(predicate).__name__} should have been rewritten")


lower_again = lru_cache(maxsize=65_536)(_lower)


def _elements(path: tuple[str, ...], literals: tuple[model.Literal, ...], *, negated: bool) -> Leaf:
    own = {Facet.BOOL, Facet.INT, Facet.FLOAT, Facet.STRING, Facet.TIMESTAMP, *_DECIMALS}
    sets = {facet: ranges for facet, ranges in points(literals).items() if facet in own}
    # A string literal meets texts only here: array functions do not cast.
    if model.common_type(literals) is model.LiteralType.STRING:
        sets = {Facet.STRING: sets[Facet.STRING]}
    if not negated:
        return element_leaf(path, Quantifier.ANY, sets)
    return element_leaf(path, Quantifier.ALL, {} if model.NULL in literals else outside(sets))


def _forall(predicate: model.ForAll, *, negated: bool) -> Leaf:
    """Make the leaf of every element in the list; its negation is some element that is surely not in it."""
    path, literals = predicate.attribute.path, predicate.literals
    sets = points(literals)
    if not negated:
        return replace(element_leaf(path, Quantifier.ALL, sets), on_null=predicate.nulls)
    if model.NULL in literals:
        sets = {}
    return element_leaf(path, Quantifier.ANY, outside(sets) if literals else _FULL)


def points(literals: tuple[model.Literal, ...], *, every: bool = True) -> dict[Facet, Intervals]:
    """Collect the keys that equal one of the literals, on the facets where all have a place, or any has."""
    common = model.common_type(literals)
    assert common is not None
    converted = [model.convert(literal, common) for literal in literals if literal != model.NULL]
    places = [_places(literal) for literal in converted]
    if any(Facet.LONG_DECIMAL in place for place in places):
        # All of a list are seen on one facet.
        places = [_lengthened(place, literal) for place, literal in zip(places, converted, strict=True)]
    join = set[Facet].intersection if every else set[Facet].union
    facets = join(*map(set, places)) if places else set()
    return {facet: union(tuple(place[facet] for place in places if facet in place), ()) for facet in facets}


def _compare(op: model.Op, place: Place, facet: Facet) -> Intervals:
    bottom, top = line(facet)
    parts: dict[model.Op, Intervals] = {
        model.Op.EQ: (place,),
        model.Op.NULL_SAFE_EQ: (place,),
        model.Op.NE: ((bottom, place.low), (place.high, top)),
        model.Op.LT: ((bottom, place.low),),
        model.Op.LE: ((bottom, place.high),),
        model.Op.GT: ((place.high, top),),
        model.Op.GE: ((place.low, top),),
    }
    return union(parts[op], ())


def _places(literal: model.Literal) -> dict[Facet, Place]:
    """Place a literal on the line of each facet that it can be compared on."""
    value = literal.value
    match literal.type:
        case model.LiteralType.BOOL:
            return {Facet.BOOL: _whole(int(bool(value))), Facet.STRING_BOOL: _whole(int(bool(value)))}
        case model.LiteralType.INT:
            assert isinstance(value, int)
            return {
                Facet.INT: _whole(value),
                Facet.FLOAT: _double(float(value)),
                Facet.STRING_INT: _whole(value),
                **_among_decimals(value),
            }
        case model.LiteralType.DECIMAL:
            assert isinstance(value, Decimal)
            double = _double(float(value))
            return {
                Facet.INT: _exact(value),
                Facet.FLOAT: double,
                Facet.STRING_FLOAT: double,
                **_among_decimals(value),
            }
        case model.LiteralType.DOUBLE:
            assert isinstance(value, float)
            double = _double(value)
            return {
                Facet.INT: _rounded(value),
                Facet.FLOAT: double,
                Facet.STRING_FLOAT: double,
                Facet.DECIMAL: _of_decimals(value),
            }
        case model.LiteralType.DATE:
            assert isinstance(value, int)
            return {Facet.TIMESTAMP: _whole(value), Facet.STRING_DATE: _whole(value)}
        case model.LiteralType.TIMESTAMP:
            assert isinstance(value, int)
            return {Facet.TIMESTAMP: _whole(value), Facet.STRING_TIMESTAMP: _whole(value)}
        case model.LiteralType.STRING:
            return _text_places(str(value))
        case model.LiteralType.NULL:
            return {}


def _text_places(text: str) -> dict[Facet, Place]:
    """Place a string literal among texts, and where Spark would cast it to the attribute's type."""
    places = {Facet.STRING: Place(before(text), after(text))}
    for facet, cast in (
        (Facet.BOOL, to_bool(text)),
        (Facet.INT, to_int(text)),
        (Facet.TIMESTAMP, to_timestamp(text)),
    ):
        if cast is not None:
            places[facet] = _whole(int(cast))
    double = to_double(text)
    if double is not None:
        places[Facet.FLOAT] = _double(double)
        places[Facet.DECIMAL] = _of_decimals(double)
    return places


def _among_decimals(value: int | Decimal) -> dict[Facet, Place]:
    """Place a number among decimals, exactly."""
    if is_short(value):
        return {Facet.DECIMAL: _whole(decimal_key(Decimal(value)))}
    text = decimal_text(value)
    return {Facet.LONG_DECIMAL: Place(before(text), after(text))}


def _lengthened(places: dict[Facet, Place], literal: model.Literal) -> dict[Facet, Place]:
    """Have the place of a short number among all digits of decimals."""
    assert isinstance(literal.value, int | Decimal)
    text = decimal_text(literal.value)
    longer = {**places, Facet.LONG_DECIMAL: Place(before(text), after(text))}
    longer.pop(Facet.DECIMAL, None)
    return longer


def _of_decimals(value: float) -> Place:
    """Place a double among decimals that are cast to double before they meet it."""
    low, high = double_cuts(value)
    return Place(number(low), number(high))


def _whole(value: int) -> Place:
    return Place(number(value), number(value + 1))


def _double(value: float) -> Place:
    return _whole(float_key(value))


def _exact(value: Decimal) -> Place:
    """Place a decimal among whole numbers, exactly."""
    low, high = math.ceil(value), math.floor(value) + 1
    return Place(number(_clip(low)), number(_clip(high)))


def _rounded(value: float) -> Place:
    """Place a double among whole numbers that are cast to double before they meet it.

    The cast rounds, so several whole numbers beyond 2**53 may equal one double.
    """
    low, high = (_first(value, including=including) for including in (True, False))
    return Place(number(low), number(high))


def _first(value: float, *, including: bool) -> int:
    """Find the first whole number whose double is at least `value`, or above it without `including`."""
    low, high = INT64_MIN, INT64_MAX + 1
    while low < high:
        middle = (low + high) // 2
        if float(middle) > value or (including and float(middle) == value):
            high = middle
        else:
            low = middle + 1
    return low


def _clip(value: int) -> int:
    return max(INT64_MIN, min(INT64_MAX + 1, value))


def _like(predicate: model.Like, *, negated: bool) -> Leaf:
    """Make an interval of texts of a pattern without wildcards or with `%` at its end; else keep it."""
    path, parts = predicate.attribute.key, list(tokens(predicate.pattern, predicate.escape))
    wild = [index for index, part in enumerate(parts) if isinstance(part, int)]
    fixed = "".join(part for part in parts if isinstance(part, str))
    if not wild:
        interval = (before(fixed), after(fixed))
    elif wild == [len(parts) - 1] and parts[-1] == ANY_TEXT:
        interval = (before(fixed), after_prefix(fixed))
    else:
        return GlobLeaf(path, negated, _glob(parts))
    sets: dict[Facet, Intervals] = {Facet.TEXT: union((interval,), ())}
    return value_leaf(path, outside(sets) if negated else sets)


def after_prefix(prefix: str) -> Cut:
    """Cut after all texts that begin with a prefix: before the prefix with its last character raised."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return line(Facet.TEXT)[1]
    following = ord(kept[-1]) + 1
    # Surrogates are no characters; the next one after U+D7FF is U+E000.
    return before(kept[:-1] + chr(0xE000 if following == 0xD800 else following))


def _glob(parts: list[str | int]) -> tuple[int, ...]:
    pattern: list[int] = []
    for part in parts:
        if isinstance(part, str):
            pattern.extend(part.encode())
        elif part == ANY_CHARACTER or not pattern or pattern[-1] != ANY_TEXT:
            pattern.append(part)
    return tuple(pattern)
