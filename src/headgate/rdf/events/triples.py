"""A document to its terms and triples: through pyoxigraph, or plain N-Triples without a parser.

Plain is what most programs write. A line is `subject property object .` with single blanks, terms in their
canonical form, and IRIs and languages of the kind that needs no second thought. Anything else is left to
pyoxigraph, and so is a document with one such line. What is read here is what pyoxigraph reads, in half the
time.

Little is imported here and by what it imports: a parser process starts with it.
"""

from __future__ import annotations

import contextlib
import re
from array import array
from collections import defaultdict
from itertools import chain, count, islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyoxigraph as ox

from headgate.errors import EventError
from headgate.rdf.language.model import RDF, XSD

if TYPE_CHECKING:
    from headgate.rdf.language.model import Graph, Term


NOWHERE = "http://relative.invalid/"
"""What JSON-LD's relative IRIs are resolved against where there is no base: else they would be left out."""


class Settings(NamedTuple):
    """How documents are parsed: see `screening.Limits`."""

    base: str | None
    triples: int
    term: int
    terms: int


class NumberedTriples(NamedTuple):
    """Terms, a line each, and the places of the subject, property and object of each triple, as int32."""

    text: bytes
    triples: bytes


def parse(data: bytes, kind: str, name: str, settings: Settings) -> NumberedTriples:
    """Parse a document of a media type; `name` is what messages call the format."""
    quads = ox.parse(
        data,
        format=_FORMATS[kind],
        base_iri=settings.base or (NOWHERE if kind == _JSON_LD else None),
        without_named_graphs=kind == _JSON_LD,
    )
    try:
        flat = list(chain.from_iterable(islice(quads, settings.triples + 1)))
    except (SyntaxError, ValueError, MemoryError, OSError) as error:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        raise EventError(_reason(message, data, name)) from None
    if len(flat) > 4 * settings.triples:
        raise EventError(f"not usable {name}: it has more than {settings.triples:,} triples")
    del flat[3::4]
    places: defaultdict[object, int] = defaultdict(count().__next__)
    numbers = list(map(places.__getitem__, flat))
    kinds = set(map(type, places))
    if ox.Triple in kinds:
        raise EventError(f"not usable {name}: a triple that is a term is RDF 1.2: send RDF 1.1")
    terms = list(map(str, places))
    if ox.BlankNode in kinds:
        terms = renamed(terms)
    check_terms(terms, name, settings)
    text = "\n".join(terms)
    if "--" in text and any(isinstance(term, ox.Literal) and term.direction for term in places):
        raise EventError(f"not usable {name}: a language with a direction is RDF 1.2: send RDF 1.1")
    if kind == _JSON_LD and (relative := _RELATIVE.search(text)):
        raise EventError(
            f"not usable {name}: the IRI {relative[1]!r} is relative: write it in full, or give a base"
        )
    return NumberedTriples(text.encode(), distinct(numbers))


def renamed(terms: list[Term]) -> list[Term]:
    """Name blank nodes by the order in which they come: the names that documents give them are local.

    >>> renamed(["_:x", "<urn:p>", "_:y"])
    ['_:b0', '<urn:p>', '_:b1']
    """
    number = count()
    return [f"_:b{next(number)}" if term[0] == "_" else term for term in terms]


def check_terms(terms: list[Term], name: str, settings: Settings) -> None:
    """Refuse terms that are too long."""
    sizes = list(map(len, terms))
    if max(sizes, default=0) > settings.term:
        raise EventError(
            f"not usable {name}: a term has {max(sizes):,} characters: {settings.term:,} are allowed"
        )
    if sum(sizes) > settings.terms:
        raise EventError(
            f"not usable {name}: its terms have {sum(sizes):,} characters: {settings.terms:,} are allowed"
        )


def distinct(numbers: list[int]) -> bytes:
    """Leave out triples that come again.

    >>> array("i", distinct([0, 1, 2, 0, 1, 2])).tolist()
    [0, 1, 2]
    """
    once = dict.fromkeys(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
    return array("i", chain.from_iterable(once)).tobytes()


_JSON_LD = "application/ld+json"
_FORMATS = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/rss+xml": ox.RdfFormat.RDF_XML,
    _JSON_LD: ox.RdfFormat.JSON_LD,
}
_RELATIVE = re.compile(rf'(?:^|"\^\^)<{re.escape(NOWHERE)}([^>]*)>', re.MULTILINE)
_LONGEST = 300


def _reason(message: str, data: bytes, name: str) -> str:
    """Say on one line what pyoxigraph found."""
    if "LoadDocumentCallback" in message:
        return (
            f"not usable {name}: the context {_remote_context(data)} would have to be fetched:"
            " write it into the document, because nothing is"
        )
    if message == "Named graphs are not allowed":
        return f"not usable {name}: it names a graph: an event is one graph without a name"
    line = " ".join(message.replace("Parser error ", "").split())
    return f"not valid {name}: {line if len(line) <= _LONGEST else line[:_LONGEST] + '…'}"


def _remote_context(data: bytes) -> str:
    """Find the address of a context in JSON-LD."""
    waiting: list[object] = []
    # What pyoxigraph takes for JSON need not be JSON to others.
    with contextlib.suppress(msgspec.DecodeError):
        waiting.append(msgspec.json.decode(data))
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            given = value.get("@context", ())
            named = [*(given if isinstance(given, list) else [given]), value.get("@import")]
            for address in named:
                if isinstance(address, str):
                    return repr(address[:_LONGEST])
            waiting.extend(value.values())
    return "that it names"


_NAME = "N-Triples"


def read_lines(text: str, settings: Settings) -> NumberedTriples | None:
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
    return NumberedTriples(joined.encode(), distinct(numbers))


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
