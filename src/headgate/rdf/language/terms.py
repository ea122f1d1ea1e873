"""Terms from their parts, and the parts of terms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.language.model import RDF, XSD

if TYPE_CHECKING:
    from headgate.rdf.language.model import Term

STRING = f"{XSD}string"
LANG_STRING = f"{RDF}langString"


class Parts(NamedTuple):
    """A literal: the text between the quotes without escapes, the IRI of its datatype, its language or ""."""

    lexical: str
    datatype: str
    language: str


def is_variable(term: Term) -> bool:
    """Tell whether a term is a variable of a filter."""
    return term.startswith("?")


def is_literal(term: Term) -> bool:
    """Tell whether a term is a literal."""
    return term.startswith('"')


def is_iri(term: Term) -> bool:
    """Tell whether a term is an IRI."""
    return term.startswith("<")


def is_blank(term: Term) -> bool:
    """Tell whether a term is a blank node of an event."""
    return term.startswith("_")


def iri(value: str) -> Term:
    """Write an IRI.

    >>> iri("http://example.org/x")
    '<http://example.org/x>'
    """
    return f"<{value}>"


def literal(lexical: str, datatype: str = STRING, language: str = "") -> Term:
    r"""Write a literal; one text for each literal, as N-Triples has it in its canonical form.

    >>> literal('say "hi"\n'), literal("chat", language="FR")
    ('"say \\"hi\\"\\n"', '"chat"@fr')
    """
    escaped = _ESCAPED.sub(_escape, lexical)
    if language:
        return f'"{escaped}"@{language.lower()}'
    return f'"{escaped}"' if datatype == STRING else f'"{escaped}"^^<{datatype}>'


def parts(term: Term) -> Parts:
    r"""Take a literal apart.

    >>> parts('"a\\nb"@fr')
    Parts(lexical='a\nb', datatype='http://www.w3.org/1999/02/22-rdf-syntax-ns#langString', language='fr')
    """
    end = term.rindex('"')
    lexical, behind = term[1:end], term[end + 1 :]
    if "\\" in lexical:
        lexical = _ESCAPE.sub(_unescape, lexical)
    if not behind:
        return Parts(lexical, STRING, "")
    return Parts(lexical, LANG_STRING, behind[1:]) if behind[0] == "@" else Parts(lexical, behind[3:-1], "")


def plain(term: Term) -> str:
    """Return what a term says, without brackets, quotes, language or datatype.

    >>> plain("<http://example.org/x>"), plain('"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
    ('http://example.org/x', '7')
    """
    return parts(term).lexical if is_literal(term) else term.strip("<>")


_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f\ufffe\uffff]')
_ESCAPE = re.compile(r"\\(u[0-9A-F]{4}|.)", re.DOTALL)
_LETTERS = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
_MEANT = {letter: sign for sign, letter in _LETTERS.items()}


def _escape(found: re.Match[str]) -> str:
    letter = _LETTERS.get(found[0])
    return f"\\{letter}" if letter else f"\\u{ord(found[0]):04X}"


def _unescape(found: re.Match[str]) -> str:
    return _MEANT.get(found[1]) or chr(int(found[1][1:], 16))
