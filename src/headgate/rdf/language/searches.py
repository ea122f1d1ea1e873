r"""What conditions look for in texts: which regular expressions are taken, and what is asked of a text.

A regular expression is a text as it is, perhaps from the beginning (`^`) or up to the end (`$`), or one whole
word: `\bword\b` or `(^|\W)word(\W|$)`. It means what it means to Rust, as in the SPARQL engine of the tests;
what a word is, and which letters are the same in any case, says `core/text/alphabets.py`.

`lookup_of` is what an index asks: the part of a condition that is about the text of one variable.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.text.alphabets import RUST
from headgate.rdf.language import model
from headgate.rdf.language.words import FUNCTIONS

if TYPE_CHECKING:
    from headgate.rdf.language.model import Expression, Term

PART, START, END, WHOLE, WORD = "part", "start", "end", "whole", "word"
"""Where something stands in a text: anywhere, at an end, as all of it, or as one of its words."""
AS_WRITTEN, LOWER, ANY_CASE = "as written", "lower", "any case"
"""Of the text, of its lower case, or of both in any case."""

_META = r"\\|.?*+(){}\[\]^$"
_TEXT = rf"(?:[^{_META}]|\\[{_META}\-])*+"
_PLAIN = re.compile(rf"(\^?)({_TEXT})(\$?)")
_WORDS = re.compile(r"\\b([^\\]+)\\b|\(\^\|\\W\)([^\\]+)\(\\W\|\$\)")
_PLACES = {("", ""): PART, ("^", ""): START, ("", "$"): END, ("^", "$"): WHOLE}


class Search(NamedTuple):
    """What a regular expression looks for; in any case the text is folded."""

    where: str
    text: str
    any_case: bool

    def found_in(self, text: str) -> bool:
        """Tell whether a text has it."""
        if self.where == WORD:
            return self.text in (RUST.words(text) if self.any_case else RUST.written_words(text))
        text = RUST.fold(text) if self.any_case else text
        if self.where == START:
            return text.startswith(self.text)
        if self.where == END:
            return text.endswith(self.text)
        return text == self.text if self.where == WHOLE else self.text in text


@lru_cache(1 << 14)
def search_of(pattern: str, flags: str = "") -> Search | None:
    r"""Read a regular expression; None if it is none of those that are taken.

    >>> search_of(r"\bNews\b", "i"), search_of("a.*b")
    (Search(where='word', text='news', any_case=True), None)
    >>> search_of(r"^1\.5")
    Search(where='start', text='1.5', any_case=False)
    """
    if flags not in {"", "i"}:
        return None
    any_case = flags == "i"
    word = _WORDS.fullmatch(pattern)
    if word is not None:
        text, where = word[1] or word[2], WORD
        if not RUST.is_word(text):
            return None
    else:
        match_ = _PLAIN.fullmatch(pattern)
        if match_ is None:
            return None
        text, where = re.sub(r"\\(.)", r"\1", match_[2], flags=re.DOTALL), _PLACES[match_[1], match_[3]]
    return Search(where, RUST.fold(text) if any_case else text, any_case)


class Lookup(NamedTuple):
    """What a condition asks of the text of a variable, `as_text` of STR(?x); it holds only if this does.

    `exact`: and it holds if this does. The text of `WHOLE` in lower case is a term, with its language.
    """

    variable: Term
    as_text: bool
    where: str
    case: str
    text: str
    exact: bool = True


_FUNCTIONS = {"STRSTARTS": START, "STRENDS": END, "CONTAINS": PART}


def lookup_of(expression: Expression) -> Lookup | None:
    r"""Tell what a condition asks of the text of one variable; None if it is about something else.

    >>> from headgate.rdf.language.model import Call
    >>> lookup_of(Call("CONTAINS", (Call("LCASE", (Call("STR", ("?t",)),)), '"news"')))
    Lookup(variable='?t', as_text=True, where='part', case='lower', text='news', exact=True)
    >>> lookup_of(Call("REGEX", ("?t", '"\\\\bNews\\\\b"')))
    Lookup(variable='?t', as_text=False, where='word', case='any case', text='news', exact=False)
    """
    match expression:
        case model.Call("REGEX", (item, str() as pattern, *rest)):
            search = search_of(
                model.parts(pattern).lexical, model.parts(str(rest[0])).lexical if rest else ""
            )
            if search is None:
                return None
            if search.where == WORD:
                lookup = _about(item, search.where, RUST.fold(search.text), ANY_CASE)
                return lookup and lookup._replace(exact=search.any_case)
            return _about(item, search.where, search.text, ANY_CASE if search.any_case else AS_WRITTEN)
        case model.Call(name, (model.Call("LCASE", (item,)), str() as wanted)) if (
            name in _FUNCTIONS and _is_text(wanted)
        ):
            return _about(item, _FUNCTIONS[name], model.parts(wanted).lexical, LOWER)
        case model.Call(name, (item, str() as wanted)) if name in _FUNCTIONS and _is_text(wanted):
            return _about(item, _FUNCTIONS[name], model.parts(wanted).lexical, AS_WRITTEN)
        case model.Compare("=", model.Call("LCASE", (item,)), str() as wanted) | model.Compare(
            "=", str() as wanted, model.Call("LCASE", (item,))
        ) if model.is_literal(wanted) and model.parts(wanted).datatype in {model.STRING, model.LANG_STRING}:
            return _about(item, WHOLE, wanted, LOWER)
    return None


def _about(item: Expression, where: str, text: str, case: str) -> Lookup | None:
    as_text = isinstance(item, model.Call) and item.name == "STR"
    of = item.arguments[0] if isinstance(item, model.Call) and as_text else item
    return Lookup(of, as_text, where, case, text) if isinstance(of, str) and model.is_variable(of) else None


def _is_text(term: Term) -> bool:
    return model.is_literal(term) and model.parts(term).datatype == model.STRING


def is_indexed(expression: Expression) -> bool:
    """Tell whether an index knows an expression, if it knows its regular expressions."""
    return not any(
        isinstance(each, model.Call)
        and (
            each.name not in FUNCTIONS
            or (each.name == "REGEX" and not all(map(_is_said, each.arguments[1:])))
        )
        for each in model.within(expression)
    )


def is_searched(expression: Expression) -> bool:
    """Tell whether an index knows the regular expressions of an expression that it knows else."""
    for each in model.within(expression):
        if isinstance(each, model.Call) and each.name == "REGEX":
            texts = [str(said) for said in each.arguments[1:]]
            if (
                not all(map(_is_text, texts))
                or search_of(*[model.parts(text).lexical for text in texts]) is None
            ):
                return False
    return True


def _is_said(expression: Expression) -> bool:
    return isinstance(expression, str) and model.is_literal(expression)
