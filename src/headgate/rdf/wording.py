"""Terms in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.model import RDF, RDFS, XSD
from headgate.rdf.terms import LANG_STRING, STRING, is_blank, is_iri, is_literal, parts
from headgate.rdf.values import Moment, Number, Text, Truth, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.rdf.model import Term

_PREFIXES = {RDF: "rdf:", RDFS: "rdfs:", XSD: "xsd:"}
_BARE = {f"{XSD}integer", f"{XSD}decimal", f"{XSD}boolean"}
_LONGEST = 80
_MOST = 3


def shown(term: Term) -> str:
    """Write a term for people: numbers and truth values bare, known prefixes, giants cut.

    >>> shown('"2001"^^<http://www.w3.org/2001/XMLSchema#integer>'), shown('"2001"')
    ('2001', '"2001"')
    """
    if is_literal(term):
        lexical, datatype, _ = parts(term)
        if datatype in _BARE and value_of(term) is not None:
            term = lexical
        elif datatype not in {STRING, LANG_STRING}:
            end = term.rindex('"') + 1
            term = f"{term[:end]}^^{_short(datatype)}"
    elif is_iri(term):
        term = _short(term[1:-1])
    return term if len(term) <= _LONGEST else f"{term[: _LONGEST - 1]}…"


def listed(terms: Iterable[Term]) -> str:
    """List a few terms for people."""
    found = [shown(each) for each in dict.fromkeys(terms)]
    more = len(found) - _MOST
    return ", ".join(found[:_MOST]) + (f" and {more} more" if more > 0 else "")


def kind(term: Term) -> str:
    """Say what a term is.

    >>> kind('"2001"'), kind('"x"^^<http://www.w3.org/2001/XMLSchema#integer>'), kind("<urn:x>")
    ('a string', 'not a valid xsd:integer', 'an IRI')
    """
    if not is_literal(term):
        return "a blank node" if is_blank(term) else "an IRI"
    match value_of(term):
        case Text(_, language):
            return f"a string in the language {language}" if language else "a string"
        case Truth():
            return "a truth value"
        case Number(name, _) | Moment(name, _, _):
            return f"{'an' if name == 'integer' else 'a'} {name}"
    datatype = parts(term).datatype
    return f"{'not a valid' if datatype.startswith(XSD) else 'of the unknown datatype'} {_short(datatype)}"


def _short(name: str) -> str:
    for full, prefix in _PREFIXES.items():
        if name.startswith(full):
            return prefix + name[len(full) :]
    return f"<{name}>"
