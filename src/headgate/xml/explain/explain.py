"""Why a pattern holds for a document or not, node by node, with the nearest miss, in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from headgate.core.text.alphabets import PYTHON
from headgate.core.text.wording import Worded
from headgate.errors import EventError
from headgate.xml.events.reading import document_of
from headgate.xml.index.live import ask_one
from headgate.xml.index.matching import MOST_LETTERS
from headgate.xml.language import model
from headgate.xml.language.printing import print_label, print_number, print_pattern
from headgate.xml.language.values import holds, number
from headgate.xml.whole.evaluating import compiled, tree_of
from headgate.xml.whole.reading import WholeFilter, read_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.core.event import Event
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Label


_LONGEST = 60
_MOST_NAMES = 6


def shown(text: str) -> str:
    """Quote a text, on one line and not too long; blanks that look like others are escaped."""
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    written = (sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in cut)
    return f"'{''.join(written)}'"


def step(node: model.Node) -> str:
    """Write a node of a pattern as a step of a path.

    >>> from headgate.xml.language.model import Node, Test
    >>> step(Node("{urn:x}a", "//", tests=(Test(">", 2.5), Test("contains", "b"))))
    "//Q{urn:x}a[. > 2.5][contains(., 'b')]"
    """
    return f"{node.axis}{print_label(node.label)}{''.join(f'[{condition(test)}]' for test in node.tests)}"


def condition(test: model.Test) -> str:
    """Write a test."""
    value = shown(test.value) if isinstance(test.value, str) else print_number(test.value)
    if test.sign == model.WORD:
        return rf"{model.WORD}(., '\b{value[1:-1]}\b', 'i')"
    return (
        f"{test.sign}(., {value})"
        if test.sign in {model.CONTAINS, model.STARTS_WITH}
        else f". {test.sign} {value}"
    )


def path(document: Document, node: int) -> str:
    """Say where a node is: the names from the root element on, with places among siblings of one name."""
    steps = []
    while node != model.ROOT:
        above = int(document.parents[node])
        label = document.labels[node]
        alike = (
            []
            if above == model.ROOT
            else [c for c in document.children(above) if document.labels[c] == label]
        )
        nth = f"[{alike.index(node) + 1}]" if len(alike) > 1 else ""
        steps.append(f"/{print_label(document.names[label])}{nth}")
        node = above
    return "".join(reversed(steps))


def failed_note(tests: tuple[model.Test, ...], val: str) -> str:
    """Say which test a value fails, and by how much."""
    test = next(test for test in tests if not holds(test, val))
    return f"{condition(test)} fails for {shown(val)}{_distance(test, val)}"


def reachable(node: model.Node, above: int, document: Document) -> Iterator[int]:
    """Yield where an axis leads from the image of the parent, or from the document itself."""
    for image in range(
        above + 1, len(document.labels) if above == model.ROOT else int(document.ends[above]) + 1
    ):
        if node.axis != model.CHILD or document.parents[image] == above:
            yield image


def _distance(test: model.Test, val: str) -> str:
    if not isinstance(test.value, str):
        value = number(val)
        if math.isnan(value):
            return ", which is not a number"
        gap = abs(value - test.value)
        word = {">": "short by", ">=": "short by", "<": "over by", "<=": "over by"}.get(test.sign, "off by")
        return f": {word} {gap:g}" if gap else ""
    if test.sign == model.WORD:
        word = test.value
        longer = next((each for each in PYTHON.words(val) if word in each), None)
        return f": the text has {shown(longer)}, and not the word alone" if longer else ""
    folded = val.casefold(), test.value.casefold()
    if test.sign == "=" and folded[0].strip() == folded[1].strip():
        return ", but for blanks around it" if val.strip() == test.value.strip() else ", but for case"
    if (test.sign == model.CONTAINS and folded[1] in folded[0]) or (
        test.sign == model.STARTS_WITH and folded[0].startswith(folded[1])
    ):
        return ", but for case"
    return ""


def missing_note(node: model.Node, above: int, document: Document) -> str:
    """Say why no node below the image of the parent has the label, and what comes close."""
    if above == model.ROOT and node.axis == model.CHILD:
        note = f"the root element is {print_label(document.label(0))}"
    else:
        where = "the document has" if above == model.ROOT else f"{path(document, above)} has"
        kind = "child" if node.axis == model.CHILD else "descendant" if above != model.ROOT else "node"
        note = f"{where} no {kind} {print_label(node.label)}"
    deeper = model.Node(node.label, model.DESCENDANT)
    if node.axis == model.CHILD:
        for image in reachable(deeper, above, document):
            if model.covers(node.label, document.label(image)):
                return f"{note}, but {path(document, image)} is deeper: // would find it"
    names = dict.fromkeys(document.label(image) for image in reachable(node, above, document))
    for name in names:
        if near := _near(node.label, name):
            return f"{note}, but {print_label(name)}: {near}"
    if above == model.ROOT and node.axis == model.CHILD:
        return note
    return f"{note}; {_listed(list(names))}"


def _near(wanted: Label, name: Label) -> str:
    """Say what keeps a label apart from one that looks like it; nothing if it does not."""
    if model.TEXT in {name, wanted}:
        return ""
    local, other = (label.removeprefix("@").rpartition("}")[2].removeprefix("*:") for label in (wanted, name))
    if local == other and model.is_attribute(wanted) != model.is_attribute(name):
        return "an attribute is written with @, an element without"
    if local == other:
        return f"another namespace, {'@' * model.is_attribute(wanted)}*:{local} would find it"
    return "names differ in case" if local.casefold() == other.casefold() else ""


def _listed(names: list[Label]) -> str:
    if not names:
        return "there is nothing below it"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"there are {', '.join(print_label(name) for name in names[:_MOST_NAMES])}{more}"


_HELD = 1 << 20
_ALIKE = 1
"""What a node counts that has the label and fails a test: less than all nodes that hold."""


@dataclass(frozen=True)
class Clause:
    """A node of the pattern, and whether it is found (None: it was not looked for).

    `seen` is what stands for it, `note` why nothing does.
    """

    text: str
    seen: str
    held: bool | None
    note: str = ""


@dataclass(frozen=True)
class Explanation(Worded):
    """The verdict, and what stands for each node of the pattern.

    If the pattern holds, that is an embedding. If not, it is the largest part of the pattern that embeds, of
    those parts that hang together from the roots on.
    """

    matches: bool
    filter: str
    nodes: tuple[Clause, ...]
    left_out: str = ""
    """Why the pattern is left out of the document, if it is: then nothing of it is looked for."""

    def lines(self) -> list[str]:
        """Say it for people: the verdict, a line for each node."""
        if self.left_out:
            return [f"left out: {self.left_out}"]
        held = sum(each.held is True for each in self.nodes)
        many = f"{held} of {len(self.nodes)} node{'s' if len(self.nodes) > 1 else ''}"
        lines = ["match" if self.matches else f"no match: at best {many} can be found together"]
        signs = {True: "found", False: "missing", None: "-"}
        width = max((len(each.text) for each in self.nodes), default=0)
        for each in self.nodes:
            seen = each.seen or (f"({each.note})" if each.note else "")
            lines.append(f"  {signs[each.held]:8}{each.text:{width}}   {seen}".rstrip())
        return lines

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def explain(pattern: model.Pattern, document: Document) -> Explanation:
    """Explain one pattern and one document."""
    searches = sum(test.sign == model.CONTAINS for node in pattern.nodes for test in node.tests)
    levels = int(document.levels.max()) + 1
    # To look for it here would take as long as there: only where it could be too much is that found out.
    if searches * levels * len(document.text) > MOST_LETTERS and (left_out := ask_one(pattern, document)):
        return Explanation(False, print_pattern(pattern), (), left_out)
    images = nearest(pattern, document)
    depths: list[int] = []
    clauses = []
    for index, node in enumerate(pattern.nodes):
        depths.append(0 if node.parent == model.ROOT else depths[node.parent] + 1)
        text = "  " * depths[-1] + step(node)
        image = images[index]
        if image is not None:
            val = f" = {shown(document.val(image))}" if node.tests else ""
            clauses.append(Clause(text, f"{path(document, image)}{val}", True))
        elif node.parent != model.ROOT and images[node.parent] is None:
            clauses.append(Clause(text, "", None))
        else:
            above = model.ROOT if node.parent == model.ROOT else images[node.parent]
            assert above is not None
            clauses.append(Clause(text, "", False, _why(node, above, document)))
    matches = all(image is not None for image in images)
    return Explanation(matches, print_pattern(pattern), tuple(clauses))


def _why(node: model.Node, above: int, document: Document) -> str:
    alike = [image for image in _having(node, document) if _leads(node, above, image, document)]
    if not alike:
        return missing_note(node, above, document)
    best = max(alike, key=lambda image: sum(holds(test, document.val(image)) for test in node.tests))
    note = f"{path(document, best)}: {failed_note(node.tests, document.val(best))}"
    return note if len(alike) == 1 else f"none of {len(alike):,} passes; {note}"


def nearest(pattern: model.Pattern, document: Document) -> list[int | None]:
    """Find the largest part of a pattern that embeds: what stands for each node, None for the others.

    From the last node to the first: how much of the pattern below a node embeds where it is put at most, and
    where the children go for that.
    """
    chosen: list[dict[int, int]] = [{} for _ in pattern.nodes]
    """Where a node of the pattern goes best, by the image of its parent."""
    gained: list[dict[int, int]] = [{} for _ in pattern.nodes]
    parents = document.parents.tolist()
    for index in range(len(pattern.nodes) - 1, -1, -1):
        node = pattern.nodes[index]
        best, where = gained[index], chosen[index]
        for image in reversed(_having(node, document)):
            gain = _ALIKE
            if not node.tests or all(holds(test, document.val(image)) for test in node.tests):
                gain = _HELD + sum(gained[child].get(image, 0) for child in pattern.children[index])
            above = parents[image] if node.parent != model.ROOT or node.axis == model.CHILD else model.ROOT
            # Ancestors have at least what is best below them, so the way up ends where that is more.
            while best.get(above, 0) <= gain:
                best[above], where[above] = gain, image
                if node.axis == model.CHILD or above == model.ROOT:
                    break
                above = parents[above]
    images: list[int | None] = []
    for index, node in enumerate(pattern.nodes):
        above = model.ROOT if node.parent == model.ROOT else images[node.parent]
        held = above is not None and gained[index].get(above, 0) >= _HELD
        images.append(chosen[index][above] if held and above is not None else None)
    return images


def _having(node: model.Node, document: Document) -> list[int]:
    """List the nodes of a document that have a label, in order."""
    labels = [index for index, name in enumerate(document.names) if model.covers(node.label, name)]
    return [int(image) for image in np.flatnonzero(np.isin(document.labels, labels))]


def _leads(node: model.Node, above: int, image: int, document: Document) -> bool:
    """Tell whether an axis leads from the image of the parent, or from the document, to a node."""
    if node.axis == model.CHILD:
        return bool(document.parents[image] == above)
    return above == model.ROOT or above < image <= document.ends[above]


_SOME = 20
"""Events by which `verified_note` tells what lxml does."""


def verified_note(text: str, events: Sequence[Event]) -> str | None:
    """Say what of a filter is indexed and what is verified, and what that costs; None for a tree pattern."""
    filter_ = read_filter(text)[1]
    if not isinstance(filter_, WholeFilter):
        return None
    steps = [compiled(text).work(tree_of(document_of(event))) for event in events[:_SOME]]
    cost = f", up to {max(steps):,.0f} steps for an event" if steps else ""
    if filter_.needs is None:
        return f"nothing of it is indexed: lxml decides for every event{cost}"
    if not filter_.needs:
        return "it can never be true"
    indexed = " or ".join(map(shown_need, filter_.needs[:_SHOWN])) + " or …" * (len(filter_.needs) > _SHOWN)
    return f"lxml decides for events that have {indexed}{cost}"


_SHOWN = 3


@dataclass(frozen=True)
class WholeExplanation(Worded):
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
        for index, text in enumerate(self.indexed):
            lines.append(f"  {'indexed' if not index else 'or':12}{text}")
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


def explain_whole(whole: WholeFilter, document: Document) -> WholeExplanation:
    """Explain one filter and one document."""
    needs = whole.needs or ()
    parts = sorted((explain(pattern, document) for pattern in needs), key=_missing)
    tree = tree_of(document)
    evaluation = compiled(whole.text)
    work = int(evaluation.work(tree))
    indexed = tuple(map(shown_need, needs))
    told = WholeExplanation(False, whole.text, indexed, tuple(parts), work, never=whole.needs == ())
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


def shown_need(pattern: model.Pattern) -> str:
    """Write a pattern that is indexed; bounds without what they were loosened by.

    >>> from headgate.xml.language.model import Node, Pattern, Test
    >>> shown_need(Pattern((Node("a", "//", tests=(Test(">=", 9.99999999999),)), Node("b", "/", 0))))
    '//a[. >= 10]/b'
    """
    nodes = tuple(
        structs.replace(node, tests=tuple(model.Test(test.sign, _rounded(test.value)) for test in node.tests))
        for node in pattern.nodes
    )
    return print_pattern(model.Pattern(nodes)).replace("{}", "")


def _rounded(value: str | float) -> str | float:
    return value if isinstance(value, str) else float(f"{value:.10g}")


def _missing(part: Explanation) -> tuple[bool, int]:
    return not part.matches, sum(node.held is not True for node in part.nodes)
