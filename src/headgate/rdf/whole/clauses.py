"""Any filter in clauses: a pattern as its parts, a whole query as one, as its parts mean little alone.

5-tuples with class constraints are taken apart like patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.protocol import Clause
from headgate.core.subscription import SPARQL
from headgate.core.values import fold
from headgate.errors import FilterError
from headgate.rdf.language.model import PLAIN, SUBCLASS, Pattern, is_variable
from headgate.rdf.language.splitting import split
from headgate.rdf.whole.query import CLASS_PATH, parse_any, print_any

if TYPE_CHECKING:
    from headgate.rdf.language.model import Edge

_BELOW = f"{SUBCLASS}*"


def split_any(text: str, dialect: str) -> tuple[Clause, ...]:
    """Take a filter apart; a whole query is named by the properties that it needs.

    >>> split_any("ASK { ?x <urn:by> ?y OPTIONAL { ?x <urn:year> ?z } }", "sparql")
    (Clause(filter='ASK { ?x <urn:by> ?y OPTIONAL { ?x <urn:year> ?z } }', names=('urn:by',)),)
    """
    found = parse_any(text, dialect, tried=False)
    if isinstance(found, Pattern):
        return split(text, dialect)
    if CLASS_PATH in found.text:
        clauses = _of_tuples(print_any(found))
        if clauses:
            return clauses
    names = dict.fromkeys(fold(_name(edge)) for member, _ in found.members for edge in member.edges)
    return (Clause(found.text, tuple(names)),)


def _of_tuples(text: str) -> tuple[Clause, ...]:
    """Take class constraints for checks that patterns know, and put them back in the clauses."""
    try:
        clauses = split(text.replace(CLASS_PATH, _BELOW), SPARQL)
    except FilterError:
        return ()
    return tuple(Clause(each.filter.replace(_BELOW, CLASS_PATH), each.names) for each in clauses)


def _name(edge: Edge) -> str:
    plain = edge.path == PLAIN and not is_variable(edge.property)
    return edge.property[1:-1] if plain else edge.property
