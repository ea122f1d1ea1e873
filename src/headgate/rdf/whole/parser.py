"""Words of a whole query to its tree: SPARQL 1.1's own grammar, rule by rule, as it is written there.

What filters cannot be is refused with the reason: what asks another source, what is not the same each time,
and what changes something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.language import words as kinds_of_words
from headgate.rdf.language.model import ASK, SELECT
from headgate.rdf.language.names import UnreadableTermError
from headgate.rdf.language.refusal import MAX_VARIABLES, RefusedFilterError
from headgate.rdf.whole.expressions import ExpressionParser
from headgate.rdf.whole.tree import (
    Bind,
    Block,
    Either,
    Expression,
    Filter,
    Group,
    Minus,
    Optional,
    Select,
    Values,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.rdf.language.model import Term
    from headgate.rdf.language.words import Kinds
    from headgate.rdf.whole.tree import Part

CONSTRUCT = "CONSTRUCT"
_UNBOUND = "the filter looks at {}, which nothing in the query binds"


class Parsed(NamedTuple):
    """A query, the terms of its words (None where a word is none), and how many words declare names."""

    query: Select
    terms: tuple[Term | None, ...]
    prologue: int


def parse(words: Sequence[str], kinds: Kinds) -> Parsed:
    """Parse the words of a query; raises `RefusedFilterError`."""
    return _Parser(words, kinds).whole()


class _Parser(ExpressionParser):
    """Takes queries and groups."""

    def whole(self) -> Parsed:
        while word := self.took("PREFIX", "BASE"):
            prefix = None
            if word == "PREFIX":
                if self.kind() != kinds_of_words.PREFIX_NAME:
                    raise RefusedFilterError(
                        "a prefix is written with a colon at its end, such as ex:", self.at
                    )
                prefix = self.words[self.at]
                self.at += 1
            if self.kind() != kinds_of_words.IRI:
                raise self.wrong("an IRI")
            try:
                self.names.declare(prefix, self.words[self.at])
            except UnreadableTermError as error:
                raise RefusedFilterError(str(error), self.at) from None
            self.at += 1
        prologue = self.at
        form = self.peek()
        if form == SELECT:
            query = self.select()
        elif form == ASK:
            self.next()
            query = self.modified(ASK, None, -1, frozenset(), ())
        elif form == CONSTRUCT:
            query = self.construct()
        elif form == "DESCRIBE":
            raise RefusedFilterError(
                "DESCRIBE is not supported: a filter is ASK { … }, SELECT … { … } or CONSTRUCT { … } { … }",
                self.at,
            )
        else:
            raise self.wrong("ASK", "SELECT", "CONSTRUCT")
        if self.at < len(self.words):
            raise self.wrong("the end")
        for name, place in self.used.items():
            if name not in self.bound:
                raise RefusedFilterError(_UNBOUND.format(name), place)
        if len(self.bound) > MAX_VARIABLES:
            raise RefusedFilterError(
                f"the filter has {len(self.bound)} variables and at most {MAX_VARIABLES} are taken", 0
            )
        return Parsed(query, tuple(self.terms), prologue)

    def select(self) -> Select:
        self.want(SELECT)
        self.took("DISTINCT", "REDUCED")
        star, chosen, computed, expressions = -1, [], set(), []
        if self.took("*"):
            star = self.at - 1
        else:
            while True:
                if self.kind() == kinds_of_words.VARIABLE:
                    at = self.at
                    chosen.append(self.variable())
                    self.used.setdefault(chosen[-1], at)
                elif self.took("("):
                    expressions.append(self.expression())
                    self.want("AS")
                    chosen.append(self.bind(self.variable()))
                    computed.add(chosen[-1])
                    self.want(")")
                else:
                    break
            if self.calls():
                raise RefusedFilterError(
                    "an expression of SELECT stands in parentheses and has a name: "
                    f"({self.peek()}(…) AS ?name)",
                    self.at,
                )
            if not chosen:
                raise self.wrong("a variable", "'*'")
        return self.modified(
            SELECT, None if star >= 0 else tuple(chosen), star, frozenset(computed), tuple(expressions)
        )

    def construct(self) -> Select:
        self.want(CONSTRUCT)
        if self.took("WHERE"):
            body = self.at
            query = self.modified(CONSTRUCT, None, -1, frozenset(), ())
            blocks = [part for part in query.group.parts if isinstance(part, Block)]
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
        return self.modified(CONSTRUCT, None, -1, frozenset(), ())

    def modified(
        self,
        form: str,
        selected: tuple[Term, ...] | None,
        star: int,
        computed: frozenset[Term],
        expressions: tuple[Expression, ...],
    ) -> Select:
        """Take WHERE and what follows it."""
        if self.peek() == "FROM":
            raise self.wrong()
        self.took("WHERE")
        body = self.at
        group = self.group()
        group_by: list[Term] | None = None
        having: list[Expression] = []
        others: list[Expression] = []
        limit, offset = None, 0
        if self.took("GROUP"):
            self.want("BY")
            group_by = self.group_conditions(others)
        if self.took("HAVING"):
            having = self.several(self.constraint)
        if self.took("ORDER"):
            self.want("BY")
            others += self.several(self.order)
        while word := self.took("LIMIT", "OFFSET"):
            if self.kind() != kinds_of_words.NUMBER or not self.words[self.at].isdigit():
                raise self.wrong("a number")
            number = int(self.words[self.at][:18])
            self.at += 1
            limit, offset = (number, offset) if word == "LIMIT" else (limit, number)
        values = self.values() if self.took("VALUES") else None
        if star >= 0 and group_by is not None:
            raise RefusedFilterError("SELECT * cannot stand with GROUP BY: name the variables", star)
        return Select(
            form,
            group,
            body,
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
            raise self.wrong("a condition")
        found = [first]
        while (each := take()) is not None:
            found.append(each)
        return found

    def group_conditions(self, others: list[Expression]) -> list[Term]:
        found: list[Term] = []
        begin = self.at
        while True:
            at = self.at
            if self.kind() == kinds_of_words.VARIABLE:
                found.append(self.variable())
                self.used.setdefault(found[-1], at)
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
            raise self.wrong("a variable", "'('")
        return found

    def order(self) -> Expression | None:
        if self.took("ASC", "DESC"):
            if self.peek() != "(":
                raise self.wrong("'('")
            return self.primary()
        if self.kind() == kinds_of_words.VARIABLE:
            return self.primary()
        return self.constraint()

    def group(self) -> Group:
        self.want("{")
        if self.peek() == SELECT:
            found = Group((self.select(),))
            self.want("}")
            return found
        parts: list[Part] = []
        while True:
            if self.begins_triples():
                begin = self.at
                parts.append(Block(self.triples(), begin, self.at))
            if self.took("}"):
                return Group(tuple(parts))
            at = self.at
            parts.append(self.part())
            if isinstance(parts[-1], Bind) and parts[-1].variable in visible(Group(tuple(parts[:-1]))):
                raise RefusedFilterError(
                    f"BIND gives {parts[-1].variable} a value, and it has one already: take another name", at
                )
            self.took(".")

    def part(self) -> Part:
        word = self.took("OPTIONAL", "MINUS", "FILTER", "BIND", "VALUES")
        if word == "OPTIONAL":
            return Optional(self.group())
        if word == "MINUS":
            return Minus(self.group())
        if word == "FILTER":
            found = self.constraint()
            if found is None:
                if self.begins_triples():
                    raise RefusedFilterError("FILTER takes its condition in parentheses", self.at)
                raise self.wrong("'('", "a function")
            return Filter(found)
        if word == "BIND":
            self.want("(")
            expression = self.expression()
            self.want("AS")
            variable = self.bind(self.variable())
            self.want(")")
            return Bind(expression, variable)
        if word == "VALUES":
            return self.values()
        if self.peek() != "{":
            raise self.wrong("a triple", "FILTER", "OPTIONAL", "UNION", "MINUS", "BIND", "VALUES", "'}'")
        groups = [self.group()]
        while self.took("UNION"):
            groups.append(self.group())
        return groups[0] if len(groups) == 1 else Either(tuple(groups))

    def values(self) -> Values:
        variables: list[Term] = []
        several = bool(self.took("("))
        while self.kind() == kinds_of_words.VARIABLE:
            variables.append(self.bind(self.variable()))
            if not several:
                break
        if several:
            self.want(")")
        elif not variables:
            raise self.wrong("a variable", "'('")
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
        return Values(tuple(variables), tuple(rows))

    def value(self) -> Term | None:
        return None if self.took("UNDEF") else self.literal_or_iri()
