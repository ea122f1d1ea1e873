"""The 5-tuples of G-ToPSS as a second notation of filters.

    BASE <http://example.org/>
    (?y, author, "Arno Jacobsen")
    (?y, conference, SIGMOD, {?y <= Publication}, {})
    (SIGMOD, year, ?x, {}, {?x > 1999})

A tuple is (subject, property, object, constraints of the subject, constraints of the object); sets of
constraints may be left out from the right. A bare name is one of `PREFIX :` if that is declared, and else
relative to BASE. A constraint with a literal is a FILTER; with a name it is about a class:

    ?x <= C    ?x is an instance of C or of a class below it       ?x a/rdfs:subClassOf* C
    ?x = C     ?x is an instance of C itself                       ?x a C
    ?x >= C    ?x is C or a class above it                         C rdfs:subClassOf* ?x
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from headgate.rdf.language import words
from headgate.rdf.language.making import SIGNS, compared
from headgate.rdf.language.model import BELOW, ISA, TYPE
from headgate.rdf.language.refusal import Refused
from headgate.rdf.language.shapes import VALUES, Builder, Step

if TYPE_CHECKING:
    from headgate.rdf.language.grammar import Node
    from headgate.rdf.language.shapes import Template
    from headgate.rdf.language.words import Kinds

_VARIABLES = (words.VARIABLE, words.BLANK)
_KEPT = {"_PREFIX", "_BASE"}
_BARE = {kind for kind in words.KEYWORDS.values() if kind not in (*_KEPT, words.TRUTH)}


def bare_names(kinds: Kinds) -> Kinds:
    """Make names of SPARQL's keywords, which this notation lacks but for PREFIX and BASE."""
    return tuple([words.BARE if kind in _BARE else kind for kind in kinds])


class TupleBuilder(Builder):
    """Walks the tree of a shape of tuples."""

    def tuples(self, tree: Node) -> Template:
        """Walk tuples."""
        prologue, *found = tree.parts
        self.declare(prologue)
        for each in found:
            self.one(each)
        return self.template()

    def one(self, tree: Node) -> None:
        """Walk one tuple: its edge, then the constraints of its ends."""
        subject, verb, end, *sets = tree.parts
        if subject.name in VALUES:
            raise Refused("a literal cannot be the subject of a tuple", subject.number)
        if verb.name in (*VALUES, words.BLANK):
            raise Refused("a property is a name or a variable", verb.number)
        slots = [self.node(subject), self.node(end)]
        self.add(Step(slots[0], self.node(verb), slots[1]), subject)
        for slot, constraints in zip(slots, sets, strict=False):
            for each in constraints.parts:
                self.constraint(slot, *each.parts)

    def constraint(self, node: int, variable: Node, sign: Node, value: Node) -> None:
        """Walk one constraint of a node."""
        slot = self.node(variable)
        self.paired.append((slot, node))
        if value.name in _VARIABLES:
            raise Refused("a constraint compares with a class or a literal", value.number)
        of = self.node(value)
        if value.name in VALUES:
            self.filters.append(compared(SIGNS[sign.name], itemgetter(slot), itemgetter(of)))
        elif sign.name == "LE":
            self.add(Step(slot, of, of, ISA), variable)
        elif sign.name == "EQ":
            self.add(Step(slot, self.more(TYPE), of), variable)
        elif sign.name == "GE":
            self.add(Step(of, of, slot, BELOW), variable)
        else:
            raise Refused(
                f"{SIGNS[sign.name]} compares with a literal: a class takes <=, = or >=", sign.number
            )
