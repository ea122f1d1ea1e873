"""The words of a query one after another, and the terms that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.language import words as kinds_of_words
from headgate.rdf.language.names import Names, UnreadableTermError, tagged, typed
from headgate.rdf.language.refusal import RefusedFilterError, WrongWordError, wrong_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.model import Term
    from headgate.rdf.language.words import Kinds

IRIS = (kinds_of_words.IRI, kinds_of_words.NAME, kinds_of_words.PREFIX_NAME)
PLAIN_TERMS = (*IRIS, kinds_of_words.NUMBER, kinds_of_words.TRUTH)
_ELSEWHERE = {
    "GRAPH": "an event is one graph",
    "FROM": "an event is one graph",
    "SERVICE": "a filter looks at the event only",
}


class WordReader:
    """Takes one word after another; `bound` and `used` are the variables that were met."""

    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        self.words = words
        self.kinds = kinds
        self.at = 0
        self.names = Names()
        self.terms: list[Term | None] = [None] * len(words)
        self.fresh = 0
        self.bound: set[Term] = set()
        self.used: dict[Term, int] = {}
        self.taken = {
            word[2:] for word, kind in zip(words, kinds, strict=True) if kind == kinds_of_words.BLANK
        }

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
        if self.kind() in PLAIN_TERMS:
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
                if self.kind() not in IRIS:
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

    def bind(self, variable: Term) -> Term:
        self.bound.add(variable)
        return variable
