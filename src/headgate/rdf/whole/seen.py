"""What a whole query sees: the event with the types that the taxonomy lists, and what lies above its terms.

A triple pattern sees the event, and the types of its nodes that the taxonomy lists. A path over
rdfs:subClassOf or rdfs:subPropertyOf sees besides the statements of the taxonomy that lead upwards from terms
of the event, and from those that the query names at the ends of such a path.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from headgate.rdf.events.facts import Facts
from headgate.rdf.events.triples import write_lines
from headgate.rdf.language.model import MEMBER, SUBCLASS, SUBPROPERTY
from headgate.rdf.taxonomy.entailing import is_numbered
from headgate.rdf.whole.evaluator import Seen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.rdf.language.model import Graph, Term
    from headgate.rdf.taxonomy.taxonomy import Statement, Taxonomy


def seen(graph: Graph, taxonomy: Taxonomy, *, walked: bool) -> Seen:
    """Return what queries see of an event; with what lies above its terms, if one walks there."""
    if not walked and not len(taxonomy):
        return Seen(write_lines(graph).encode(), None)
    statements = Facts(graph, taxonomy).statements
    lines = _lines(statements)
    if not walked:
        return Seen(lines, None)
    return Seen(lines, above(dict.fromkeys(term for each in statements for term in each), taxonomy))


def above(terms: Iterable[Term], taxonomy: Taxonomy) -> bytes:
    """Write the statements of the taxonomy that lead upwards from some terms."""
    ups = _ups(taxonomy)
    waiting = list(terms)
    met = set(waiting)
    found: dict[Statement, None] = {
        (term, SUBPROPERTY, MEMBER): None for term in waiting if is_numbered(term)
    }
    if found and MEMBER not in met:
        met.add(MEMBER)
        waiting.append(MEMBER)
    while waiting:
        for each in ups.get(waiting.pop(), ()):
            found[each] = None
            if each[2] not in met:
                met.add(each[2])
                waiting.append(each[2])
    return _lines(found)


def _lines(statements: Iterable[Statement]) -> bytes:
    return "".join([f"{s} {p} {o} .\n" for s, p, o in statements]).encode()


_known: weakref.WeakKeyDictionary[Taxonomy, tuple[int, dict[Term, list[Statement]]]] = (
    weakref.WeakKeyDictionary()
)


def _ups(taxonomy: Taxonomy) -> dict[Term, list[Statement]]:
    """Return the statements of a taxonomy that lead upwards, by the term from which they do."""
    held = _known.get(taxonomy)
    if held is None or held[0] != taxonomy.version:
        version = taxonomy.version
        ups: dict[Term, list[Statement]] = {}
        for each in taxonomy.statements():
            if each[1] in (SUBCLASS, SUBPROPERTY):
                ups.setdefault(each[0], []).append(each)
        held = _known[taxonomy] = (version, ups)
    return held[1]
