"""Words of a filter to the tree of their shape: SPARQL 1.1's own grammar, rule by rule.

What filters cannot be is refused with the reason: what asks another source, what is not the same each time,
and what changes something. What depends on more than the kinds of words is looked at later.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.text.cutting import RefusedFilterError
from headgate.rdf.language import model
from headgate.rdf.language import words as kinds
from headgate.rdf.language.triples import NAMES, TripleParser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.rdf.language.model import Expression, Part, Term
    from headgate.rdf.language.names import Slots
    from headgate.rdf.language.words import Kinds


_SAME = {"ISURI": "ISIRI"}


class ExpressionParser(TripleParser):
    """Takes expressions."""

    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        super().__init__(words, kinds)
        self.casts: list[tuple[Term, int]] = []
        """The IRIs that are called, and their words."""

    @abstractmethod
    def group(self) -> model.Group:
        """Take a group, which EXISTS asks for."""

    def constraint(self) -> Expression | None:
        return self.primary() if self.sees("(") or self.calls() else None

    def calls(self) -> bool:
        """Tell whether a function comes."""
        if self.kind() in kinds.IRIS and self.kind(1) == "(":
            return True
        return bool(self.sees(*kinds.ARGUMENTS, *kinds.CHANGING, "EXISTS", "NOT"))

    def expression(self) -> Expression:
        """Take an expression."""
        parts = [self.both()]
        while self.took("||"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else model.Or(tuple(parts))

    def both(self) -> Expression:
        parts = [self.relation()]
        while self.took("&&"):
            parts.append(self.relation())
        return parts[0] if len(parts) == 1 else model.And(tuple(parts))

    def relation(self) -> Expression:
        left = self.sum()
        if sign := self.took("=", "!=", "<", ">", "<=", ">="):
            if self.kind() == "=":
                raise RefusedFilterError("equality is written with one =", self.at)
            return model.Compare(sign, left, self.sum())
        absent = self.took("NOT")
        if not self.took("IN"):
            if absent:
                raise self.wrong()
            return left
        self.want("(")
        options: list[Expression] = []
        while not self.took(")"):
            if options:
                self.want(",")
            options.append(self.expression())
        member = model.Member(left, tuple(options))
        return model.Not(member) if absent else member

    def sum(self) -> Expression:
        parts = [self.product()]
        while self.took("+", "-") or self.sees(kinds.SIGNED):
            parts.append(self.product())
        return parts[0] if len(parts) == 1 else model.Call("+", tuple(parts))

    def product(self) -> Expression:
        parts = [self.unary()]
        while self.took("*", "/"):
            parts.append(self.unary())
        return parts[0] if len(parts) == 1 else model.Call("*", tuple(parts))

    def unary(self) -> Expression:
        if self.took("!"):
            return model.Not(self.primary())
        return model.Call("-", (self.primary(),)) if self.took("+", "-") else self.primary()

    def primary(self) -> Expression:
        begin, kind = self.at, self.kind()
        if kind == kinds.VARIABLE:
            return self.uses()
        if kind in kinds.LITERALS:
            return self.literal_or_iri()
        if self.took("("):
            expression = self.expression()
            self.want(")")
            return expression
        if kind in kinds.ARGUMENTS:
            return self.call(_SAME.get(kind, kind))
        if kind in kinds.IRIS:
            name = self.literal_or_iri()
            if self.kind() != "(":
                return name
            self.casts.append((name, begin))
            self.at = begin
            return self.call(name, takes=(1, 1))
        if kind in kinds.CHANGING:
            raise RefusedFilterError(
                f"{kind} is not supported: an event's answer must be the same whenever it is asked", begin
            )
        if kind == "EXISTS" or (kind == "NOT" and self.kind(1) == "EXISTS"):
            self.at += 1 + (kind == "NOT")
            exists = model.Exists("EXISTS", (), self.group())
            return exists if kind == "EXISTS" else model.Not(exists)
        if kind == kinds.BLANK:
            raise RefusedFilterError(
                "a blank node cannot stand in a FILTER: give it the name of a variable", begin
            )
        raise self.wrong(kinds.VARIABLE, *kinds.IRIS, *kinds.LITERALS, *kinds.ARGUMENTS)

    def call(self, name: str, takes: tuple[int, int] | None = None) -> Expression:
        """Take a function and its arguments."""
        begin = self.at
        self.at += 1
        least, most = takes or kinds.ARGUMENTS[name]
        self.want("(")
        if name in kinds.AGGREGATES:
            self.took("DISTINCT")
            if self.took("*"):
                self.want(")")
                return model.Call(name, ())
        elif self.kind() == "DISTINCT":
            raise RefusedFilterError("DISTINCT stands in aggregates only", self.at)
        parts: list[Expression] = []
        while not self.took(")"):
            if parts and name in kinds.AGGREGATES and self.took(";"):
                self.want("SEPARATOR")
                self.want("=")
                self.want(kinds.STRING)
                continue
            if parts:
                self.want(",")
            parts.append(self.expression())
        if not least <= len(parts) <= most:
            shown = str(least) if least == most else f"{least} {'or' if most == least + 1 else 'to'} {most}"
            raise RefusedFilterError(
                f"{self.words[begin]} takes {shown} argument{'s' * (most > 1)}, not {len(parts)}", begin
            )
        if name == "BOUND" and not (isinstance(parts[0], str) and model.is_variable(parts[0])):
            raise RefusedFilterError("BOUND takes a variable", begin + 2)
        return model.Call(name, tuple(parts))


CONSTRUCT = "CONSTRUCT"


class Shape(NamedTuple):
    """A query of slots, and what has to be looked at when there are terms in them."""

    query: model.Select
    slots: Slots
    bound: frozenset[Term]
    used: tuple[tuple[Term, int, str], ...]
    casts: tuple[tuple[Term, int], ...]
    given: tuple[tuple[Term, tuple[Term, ...], int], ...]
    """Variables of BIND, those that it must not be, and the words of BIND."""
    amounts: tuple[tuple[Term, int], ...]
    """Numbers of LIMIT and OFFSET, and their words."""


class Parser(ExpressionParser):
    """Takes queries and groups."""

    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        super().__init__(words, kinds)
        self._given: list[tuple[Term, tuple[Term, ...], int]] = []
        self._amounts: list[tuple[Term, int]] = []

    def alone(self) -> Expression:
        """Take an expression that no query is around."""
        expression = self.expression()
        self.want(kinds.END)
        return expression

    def whole(self) -> Shape:
        """Take a query."""
        self.declare()
        if self.sees(model.SELECT):
            query = self.select()
        elif self.took(model.ASK):
            query = self.modified(model.ASK)
        elif self.sees(CONSTRUCT):
            query = self.construct()
        else:
            raise self.wrong()
        if not self.sees(kinds.END):
            raise self.wrong()
        return Shape(
            query,
            self.slots(),
            frozenset(self.bound),
            tuple(self.used),
            tuple(self.casts),
            tuple(self._given),
            tuple(self._amounts),
        )

    def select(self) -> model.Select:
        self.want(model.SELECT)
        modifier = self.took("DISTINCT", "REDUCED")
        star, chosen, computed, expressions = -1, [], set(), []
        if self.took("*"):
            star = self.at - 1
        else:
            while True:
                if self.sees(kinds.VARIABLE):
                    chosen.append(self.uses(NAMES))
                elif self.took("("):
                    expressions.append(self.expression())
                    self.want("AS")
                    chosen.append(self.bind(self.variable()))
                    computed.add(chosen[-1])
                    self.want(")")
                else:
                    break
            if self.kind(1) == "(" and self.calls():
                raise RefusedFilterError(
                    "an expression of SELECT stands in parentheses and has a name: "
                    f"({self.words[self.at]}(…) AS ?name)",
                    self.at,
                )
            if not chosen:
                raise self.wrong()
        return self.modified(
            model.SELECT,
            modifier,
            None if star >= 0 else tuple(chosen),
            star,
            frozenset(computed),
            tuple(expressions),
        )

    def construct(self) -> model.Select:
        self.want(CONSTRUCT)
        if self.took("WHERE"):
            body = self.at
            query = self.modified(CONSTRUCT)
            blocks = [part for part in query.group.parts if isinstance(part, model.Block)]
            if len(blocks) != len(query.group.parts) or any(
                not isinstance(each.path, str) for block in blocks for each in block.triples
            ):
                raise RefusedFilterError("CONSTRUCT WHERE takes triples alone", body)
            return query
        self.want("{")
        # What the template names need not be bound, and is no part of the pattern.
        bound, edges = set(self.bound), self.edges
        at = self.at
        if any(not isinstance(each.path, str) for each in self.triples()):
            raise RefusedFilterError("CONSTRUCT makes triples: a path cannot stand there", at)
        self.want("}")
        self.bound, self.edges = bound, edges
        return self.modified(CONSTRUCT)

    def modified(
        self,
        form: str,
        modifier: str = "",
        selected: tuple[Term, ...] | None = None,
        star: int = -1,
        computed: frozenset[Term] = frozenset(),
        expressions: tuple[Expression, ...] = (),
    ) -> model.Select:
        """Take WHERE and what follows it."""
        self.took("WHERE")
        body = self.at
        group = self.group()
        group_by: list[Term] | None = None
        having: list[Expression] = []
        others: list[Expression] = []
        limit: Term | None = None
        offset: Term | None = None
        if self.took("GROUP"):
            self.want("BY")
            group_by = self.group_conditions(others)
        if self.took("HAVING"):
            having = self.several(self.constraint)
        if self.took("ORDER"):
            self.want("BY")
            others += self.several(self.order)
        while word := self.took("LIMIT", "OFFSET"):
            if not self.sees(kinds.NUMBER):
                raise self.wrong()
            self._amounts.append((self.term(), self.at - 1))
            number = self._amounts[-1][0]
            limit, offset = (number, offset) if word == "LIMIT" else (limit, number)
        values = self.values() if self.took("VALUES") else None
        if star >= 0 and group_by is not None:
            raise RefusedFilterError("SELECT * cannot stand with GROUP BY: name the variables", star)
        return model.Select(
            form,
            group,
            body,
            modifier,
            selected,
            star,
            computed,
            expressions,
            None if group_by is None else tuple(group_by),
            tuple(having),
            limit,
            offset,
            values,
            tuple(others),
        )

    def several(self, take: Callable[[], Expression | None]) -> list[Expression]:
        """Take one or more."""
        first = take()
        if first is None:
            raise self.wrong()
        expressions = [first]
        while (each := take()) is not None:
            expressions.append(each)
        return expressions

    def group_conditions(self, others: list[Expression]) -> list[Term]:
        variables: list[Term] = []
        begin = self.at
        while True:
            if self.sees(kinds.VARIABLE):
                variables.append(self.uses())
            elif self.took("("):
                others.append(self.expression())
                if self.took("AS"):
                    self.bind(self.variable())
                self.want(")")
            elif self.calls():
                others.append(self.primary())
            else:
                break
        if self.at == begin:
            raise self.wrong()
        return variables

    def order(self) -> Expression | None:
        if self.took("ASC", "DESC"):
            if not self.sees("("):
                raise self.wrong()
            return self.primary()
        return self.primary() if self.sees(kinds.VARIABLE) else self.constraint()

    def group(self) -> model.Group:
        self.want("{")
        if self.sees(model.SELECT):
            group = model.Group((self.select(),))
            self.want("}")
            return group
        parts: list[Part] = []
        while True:
            if self.begins_triples():
                begin = self.at
                parts.append(model.Block(self.triples(), begin, self.at))
            if self.took("}"):
                return model.Group(tuple(parts))
            at = self.at
            parts.append(self.part())
            if isinstance(parts[-1], model.Bind):
                self._given.append(
                    (parts[-1].variable, tuple(model.visible(model.Group(tuple(parts[:-1])))), at)
                )
            self.took(".")

    def part(self) -> Part:
        word = self.took("FILTER", "OPTIONAL", "MINUS", "BIND", "VALUES")
        if word == "OPTIONAL":
            return model.Optional(self.group())
        if word == "MINUS":
            return model.Minus(self.group())
        if word == "FILTER":
            condition = self.constraint()
            if condition is None:
                if self.kind() in (kinds.VARIABLE, "!", *kinds.IRIS, *kinds.LITERALS):
                    raise RefusedFilterError("FILTER takes its condition in parentheses", self.at)
                raise self.wrong()
            return model.Filter(condition)
        if word == "BIND":
            self.want("(")
            expression = self.expression()
            self.want("AS")
            variable = self.bind(self.variable())
            self.want(")")
            return model.Bind(expression, variable)
        if word == "VALUES":
            return self.values()
        if not self.sees("{"):
            raise self.wrong()
        groups = [self.group()]
        while self.took("UNION"):
            groups.append(self.group())
        return groups[0] if len(groups) == 1 else model.Either(tuple(groups))

    def values(self) -> model.Values:
        variables: list[Term] = []
        several = bool(self.took("("))
        while self.sees(kinds.VARIABLE):
            variables.append(self.bind(self.variable()))
            if not several:
                break
        if several:
            self.want(")")
        elif not variables:
            raise self.wrong()
        self.want("{")
        rows: list[tuple[Term | None, ...]] = []
        while not self.took("}"):
            if not several:
                rows.append((self.value(),))
                continue
            at = self.at
            self.want("(")
            row = []
            while not self.took(")"):
                row.append(self.value())
            if len(row) != len(variables):
                raise RefusedFilterError(
                    f"VALUES has {len(variables)} variables and this row {len(row)} terms", at
                )
            rows.append(tuple(row))
        return model.Values(tuple(variables), tuple(rows))

    def value(self) -> Term | None:
        return None if self.took("UNDEF") else self.literal_or_iri()
