"""Triple patterns of a query: nodes, lists, property lists and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.language import words as kinds_of_words
from headgate.rdf.language.model import RDF, is_literal
from headgate.rdf.language.refusal import MAX_EDGES, MAX_STEPS, RefusedFilterError
from headgate.rdf.whole.tree import Chain, Choice, Inverse, Negated, Repeat, Triple
from headgate.rdf.whole.words import IRIS, PLAIN_TERMS, WordReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.model import Term
    from headgate.rdf.language.words import Kinds
    from headgate.rdf.whole.tree import Path

_FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))


class TripleParser(WordReader):
    """Takes triples."""

    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        super().__init__(words, kinds)
        self.edges = 0
        self.steps = 0

    def begins_triples(self) -> bool:
        return self.kind() in (
            *PLAIN_TERMS,
            kinds_of_words.VARIABLE,
            kinds_of_words.BLANK,
            kinds_of_words.STRING,
        ) or self.peek() in ("(", "[")

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
        return self.kind() in (kinds_of_words.VARIABLE, kinds_of_words.A, *IRIS) or self.peek() in (
            "^",
            "!",
            "(",
        )

    def properties(self, subject: Term, found: list[Triple]) -> None:
        while True:
            variable = self.kind() == kinds_of_words.VARIABLE
            path: Path = self.bind(self.variable()) if variable else self.choice()
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
        if self.kind() not in (*PLAIN_TERMS, kinds_of_words.STRING):
            raise self.wrong("a variable", "an IRI", "a literal")
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
        elif self.kind() in (kinds_of_words.A, *IRIS):
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
            if self.kind() not in (kinds_of_words.A, *IRIS):
                raise self.wrong("a property")
            into.append(self.term())
            if not several:
                break
            if not self.took("|") and self.peek() != ")":
                raise self.wrong("'|'", "')'")
        return Negated(tuple(forward), tuple(back))
