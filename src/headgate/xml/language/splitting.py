"""A filter in clauses, each a filter of its own: for ranking, where not all of them must hold.

One clause for each path from the document to a leaf of the pattern, with the tests of all its nodes. It is
named by the label of its leaf, in lower case as all names that are weighed. Clauses return nothing.

When the filter holds, all of its clauses do. The converse is not true: `//a[b][c]` asks for one `a`, where
its two clauses may find two.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.contents.protocol import Clause
from headgate.core.values import fold
from headgate.xml.language.model import ROOT, Pattern
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_pattern


def split(text: str, dialect: str) -> tuple[Clause, ...]:
    """Take a filter apart, in the order in which it is written; equal clauses are written alike.

    >>> for clause in split("//News[company = 'ACME']/Item{cont}[@id]//text()", "xpath"):
    ...     print(clause)
    Clause(filter="//News/company = 'ACME'", names=('company',))
    Clause(filter='//News/Item/@id{}', names=('@id',))
    Clause(filter='//News/Item//text(){}', names=('text()',))
    """
    return clauses_of(parse_filter(text, dialect))


def clauses_of(pattern: Pattern) -> tuple[Clause, ...]:
    """Take a pattern apart."""
    return tuple(
        Clause(print_pattern(_path(pattern, leaf)), (fold(pattern.nodes[leaf].label),))
        for leaf in _leaves(pattern)
    )


def names_of(pattern: Pattern) -> tuple[str, ...]:
    """List what the clauses of a pattern are named by, each once."""
    return tuple(dict.fromkeys(fold(pattern.nodes[leaf].label) for leaf in _leaves(pattern)))


def _leaves(pattern: Pattern) -> list[int]:
    return [place for place, children in enumerate(pattern.children) if not children]


def _path(pattern: Pattern, leaf: int) -> Pattern:
    """Keep the nodes from the document to a leaf."""
    path = [leaf]
    while pattern.nodes[path[-1]].parent != ROOT:
        path.append(pattern.nodes[path[-1]].parent)
    return Pattern(
        tuple(
            replace(pattern.nodes[place], parent=number - 1, returns=())
            for number, place in enumerate(reversed(path))
        )
    )
