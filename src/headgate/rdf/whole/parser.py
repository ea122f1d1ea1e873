"""Words of a whole query to its tree: SPARQL 1.1's own grammar, rule by rule, as it is written there.

What filters cannot be is refused with the reason: what asks another source, what is not the same each time,
and what changes something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.language import words as kinds_of_words
from headgate.rdf.language.model import ASK, RDF, SELECT, XSD, is_literal
from headgate.rdf.language.names import Names, UnreadableTermError, tagged, typed
from headgate.rdf.language.refusal import MAX_EDGES, MAX_VARIABLES, RefusedFilterError, WrongWordError, wrong_word
from headgate.rdf.whole.tree import (
    Bind,
    Block,
    Chain,
    Choice,
    Either,
    Expression,
    Filter,
    Group,
    Inverse,
    Minus,
    Negated,
    Optional,
    Repeat,
    Select,
    Triple,
    Values,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.rdf.language.model import Term
    from headgate.rdf.language.words import Kinds
    from headgate.rdf.whole.tree import Part, Path

CONSTRUCT = "CONSTRUCT"
MAX_STEPS = 256
"""Properties in paths and triples."""
_FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))
_IRIS = (kinds_of_words.IRI, kinds_of_words.NAME, kinds_of_words.PREFIX_NAME)
_PLAIN = (*_IRIS, kinds_of_words.NUMBER, kinds_of_words.TRUTH)
_AGGREGATES = frozenset("COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT".split())
_MANY = 1_000
_TAKES = {
    (1, 1): """STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH
    DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC
    COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT""",
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
_CASTS = frozenset(
    f"<{XSD}{name}>"
    for name in (
        "boolean double float decimal integer dateTime string date time duration dayTimeDuration "
        "yearMonthDuration gYear gYearMonth gMonth gMonthDay gDay"
    ).split()
)
_ELSEWHERE = {
    "GRAPH": "an event is one graph",
    "FROM": "an event is one graph",
    "SERVICE": "a filter looks at the event only",
}
_UNBOUND = "the filter looks at {}, which nothing in the query binds"


class Parsed(NamedTuple):
    """A query, the terms of its words (None where a word is none), and how many words declare names."""

    query: Select
    terms: tuple[Term | None, ...]
    prologue: int


def parse(words: Sequence[str], kinds: Kinds) -> Parsed:
    """Parse the words of a query; raises `RefusedFilterError`."""
    return _Parser(words, kinds).whole()


class _Parser:
    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        self.words = words
        self.kinds = kinds
        self.at = 0
        self.names = Names()
        self.terms: list[Term | None] = [None] * len(words)
        self.fresh = 0
        self.edges = 0
        self.steps = 0
        self.bound: set[Term] = set()
        self.used: dict[Term, int] = {}
        self.taken = {word[2:] for word, kind in zip(words, kinds, strict=True) if kind == kinds_of_words.BLANK}

    # Words.

    def peek(self) -> str:
        """Return the word that comes: a keyword in capitals."""
        if self.at >= len(self.words):
            return ""
        word = self.words[self.at]
        return word.upper() if word[0].isalpha() and ":" not in word and word != "a" else word

    def kind(self) -> str:
        return self.kinds[self.at] if self.at < len(self.kinds) else ""

    def next(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def took(self, *wanted: str) -> str:
        """Take a word if it is one of some."""
        word = self.peek()
        if word and word in wanted and self.kind() != kinds_of_words.STRING:
            self.at += 1
            return word
        return ""

    def want(self, *wanted: str) -> str:
        found = self.took(*wanted)
        if not found:
            raise self.wrong(*map(repr, wanted))
        return found

    def wrong(self, *expected: str) -> RefusedFilterError:
        """Say what is wrong with the word that comes."""
        word = self.words[self.at] if self.at < len(self.words) else None
        upper = self.peek()
        if upper in _ELSEWHERE:
            return RefusedFilterError(f"{upper} is not supported: {_ELSEWHERE[upper]}", self.at)
        return WrongWordError(wrong_word(word, self.kind(), expected), self.at)

    # Terms.

    def term(self) -> Term:
        """Take the word that comes as a term by itself."""
        at = self.at
        self.at += 1
        try:
            found = self.names[self.words[at]]
        except UnreadableTermError as error:
            raise RefusedFilterError(str(error), at) from None
        self.terms[at] = found
        return found

    def literal_or_iri(self) -> Term:
        """Take an IRI or a literal."""
        if self.kind() in _PLAIN:
            return self.term()
        if self.kind() != kinds_of_words.STRING:
            raise self.wrong("an IRI", "a literal")
        at = self.at
        text = self.term()
        try:
            if self.kind() == kinds_of_words.LANGUAGE:
                self.at += 1
                return tagged(text, self.words[self.at - 1])
            if self.took("^^"):
                if self.kind() not in _IRIS:
                    raise self.wrong("an IRI")
                return typed(text, self.term())
        except UnreadableTermError as error:
            raise RefusedFilterError(str(error), at) from None
        return text

    def variable(self) -> Term:
        if self.kind() != kinds_of_words.VARIABLE:
            raise self.wrong("a variable")
        return self.term()

    def blank(self) -> Term:
        while f"b{self.fresh}" in self.taken:
            self.fresh += 1
        self.fresh += 1
        return f"?:b{self.fresh - 1}"

    # Queries.

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

    def constraint(self) -> Expression | None:
        if self.peek() == "(" or self.calls():
            return self.primary()
        return None

    def order(self) -> Expression | None:
        if self.took("ASC", "DESC"):
            if self.peek() != "(":
                raise self.wrong("'('")
            return self.primary()
        if self.kind() == kinds_of_words.VARIABLE:
            return self.primary()
        return self.constraint()

    def calls(self) -> bool:
        """Tell whether a function comes."""
        follows = self.words[self.at + 1 : self.at + 2] == ["("]
        upper = self.peek()
        return (
            (follows and (self.kind() in _IRIS or upper in ARGUMENTS))
            or upper in CHANGING
            or upper in ("EXISTS", "NOT")
        )

    # Groups.

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

    def begins_triples(self) -> bool:
        return self.kind() in (
            *_PLAIN,
            kinds_of_words.VARIABLE,
            kinds_of_words.BLANK,
            kinds_of_words.STRING,
        ) or self.peek() in ("(", "[")

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

    def bind(self, variable: Term) -> Term:
        self.bound.add(variable)
        return variable

    # Triples.

    def triples(self) -> tuple[Triple, ...]:
        found: list[Triple] = []
        while self.begins_triples():
            at = self.at
            bracket = self.words[at] in ("(", "[") and self.words[at + 1 : at + 2] not in ([")"], ["]"])
            subject = self.node(found)
            if is_literal(subject):
                raise RefusedFilterError("a literal cannot be the subject of a triple", at)
            if not bracket or self.begins_verb():
                self.properties(subject, found)
            if not self.took("."):
                break
        self.edges += len(found)
        if self.edges > MAX_EDGES:
            raise RefusedFilterError(f"the filter has more than {MAX_EDGES} triple patterns", self.at - 1)
        return tuple(found)

    def begins_verb(self) -> bool:
        return self.kind() in (kinds_of_words.VARIABLE, kinds_of_words.A, *_IRIS) or self.peek() in (
            "^",
            "!",
            "(",
        )

    def properties(self, subject: Term, found: list[Triple]) -> None:
        while True:
            path: Path
            if self.kind() == kinds_of_words.VARIABLE:
                path = self.bind(self.variable())
            else:
                path = self.choice()
            while True:
                place = len(found)
                end = self.node(found)
                found.insert(place, Triple(subject, path, end))
                if not self.took(","):
                    break
            while self.took(";"):
                pass
            if self.words[self.at - 1] != ";" or not self.begins_verb():
                return

    def node(self, found: list[Triple]) -> Term:
        """Take a subject or an object; what it says itself goes to `found`."""
        if self.kind() in (kinds_of_words.VARIABLE, kinds_of_words.BLANK):
            return self.bind(self.term())
        if self.took("["):
            node = self.bind(self.blank())
            if not self.took("]"):
                self.properties(node, found)
                self.want("]")
            return node
        if self.took("("):
            if self.took(")"):
                return _NIL
            first = node = self.bind(self.blank())
            while True:
                found.append(Triple(node, _FIRST, self.node(found)))
                if self.took(")"):
                    found.append(Triple(node, _REST, _NIL))
                    return first
                following = self.bind(self.blank())
                found.append(Triple(node, _REST, following))
                node = following
        return self.literal_or_iri()

    def choice(self) -> Path:
        found = [self.chain()]
        while self.took("|"):
            found.append(self.chain())
        return found[0] if len(found) == 1 else Choice(tuple(found))

    def chain(self) -> Path:
        found = [self.step()]
        while self.took("/"):
            found.append(self.step())
        return found[0] if len(found) == 1 else Chain(tuple(found))

    def step(self) -> Path:
        back = bool(self.took("^"))
        found: Path
        if self.took("("):
            found = self.choice()
            self.want(")")
        elif self.took("!"):
            found = self.negated()
        elif self.kind() in (kinds_of_words.A, *_IRIS):
            found = self.term()
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise RefusedFilterError(f"the paths have more than {MAX_STEPS} steps", self.at - 1)
        elif self.kind() in (kinds_of_words.STRING, kinds_of_words.NUMBER, kinds_of_words.TRUTH):
            raise RefusedFilterError("a literal cannot be a property", self.at)
        else:
            raise self.wrong("a property", "a path")
        sign = self.took("*", "+", "?")
        if sign:
            found = Repeat(found, sign)
        return Inverse(found) if back else found

    def negated(self) -> Negated:
        forward: list[Term] = []
        back: list[Term] = []
        several = bool(self.took("("))
        while True:
            if several and self.took(")"):
                break
            into = back if self.took("^") else forward
            if self.kind() not in (kinds_of_words.A, *_IRIS):
                raise self.wrong("a property")
            into.append(self.term())
            if not several:
                break
            if not self.took("|") and self.peek() != ")":
                raise self.wrong("'|'", "')'")
        return Negated(tuple(forward), tuple(back))

    # Expressions.

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
            self.peek() == "NOT" and [each.upper() for each in self.words[self.at + 1 : self.at + 2]] == ["IN"]
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
            if self.took("+", "-"):
                parts.append(self.product())
            elif self.kind() == kinds_of_words.NUMBER and self.words[self.at][0] in "+-":
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
        if kind in _IRIS:
            name = self.literal_or_iri()
            if self.peek() != "(":
                return Expression(begin, self.at)
            if name not in _CASTS:
                raise RefusedFilterError(f"{name} is not a function: of IRIs, xsd:integer and such are", begin)
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
