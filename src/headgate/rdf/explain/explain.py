"""Why a filter holds for an event or not, edge by edge, and the closest that the event comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.events.facts import Facts, ways
from headgate.rdf.explain.notes import edge_note, held_note, reason, shown
from headgate.rdf.index.bindings import (
    STEPS,
    Apart,
    TooLongError,
    extended,
    groups,
    parts_of,
    search,
    terms_of,
)
from headgate.rdf.index.tail import ask_one
from headgate.rdf.language.evaluate import evaluate, truth
from headgate.rdf.language.model import ISA, PLAIN, Edge, is_variable
from headgate.rdf.language.printing import print_edge, print_expression, print_pattern
from headgate.rdf.language.rewrite import split_filters, variables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from headgate.rdf.index.bindings import Part
    from headgate.rdf.language.model import Options, Pattern, Term

    Binding: TypeAlias = dict[Term, Term]
    from collections.abc import Iterable, Mapping

    from headgate.rdf.language.model import Expression, Graph, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


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


@dataclass(frozen=True)
class Clause:
    """An edge or a filter, what its variables stand for, and whether it held (None: an error)."""

    text: str
    seen: str
    held: bool | None
    note: str = ""


@dataclass(frozen=True)
class Explanation:
    """The verdict, and what becomes of edges and filters under one binding.

    If the filter matches, the binding is the first one found. If not, it is the one under which the most
    edges hold, and of those the one under which the most filters hold; `complete` is false if the search for
    it was cut off, so that there may be a better one. `left_out` says why the filter is left out of the
    event, if it is: then nobody knows whether it would match.
    """

    matches: bool
    filter: str
    binding: tuple[tuple[str, str], ...]
    edges: tuple[Clause, ...]
    filters: tuple[Clause, ...]
    complete: bool = True
    left_out: str = ""

    def lines(self) -> list[str]:
        """Say it for people: the verdict, a line for each edge and filter."""
        best = "at best" if self.complete else "as far as was looked,"
        lines = ["match" if self.matches else f"no match: {best} {self._count()}"]
        if self.left_out:
            lines = [f"left out: {self.left_out}"]
        elif self.matches and not self.complete:
            return ["match", "  (after too many steps no binding was looked for)"]
        signs = {True: "held", False: "failed", None: "error"}
        width = max((len(each.text) for each in (*self.edges, *self.filters)), default=0)
        for each in (*self.edges, *self.filters):
            note = f" ({each.note})" if each.note else ""
            lines.append(f"  {signs[each.held]:8}{each.text:{width}}   {each.seen}{note}".rstrip())
        if not self.complete:
            lines.append(f"  (after {BUDGET:,} steps no closer binding was looked for)")
        return lines

    def _count(self) -> str:
        words = []
        for clauses, name in ((self.edges, "edge"), (self.filters, "filter")):
            if clauses:
                held = sum(each.held is True for each in clauses)
                words.append(f"{held} of {len(clauses)} {name}{'s' if len(clauses) > 1 else ''}")
        return f"{' and '.join(words) or 'nothing'} can hold at once"


def explain(pattern: Pattern, graph: Graph, taxonomy: Taxonomy | None, options: Options) -> Explanation:
    """Explain one filter and one event."""
    facts = Facts(graph, taxonomy)
    parted = split_filters(pattern, options)
    left_out = ""
    found: list[dict[Term, Term]] = []
    try:
        found = search(pattern, facts, options, pattern.variables, 1, STEPS)
        matches = bool(found)
    except TooLongError:
        # The index is a thousand times as quick, and may know.
        matches, left_out = ask_one(pattern, graph, taxonomy, options)
    binding, complete = (found[0], True) if found else nearest(parted, facts, options)
    return Explanation(
        matches=matches,
        filter=print_pattern(pattern),
        binding=tuple((name, binding[name]) for name in pattern.variables if name in binding),
        edges=tuple(_edge(edge, facts, binding, complete) for edge in dict.fromkeys(pattern.edges)),
        filters=tuple(_filter(each, binding, options) for each in parted.filters),
        complete=complete and bool(found) is matches,
        left_out=left_out,
    )


def _edge(edge: Edge, facts: Facts, binding: Mapping[Term, Term], complete: bool) -> Clause:
    bound = all(term in binding for term in terms_of(edge) if is_variable(term))
    held = bound and bool(ways(facts, edge, binding))
    note = held_note(edge, facts, binding) if held else edge_note(edge, facts, binding, complete=complete)
    return Clause(print_edge(edge), _seen(terms_of(edge), binding), held, note)


def _filter(expression: Expression, binding: Mapping[Term, Term], options: Options) -> Clause:
    held = truth(evaluate(expression, binding, options))
    note = "" if held else reason(expression, binding, options)
    text = f"FILTER({print_expression(expression)})"
    return Clause(text, _seen(dict.fromkeys(variables(expression)), binding), held, note)


def _seen(terms: Iterable[Term], binding: Mapping[Term, Term]) -> str:
    found = [term for term in dict.fromkeys(terms) if term in binding]
    return ", ".join(f"{term.replace('?:', '_:')} = {shown(binding[term])}" for term in found)
