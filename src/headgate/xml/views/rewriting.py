"""A view computed from what others give for the same document, without the document.

Results are factorised, and ids structural: the embeddings of a view are the combinations of its nodes' ids
that satisfy the axes. So for each node of the view

    Scan        the ids that an input gives for a node that goes there
    Intersect   those that all of them give, with val and cont from where they are given
    Named       those that have the name, read from cont, if no scan says it
    Select      those that satisfy the tests that no scan guarantees

and then, for all nodes together, what takes part in an embedding, by structural semijoins up and down.
`Project` keeps what the view returns. A node of an input that goes to several nodes is scanned for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.xml.answers.answers import Answer
from headgate.xml.answers.structural import Ids, kept
from headgate.xml.events.serialising import label_of_content, value_of_content
from headgate.xml.language.model import CONT, TEXT, VAL, covers, is_attribute
from headgate.xml.language.values import holds, implies
from headgate.xml.views.embedding import ITEMS, needed, pairs, provides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.xml.language.model import Label, Node, Pattern, Test


class Table(NamedTuple):
    """Nodes of a document, with their val and cont where these are known."""

    ids: Ids
    values: tuple[str, ...] | None
    contents: tuple[str, ...] | None

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
        """Return some of them."""
        places = np.flatnonzero(which) if which.dtype == np.bool_ else which
        values, contents = (
            None if column is None else tuple([column[place] for place in places.tolist()])
            for column in (self.values, self.contents)
        )
        return Table(self.ids.take(places), values, contents)


@dataclass(frozen=True, slots=True)
class Scan:
    """What an input gives for one of its nodes; `input` is its place among the inputs."""

    input: int
    view: int
    place: int
    node: Node

    def run(self, answers: Sequence[Answer]) -> Table:
        """Return it."""
        given = answers[self.input]
        return Table(given.ids[self.place], given.values[self.place], given.contents[self.place])

    def __str__(self) -> str:
        """Name the view and the node."""
        returns = "".join(f" {each}" for each in self.node.returns if each in (VAL, CONT))
        return f"view {self.view} node {self.place} {self.node.label} (id{returns})"


@dataclass(frozen=True, slots=True)
class Intersect:
    """The nodes that all scans give."""

    scans: tuple[Scan, ...]

    def run(self, answers: Sequence[Answer]) -> Table:
        """Return them, with val and cont from the first scan that has them."""
        first, *others = (scan.run(answers) for scan in self.scans)
        if not others:
            return first
        common = first.ids.pre
        for table in others:
            common = np.intersect1d(common, table.ids.pre, assume_unique=True)
        parts = [table.take(np.searchsorted(table.ids.pre, common)) for table in (first, *others)]
        return Table(
            parts[0].ids,
            next((part.values for part in parts if part.values is not None), None),
            next((part.contents for part in parts if part.contents is not None), None),
        )


@dataclass(frozen=True, slots=True)
class Named:
    """Those whose cont shows that they have a label."""

    label: Label

    def run(self, table: Table) -> Table:
        """Return them."""
        assert table.contents is not None, "a scan of the name is without cont only if another has the label"
        return table.take(
            np.array([covers(self.label, label_of_content(text)) for text in table.contents], bool)
        )


@dataclass(frozen=True, slots=True)
class Select:
    """Those whose val satisfies tests."""

    tests: tuple[Test, ...]

    def run(self, table: Table) -> Table:
        """Return them."""
        assert table.values is not None, "tests are not covered without val"
        return table.take(
            np.array([all(holds(test, text) for test in self.tests) for text in table.values], bool)
        )


@dataclass(frozen=True, slots=True)
class Project:
    """What the view itself returns of a node."""

    returns: tuple[str, ...]

    def run(self, table: Table) -> Table:
        """Return the table without what is not returned."""
        return Table(
            table.ids,
            table.values if VAL in self.returns else None,
            table.contents if CONT in self.returns else None,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """How a node of the view is computed, axes aside; `valued`: its val is needed, if only from cont."""

    node: Node
    scans: Intersect
    valued: bool
    named: Named | None
    select: Select | None
    project: Project

    def run(self, answers: Sequence[Answer]) -> Table:
        """Return the nodes that may take part."""
        table = self.scans.run(answers)
        if self.named is not None:
            table = self.named.run(table)
        if self.valued and table.values is None:
            table = table._replace(values=_values(self.node.label, table.contents))
        return table if self.select is None else self.select.run(table)

    def lines(self) -> list[str]:
        """Say it in words."""
        scans = self.scans.scans
        found = [f"scan {scans[0]}"] if len(scans) == 1 else ["intersect"]
        found += [f"  scan {scan}" for scan in scans] if len(scans) > 1 else []
        if self.named is not None:
            found.append(f"select name {self.named.label}, read from cont")
        if self.select is not None:
            origin = (
                " read from cont" if self.valued and all(VAL not in s.node.returns for s in scans) else ""
            )
            found += [f"select val{origin} {test.sign} {test.value!r}" for test in self.select.tests]
        kept_columns = " ".join(["id", *(each for each in self.project.returns if each in (VAL, CONT))])
        return [*found, f"project {kept_columns}"]


@dataclass(frozen=True)
class Rewriting:
    """A plan that computes a view from others."""

    pattern: Pattern
    parts: tuple[Part, ...]

    def run(self, answers: Sequence[Answer | None]) -> Answer | None:
        """Compute what the view gives from what the inputs give for one document, in their order."""
        given = [answer for answer in answers if answer is not None]
        if len(given) < len(answers):
            return None  # An input that embeds in the view holds wherever the view does.
        tables = [part.run(given) for part in self.parts]
        keep = kept(self.pattern, [table.ids for table in tables])
        if keep is None:
            return None
        left = [
            part.project.run(table).take(which)
            for part, table, which in zip(self.parts, tables, keep, strict=True)
        ]
        return Answer(
            self.pattern,
            tuple(table.ids for table in left),
            tuple(table.values for table in left),
            tuple(table.contents for table in left),
        )

    def lines(self) -> list[str]:
        """Say in words what is done."""
        found = []
        for place, part in enumerate(self.parts):
            found.append(f"node {place} {part.node.label}:")
            found += [f"  {line}" for line in part.lines()]
        edges = [
            f"{node.parent}{node.axis}{place}" if node.parent >= 0 else f"{node.axis}{place}"
            for place, node in enumerate(self.pattern.nodes)
        ]
        return [*found, f"reduce along {' '.join(edges)}"]


def rewriting(patterns: Sequence[Pattern], view: int, inputs: Sequence[int]) -> Rewriting:
    """Make the plan that computes a view from others; refuses inputs that do not cover it."""
    target = patterns[view]
    if not needed(target):
        raise PlanError(
            f"view {view} has {len(target.nodes)} nodes, too many to be computed from others: "
            "feed it by the source"
        )
    scans: list[list[Scan]] = [[] for _ in target.nodes]
    covered = [0] * len(target.nodes)
    for number, one in enumerate(inputs):
        source = patterns[one]
        found = pairs(source, target) if needed(source) else None
        if found is None:
            raise PlanError(f"view {view} cannot be computed from view {one}, which does not embed in it")
        for place, images in enumerate(found):
            for image in sorted(images):
                given = provides(source.nodes[place], target.nodes[image])
                covered[image] |= given
                if given:
                    scans[image].append(Scan(number, one, place, source.nodes[place]))
    whole = needed(target)
    missing = [
        f"{name} of node {place} ({node.label})"
        for place, node in enumerate(target.nodes)
        for bit, name in ITEMS.items()
        if (whole >> 4 * place) & bit & ~covered[place]
    ]
    if missing:
        raise PlanError(
            f"view {view} cannot be computed from views {list(inputs)}: nothing covers {', '.join(missing)}; "
            "add a view that does"
        )
    return Rewriting(target, tuple(_part(node, each) for node, each in zip(target.nodes, scans, strict=True)))


def _part(node: Node, scans: list[Scan]) -> Part:
    known = [test for scan in scans for test in scan.node.tests]
    tests = tuple(test for test in node.tests if not implies(known, test))
    named = all(scan.node.label != node.label for scan in scans)
    return Part(
        node,
        Intersect(tuple(scans)),
        bool(tests) or VAL in node.returns,
        Named(node.label) if named else None,
        Select(tests) if tests else None,
        Project(node.returns),
    )


def _values(label: Label, contents: tuple[str, ...] | None) -> tuple[str, ...]:
    """Read the val of nodes from their cont."""
    assert contents is not None, "val is not covered without val or cont"
    if label == TEXT or is_attribute(label):
        return contents
    return tuple([value_of_content(text) for text in contents])


def size_of(answer: Answer | None) -> tuple[int, int]:
    """Count the nodes of a result, and the bytes that it takes to send it."""
    return (0, 0) if answer is None else (answer.rows(), answer.nbytes)
