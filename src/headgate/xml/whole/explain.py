"""Why a filter that lxml decides holds for a document or not: what was indexed, and what lxml says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from headgate.errors import EventError
from headgate.xml.events.document import Document
from headgate.xml.explain.explain import explain
from headgate.xml.language.model import Pattern, Test
from headgate.xml.language.printing import print_pattern
from headgate.xml.whole.evaluating import compiled, tree_of
from headgate.xml.whole.model import WholeFilter
from headgate.xml.whole.reading import read_filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Event
    from headgate.xml.explain.explain import Explanation

_SOME = 20
"""Events by which `verified_note` tells what lxml does."""


def verified_note(text: str, events: Sequence[Event]) -> str | None:
    """Say what of a filter is indexed and what is verified, and what that costs; None for a tree pattern."""
    found = read_filter(text)[1]
    if not isinstance(found, WholeFilter):
        return None
    documents = [event.data for event in events if isinstance(event.data, Document)][:_SOME]
    steps = [compiled(text).work(tree_of(document)) for document in documents]
    cost = f", up to {max(steps):,.0f} steps for an event" if steps else ""
    if found.needs is None:
        return f"nothing of it is indexed: lxml decides for every event{cost}"
    if not found.needs:
        return "it can never be true"
    indexed = " or ".join(map(shown_need, found.needs[:_SHOWN])) + " or …" * (len(found.needs) > _SHOWN)
    return f"lxml decides for events that have {indexed}{cost}"


_SHOWN = 3


@dataclass(frozen=True)
class WholeExplanation:
    """The verdict, what is indexed and how it fares, and what lxml says.

    `parts` are the patterns of which one must hold, each with what can be found of it; the nearest is first.
    """

    matches: bool
    filter: str
    indexed: tuple[str, ...]
    parts: tuple[Explanation, ...]
    work: int
    """The steps that lxml may take, at most, about."""
    never: bool = False
    """Whether it is seen without any document that the expression is false."""
    left_out: str = ""
    """Why lxml is not asked, if it is not."""

    @property
    def reached(self) -> bool:
        """Tell whether lxml is asked."""
        return not self.parts or any(part.matches or part.left_out for part in self.parts)

    def lines(self) -> list[str]:
        """Say it for people: the verdict, what is indexed, what is verified."""
        if self.left_out:
            return [f"left out: {self.left_out}"]
        lines = ["match" if self.matches else f"no match: {self._why()}"]
        if self.never:
            return lines
        if not self.indexed:
            lines.append("  indexed     nothing: every document is asked")
        for place, text in enumerate(self.indexed):
            lines.append(f"  {'indexed' if not place else 'or':12}{text}")
        if self.reached:
            lines.append(f"  verified    {self.filter}   ({'true' if self.matches else 'false'} by lxml)")
        else:
            lines.append(f"  verified    {self.filter}   (not asked)")
            lines += self.parts[0].lines()[1:]
        return lines

    def _why(self) -> str:
        if self.never:
            return "the expression can never be true"
        if self.reached:
            held = "the indexed part holds, but " if self.parts else ""
            return f"{held}the expression as a whole is false"
        return "the indexed part does not hold"

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "reached": self.reached}


def explain_whole(found: WholeFilter, document: Document) -> WholeExplanation:
    """Explain one filter and one document."""
    needs = found.needs or ()
    parts = sorted((explain(pattern, document) for pattern in needs), key=_missing)
    tree = tree_of(document)
    evaluation = compiled(found.text)
    work = int(evaluation.work(tree))
    indexed = tuple(map(shown_need, needs))
    told = WholeExplanation(False, found.text, indexed, tuple(parts), work, never=found.needs == ())
    if told.never or not told.reached:
        return told
    left_out = evaluation.too_much(tree)
    matches = False
    if not left_out:
        try:
            matches = evaluation.holds(tree)
        except EventError as error:
            left_out = str(error)
    return replace(told, matches=matches, left_out=left_out)


def shown_need(pattern: Pattern) -> str:
    """Write a pattern that is indexed; bounds without what they were loosened by.

    >>> from headgate.xml.language.model import Node, Pattern, Test
    >>> shown_need(Pattern((Node("a", "//", tests=(Test(">=", 9.99999999999),)), Node("b", "/", 0))))
    '//a[. >= 10]/b'
    """
    nodes = tuple(
        replace(node, tests=tuple(Test(test.sign, _rounded(test.value)) for test in node.tests))
        for node in pattern.nodes
    )
    return print_pattern(Pattern(nodes)).replace("{}", "")


def _rounded(value: str | float) -> str | float:
    return value if isinstance(value, str) else float(f"{value:.10g}")


def _missing(part: Explanation) -> tuple[bool, int]:
    return not part.matches, sum(node.held is not True for node in part.nodes)
