"""Expressions of a query: read for their syntax and their variables; the evaluator knows what they mean."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from headgate.rdf.language import words as kinds_of_words
from headgate.rdf.language.model import XSD
from headgate.rdf.language.refusal import RefusedFilterError
from headgate.rdf.whole.tree import Expression
from headgate.rdf.whole.triples import TripleParser
from headgate.rdf.whole.words import IRIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.whole.tree import Group

_AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])
_MANY = 1_000
_ONE = """
    STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY
    HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC
    COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT"""
_TAKES = {
    (1, 1): _ONE,
    (0, 1): "BNODE",
    (2, 2): "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM",
    (2, 3): "REGEX SUBSTR",
    (3, 4): "REPLACE",
    (3, 3): "IF",
    (0, _MANY): "CONCAT COALESCE",
}
ARGUMENTS = {name: takes for takes, names in _TAKES.items() for name in names.split()}
"""How many arguments functions and aggregates take, at least and at most."""
CHANGING = frozenset(("RAND", "NOW", "UUID", "STRUUID"))
_TYPES = """boolean double float decimal integer dateTime string date time duration dayTimeDuration
    yearMonthDuration gYear gYearMonth gMonth gMonthDay gDay"""
_CASTS = frozenset(f"<{XSD}{name}>" for name in _TYPES.split())


class ExpressionParser(TripleParser):
    """Takes expressions."""

    @abstractmethod
    def group(self) -> Group:
        """Take a group, which EXISTS asks for."""

    def constraint(self) -> Expression | None:
        if self.peek() == "(" or self.calls():
            return self.primary()
        return None

    def calls(self) -> bool:
        """Tell whether a function comes."""
        follows = self.words[self.at + 1 : self.at + 2] == ["("]
        upper = self.peek()
        return (
            (follows and (self.kind() in IRIS or upper in ARGUMENTS))
            or upper in CHANGING
            or upper in ("EXISTS", "NOT")
        )

    def expression(self) -> Expression:
        """Take an expression."""
        return self.either()

    def either(self) -> Expression:
        begin = self.at
        parts = [self.both()]
        while self.took("||"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else self.made(begin, parts)

    def both(self) -> Expression:
        begin = self.at
        parts = [self.relation()]
        while self.took("&&"):
            parts.append(self.relation())
        if len(parts) == 1:
            return parts[0]
        joined = [one for each in parts for one in (each.joined or (each,))]
        return self.made(begin, parts, tuple(joined))

    def relation(self) -> Expression:
        begin = self.at
        parts = [self.sum()]
        if self.took("=", "!=", "<", ">", "<=", ">="):
            if self.took("="):
                raise RefusedFilterError("equality is written with one =", self.at - 1)
            parts.append(self.sum())
        elif self.peek() == "IN" or (
            self.peek() == "NOT"
            and [each.upper() for each in self.words[self.at + 1 : self.at + 2]] == ["IN"]
        ):
            self.took("NOT")
            self.want("IN")
            self.want("(")
            parts += self.listed()
        return parts[0] if len(parts) == 1 else self.made(begin, parts)

    def listed(self) -> list[Expression]:
        """Take expressions up to a closing parenthesis."""
        found: list[Expression] = []
        while not self.took(")"):
            if found:
                self.want(",")
            found.append(self.expression())
        return found

    def sum(self) -> Expression:
        begin = self.at
        parts = [self.product()]
        while True:
            if self.took("+", "-") or (
                self.kind() == kinds_of_words.NUMBER and self.words[self.at][0] in "+-"
            ):
                parts.append(self.product())
            else:
                return parts[0] if len(parts) == 1 else self.made(begin, parts)

    def product(self) -> Expression:
        begin = self.at
        parts = [self.unary()]
        while self.took("*", "/"):
            parts.append(self.unary())
        return parts[0] if len(parts) == 1 else self.made(begin, parts)

    def unary(self) -> Expression:
        begin = self.at
        if self.took("!", "+", "-"):
            return self.made(begin, [self.primary()])
        return self.primary()

    def primary(self) -> Expression:
        begin = self.at
        kind, upper = self.kind(), self.peek()
        if self.took("("):
            found = self.expression()
            self.want(")")
            return Expression(
                begin,
                self.at,
                found.variables,
                found.joined,
                found.exists,
                found.absent,
                found.groups,
                found.aggregate,
            )
        if kind == kinds_of_words.VARIABLE:
            name = self.variable()
            self.used.setdefault(name, begin)
            return Expression(begin, self.at, frozenset((name,)))
        if kind == kinds_of_words.BLANK:
            raise RefusedFilterError(
                "a blank node cannot stand in a FILTER: give it the name of a variable", self.at
            )
        if upper in ("EXISTS", "NOT"):
            absent = bool(self.took("NOT"))
            self.want("EXISTS")
            group = self.group()
            return Expression(begin, self.at, exists=group, absent=absent, groups=(group,))
        if upper in CHANGING:
            raise RefusedFilterError(
                f"{upper} is not supported: an event's answer must be the same whenever it is asked", begin
            )
        if upper in ARGUMENTS:
            self.next()
            found = self.call(begin, aggregate=upper in _AGGREGATES)
            if upper == "BOUND" and self.kinds[begin + 2] != kinds_of_words.VARIABLE:
                raise RefusedFilterError("BOUND takes a variable", begin + 2)
            return found
        if kind in IRIS:
            name = self.literal_or_iri()
            if self.peek() != "(":
                return Expression(begin, self.at)
            if name not in _CASTS:
                raise RefusedFilterError(
                    f"{name} is not a function: of IRIs, xsd:integer and such are", begin
                )
            return self.call(begin, aggregate=False, takes=(1, 1))
        if kind in (kinds_of_words.STRING, kinds_of_words.NUMBER, kinds_of_words.TRUTH):
            self.literal_or_iri()
            return Expression(begin, self.at)
        raise self.wrong("a value", "a function", "'('")

    def call(self, begin: int, *, aggregate: bool, takes: tuple[int, int] | None = None) -> Expression:
        """Take the arguments of a function."""
        least, most = takes or ARGUMENTS[self.words[begin].upper()]
        self.want("(")
        if aggregate:
            self.took("DISTINCT")
            if self.took("*"):
                self.want(")")
                return Expression(begin, self.at, aggregate=True)
        elif self.took("DISTINCT"):
            raise RefusedFilterError("DISTINCT stands in aggregates only", self.at - 1)
        parts: list[Expression] = []
        while not self.took(")"):
            if parts and self.took(";"):
                self.want("SEPARATOR")
                self.want("=")
                if self.kind() != kinds_of_words.STRING:
                    raise self.wrong("a string")
                self.term()
                continue
            if parts:
                self.want(",")
            parts.append(self.expression())
        if not least <= len(parts) <= most:
            shown = str(least) if least == most else f"{least} to {most}"
            raise RefusedFilterError(
                f"{self.words[begin]} takes {shown} argument{'s' * (most > 1)}, not {len(parts)}", begin
            )
        found = self.made(begin, parts)
        aggregate = aggregate or found.aggregate
        return Expression(begin, self.at, found.variables, groups=found.groups, aggregate=aggregate)

    def made(
        self, begin: int, parts: Sequence[Expression], joined: tuple[Expression, ...] = ()
    ) -> Expression:
        """Put an expression together."""
        return Expression(
            begin,
            self.at,
            frozenset(name for each in parts for name in each.variables),
            joined,
            groups=tuple(group for each in parts for group in each.groups),
            aggregate=any(each.aggregate for each in parts),
        )
