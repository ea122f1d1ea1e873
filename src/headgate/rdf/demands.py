"""A filter as the algorithms by name see it: edges that bind variables, and constraints on what is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.evaluate import holds
from headgate.rdf.model import BELOW_PROPERTY, ISA, PLAIN, SUBCLASS, SUBPROPERTY
from headgate.rdf.reference import image, nodes
from headgate.rdf.terms import is_variable

if TYPE_CHECKING:
    from headgate.rdf.model import Edge, Expression, Options, Pattern, Term
    from headgate.rdf.published import Published


class Demand(NamedTuple):
    """What a filter asks for, in two stages."""

    edges: tuple[Edge, ...]
    """Each once. They bind all variables."""
    constraints: tuple[Edge, ...]
    """Of what is bound by then: that it lies below a class or property, or is an instance of a class."""
    filters: tuple[Expression, ...]
    apart: tuple[Term, ...]
    """What stands for different nodes, if the match shall be injective; else empty."""

    def accepts(self, binding: dict[Term, Term], published: Published, options: Options) -> bool:
        """Tell whether constraints and filters hold for a binding under which all edges do."""
        return (
            all(_lies_below(each, binding, published) for each in self.constraints)
            and (not self.apart or self._injective(binding))
            and all(holds(each, binding, options) for each in self.filters)
        )

    def _injective(self, binding: dict[Term, Term]) -> bool:
        places = {image(node, binding) for node in self.apart}
        plain = [edge for edge in self.edges if edge.path == PLAIN]
        triples = {
            tuple(image(term, binding) for term in (edge.subject, edge.property, edge.object))
            for edge in plain
        }
        return len(places) == len(self.apart) and len(triples) == len(plain)


def demand(pattern: Pattern, options: Options, *, types_bind: bool = False) -> Demand:
    """Part a filter into what binds and what is checked.

    An ISA edge is a constraint, as in the paper, if plain edges bind its variables. Otherwise, or always with
    `types_bind`, it is an edge like others, over the triples of `Published.isa`.
    """
    edges = dict.fromkeys(pattern.edges)
    bound = {
        term
        for edge in edges
        if edge.path == PLAIN
        for term in (edge.subject, edge.property, edge.object)
        if is_variable(term)
    }
    binds = {
        edge: edge.path == PLAIN or (edge.path == ISA and (types_bind or not _is_checked(edge, bound)))
        for edge in edges
    }
    binding = tuple(edge for edge in edges if binds[edge])
    return Demand(
        # The same tuple takes no memory.
        pattern.edges if binding == pattern.edges else binding,
        tuple(edge for edge in edges if not binds[edge]),
        pattern.filters,
        tuple(nodes(pattern)) if options.injective else (),
    )


def _is_checked(edge: Edge, bound: set[Term]) -> bool:
    return edge.subject in bound and (edge.object in bound or not is_variable(edge.object))


def _lies_below(edge: Edge, binding: dict[Term, Term], published: Published) -> bool:
    low, high = image(edge.subject, binding), image(edge.object, binding)
    if edge.path == ISA:
        return high in published.classes.get(low, ())
    return high in published.above(low, SUBPROPERTY if edge.path == BELOW_PROPERTY else SUBCLASS)
