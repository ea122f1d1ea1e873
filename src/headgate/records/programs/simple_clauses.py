"""The commonest clauses by their pieces, from which a leaf is written without making the model.

a = 'x', a <> 'x', a [NOT] IN ('x', 'y')    if a text is no number, no Boolean and no moment to Spark
a = 5, a <> 5, a < 5, a <= 5, a > 5, a >= 5
a [NOT] BETWEEN 5 AND 7                     whole numbers of at most 15 digits, the first not above the second
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.text.cutting import BoundedCache
from headgate.records.language.model import Attribute, Comparison, Literal, LiteralType, Op
from headgate.records.programs.decimals import SHORT_LIMIT, whole_key
from headgate.records.programs.leaves import Facet, Quantifier, SetLeaf, float_key
from headgate.records.programs.lowering import lower
from headgate.records.programs.shapes import path_of
from headgate.records.programs.tokens import AND, OR

if TYPE_CHECKING:
    from headgate.core.values import Path
    from headgate.records.programs.intervals import Cut, Interval, Intervals

_MAX_TEXTS = 262_144
_MAX_LENGTH = 256

# Looser than the forms of `shapes`, which a clause has by now.
_COMMON = re.compile(
    r"([\w.]+)(?:\s*(<>|[<>]=?|!=|==?)\s*(?:'([^']*)'|([0-9]+))"
    r"|\s+(NOT\s+)?IN\s*\(\s*('[^']*'(?:\s*,\s*'[^']*')*)\s*\)"
    r"|\s+(NOT\s+)?BETWEEN\s+([0-9]+)\s+AND\s+([0-9]+))",
    re.ASCII | re.IGNORECASE,
)
_STRINGS = re.compile(r"'([^']*)'")
_ANY = Attribute.of("a")
_DIFFERS = {"=": False, "==": False, "!=": True, "<>": True}
_NUMBERS = (Facet.INT, Facet.FLOAT, Facet.STRING_INT, Facet.DECIMAL)
FACETS = bytes(_NUMBERS)
"""The facets of a whole number, one range on each."""
TWICE = bytes(facet for facet in _NUMBERS for _ in range(2))
"""The same, two ranges on each."""


class SimpleClause(NamedTuple):
    """A leaf by its pieces.

    texts     sorted and distinct: the value is one of them, or a text that is none of them if `outside`
    facets    else: the value's key on facets[i] lies in [lows[i], highs[i]]; as in `Programs`
    sign      what joins the predicates that the clause is made of, if it is BETWEEN: AND or OR; else 0
    """

    path: Path
    texts: list[str] | None
    outside: bool
    facets: bytes
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    sign: int

    def leaf(self, quantifier: Quantifier) -> SetLeaf:
        """Make the leaf that `lower`, `both` and `either` would make."""
        return SetLeaf(quantifier, self.path, False, self._sets())

    def _sets(self) -> tuple[tuple[Facet, Intervals], ...]:
        if self.texts is None:
            found: dict[Facet, list[Interval]] = {}
            for facet, low, high in zip(self.facets, self.lows, self.highs, strict=True):
                found.setdefault(Facet(facet), []).append(((low, "", 0), (high + 1, "", 0)))
            return tuple((facet, tuple(ranges)) for facet, ranges in found.items())
        before: list[Cut] = [(0, text, 0) for text in self.texts]
        after: list[Cut] = [(0, text, 1) for text in self.texts]
        if self.outside:
            before, after = [(0, "", 0), *after], [*before, (1, "", 0)]
        points = [(low, high) for low, high in zip(before, after, strict=True) if low < high]
        return ((Facet.STRING, tuple(points)),)


def read(clause: str, *, negated: bool) -> SimpleClause | None:
    """Take a clause of `shapes`, or its negation, apart if it is one of the commonest; else return None."""
    pieces = _COMMON.fullmatch(clause)
    if pieces is None:
        return None
    name, op, text, number, never, strings, apart, low, high = pieces.groups()
    path = path_of[name]
    if path is None:
        return None
    if text is not None:
        if op not in _DIFFERS or not is_plain[text]:
            return None
        return SimpleClause(path, [text], _DIFFERS[op] is not negated, b"", (), (), 0)
    if number is not None:
        value = int(number)
        return None if value > SHORT_LIMIT else compare(path, op, value, negated=negated)
    if strings is not None:
        texts = _STRINGS.findall(strings)
        # A list is compared on the facets that all its literals have, so one plain text is enough.
        if not any(map(is_plain.__getitem__, texts)):
            return None
        outside = (never is not None) is not negated
        return SimpleClause(path, sorted(set(texts)), outside, b"", (), (), 0)
    first, last = int(low), int(high)
    if first > last or last > SHORT_LIMIT:
        return None
    if (apart is not None) is not negated:
        return _without(path, first, last, OR)
    return SimpleClause(path, None, False, FACETS, _keys(first), _keys(last), AND)


def _keys(number: int) -> tuple[int, ...]:
    return number, float_key(float(number)), number, whole_key(number)


def compare(path: Path, op: str, number: int, *, negated: bool) -> SimpleClause:
    """Take a comparison with a whole number, or its negation, apart."""
    if op in _DIFFERS and _DIFFERS[op] is not negated:
        return _without(path, number, number, 0)
    lows = highs = _keys(number)
    if op not in _DIFFERS:
        # `a > 5` is not `a <= 5`: the bound belongs to it if one of the two, sign and NOT, says so.
        upward, within = (op[0] == ">") is not negated, (op[-1] == "=") is not negated
        if upward:
            lows, highs = tuple(low + (not within) for low in lows), (INT64_MAX,) * len(FACETS)
        else:
            lows, highs = (INT64_MIN,) * len(FACETS), tuple(high - (not within) for high in highs)
    return SimpleClause(path, None, False, FACETS, lows, highs, 0)


def _without(path: Path, first: int, last: int, sign: int) -> SimpleClause:
    """Leave a range out of every facet's line; so few digits never reach the ends of one."""
    lows = tuple(key for above in _keys(last) for key in (INT64_MIN, above + 1))
    highs = tuple(key for below in _keys(first) for key in (below - 1, INT64_MAX))
    return SimpleClause(path, None, False, TWICE, lows, highs, sign)


def _is_plain(text: str) -> bool:
    """Tell whether Spark compares a string literal with texts only.

    >>> is_plain["news"], is_plain[" 1e3"], is_plain["no"], is_plain["2024-01-01"]
    (True, False, False, False)
    """
    leaf = lower(Comparison(Op.EQ, _ANY, Literal(LiteralType.STRING, text)), negated=False)
    assert isinstance(leaf, SetLeaf)
    return len(leaf.sets) == 1


is_plain = BoundedCache(_is_plain, _MAX_TEXTS, _MAX_LENGTH)
