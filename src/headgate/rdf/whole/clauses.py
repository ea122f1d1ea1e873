"""Any filter in clauses: a pattern as its parts, a whole query as one, as its parts mean little alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.protocol import Clause
from headgate.core.values import fold
from headgate.rdf.language.model import PLAIN, Pattern, is_variable
from headgate.rdf.language.splitting import split
from headgate.rdf.whole.query import parse_any

if TYPE_CHECKING:
    from headgate.rdf.language.model import Edge


def split_any(text: str, dialect: str) -> tuple[Clause, ...]:
    """Take a filter apart; a whole query is named by the properties that it needs.

    >>> split_any("ASK { ?x <urn:by> ?y OPTIONAL { ?x <urn:year> ?z } }", "sparql")
    (Clause(filter='ASK { ?x <urn:by> ?y OPTIONAL { ?x <urn:year> ?z } }', names=('urn:by',)),)
    """
    found = parse_any(text, dialect, tried=False)
    if isinstance(found, Pattern):
        return split(text, dialect)
    names = dict.fromkeys(fold(_name(edge)) for member, _ in found.members for edge in member.edges)
    return (Clause(found.text, tuple(names)),)


def _name(edge: Edge) -> str:
    plain = edge.path == PLAIN and not is_variable(edge.property)
    return edge.property[1:-1] if plain else edge.property
