"""A pattern to numbers: edges over codes and slots, and checks as words.

Slots are the pattern's own here; `canonical` gives those of equal patterns the same numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.index.arrays import (
    ALWAYS_CODE,
    AMONG,
    AS_TEXT,
    BLANK,
    CONTAINS,
    ENDS,
    FOLDED_CODE,
    HIGH_MARKS,
    HIGH_OPEN,
    IRI,
    KIND,
    LITERAL,
    LOW_MARKS,
    LOW_OPEN,
    LOWER_CODE,
    NOWHERE,
    OPAQUE,
    PAIR,
    SIGNS,
    SLOTS,
    STARTS,
    SUFFIX,
    TEXT,
    WORD_CODE,
)
from headgate.rdf.index.lines import place
from headgate.rdf.language.model import (
    BELOW,
    BELOW_PROPERTY,
    ISA,
    LANG_STRING,
    STRING,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Call,
    Compare,
    Member,
    Not,
    is_iri,
    is_literal,
    is_variable,
    literal,
    parts,
)
from headgate.rdf.language.printing import print_expression
from headgate.rdf.language.refusal import MAX_EDGES
from headgate.rdf.language.rewrite import is_one, rewrite, substitute, variables
from headgate.rdf.language.searches import (
    ANY_CASE,
    AS_WRITTEN,
    END,
    LOWER,
    PART,
    START,
    WHOLE,
    WORD,
    lookup_of,
)
from headgate.rdf.language.values import DOUBLE, FLOAT, Number, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.rdf.index.lines import Place
    from headgate.rdf.language.model import Expression, Options, Pattern, Term
    from headgate.rdf.language.searches import Lookup

ALWAYS = "ASK {}"
OF_TEXTS = ("lower", "lower of STR", "folded", "folded of STR", "word", "word of STR")
FIRST_TERMS = (TYPE, SUBCLASS, SUBPROPERTY, ISA, ALWAYS, *OF_TEXTS)
"""The terms with the first codes, as `arrays` numbers them."""
WORD_MARK = "~"
"""Before a word of a text, so that it is no other term."""
_MIRROR = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SEARCHES = {START: STARTS, END: ENDS, PART: CONTAINS}
_DERIVED = {LOWER: LOWER_CODE, ANY_CASE: FOLDED_CODE}
_LARGEST_FLOAT = 3.4e38
_KINDS = {"ISIRI": IRI, "ISLITERAL": LITERAL}


class Range(NamedTuple):
    """A range of one slot on one line."""

    slot: int
    line: int
    low: float
    high: float
    flags: int


class CompiledPattern(NamedTuple):
    """A filter. Edges are codes, or -1 less the slot; `words` are all checks but the ranges, without END.

    Of `texts` and `expressions` the words hold the places in these very lists.
    """

    edges: list[tuple[int, int, int]]
    ranges: list[Range]
    words: list[int]
    texts: list[bytes]
    expressions: list[str]


def compile_pattern(pattern: Pattern, options: Options, code: Callable[[Term], int]) -> CompiledPattern:
    """Compile a filter; `code` gives the code of a term."""
    pattern = rewrite(pattern, options)
    slots: dict[Term, int] = {}
    edges: list[tuple[int, int, int]] = []
    checks = _Checks(options, code, slots, edges)
    later = []
    for edge in pattern.edges:
        path = edge.path
        if path in (BELOW, BELOW_PROPERTY):
            later.append(edge)
            continue
        named = []
        for term in (edge.subject, ISA if path else edge.property, edge.object):
            if term[0] == "?":
                slot = slots.get(term)
                if slot is None:
                    slot = slots[term] = len(slots)
                named.append(-1 - slot)
            else:
                named.append(code(term))
        edges.append((named[0], named[1], named[2]))
    if not edges:
        edges.append((-1, ALWAYS_CODE, -1))
    for each in later:
        checks.opaque(Call(each.path, (each.subject, each.object)))
    for expression in pattern.filters:
        checks.add(expression)
    return CompiledPattern(edges, checks.merged(), checks.words, checks.texts, checks.expressions)


class _Checks:
    """The checks of one filter, as they come."""

    def __init__(
        self,
        options: Options,
        code: Callable[[Term], int],
        slots: dict[Term, int],
        edges: list[tuple[int, int, int]],
    ) -> None:
        self.options = options
        self.code = code
        self.slots = slots
        self.edges = edges
        self.ranges: list[Range] = []
        self.words: list[int] = []
        self.texts: list[bytes] = []
        self.expressions: list[str] = []

    def add(self, expression: Expression) -> None:
        """Add a conjunct in the quickest form that says the same."""
        lookup = lookup_of(expression)
        if lookup is not None and self._look(lookup):
            if not lookup.exact:
                self.opaque(expression)
            return
        match expression:
            case Compare(sign, str() as left, str() as right):
                done = self._compare(sign, left, right)
            case Compare("=", Call(name, (str() as item,)), str() as wanted):
                done = self._suffix(name, item, wanted)
            case Member(str() as item, options):
                done = self._among(item, options)
            case Member(Call("LCASE", (item,)), options):
                done = self._among_lower(item, options)
            case Call(name, arguments):
                done = self._call(name, arguments)
            case Not(Call(name, (str() as item,))) if name in _KINDS and is_variable(item):
                self.words += [KIND, self.slots[item], (IRI | LITERAL | BLANK) & ~_KINDS[name]]
                done = True
            case _:
                done = False
        if not done:
            self.opaque(expression)

    def opaque(self, expression: Expression) -> None:
        """Leave an expression to `evaluate`, with the variables called ?0, ?1 and so on."""
        named = list(dict.fromkeys(variables(expression)))
        text = print_opaque(substitute(expression, {name: f"?{n}" for n, name in enumerate(named)}))
        self.words += [OPAQUE, len(self.expressions), len(named), *(self.slots[name] for name in named)]
        self.expressions.append(text)

    def merged(self) -> list[Range]:
        """Intersect ranges of one slot and line, but where floats cannot tell their ends apart."""
        found: dict[tuple[int, int], Range] = {}
        rest = []
        for each in self.ranges:
            before = found.get((each.slot, each.line))
            both = each if before is None else _intersected(before, each)
            if both is None:
                rest.append(each)
            else:
                found[each.slot, each.line] = both
        return [*found.values(), *rest]

    def _compare(self, sign: str, left: Term, right: Term) -> bool:
        if is_variable(right):
            if is_variable(left):
                self.words += [PAIR, self.slots[left], self.slots[right], SIGNS.index(sign)]
                self.words.append(len(self.expressions))
                self.expressions.append(print_expression(Compare(sign, "?0", "?1")))
                return True
            if sign == "!=":
                return False
            sign, left, right = _MIRROR[sign], right, left
        if not is_variable(left) or sign == "!=":
            return False
        if sign == "=" and is_one(right, self.options):
            self.words += [AMONG, self.slots[left], 1, self.code(right)]
            return True
        where = _end(right)
        if where is None:
            return False
        self.ranges.append(_range(self.slots[left], sign, where))
        return True

    def _suffix(self, name: str, item: Term, wanted: Term) -> bool:
        """Check a language or a datatype by what stands behind the quotes."""
        if not is_variable(item):
            return False
        if name == "LANG" and is_literal(wanted):
            lexical, datatype, _ = parts(wanted)
            if datatype != STRING or not lexical:
                return False
            suffix = f"@{lexical}"
        elif name == "DATATYPE" and is_iri(wanted) and wanted[1:-1] != LANG_STRING:
            suffix = "" if wanted[1:-1] == STRING else f"^^{wanted}"
        else:
            return False
        self.words += [SUFFIX, self.slots[item], self.code(suffix)]
        return True

    def _among(self, item: Term, options: tuple[Expression, ...]) -> bool:
        if not is_variable(item) or not options:
            return False
        codes = set()
        for each in options:
            if not isinstance(each, str) or is_variable(each) or not is_one(each, self.options):
                return False
            codes.add(self.code(each))
        self.words += [AMONG, self.slots[item], len(codes), *sorted(codes)]
        return True

    def _among_lower(self, item: Expression, options: tuple[Expression, ...]) -> bool:
        wanted = [lookup_of(Compare("=", Call("LCASE", (item,)), each)) for each in options]
        found = [each for each in wanted if each is not None]
        if not found or len(found) < len(wanted):
            return False
        slot = self._derived(found[0])
        if slot is None:
            return False
        codes = {self.code(each.text) for each in found}
        self.words += [AMONG, slot, len(codes), *sorted(codes)]
        return True

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> bool:
        item = arguments[0]
        if name in _KINDS and isinstance(item, str) and is_variable(item):
            self.words += [KIND, self.slots[item], _KINDS[name]]
            return True
        return False

    def _look(self, lookup: Lookup) -> bool:
        """Look for something in a text: by an edge of a virtual triple, by a check, or by both.

        The text in lower case, or as it is in any case, is a term of its own, to which an edge leads.
        """
        where, case, text = lookup.where, lookup.case, lookup.text
        if case == AS_WRITTEN:
            if where == WHOLE:
                return False
            self._search(self.slots[lookup.variable], where, text, lookup.as_text)
        elif where in (WORD, WHOLE):
            if len(self.edges) >= MAX_EDGES:
                return False
            name = WORD_CODE if where == WORD else _DERIVED[case]
            term = WORD_MARK + text if where == WORD else text if case == LOWER else literal(text)
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
        key = f"{OF_TEXTS[name - LOWER_CODE]} {lookup.variable}"
        slot = self.slots.get(key)
        if slot is None:
            if len(self.edges) >= MAX_EDGES or len(self.slots) >= SLOTS:
                return None
            slot = self.slots[key] = len(self.slots)
            self.edges.append((-1 - self.slots[lookup.variable], name, -1 - slot))
        return slot

    def _search(self, slot: int, where: str, text: str, as_text: bool) -> None:
        self.words += [TEXT, slot, _SEARCHES[where] | AS_TEXT * as_text, len(self.texts)]
        self.texts.append(text.encode(errors="surrogatepass"))


def print_opaque(expression: Expression) -> str:
    """Write an expression that is left to `evaluate`, or an edge of the taxonomy as a call of its path."""
    if isinstance(expression, Call) and expression.name in (BELOW, BELOW_PROPERTY):
        # No term holds a line's end.
        return "\n".join((expression.name, *map(str, expression.arguments)))
    return print_expression(expression)


@lru_cache(1 << 14)
def _end(term: Term) -> Place | None:
    """Find where the end of a range lies; None if keys cannot say what comparing with it means."""
    value = value_of(term)
    found = place(term, False)
    if found.line == NOWHERE or math.isinf(found.key):
        return None
    if (
        isinstance(value, Number)
        and value.kind != DOUBLE
        and (
            # What a float is compared with becomes a float: such an end would be infinite.
            value.kind == FLOAT or abs(found.key) >= _LARGEST_FLOAT
        )
    ):
        return None
    return found


def _range(slot: int, sign: str, end: Place) -> Range:
    low, high, flags = -math.inf, math.inf, 0
    if sign in {">", ">=", "="}:
        low = end.key
        flags |= LOW_MARKS * end.marks | LOW_OPEN * (sign == ">")
    if sign in {"<", "<=", "="}:
        high = end.key
        flags |= HIGH_MARKS * end.marks | HIGH_OPEN * (sign == "<")
    return Range(slot, end.line, low, high, flags)


def _intersected(one: Range, other: Range) -> Range | None:
    """Intersect two ranges; None if ends have the same key, and one of them or its openness differs."""
    lows, highs = LOW_OPEN | 3 * LOW_MARKS, HIGH_OPEN | 3 * HIGH_MARKS
    if one.low == other.low and one.flags & lows != other.flags & lows and not math.isinf(one.low):
        return None
    if one.high == other.high and one.flags & highs != other.flags & highs and not math.isinf(one.high):
        return None
    if one.low == other.low and not math.isinf(one.low) and not one.flags & 3 * LOW_MARKS:
        return None
    if one.high == other.high and not math.isinf(one.high) and not one.flags & 3 * HIGH_MARKS:
        return None
    low = one if one.low >= other.low else other
    high = one if one.high <= other.high else other
    return Range(one.slot, one.line, low.low, high.high, low.flags & lows | high.flags & highs)
