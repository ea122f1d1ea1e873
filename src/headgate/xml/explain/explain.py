"""Why a pattern holds for a document or not, node by node, with the nearest miss."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.xml.explain.notes import failed_note, missing_note, path, shown, step
from headgate.xml.index.live import ask_one
from headgate.xml.index.matching import MOST_LETTERS
from headgate.xml.language.model import CHILD, CONTAINS, ROOT, covers
from headgate.xml.language.printing import print_pattern
from headgate.xml.language.values import holds

if TYPE_CHECKING:
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Node, Pattern

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
class Explanation:
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


def explain(pattern: Pattern, document: Document) -> Explanation:
    """Explain one pattern and one document."""
    searches = sum(test.sign == CONTAINS for node in pattern.nodes for test in node.tests)
    levels = int(document.levels.max()) + 1
    # To look for it here would take as long as there: only where it could be too much is that found out.
    if searches * levels * len(document.text) > MOST_LETTERS and (left_out := ask_one(pattern, document)):
        return Explanation(False, print_pattern(pattern), (), left_out)
    images = nearest(pattern, document)
    depths: list[int] = []
    clauses = []
    for place, node in enumerate(pattern.nodes):
        depths.append(0 if node.parent == ROOT else depths[node.parent] + 1)
        text = "  " * depths[-1] + step(node)
        image = images[place]
        if image is not None:
            val = f" = {shown(document.val(image))}" if node.tests else ""
            clauses.append(Clause(text, f"{path(document, image)}{val}", True))
        elif node.parent != ROOT and images[node.parent] is None:
            clauses.append(Clause(text, "", None))
        else:
            above = ROOT if node.parent == ROOT else images[node.parent]
            assert above is not None
            clauses.append(Clause(text, "", False, _why(node, above, document)))
    matches = all(image is not None for image in images)
    return Explanation(matches, print_pattern(pattern), tuple(clauses))


def _why(node: Node, above: int, document: Document) -> str:
    alike = [image for image in _having(node, document) if _leads(node, above, image, document)]
    if not alike:
        return missing_note(node, above, document)
    best = max(alike, key=lambda image: sum(holds(test, document.val(image)) for test in node.tests))
    note = f"{path(document, best)}: {failed_note(node.tests, document.val(best))}"
    return note if len(alike) == 1 else f"none of {len(alike):,} passes; {note}"


def nearest(pattern: Pattern, document: Document) -> list[int | None]:
    """Find the largest part of a pattern that embeds: what stands for each node, None for the others.

    From the last node to the first: how much of the pattern below a node embeds where it is put at most, and
    where the children go for that.
    """
    chosen: list[dict[int, int]] = [{} for _ in pattern.nodes]
    """Where a node of the pattern goes best, by the image of its parent."""
    gained: list[dict[int, int]] = [{} for _ in pattern.nodes]
    parents = document.parents.tolist()
    for place in range(len(pattern.nodes) - 1, -1, -1):
        node = pattern.nodes[place]
        best, where = gained[place], chosen[place]
        for image in reversed(_having(node, document)):
            gain = _ALIKE
            if not node.tests or all(holds(test, document.val(image)) for test in node.tests):
                gain = _HELD + sum(gained[child].get(image, 0) for child in pattern.children[place])
            above = parents[image] if node.parent != ROOT or node.axis == CHILD else ROOT
            # Ancestors have at least what is best below them, so the way up ends where that is more.
            while best.get(above, 0) <= gain:
                best[above], where[above] = gain, image
                if node.axis == CHILD or above == ROOT:
                    break
                above = parents[above]
    images: list[int | None] = []
    for place, node in enumerate(pattern.nodes):
        above = ROOT if node.parent == ROOT else images[node.parent]
        found = above is not None and gained[place].get(above, 0) >= _HELD
        images.append(chosen[place][above] if found and above is not None else None)
    return images


def _having(node: Node, document: Document) -> list[int]:
    """List the nodes of a document that have a label, in order."""
    labels = [place for place, name in enumerate(document.names) if covers(node.label, name)]
    return [int(image) for image in np.flatnonzero(np.isin(document.labels, labels))]


def _leads(node: Node, above: int, image: int, document: Document) -> bool:
    """Tell whether an axis leads from the image of the parent, or from the document, to a node."""
    if node.axis == CHILD:
        return bool(document.parents[image] == above)
    return above == ROOT or above < image <= document.ends[above]
