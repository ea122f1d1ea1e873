"""Triple patterns of a query: nodes, lists, property lists and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.text.cutting import RefusedFilterError
from headgate.rdf.language import model
from headgate.rdf.language import words as kinds
from headgate.rdf.language.names import Join, Slots
from headgate.rdf.language.refusal import MAX_STEPS, check_edges, misplaced
from headgate.rdf.language.words import END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.model import Path, Term
    from headgate.rdf.language.words import Kinds


LOOKS_AT, NAMES = "the filter looks at {}", "SELECT names {}"


class Reader:
    """Takes one word after another; `bound` and `used` are the variables that were met."""

    bare_names = False
    """Whether a word without a colon may be a name."""

    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        self.words = words
        self.kinds = (*kinds, END)
        self.at = 0
        self.bound: set[Term] = set()
        self.used: list[tuple[Term, int, str]] = []
        """Variables that something has to bind, their words, and what they are there for."""
        self._expected: set[str] = set()
        self._expected_at = 0
        self._declarations: list[tuple[int, int]] = []
        self._prologue = 0
        self._places: dict[Term, int] = {}
        self._joins: list[Join] = []
        self._blanks: list[Term] = []
        self._constants: dict[Term, None] = {}

    def slots(self) -> Slots:
        """Return what was met."""
        return Slots(
            tuple(self._declarations),
            self._prologue,
            tuple(self._places),
            tuple(self._places.values()),
            tuple(self._joins),
            tuple(self._blanks),
            tuple(self._constants),
        )

    def kind(self, ahead: int = 0) -> str:
        """Return the kind of the word that comes, or of one behind it."""
        return self.kinds[min(self.at + ahead, len(self.kinds) - 1)]

    def sees(self, *wanted: str) -> str:
        """Return the kind of the word that comes if it is one of some; what was wanted is remembered."""
        kind = self.kinds[self.at]
        if kind in wanted:
            return kind
        if self.at != self._expected_at:
            self._expected, self._expected_at = set(), self.at
        self._expected.update(wanted)
        return ""

    def took(self, *wanted: str) -> str:
        """Take a word if it is of one of some kinds."""
        kind = self.sees(*wanted)
        self.at += bool(kind)
        return kind

    def want(self, *wanted: str) -> str:
        """Take a word of one of some kinds."""
        kind = self.took(*wanted)
        if not kind:
            raise self.wrong()
        return kind

    def wrong(self, *wanted: str) -> RefusedFilterError:
        """Say what is wrong with the word that comes."""
        self.sees(*wanted)
        reason = misplaced(self.words, self.kinds, self.at, self._expected, names=self.bare_names)
        return RefusedFilterError(reason, self.at)

    def declare(self) -> None:
        """Take the declarations of names."""
        while form := self.took("PREFIX", "BASE"):
            prefix = -1
            if form == "PREFIX":
                if not self.took(kinds.PREFIX_NAME):
                    raise RefusedFilterError(
                        "a prefix is written with a colon at its end, such as ex:", self.at
                    )
                prefix = self.at - 1
            self.want(kinds.IRI)
            self._declarations.append((prefix, self.at - 1))
        self._prologue = self.at

    # Terms.

    def term(self) -> Term:
        """Take the word that comes as a term by itself."""
        kind = self.kinds[self.at]
        sign = {kinds.VARIABLE: "?", kinds.BLANK: "?:"}.get(kind) or ('"' if kind in kinds.LITERALS else "<")
        slot = f"{sign}{self.at}"
        self._places[slot] = self.at
        self.at += 1
        return slot

    def literal_or_iri(self) -> Term:
        """Take an IRI or a literal."""
        if not self.sees(*kinds.IRIS, *kinds.LITERALS):
            raise self.wrong()
        kind = self.kind()
        term = self.term()
        if kind != kinds.STRING:
            return term
        if self.took(kinds.LANGUAGE):
            return self._joined(Join(f"{term}@", term, self.at - 1, ""))
        if self.took("^^"):
            if not self.sees(*kinds.IRIS):
                raise self.wrong()
            return self._joined(Join(f"{term}^", term, -1, self.term()))
        return term

    def _joined(self, join: Join) -> Term:
        self._joins.append(join)
        return join.slot

    def variable(self) -> Term:
        """Take a variable."""
        if not self.sees(kinds.VARIABLE):
            raise self.wrong()
        return self.term()

    def uses(self, why: str = LOOKS_AT) -> Term:
        """Take a variable that something has to bind."""
        index = self.at
        self.used.append((self.variable(), index, why))
        return self.used[-1][0]

    def constant(self, term: Term) -> Term:
        """Take a term that no word writes."""
        self._constants[term] = None
        return term

    def blank(self) -> Term:
        """Make a blank node."""
        self._blanks.append(f"?:+{len(self._blanks)}")
        return self._blanks[-1]

    def bind(self, variable: Term) -> Term:
        """Note that a variable is bound."""
        self.bound.add(variable)
        return variable


class TripleParser(Reader):
    """Takes triples."""

    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        super().__init__(words, kinds)
        self.edges = 0
        self.steps = 0

    def begins_triples(self) -> bool:
        return bool(self.sees(kinds.VARIABLE, kinds.BLANK, *kinds.IRIS, *kinds.LITERALS, "(", "["))

    def triples(self) -> tuple[model.Triple, ...]:
        triples: list[model.Triple] = []
        while self.begins_triples():
            at = self.at
            bracket = self.kind() in ("(", "[") and self.kind(1) not in (")", "]")
            subject = self.node(triples)
            if model.is_literal(subject):
                raise RefusedFilterError("a literal cannot be the subject of a triple", at)
            if not bracket or self.begins_verb():
                self.properties(subject, triples)
            if not self.took("."):
                break
        self.edges += len(triples)
        check_edges(self.edges, self.at - 1)
        return tuple(triples)

    def begins_verb(self) -> bool:
        return bool(self.sees(kinds.VARIABLE, kinds.A, *kinds.IRIS, "^", "!", "("))

    def properties(self, subject: Term, triples: list[model.Triple]) -> None:
        while True:
            path: Path = self.bind(self.term()) if self.sees(kinds.VARIABLE) else self.choice()
            while True:
                index = len(triples)
                end = self.node(triples)
                triples.insert(index, model.Triple(subject, path, end))
                if not self.took(","):
                    break
            if not self.took(";"):
                return
            while self.took(";"):
                pass
            if not self.begins_verb():
                return

    def node(self, triples: list[model.Triple]) -> Term:
        """Take a subject or an object; what it says itself goes to `found`."""
        if self.sees(kinds.VARIABLE, kinds.BLANK):
            return self.bind(self.term())
        if self.took("["):
            node = self.bind(self.blank())
            if not self.took("]"):
                self.properties(node, triples)
                self.want("]")
            return node
        if self.took("("):
            if self.took(")"):
                return self.constant(model.NIL)
            first = node = self.bind(self.blank())
            while True:
                triples.append(model.Triple(node, self.constant(model.FIRST), self.node(triples)))
                if self.took(")"):
                    triples.append(model.Triple(node, self.constant(model.REST), self.constant(model.NIL)))
                    return first
                following = self.bind(self.blank())
                triples.append(model.Triple(node, self.constant(model.REST), following))
                node = following
        return self.literal_or_iri()

    def choice(self) -> Path:
        options = [self.chain()]
        while self.took("|"):
            options.append(self.chain())
        return options[0] if len(options) == 1 else model.Choice(tuple(options))

    def chain(self) -> Path:
        steps = [self.step()]
        while self.took("/"):
            steps.append(self.step())
        return steps[0] if len(steps) == 1 else model.Chain(tuple(steps))

    def step(self) -> Path:
        back = bool(self.took("^"))
        path: Path
        if self.took("("):
            path = self.choice()
            self.want(")")
        elif self.took("!"):
            path = self.negated()
        elif self.sees(kinds.A, *kinds.IRIS):
            path = self.term()
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise RefusedFilterError(f"the paths have more than {MAX_STEPS} steps", self.at - 1)
        else:
            raise self.wrong()
        sign = self.took("*", "+", "?")
        if sign:
            path = model.Repeat(path, sign)
        return model.Inverse(path) if back else path

    def negated(self) -> model.Negated:
        forward: list[Term] = []
        back: list[Term] = []
        several = bool(self.took("("))
        while True:
            if several and self.took(")"):
                break
            into = back if self.took("^") else forward
            if not self.sees(kinds.A, *kinds.IRIS):
                raise self.wrong()
            into.append(self.term())
            if not several:
                break
            if not self.took("|") and not self.sees(")"):
                raise self.wrong()
        return model.Negated(tuple(forward), tuple(back))
