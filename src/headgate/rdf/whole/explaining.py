"""Why a whole query matches an event or not: which part was indexed, which verified, and where it failed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate.contents.protocol import EVERY_EVENT, Access
from headgate.rdf.explain.explain import Explanation, explain
from headgate.rdf.index.columns import verified_of
from headgate.rdf.keys import member_keys
from headgate.rdf.whole.deciding import ask
from headgate.rdf.whole.query import DECIDES, EVERY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.index.columns import Columns
    from headgate.rdf.language.model import Graph, Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.rdf.whole.query import Query


@dataclass(frozen=True)
class QueryExplanation:
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
        for number, (found, role) in enumerate(self.members, 1):
            several = f" {number} of {len(self.members)}" if len(self.members) > 1 else ""
            if role == EVERY:
                lines.append("  indexed part: nothing, it is evaluated for every event")
                continue
            says = "decides" if role == DECIDES else "narrows"
            first, *rest = found.lines()
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
    complete = all(found.complete for found, _ in members)
    holding = [(found, role) for found, role in members if found.matches]
    if any(role == DECIDES for _, role in holding):
        return QueryExplanation(True, query.text, members, complete=complete)
    if not holding:
        late = next((found.left_out for found, _ in members if found.left_out), "")
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
    found = []
    for (begin, end), asked in zip(pairwise(columns.member_start.tolist()), verified, strict=True):
        some = [each for each in keys[begin:end] if each]
        if len(some) < end - begin:
            by, reached = EVERY_EVENT, len(seen)
        else:
            by = " or ".join(dict.fromkeys(" and ".join(sorted(each)) for each in some))
            reached = sum(any(each <= event for each in some) for event in seen)
        found.append(Access(f"{by}; then verified, {COST}" if asked else by, reached))
    return found
