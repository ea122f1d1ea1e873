"""A pattern to numbers: edges over codes and slots, and checks as words.

Slots are the pattern's own here; `canonical` gives those of equal patterns the same numbers.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headgate.rdf.index import arrays
from headgate.rdf.language import model, searches
from headgate.rdf.language.printing import print_expression
from headgate.rdf.language.refusal import MAX_EDGES
from headgate.rdf.language.rewrite import is_one, rewrite, substitute, variables
from headgate.rdf.language.values import DATE_TIME, DOUBLE, FLOAT, Moment, Number, Text, coerced, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.rdf.language.model import Expression, Options, Pattern, Term
    from headgate.rdf.language.searches import Lookup
    from headgate.rdf.language.values import Value


DIGITS = 15
"""Decimals of so many digits are told apart by floats."""


class Place(NamedTuple):
    """A line, the key there, how well it stands for the value, and how far off a comparison may see it."""

    line: int
    key: float = 0.0
    marks: int = 0
    slack: float = 0.0


_OFF = Place(arrays.NOWHERE)
_ONE = Number("integer", 1)
_DAY = Moment("date", Fraction(0), True)
_TIME = Moment(DATE_TIME, Fraction(0), True)


def place(term: Term, coerce: bool) -> Place:
    """Find where a term lies.

    >>> place('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', False)
    Place(line=1, key=7.0, marks=3, slack=0.0)
    >>> place('"7"', False).line, place('"7"', True).line, place('"seven"', True).line
    (0, 1, 0)
    """
    if term.endswith('"') and not (coerce and _VALUE.match(term)):
        # A string that does not even begin like a value: most of what is published.
        return _OFF
    return _kept(term, coerce) if len(term) <= _LONG else _found(term, coerce)


_VALUE = re.compile(r'"(?:[ ]|\\[trn])*[-+.0-9IN]')
_LONG = 200
"""Longer ones are not kept: they would fill the memory and hardly come again."""


def _found(term: Term, coerce: bool) -> Place:
    value = value_of(term)
    if coerce and isinstance(value, Text):
        for other in (_ONE, _TIME, _DAY):
            value = coerced(value, other)
    return _place(value)


_kept = lru_cache(1 << 14)(_found)


def _place(value: Value | None) -> Place:
    if isinstance(value, Moment):
        times = (
            (arrays.LOCAL_TIMES, arrays.TIMES)
            if value.kind == DATE_TIME
            else (arrays.LOCAL_DAYS, arrays.DAYS)
        )
        key = _rounded(value.seconds)
        return Place(times[value.zoned], key, _marks(key, value.seconds))
    if not isinstance(value, Number):
        return _OFF
    if isinstance(value.value, float):
        if math.isnan(value.value):
            # No range holds it.
            return _OFF
        # Whatever a float is compared with is rounded to a float first.
        slack = abs(value.value) * 2.0**-22 + 2.0**-140 if value.kind == FLOAT else 0.0
        return Place(
            arrays.NUMBERS,
            value.value,
            arrays.EXACT | arrays.SHORT,
            0.0 if math.isinf(value.value) else slack,
        )
    number = Fraction(value.value)
    key = _rounded(number)
    return Place(arrays.NUMBERS, key, _marks(key, number))


def _marks(key: float, number: Fraction) -> int:
    """Tell whether a key is the number, and whether the number has few digits."""
    exact = math.isfinite(key) and Fraction(key) == number
    size = abs(number)
    short = any((size * 10**k).denominator == 1 and size * 10**k < 10**DIGITS for k in range(DIGITS + 1))
    return arrays.EXACT * exact | arrays.SHORT * short


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


_Text = TypeVar("_Text", str, bytes)

ALWAYS = "ASK {}"
OF_TEXTS = ("lower", "lower of STR", "folded", "folded of STR", "word", "word of STR")
FIRST_TERMS = (model.TYPE, model.SUBCLASS, model.SUBPROPERTY, model.ISA, ALWAYS, *OF_TEXTS)
"""The terms with the first codes, as `arrays` numbers them."""
WORD_MARK = "~"
"""Before a word of a text, so that it is no other term."""
_MIRROR = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SEARCHES = {searches.START: arrays.STARTS, searches.END: arrays.ENDS, searches.PART: arrays.CONTAINS}
_DERIVED = {searches.LOWER: arrays.LOWER_CODE, searches.ANY_CASE: arrays.FOLDED_CODE}
_LARGEST_FLOAT = 3.4e38
_KINDS = {"ISIRI": arrays.IRI, "ISLITERAL": arrays.LITERAL}


class Range(NamedTuple):
    """A range of one slot on one line."""

    slot: int
    line: int
    low: float
    high: float
    flags: int


class Pool(dict[_Text, int]):
    """Distinct texts by place, and in a list."""

    def __init__(self, texts: Iterable[_Text] = ()) -> None:
        super().__init__()
        self.texts: list[_Text] = []
        for text in texts:
            self.place(text)

    def place(self, text: _Text) -> int:
        """Return the place of a text, which is added if it is new."""
        number = self.get(text)
        if number is None:
            number = self[text] = len(self.texts)
            self.texts.append(text)
        return number


class Pools(NamedTuple):
    """What filters name, by place; the place of a term is its code."""

    terms: Pool[str]
    texts: Pool[bytes]
    expressions: Pool[str]


class CompiledPattern(NamedTuple):
    """A filter. Edges are codes, or -1 less the slot; `words` are all checks but the ranges, without END."""

    edges: list[tuple[int, int, int]]
    ranges: list[Range]
    words: list[int]


def compile_pattern(pattern: Pattern, options: Options, pools: Pools) -> CompiledPattern:
    """Compile a filter."""
    code = pools.terms.place
    pattern = rewrite(pattern, options)
    slots: dict[Term, int] = {}
    edges: list[tuple[int, int, int]] = []
    checks = _Checks(options, pools, slots, edges)
    later = []
    for edge in pattern.edges:
        path = edge.path
        if path in (model.BELOW, model.BELOW_PROPERTY):
            later.append(edge)
            continue
        named = []
        for term in (edge.subject, model.ISA if path else edge.property, edge.object):
            if term[0] == "?":
                slot = slots.get(term)
                if slot is None:
                    slot = slots[term] = len(slots)
                named.append(-1 - slot)
            else:
                named.append(code(term))
        edges.append((named[0], named[1], named[2]))
    if not edges:
        edges.append((-1, arrays.ALWAYS_CODE, -1))
    for each in later:
        checks.opaque(model.Call(each.path, (each.subject, each.object)))
    for expression in pattern.filters:
        checks.add(expression)
    return CompiledPattern(edges, checks.merged(), checks.words)


class _Checks:
    """The checks of one filter, as they come."""

    def __init__(
        self,
        options: Options,
        pools: Pools,
        slots: dict[Term, int],
        edges: list[tuple[int, int, int]],
    ) -> None:
        self.options = options
        self.code = pools.terms.place
        self.pools = pools
        self.slots = slots
        self.edges = edges
        self.ranges: list[Range] = []
        self.words: list[int] = []

    def add(self, expression: Expression) -> None:
        """Add a conjunct in the quickest form that says the same."""
        lookup = searches.lookup_of(expression)
        if lookup is not None and self._look(lookup):
            if not lookup.exact:
                self.opaque(expression)
            return
        match expression:
            case model.Compare(sign, str() as left, str() as right):
                done = self._compare(sign, left, right)
            case model.Compare("=", model.Call(name, (str() as item,)), str() as wanted):
                done = self._suffix(name, item, wanted)
            case model.Member(str() as item, options):
                done = self._among(item, options)
            case model.Member(model.Call("LCASE", (item,)), options):
                done = self._among_lower(item, options)
            case model.Call(name, arguments):
                done = self._call(name, arguments)
            case model.Not(model.Call(name, (str() as item,))) if name in _KINDS and model.is_variable(item):
                self.words += [
                    arrays.KIND,
                    self.slots[item],
                    (arrays.IRI | arrays.LITERAL | arrays.BLANK) & ~_KINDS[name],
                ]
                done = True
            case _:
                done = False
        if not done:
            self.opaque(expression)

    def opaque(self, expression: Expression) -> None:
        """Leave an expression to `evaluate`, with the variables called ?0, ?1 and so on."""
        named = list(dict.fromkeys(variables(expression)))
        text = print_opaque(substitute(expression, {name: f"?{n}" for n, name in enumerate(named)}))
        number = self.pools.expressions.place(text)
        self.words += [arrays.OPAQUE, number, len(named), *(self.slots[name] for name in named)]

    def merged(self) -> list[Range]:
        """Intersect ranges of one slot and line, but where floats cannot tell their ends apart."""
        merged: dict[tuple[int, int], Range] = {}
        rest = []
        for each in self.ranges:
            before = merged.get((each.slot, each.line))
            both = each if before is None else _intersected(before, each)
            if both is None:
                rest.append(each)
            else:
                merged[each.slot, each.line] = both
        return [*merged.values(), *rest]

    def _compare(self, sign: str, left: Term, right: Term) -> bool:
        if model.is_variable(right):
            if model.is_variable(left):
                number = self.pools.expressions.place(print_expression(model.Compare(sign, "?0", "?1")))
                self.words += [
                    arrays.PAIR,
                    self.slots[left],
                    self.slots[right],
                    arrays.SIGNS.index(sign),
                    number,
                ]
                return True
            if sign == "!=":
                return False
            sign, left, right = _MIRROR[sign], right, left
        if not model.is_variable(left) or sign == "!=":
            return False
        if sign == "=" and is_one(right, self.options):
            self.words += [arrays.AMONG, self.slots[left], 1, self.code(right)]
            return True
        where = _end(right)
        if where is None:
            return False
        self.ranges.append(_range(self.slots[left], sign, where))
        return True

    def _suffix(self, name: str, item: Term, wanted: Term) -> bool:
        """Check a language or a datatype by what stands behind the quotes."""
        if not model.is_variable(item):
            return False
        if name == "LANG" and model.is_literal(wanted):
            lexical, datatype, _ = model.parts(wanted)
            if datatype != model.STRING or not lexical:
                return False
            suffix = f"@{lexical}"
        elif name == "DATATYPE" and model.is_iri(wanted) and wanted[1:-1] != model.LANG_STRING:
            suffix = "" if wanted[1:-1] == model.STRING else f"^^{wanted}"
        else:
            return False
        self.words += [arrays.SUFFIX, self.slots[item], self.code(suffix)]
        return True

    def _among(self, item: Term, options: tuple[Expression, ...]) -> bool:
        if not model.is_variable(item) or not options:
            return False
        codes = set()
        for each in options:
            if not isinstance(each, str) or model.is_variable(each) or not is_one(each, self.options):
                return False
            codes.add(self.code(each))
        self.words += [arrays.AMONG, self.slots[item], len(codes), *sorted(codes)]
        return True

    def _among_lower(self, item: Expression, options: tuple[Expression, ...]) -> bool:
        wanted = [
            searches.lookup_of(model.Compare("=", model.Call("LCASE", (item,)), each)) for each in options
        ]
        lookups = [each for each in wanted if each is not None]
        if not lookups or len(lookups) < len(wanted):
            return False
        slot = self._derived(lookups[0])
        if slot is None:
            return False
        codes = {self.code(each.text) for each in lookups}
        self.words += [arrays.AMONG, slot, len(codes), *sorted(codes)]
        return True

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> bool:
        item = arguments[0]
        if name in _KINDS and isinstance(item, str) and model.is_variable(item):
            self.words += [arrays.KIND, self.slots[item], _KINDS[name]]
            return True
        return False

    def _look(self, lookup: Lookup) -> bool:
        """Look for something in a text: by an edge of a virtual triple, by a check, or by both.

        The text in lower case, or as it is in any case, is a term of its own, to which an edge leads.
        """
        where, case, text = lookup.where, lookup.case, lookup.text
        if case == searches.AS_WRITTEN:
            if where == searches.WHOLE:
                return False
            self._search(self.slots[lookup.variable], where, text, lookup.as_text)
        elif where in (searches.WORD, searches.WHOLE):
            if len(self.edges) >= MAX_EDGES:
                return False
            name = arrays.WORD_CODE if where == searches.WORD else _DERIVED[case]
            term = (
                WORD_MARK + text
                if where == searches.WORD
                else text
                if case == searches.LOWER
                else model.literal(text)
            )
            self.edges.append((-1 - self.slots[lookup.variable], name + lookup.as_text, self.code(term)))
        else:
            slot = self._derived(lookup)
            if slot is None:
                return False
            self._search(slot, where, text, False)
        return True

    def _derived(self, lookup: Lookup) -> int | None:
        """Return the slot of the text in another case; None if the pattern has no room for it.

        There is one for a variable, as nodes may have to be different.
        """
        name = _DERIVED[lookup.case] + lookup.as_text
        key = f"{OF_TEXTS[name - arrays.LOWER_CODE]} {lookup.variable}"
        slot = self.slots.get(key)
        if slot is None:
            if len(self.edges) >= MAX_EDGES or len(self.slots) >= arrays.SLOTS:
                return None
            slot = self.slots[key] = len(self.slots)
            self.edges.append((-1 - self.slots[lookup.variable], name, -1 - slot))
        return slot

    def _search(self, slot: int, where: str, text: str, as_text: bool) -> None:
        number = self.pools.texts.place(text.encode(errors="surrogatepass"))
        self.words += [arrays.TEXT, slot, _SEARCHES[where] | arrays.AS_TEXT * as_text, number]


def print_opaque(expression: Expression) -> str:
    """Write an expression that is left to `evaluate`, or an edge of the taxonomy as a call of its path."""
    if isinstance(expression, model.Call) and expression.name in (model.BELOW, model.BELOW_PROPERTY):
        # No term holds a line's end.
        return "\n".join((expression.name, *map(str, expression.arguments)))
    return print_expression(expression)


@lru_cache(1 << 14)
def _end(term: Term) -> Place | None:
    """Find where the end of a range lies; None if keys cannot say what comparing with it means."""
    value = value_of(term)
    end = place(term, False)
    if end.line == arrays.NOWHERE or math.isinf(end.key):
        return None
    if (
        isinstance(value, Number)
        and value.kind != DOUBLE
        and (
            # What a float is compared with becomes a float: such an end would be infinite.
            value.kind == FLOAT or abs(end.key) >= _LARGEST_FLOAT
        )
    ):
        return None
    return end


def _range(slot: int, sign: str, end: Place) -> Range:
    low, high, flags = -math.inf, math.inf, 0
    if sign in {">", ">=", "="}:
        low = end.key
        flags |= arrays.LOW_MARKS * end.marks | arrays.LOW_OPEN * (sign == ">")
    if sign in {"<", "<=", "="}:
        high = end.key
        flags |= arrays.HIGH_MARKS * end.marks | arrays.HIGH_OPEN * (sign == "<")
    return Range(slot, end.line, low, high, flags)


def _intersected(one: Range, other: Range) -> Range | None:
    """Intersect two ranges; None if ends have the same key, and one of them or its openness differs."""
    lows, highs = arrays.LOW_OPEN | 3 * arrays.LOW_MARKS, arrays.HIGH_OPEN | 3 * arrays.HIGH_MARKS
    if one.low == other.low and one.flags & lows != other.flags & lows and not math.isinf(one.low):
        return None
    if one.high == other.high and one.flags & highs != other.flags & highs and not math.isinf(one.high):
        return None
    if one.low == other.low and not math.isinf(one.low) and not one.flags & 3 * arrays.LOW_MARKS:
        return None
    if one.high == other.high and not math.isinf(one.high) and not one.flags & 3 * arrays.HIGH_MARKS:
        return None
    low = one if one.low >= other.low else other
    high = one if one.high <= other.high else other
    return Range(one.slot, one.line, low.low, high.high, low.flags & lows | high.flags & highs)
