"""Terms from single words, under the BASE and the PREFIXes that a filter declares.

What an IRI is, and what a relative one means against a base, is as RFC 3986 has it (section 5).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode

from headgate.rdf.language.model import RDF, RDFS, TYPE, XSD, literal

if TYPE_CHECKING:
    from headgate.rdf.language.model import Term


_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_RELATIVE = re.compile(r"[^:/?#]*(?:[/?#]|\Z)")
_LEADING = re.compile(r"\A(?:\.\.?(?:/|\Z))+")
_SEGMENT = re.compile(r"/[^/]*|[^/]+")
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

    So it is with the readers of events, and a filter has to find what they read.

    >>> resolve("http://example.org/a/b?q#f", "../c"), resolve("http://example.org/a/b?q#f", "#x")
    ('http://example.org/c', 'http://example.org/a/b?q#x')
    """
    if is_absolute(reference):
        return reference
    _, authority, path, query, fragment = _split(reference)
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        return _join(base_scheme, authority, _without_dots(path), query, fragment)
    if not path:
        return _join(base_scheme, base_authority, base_path, query or base_query, fragment)
    if not path.startswith("/"):
        above = base_path[: base_path.rfind("/") + 1]
        path = (above or ("/" if base_authority is not None else "")) + path
    return _join(base_scheme, base_authority, _without_dots(path), query, fragment)


def _split(text: str) -> tuple[str | None, str | None, str, str, str]:
    found = _PARTS.fullmatch(text)
    assert found is not None, "every text has these parts"
    scheme, authority, path, query, fragment = found.groups()
    return scheme, authority, path, query or "", fragment or ""


def _join(scheme: str | None, authority: str | None, path: str, query: str, fragment: str) -> str:
    before = f"{scheme}:" if authority is None else f"{scheme}://{authority}"
    return f"{before}{path}{query}{fragment}"


def _without_dots(path: str) -> str:
    """Take out the segments . and .. as section 5.2.4 says."""
    if "." not in path:
        return path
    path = _LEADING.sub("", path)
    segments = _SEGMENT.findall(path)
    kept: list[str] = []
    for segment in segments:
        if segment == "/..":
            del kept[-1:]
        elif segment != "/.":
            kept.append(segment)
    if segments and segments[-1] in ("/.", "/.."):
        kept.append("/")
    return "".join(kept)


DECLARED = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD}
"""The prefixes that every filter has unless it says otherwise."""

_MAX_TERMS = 8_192
_BOOLEAN, _INTEGER, _DECIMAL, _DOUBLE = (
    f"{XSD}{name}" for name in ("boolean", "integer", "decimal", "double")
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_MEANT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_LOCAL_ESCAPE = re.compile(r"\\(.)")


class UnreadableTermError(ValueError):
    """A word that stands for no term."""


class Names(dict[str, "Term"]):
    """The terms of words, remembered; a word that is none raises `UnreadableTermError`.

    >>> names = Names()
    >>> names.declare("ex:", "<http://example.org/>")
    >>> names["ex:x"], names["$y"], names["2.50"], names["_:b"], names["a"] == names["rdf:type"]
    ('<http://example.org/x>', '?y', '"2.50"^^<http://www.w3.org/2001/XMLSchema#decimal>', '?:b', True)
    """

    def __init__(self) -> None:
        super().__init__()
        self.base: str | None = None
        self.prefixes = dict(DECLARED)

    def declare(self, prefix: str | None, word: str) -> None:
        """Declare a prefix, given with its colon, or BASE; before any word is asked for."""
        value = self.iri(word)
        if prefix is None:
            self.base = value
        else:
            self.prefixes[prefix[:-1]] = value

    def __missing__(self, word: str) -> Term:
        """Find out what a word means."""
        term = self._term(word)
        if len(word) <= 128:
            if len(self) >= _MAX_TERMS:
                self.clear()
            self[word] = term
        return term

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


def _meant(found: re.Match[str]) -> str:
    if found[3] is not None:
        if found[3] not in _MEANT:
            raise UnreadableTermError(f"the escape {found[0]} is not known: a backslash is written \\\\")
        return _MEANT[found[3]]
    code = int(found[1] or found[2], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise UnreadableTermError(f"{found[0]} is not a character")
    return chr(code)


def _checked(value: str, word: str) -> str:
    if not is_iri(value):
        shown = word if word == f"<{value}>" else f"{word}, which is <{value}>,"
        raise UnreadableTermError(f"{shown} is not a valid IRI")
    return value
