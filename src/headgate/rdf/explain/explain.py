"""Why a filter holds for an event or not, edge by edge, and the closest that the event comes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from headgate.contents.protocol import EVERY_EVENT, Access
from headgate.core.text.wording import Worded
from headgate.rdf.explain.notes import edge_note, held_note, reason, shown
from headgate.rdf.index.bindings import (
    STEPS,
    Apart,
    Facts,
    TooLongError,
    extended,
    groups,
    parts_of,
    search,
    ways,
)
from headgate.rdf.index.columns import member_keys, verified_of
from headgate.rdf.index.live import ask_one
from headgate.rdf.language.model import DECIDES, EVERY, ISA, PLAIN, Edge, is_variable
from headgate.rdf.language.printing import print_edge, print_expression, print_pattern
from headgate.rdf.language.rewrite import split_filters, variables
from headgate.rdf.language.values import evaluate, truth
from headgate.rdf.whole.deciding import ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from headgate.rdf.index.bindings import Part
    from headgate.rdf.index.columns import Columns
    from headgate.rdf.language.model import Expression, Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.rdf.whole.query import Query

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


@dataclass(frozen=True)
class Clause:
    """An edge or a filter, what its variables stand for, and whether it held (None: an error)."""

    text: str
    seen: str
    held: bool | None
    note: str = ""


@dataclass(frozen=True)
class Explanation(Worded):
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
    parted = split_filters(pattern)
    left_out = ""
    bindings: list[dict[Term, Term]] = []
    try:
        bindings = search(pattern, facts, options, pattern.variables, 1, STEPS)
        matches = bool(bindings)
    except TooLongError:
        # The index is a thousand times as quick, and may know.
        matches, left_out = ask_one(pattern, graph, taxonomy, options)
    binding, complete = (bindings[0], True) if bindings else nearest(parted, facts, options)
    return Explanation(
        matches=matches,
        filter=print_pattern(pattern),
        binding=tuple((name, binding[name]) for name in pattern.variables if name in binding),
        edges=tuple(_edge(edge, facts, binding, complete) for edge in dict.fromkeys(pattern.edges)),
        filters=tuple(_filter(each, binding, options) for each in parted.filters),
        complete=complete and bool(bindings) is matches,
        left_out=left_out,
    )


def _edge(edge: Edge, facts: Facts, binding: Mapping[Term, Term], complete: bool) -> Clause:
    bound = all(term in binding for term in edge[:3] if is_variable(term))
    held = bound and bool(ways(facts, edge, binding))
    note = held_note(edge, facts, binding) if held else edge_note(edge, facts, binding, complete=complete)
    return Clause(print_edge(edge), _seen(edge[:3], binding), held, note)


def _filter(expression: Expression, binding: Mapping[Term, Term], options: Options) -> Clause:
    held = truth(evaluate(expression, binding, options))
    note = "" if held else reason(expression, binding, options)
    text = f"FILTER({print_expression(expression)})"
    return Clause(text, _seen(dict.fromkeys(variables(expression)), binding), held, note)


def _seen(terms: Iterable[Term], binding: Mapping[Term, Term]) -> str:
    bound = [term for term in dict.fromkeys(terms) if term in binding]
    return ", ".join(f"{term.replace('?:', '_:')} = {shown(binding[term])}" for term in bound)


@dataclass(frozen=True)
class QueryExplanation(Worded):
    """The verdict, what became of each pattern that was indexed, and what the evaluator said.

    `answered` is None if the evaluator was not asked: a pattern decided, or none of them holds.
    """

    matches: bool
    filter: str
    members: tuple[tuple[Explanation, int], ...]
    answered: bool | None = None
    left_out: str = ""
    complete: bool = True

    def lines(self) -> list[str]:
        """Say it for people."""
        if self.left_out:
            verdict = f"left out: {self.left_out}"
        elif self.matches:
            verdict = "match"
        elif self.answered is None:
            verdict = "no match: the indexed part does not hold"
        else:
            verdict = "no match: the indexed part holds, the query as a whole gives no answer"
            if any(role == EVERY for _, role in self.members):
                verdict = "no match: the query as a whole gives no answer"
        lines = [verdict]
        for number, (member, role) in enumerate(self.members, 1):
            several = f" {number} of {len(self.members)}" if len(self.members) > 1 else ""
            if role == EVERY:
                lines.append("  indexed part: nothing, it is evaluated for every event")
                continue
            says = "decides" if role == DECIDES else "narrows"
            first, *rest = member.lines()
            lines.append(f"  indexed part{several}, which {says}: {first}")
            lines += [f"  {line}" for line in rest]
        if self.answered is not None:
            lines.append(f"  verified: the whole query gives {'an' if self.answered else 'no'} answer")
        elif any(role != DECIDES for _, role in self.members):
            lines.append("  verified: not asked")
        return lines


def explain_query(query: Query, graph: Graph, taxonomy: Taxonomy, options: Options) -> QueryExplanation:
    """Explain one query and one event."""
    members = tuple((explain(pattern, graph, taxonomy, options), role) for pattern, role in query.members)
    complete = all(member.complete for member, _ in members)
    holding = [(member, role) for member, role in members if member.matches]
    if any(role == DECIDES for _, role in holding):
        return QueryExplanation(True, query.text, members, complete=complete)
    if not holding:
        late = next((member.left_out for member, _ in members if member.left_out), "")
        return QueryExplanation(False, query.text, members, None, late, complete)
    (said,) = ask([query.question], graph, taxonomy)
    if isinstance(said, str):
        return QueryExplanation(False, query.text, members, None, said, complete)
    return QueryExplanation(said, query.text, members, said, complete=complete)


COST = "about 30 µs for each"


def ways_to(columns: Columns, listed: frozenset[str], seen: Sequence[frozenset[str]]) -> list[Access]:
    """Say by what events come to filters, and how many of some do; and which are then verified, and the cost.

    `seen` are the keys of the events. Of a whole query, those of one of its patterns lead there.
    """
    keys = member_keys(columns, listed)
    verified = verified_of(columns.member_start, columns.roles).tolist()
    accesses = []
    for (begin, end), asked in zip(pairwise(columns.member_start.tolist()), verified, strict=True):
        some = [each for each in keys[begin:end] if each]
        if len(some) < end - begin:
            by, reached = EVERY_EVENT, len(seen)
        else:
            by = " or ".join(dict.fromkeys(" and ".join(sorted(each)) for each in some))
            reached = sum(any(each <= event for each in some) for event in seen)
        accesses.append(Access(f"{by}; then verified, {COST}" if asked else by, reached))
    return accesses
