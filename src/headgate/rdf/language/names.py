"""Terms from single words, under the BASE and the PREFIXes that a filter declares.

What an IRI is, and what a relative one means against a base, is as RFC 3986 has it, and as the readers of
events see it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from headgate.core.text.cutting import BoundedCache, RefusedFilterError
from headgate.rdf.language.model import RDF, RDFS, TYPE, XSD, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.model import Term


_RELATIVE = re.compile(r"[^:/?#]*(?:[/?#]|\Z)")
_UNWRITTEN = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


def is_iri(text: str) -> bool:
    """Tell whether a text is an IRI with a scheme, as the readers of events see it.

    >>> is_iri("http://example.org/x"), is_iri("x"), is_iri("http://example.org/%zz")
    (True, False, False)
    """
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


def is_absolute(text: str) -> bool:
    """Tell whether a text begins with a scheme."""
    return _SCHEME.match(text) is not None


def is_relative(text: str) -> bool:
    """Tell whether a text has no colon where a scheme would have it: one that is bad is not relative.

    >>> is_relative("a/b:c"), is_relative("1:b")
    (True, False)
    """
    return _RELATIVE.match(text) is not None


def resolve(base: str, reference: str) -> str:
    """Resolve a relative reference against an absolute base; an absolute one stays as it is, dots and all.

    So it is with the readers of events, and a filter has to find what they read: one of them is asked. What
    it cannot read stays as it is.

    >>> resolve("http://example.org/a/b?q#f", "../c"), resolve("http://example.org/a/b?q#f", "#x")
    ('http://example.org/c', 'http://example.org/a/b?q#x')
    """
    if is_absolute(reference):
        return reference
    # A base that is declared may be sloppy too, as those of feeds are; one given beside the text may not.
    start, written = (
        _UNWRITTEN.sub(lambda found: f"\\U{ord(found[0]):08X}", each) for each in (base, reference)
    )
    text = f"@base <{start}> . <{written}> <urn:p> <urn:o> .".encode(errors="replace")
    try:
        (triple,) = parse(text, RdfFormat.TURTLE, lenient=True)
    except (SyntaxError, ValueError):
        return reference
    return str(getattr(triple.subject, "value", reference))


DECLARED = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD}
"""The prefixes that every filter has unless it says otherwise."""

_BOOLEAN, _INTEGER, _DECIMAL, _DOUBLE = (
    f"{XSD}{name}" for name in ("boolean", "integer", "decimal", "double")
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_MEANT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_LOCAL_ESCAPE = re.compile(r"\\(.)")


class UnreadableTermError(ValueError):
    """A word that stands for no term."""


class Names(BoundedCache["Term"]):
    """The terms of words, remembered; a word that is none raises `UnreadableTermError`.

    >>> names = Names()
    >>> names.declare("ex:", "<http://example.org/>")
    >>> names["ex:x"], names["$y"], names["2.50"], names["_:b"], names["a"] == names["rdf:type"]
    ('<http://example.org/x>', '?y', '"2.50"^^<http://www.w3.org/2001/XMLSchema#decimal>', '?:b', True)
    """

    def __init__(self) -> None:
        super().__init__(self._term)
        self.base: str | None = None
        self.prefixes = dict(DECLARED)

    def declare(self, prefix: str | None, word: str) -> None:
        """Declare a prefix, given with its colon, or BASE; before any word is asked for."""
        value = self.iri(word)
        if prefix is None:
            self.base = value
        else:
            self.prefixes[prefix[:-1]] = value

    def _term(self, word: str) -> Term:
        first = word[0]
        if first in "?$":
            return f"?{word[1:]}"
        if first == "<":
            return f"<{self.iri(word)}>"
        if first in "\"'":
            return literal(_unquoted(word))
        if first in "0123456789+-.":
            return _number(word)
        if word.startswith("_:"):
            return f"?:{word[2:]}"
        if ":" in word:
            return f"<{self._named(word)}>"
        if word == "a":
            return TYPE
        lower = word.lower()
        return literal(lower, _BOOLEAN) if lower in ("true", "false") else f"<{self._bare(word)}>"

    def iri(self, word: str) -> str:
        """Read `<…>`."""
        value = _unescaped(word[1:-1])
        if is_relative(value):
            if self.base is None:
                raise UnreadableTermError(f"{word} is relative and no BASE is declared: write the whole IRI")
            value = resolve(self.base, value)
        return _checked(value, word)

    def _named(self, word: str) -> str:
        prefix, _, local = word.partition(":")
        space = self.prefixes.get(prefix)
        if space is None:
            raise UnreadableTermError(
                f"the prefix {prefix}: is not declared: write PREFIX {prefix}: <…> before"
            )
        if "\\" in local:
            local = _LOCAL_ESCAPE.sub(r"\1", local)
        return _checked(space + local, word)

    def _bare(self, word: str) -> str:
        if "" in self.prefixes:
            return _checked(self.prefixes[""] + word, word)
        if self.base is None:
            raise UnreadableTermError(
                f"the bare name {word} needs PREFIX : <…> or BASE <…> before; text goes between quotes"
            )
        return _checked(resolve(self.base, word), word)


def tagged(text: Term, language: str) -> Term:
    """Give a string the language that a word such as @en names."""
    tag = language[1:].lower()
    try:
        Literal("", language=tag)
    except ValueError:
        raise UnreadableTermError(f"{language} is not a language tag") from None
    return f"{text}@{tag}"


def typed(text: Term, datatype: Term) -> Term:
    """Give a string a datatype."""
    if datatype == f"<{RDF}langString>":
        raise UnreadableTermError('a string with a language is written "…"@en')
    return text if datatype == f"<{XSD}string>" else f"{text}^^{datatype}"


def _number(word: str) -> Term:
    if "e" in word or "E" in word:
        return literal(word, _DOUBLE)
    return literal(word, _DECIMAL if "." in word else _INTEGER)


def _unquoted(word: str) -> str:
    quotes = 3 if word[:3] in ('"""', "'''") else 1
    return _unescaped(word[quotes:-quotes])


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(match_: re.Match[str]) -> str:
    if match_[3] is not None:
        if match_[3] not in _MEANT:
            raise UnreadableTermError(f"the escape {match_[0]} is not known: a backslash is written \\\\")
        return _MEANT[match_[3]]
    code = int(match_[1] or match_[2], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise UnreadableTermError(f"{match_[0]} is not a character")
    return chr(code)


def _checked(value: str, word: str) -> str:
    if not is_iri(value):
        shown = word if word == f"<{value}>" else f"{word}, which is <{value}>,"
        raise UnreadableTermError(f"{shown} is not a valid IRI")
    return value


class Join(NamedTuple):
    """A literal of several words: its slot, the string's, the word of its language or the type's slot."""

    slot: Term
    text: Term
    language: int
    datatype: Term


class Slots(NamedTuple):
    """Which words are which terms."""

    declarations: tuple[tuple[int, int], ...]
    """Words of a prefix, -1 for BASE, and of its IRI."""
    prologue: int
    """How many words the declarations are."""
    names: tuple[Term, ...]
    """The slots of words that are terms by themselves."""
    places: tuple[int, ...]
    """Their words."""
    joins: tuple[Join, ...]
    blanks: tuple[Term, ...]
    """Blank nodes that have no name yet."""
    constants: tuple[Term, ...]
    """Terms that stand in the tree by themselves."""


_MAX_PROLOGUES = 32
_prologues: dict[tuple[str, ...], Names] = {}


def terms_of(slots: Slots, words: Sequence[str]) -> dict[Term, Term]:
    """Find the terms of a filter by slot; raises `RefusedFilterError`."""
    key = tuple(words[: slots.prologue])
    names = _prologues.get(key)
    if names is None:
        names = _declared(slots, words)
        if len(_prologues) >= _MAX_PROLOGUES:
            _prologues.clear()
        _prologues[key] = names
    try:
        terms = dict(
            zip(slots.names, map(names.__getitem__, map(words.__getitem__, slots.places)), strict=True)
        )
    except UnreadableTermError:
        raise _first(names, slots, words) from None
    for slot, text, language, datatype in slots.joins:
        try:
            terms[slot] = (
                typed(terms[text], terms[datatype]) if datatype else tagged(terms[text], words[language])
            )
        except UnreadableTermError as error:
            raise RefusedFilterError(str(error), place_of(text)) from None
    if slots.constants:
        terms.update((term, term) for term in slots.constants)
    if slots.blanks:
        used, number = set(terms.values()), 0
        for slot in slots.blanks:
            while f"?:b{number}" in used:
                number += 1
            terms[slot] = f"?:b{number}"
            number += 1
    return terms


def _first(names: Names, slots: Slots, words: Sequence[str]) -> RefusedFilterError:
    """Find the first word that stands for no term."""
    for index in slots.places:
        try:
            names[words[index]]
        except UnreadableTermError as error:
            return RefusedFilterError(str(error), index)
    raise AssertionError("one of the words was unreadable just now")


def place_of(slot: Term) -> int:
    """Return the word of a slot."""
    return int(slot.strip('?:<"@^'))


def _declared(slots: Slots, words: Sequence[str]) -> Names:
    names = Names()
    for prefix, iri in slots.declarations:
        try:
            names.declare(words[prefix] if prefix >= 0 else None, words[iri])
        except UnreadableTermError as error:
            raise RefusedFilterError(str(error), iri) from None
    return names
