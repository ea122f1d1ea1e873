"""N-Triples as most programs write it, without a parser.

A line is `subject property object .` with single blanks, terms in their canonical form, and IRIs and
languages of the plain kind that needs no second thought. Anything else is left to pyoxigraph, and so is a
document with one such line. What is read here is what pyoxigraph reads, in half the time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain, count
from typing import TYPE_CHECKING

from headgate.errors import EventError
from headgate.rdf.events.triples import Numbered, Settings, check_terms, distinct, renamed
from headgate.rdf.language.model import RDF, XSD

if TYPE_CHECKING:
    from headgate.rdf.language.model import Graph

_NAME = "N-Triples"


def read_lines(text: str, settings: Settings) -> Numbered | None:
    r"""Read a document if it is as plain as can be.

    >>> settings = Settings(None, 10, 100, 100)
    >>> read_lines('<urn:a> <urn:p> "x" .\n', settings).text
    b'<urn:a>\n<urn:p>\n"x"'
    >>> read_lines("<urn:a> <urn:p> 'x' .\n", settings)
    """
    lines = text.split(" .\n")
    if lines.pop() or text.count("\n") != len(lines):
        return None
    if len(lines) > settings.triples:
        raise EventError(f"not usable {_NAME}: it has more than {settings.triples:,} triples")
    flat = list(chain.from_iterable([line.split(" ", 2) for line in lines]))
    if len(flat) != 3 * len(lines):
        return None
    places: defaultdict[str, int] = defaultdict(count().__next__)
    numbers = list(map(places.__getitem__, flat))
    terms = list(places)
    # No term holds a line's end, because there are as many of them as lines: so each line here is one term.
    joined = "\n".join(terms)
    if terms and not _TERMS.fullmatch(joined):
        return None
    if any(term[0] != "<" for term in set(flat[1::3])) or any(term[0] == '"' for term in set(flat[::3])):
        return None
    check_terms(terms, _NAME, settings)
    if joined.startswith("_") or "\n_" in joined:
        joined = "\n".join(renamed(terms))
    return Numbered(joined.encode(), distinct(numbers))


def write_lines(graph: Graph) -> str:
    r"""Write a graph as `read_lines` reads it.

    >>> from headgate.rdf.events.reading import make_graph
    >>> write_lines(make_graph([("<urn:a>", "<urn:p>", '"x"')]))
    '<urn:a> <urn:p> "x" .\n'
    """
    return "".join([f"{s} {p} {o} .\n" for s, p, o in graph.statements()])


# Quantifiers are possessive, so that no text is gone through twice.
_PLAIN = r"[A-Za-z0-9\-._~:@!$&'()*+,;=/]*+"
_PATH = rf"{_PLAIN}(?:%[0-9A-Fa-f]{{2}}{_PLAIN})*+"
_TAIL = _PATH.replace("=/", "=/?")
_IRI = (
    r"<[A-Za-z][A-Za-z0-9+\-.]*+:"
    rf"(?://[A-Za-z0-9\-._~]*+(?::[0-9]*+)?+(?:/{_PATH})?+|(?!//){_PATH})"
    rf"(?:\?{_TAIL})?+(?:\#{_TAIL})?+>"
)
_SIGNS = r'[^"\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]*+'
_LITERAL = (
    rf'"{_SIGNS}(?:\\[btnfr"\\]{_SIGNS})*+"'
    rf"(?:@[a-z]{{2,3}}+(?:-[a-z]{{2}})?+|\^\^(?!<(?:{re.escape(RDF)}|{re.escape(XSD)}string>)){_IRI})?+"
)
_TERM = rf"(?:{_IRI}|{_LITERAL}|_:[A-Za-z][A-Za-z0-9]*+)"
_TERMS = re.compile(rf"{_TERM}(?:\n{_TERM})*+")
