"""The closest that an event comes to a filter that does not hold.

Among all bindings of the variables, or of some of them, one under which the most edges hold, and of those one
under which the most filters hold. An edge with a variable that stands for nothing does not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.events.facts import ways
from headgate.rdf.index.bindings import Apart, extended, groups, parts_of
from headgate.rdf.language.evaluate import evaluate, truth
from headgate.rdf.language.model import ISA, PLAIN, Edge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from headgate.rdf.events.facts import Facts
    from headgate.rdf.index.bindings import Part
    from headgate.rdf.language.model import Options, Pattern, Term

    Binding: TypeAlias = dict[Term, Term]

BUDGET = 20_000
"""How many bindings are tried: about as many as can be in a second."""


class Nearest(NamedTuple):
    """The closest binding, and whether all were tried: if not, there may be a closer one."""

    binding: Binding
    complete: bool


class Score(NamedTuple):
    """How many edges and filters hold; edges count first."""

    edges: int
    filters: int


def nearest(pattern: Pattern, facts: Facts, options: Options, budget: int = BUDGET) -> Nearest:
    """Find the closest binding: the first one in the event's order if there are several."""
    parts = parts_of(pattern)
    # Parts that share no variable come close each by itself, unless their nodes have to be different.
    grouped = [parts] if options.injective else groups(parts, ())
    search = _Search(facts, options, Apart(pattern) if options.injective else None, budget)
    binding: Binding = {}
    for group in grouped:
        binding |= search.closest(group)
    return Nearest(binding, not search.cut)


class _Search:
    def __init__(self, facts: Facts, options: Options, apart: Apart | None, budget: int) -> None:
        self.facts = facts
        self.options = options
        self.apart = apart
        self.left = budget
        self.cut = False
        self.best = Score(-1, -1)
        self.binding: Binding = {}

    def closest(self, parts: Sequence[Part]) -> Binding:
        """Find the closest binding of parts that share variables."""
        self.best, self.binding = Score(-1, -1), {}
        self._go(parts, Score(0, 0), {})
        return self.binding

    def _go(self, parts: Sequence[Part], score: Score, binding: Binding) -> None:
        """Try all that can come of a binding; `score` is what holds already, `parts` are not decided yet."""
        if self.left == 0:
            self.cut = True
            return
        self.left -= 1
        open_edges: list[tuple[Part, Edge, int]] = []
        undecided: list[Part] = []
        for part in parts:
            bound = part.variables <= binding.keys()
            if not isinstance(part.what, Edge):
                # What is true or false with open variables stays so, whatever they stand for.
                held = truth(evaluate(part.what, binding, self.options))
                if held:
                    score = Score(score.edges, score.filters + 1)
                elif held is None and not bound:
                    undecided.append(part)
                continue
            # More bound variables never make more ways: an edge without any is lost for good.
            able = len(ways(self.facts, part.what, binding)) if bound or part.what.path in {PLAIN, ISA} else 1
            if bound and able:
                score = Score(score.edges + 1, score.filters)
            elif able:
                undecided.append(part)
                if part.what.path in {PLAIN, ISA}:
                    open_edges.append((part, part.what, able))
        if score > self.best:
            self.best, self.binding = score, binding
        edges = sum(isinstance(part.what, Edge) for part in undecided)
        if not open_edges or Score(score.edges + edges, score.filters + len(undecided) - edges) <= self.best:
            return
        chosen, edge, _ = min(open_edges, key=lambda each: each[2])
        rest = [part for part in undecided if part is not chosen]
        for statement in ways(self.facts, edge, binding):
            larger = extended(edge, statement, binding)
            if self.apart is None or self.apart.holds(larger):
                self._go(rest, Score(score.edges + 1, score.filters), larger)
        self._go(rest, score, binding)
