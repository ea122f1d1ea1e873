"""A view computed from what others give for the same document, without the document.

Results are factorised, and ids structural: the embeddings of a view are the combinations of its nodes' ids
that satisfy the axes. So for each node of the view

    scan        the ids that an input gives for a node that goes there
    intersect   those that all of them give, with val and cont from where they are given
    named       those that have the name, read from cont, if no scan says it
    tests       those that satisfy the tests that no scan guarantees

and then, for all nodes together, what takes part in an embedding, by structural semijoins up and down.
What the view does not return is left out then. A node of an input that goes to several is scanned for each.
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

    from headgate.core.arrays import Bools, Ints
    from headgate.xml.language.model import Label, Node, Pattern, Test


class Table(NamedTuple):
    """Nodes of a document, with their val and cont where these are known."""

    ids: Ids
    values: tuple[str, ...] | None
    contents: tuple[str, ...] | None

    def take(self, which: Bools | Ints) -> Table:
        """Return some of them."""
        places = np.flatnonzero(which) if which.dtype == np.bool_ else which
        values, contents = (
            None if column is None else tuple([column[index] for index in places.tolist()])
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


def intersected(tables: Sequence[Table]) -> Table:
    """Return the nodes that all of some tables have, with val and cont from the first that has them."""
    if len(tables) == 1:
        return tables[0]
    common = tables[0].ids.pre
    for table in tables[1:]:
        common = np.intersect1d(common, table.ids.pre, assume_unique=True)
    parts = [table.take(np.searchsorted(table.ids.pre, common)) for table in tables]
    return Table(
        parts[0].ids,
        next((part.values for part in parts if part.values is not None), None),
        next((part.contents for part in parts if part.contents is not None), None),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """How a node of the view is computed, axes aside: from scans, of which all must give it.

    `named`: its name is read from cont. `tests` are those that no scan guarantees. `valued`: its val is
    needed, if only from cont.
    """

    node: Node
    scans: tuple[Scan, ...]
    valued: bool
    named: bool
    tests: tuple[Test, ...]

    def run(self, answers: Sequence[Answer]) -> Table:
        """Return the nodes that may take part."""
        table = intersected([scan.run(answers) for scan in self.scans])
        label = self.node.label
        if self.named:
            assert table.contents is not None, (
                "a scan of the name is without cont only if another has the label"
            )
            table = table.take(
                np.array([covers(label, label_of_content(text)) for text in table.contents], bool)
            )
        if self.valued and table.values is None:
            table = table._replace(values=_values(label, table.contents))
        if not self.tests:
            return table
        assert table.values is not None, "tests are not covered without val"
        return table.take(
            np.array([all(holds(test, text) for test in self.tests) for text in table.values], bool)
        )

    def projected(self, table: Table) -> Table:
        """Return a table without what the view does not return of the node."""
        returns = self.node.returns
        return Table(
            table.ids,
            table.values if VAL in returns else None,
            table.contents if CONT in returns else None,
        )

    def lines(self) -> list[str]:
        """Say it in words."""
        scans = self.scans
        lines = [f"scan {scans[0]}"] if len(scans) == 1 else ["intersect"]
        lines += [f"  scan {scan}" for scan in scans] if len(scans) > 1 else []
        if self.named:
            lines.append(f"select name {self.node.label}, read from cont")
        origin = " read from cont" if self.valued and all(VAL not in s.node.returns for s in scans) else ""
        lines += [f"select val{origin} {test.sign} {test.value!r}" for test in self.tests]
        kept_columns = " ".join(["id", *(each for each in self.node.returns if each in (VAL, CONT))])
        return [*lines, f"project {kept_columns}"]


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
            part.projected(table).take(which)
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
        lines = []
        for index, part in enumerate(self.parts):
            lines.append(f"node {index} {part.node.label}:")
            lines += [f"  {line}" for line in part.lines()]
        edges = [
            f"{node.parent}{node.axis}{index}" if node.parent >= 0 else f"{node.axis}{index}"
            for index, node in enumerate(self.pattern.nodes)
        ]
        return [*lines, f"reduce along {' '.join(edges)}"]


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
        every = pairs(source, target) if needed(source) else None
        if every is None:
            raise PlanError(f"view {view} cannot be computed from view {one}, which does not embed in it")
        for index, images in enumerate(every):
            for image in sorted(images):
                given = provides(source.nodes[index], target.nodes[image])
                covered[image] |= given
                if given:
                    scans[image].append(Scan(number, one, index, source.nodes[index]))
    whole = needed(target)
    missing = [
        f"{name} of node {index} ({node.label})"
        for index, node in enumerate(target.nodes)
        for bit, name in ITEMS.items()
        if (whole >> 4 * index) & bit & ~covered[index]
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
    return Part(node, tuple(scans), bool(tests) or VAL in node.returns, named, tests)


def _values(label: Label, contents: tuple[str, ...] | None) -> tuple[str, ...]:
    """Read the val of nodes from their cont."""
    assert contents is not None, "val is not covered without val or cont"
    if label == TEXT or is_attribute(label):
        return contents
    return tuple([value_of_content(text) for text in contents])


def size_of(answer: Answer | None) -> tuple[int, int]:
    """Count the nodes of a result, and the bytes that it takes to send it."""
    return (0, 0) if answer is None else (answer.rows(), answer.nbytes)
