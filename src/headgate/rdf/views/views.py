"""`RdfViews`: what the plan search asks about views over RDF.

A view is a pattern, and gives all bindings of all its variables, with those of blank nodes. A source embeds
in a target if its variables can be given terms of the target such that its edges and filters become edges and
filters of the target. The items of a target are its edges. Filters are tested again where no input guarantees
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.views import Pairs, Views
from headgate.errors import PlanError
from headgate.rdf.events.reading import graph_of
from headgate.rdf.index.bindings import Facts, search
from headgate.rdf.language.model import PATHS, SPARQL, Pattern, is_variable
from headgate.rdf.language.printing import print_edge, print_expression, print_term
from headgate.rdf.language.rewrite import drop_repeated, split_filters, substitute
from headgate.rdf.language.values import holds
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.views.atoms import (
    FILTER,
    MAX_ATOMS,
    MAX_EDGES,
    SLOTS,
    Atoms,
    Search,
    cover,
    find,
    new_search,
    shape_of,
    sign,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.core.arrays import Ints, Ints32
    from headgate.core.event import Event
    from headgate.rdf.language.model import Edge, Expression, Term


@dataclass(frozen=True, slots=True)
class Solutions:
    """The bindings under which a pattern holds: terms in the order of the names; () if there are none."""

    names: tuple[Term, ...]
    rows: frozenset[tuple[Term, ...]]


@dataclass(frozen=True, slots=True)
class Renamed:
    """What an input gives, as bindings of the view's variables; `input` is its place among the inputs.

    `images` are what its variables stand for: those of the view, or constants, which select.
    """

    input: int
    view: int
    images: tuple[tuple[Term, Term], ...]

    def run(self, results: Sequence[Solutions]) -> Solutions:
        """Return them."""
        given = results[self.input]
        images = dict(self.images)
        places: dict[Term, int] = {}
        constant: list[tuple[int, Term]] = []
        alike: list[tuple[int, int]] = []
        for index, name in enumerate(given.names):
            image = images[name]
            if not is_variable(image):
                constant.append((index, image))
            elif image in places:
                alike.append((index, places[image]))
            else:
                places[image] = index
        names = tuple(sorted(places))
        order = [places[name] for name in names]
        rows = frozenset(
            tuple([row[index] for index in order])
            for row in given.rows
            if all(row[index] == term for index, term in constant)
            and all(row[index] == row[other] for index, other in alike)
        )
        return Solutions(names, rows)

    def __str__(self) -> str:
        """Say it in words."""
        words = [f"{print_term(name)} as {print_term(image)}" for name, image in self.images]
        return f"view {self.view}" + (f" with {', '.join(words)}" if words else "")


def join(one: Solutions, other: Solutions) -> Solutions:
    """Join bindings by the variables that both have."""
    common = [name for name in one.names if name in other.names]
    fresh = [index for index, name in enumerate(other.names) if name not in common]
    ours, theirs = ([each.names.index(name) for name in common] for each in (one, other))
    table: dict[tuple[Term, ...], list[tuple[Term, ...]]] = {}
    for row in other.rows:
        table.setdefault(tuple([row[index] for index in theirs]), []).append(
            tuple([row[index] for index in fresh])
        )
    rows = frozenset(
        row + rest for row in one.rows for rest in table.get(tuple([row[index] for index in ours]), ())
    )
    return Solutions(one.names + tuple(other.names[index] for index in fresh), rows)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A plan: inputs renamed and joined, filters that none of them guarantees, and the view's variables."""

    names: tuple[Term, ...]
    parts: tuple[Renamed, ...]
    filters: tuple[Expression, ...]

    def run(self, results: Sequence[Solutions]) -> Solutions:
        """Compute what the view gives from what the inputs give for one event, in their order."""
        joined = Solutions((), frozenset({()}))
        # Small ones first: they leave little to join.
        for part in sorted((each.run(results) for each in self.parts), key=lambda each: len(each.rows)):
            joined = join(joined, part)
        order = [joined.names.index(name) for name in self.names]
        rows = frozenset(
            tuple([row[index] for index in order]) for row in joined.rows if self._holds(joined.names, row)
        )
        return Solutions(self.names, rows)

    def _holds(self, names: tuple[Term, ...], row: tuple[Term, ...]) -> bool:
        binding: Mapping[Term, Term] = dict(zip(names, row, strict=True)) if self.filters else {}
        return all(holds(each, binding, SPARQL) for each in self.filters)

    def lines(self) -> list[str]:
        """Say it in words."""
        lines = [f"take {part}" for part in self.parts]
        if len(self.parts) > 1:
            lines.append("join them by their common variables")
        return lines + [f"filter {print_expression(each)}" for each in self.filters]


_ALL = 2**62


class RdfViews(Views):
    """Views over RDF by number, as SPARQL has them; with a taxonomy, events are seen through it.

    Labels are constants, items the edges of a view: one that has none or more than 64 cannot be rewritten. A
    mapping that takes very long to find counts as none: that costs a rewriting, never a result.
    """

    def __init__(self, patterns: Sequence[Pattern], taxonomy: Taxonomy | None = None) -> None:
        """Lay views out."""
        self.patterns = tuple(_plain(pattern) for pattern in patterns)
        self.taxonomy = taxonomy
        self._atoms, self._terms, (self.label_offsets, self.labels) = _lay(self.patterns)
        self.names = self._terms
        self.needed = self._atoms.needed
        firsts: dict[object, int] = {}
        self.equals = np.array(
            [
                firsts.setdefault((frozenset(each.edges), frozenset(each.filters)), view)
                for view, each in enumerate(self.patterns)
            ],
            np.int32,
        )
        self.demands, self.offers = np.zeros((2, 2 * len(self.patterns)), np.uint64)
        sign(self._atoms, self.demands, self.offers)

    @classmethod
    def build(cls, patterns: Sequence[Pattern], taxonomy: Taxonomy | None = None) -> RdfViews:
        """Take patterns; one without edges, or with more than 64, feeds no other and is fed by none."""
        return cls(patterns, taxonomy)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the taxonomy by its statements: its lock stays here."""
        known = None if self.taxonomy is None else tuple(self.taxonomy.statements())
        return self.__dict__ | {"taxonomy": known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the taxonomy too."""
        known = state["taxonomy"]
        self.__dict__.update(state, taxonomy=None if known is None else Taxonomy.of(known))

    def __len__(self) -> int:
        """Count the views."""
        return len(self.patterns)

    def _cover(self, pairs: Pairs) -> None:
        cover(self._atoms, pairs.sources, pairs.targets, new_search(), pairs.embeds, pairs.masks)

    def result(self, view: int, event: Event) -> Solutions:
        """Compute the bindings that a view has in an event."""
        pattern = self.patterns[view]
        bindings = search(pattern, Facts(graph_of(event), self.taxonomy), SPARQL, pattern.variables, _ALL)
        names = tuple(sorted(pattern.variables))
        return Solutions(names, frozenset(tuple([each[name] for name in names]) for each in bindings))

    def rewriting(self, view: int, inputs: Sequence[int]) -> Rewriting:
        """Make the plan that computes a view from others; refuses inputs that do not cover it."""
        target = self.patterns[view]
        whole = int(self.needed[view])
        if not whole:
            raise PlanError(
                f"view {view} has {len(target.edges)} edges, and to be computed from others it needs 1 to "
                f"{MAX_EDGES}: feed it by the source"
            )
        parts: list[Renamed] = []
        done = 0
        guaranteed = set()
        for number, one in enumerate(inputs):
            mappings = self._mappings(one, view, done)
            if mappings is None:
                raise PlanError(f"view {view} cannot be computed from view {one}, which does not embed in it")
            for images, mask in mappings:
                done |= mask
                parts.append(Renamed(number, one, tuple(images.items())))
                guaranteed |= {substitute(each, images) for each in self.patterns[one].filters}
        missing = [print_edge(edge) for index, edge in enumerate(target.edges) if not done >> index & 1]
        if missing:
            raise PlanError(
                f"view {view} cannot be computed from views {list(inputs)}: "
                f"nothing covers {', '.join(missing)}; add a view that does"
            )
        filters = tuple(each for each in target.filters if each not in guaranteed)
        return Rewriting(tuple(sorted(target.variables)), tuple(parts), filters)

    def plan_of(self, view: int, inputs: Sequence[int]) -> list[str]:
        """Say in lines how a view is computed from others."""
        return self.rewriting(view, inputs).lines()

    def pack(self, result: Solutions) -> list[tuple[Term, ...]] | None:
        """Return the bindings, in one order."""
        return sorted(result.rows) or None

    def unpack(self, view: int, packed: Any) -> Solutions:
        """Return the result of a view that was packed."""
        names = tuple(sorted(self.patterns[view].variables))
        return Solutions(names, frozenset(tuple(row) for row in packed or ()))

    def size(self, result: Solutions) -> tuple[int, int]:
        """Count the rows, and the bytes of their terms with a separator behind each."""
        return len(result.rows), sum(len(term.encode()) + 1 for row in result.rows for term in row)

    def _mappings(self, source: int, target: int, done: int) -> list[tuple[dict[Term, Term], int]] | None:
        """List mappings that cover more than what is done; None if there is no mapping at all."""
        atoms = self._atoms
        if not atoms.needed[source]:
            return None
        search = new_search()
        if not find(atoms, source, target, -1, -1, search):
            return None
        mappings = [self._mapping(source, target, search)]
        done |= mappings[0][1]
        for image in range(int(atoms.starts[target]), int(atoms.starts[target + 1])):
            for one in range(int(atoms.starts[source]), int(atoms.starts[source + 1])):
                bit = int(atoms.bits[image])
                if bit < 0 or done >> bit & 1:
                    break
                if atoms.bits[one] >= 0 and find(atoms, source, target, one, image, search):
                    mappings.append(self._mapping(source, target, search))
                    done |= mappings[-1][1]
        return mappings

    def _mapping(self, source: int, target: int, search: Search) -> tuple[dict[Term, Term], int]:
        """Read a mapping that was found: what each variable of the source stands for, and what it covers."""
        names, others = (self.patterns[view].variables for view in (source, target))
        images = search.images[: len(names)].tolist()
        mask = 0
        for image in search.tried[: self._atoms.starts[source + 1] - self._atoms.starts[source]].tolist():
            bit = int(self._atoms.bits[image - 1])
            mask |= 1 << bit if bit >= 0 else 0
        return {
            name: self._terms[image] if image >= 0 else others[-1 - image]
            for name, image in zip(names, images, strict=True)
        }, mask


def _plain(pattern: Pattern) -> Pattern:
    """Write each edge and each conjunct of the filters once."""
    plain = drop_repeated(split_filters(pattern))
    return replace(plain, filters=tuple(dict.fromkeys(plain.filters)))


def _lay(patterns: Sequence[Pattern]) -> tuple[Atoms, list[Term], tuple[Ints, Ints32]]:
    terms: dict[Term, int] = {}
    shapes: dict[object, int] = {}
    kinds: list[int] = []
    bits: list[int] = []
    flat: list[int] = []
    starts, term_starts, label_starts = [0], [0], [0]
    labels: list[int] = []
    needed: list[int] = []
    for pattern in patterns:
        able = (
            0 < len(pattern.edges) <= MAX_EDGES
            and len(pattern.edges) + len(pattern.filters) <= MAX_ATOMS
            and len(pattern.variables) <= SLOTS
        )
        needed.append((1 << len(pattern.edges)) - 1 if able else 0)
        own = set()
        slots = {name: -1 - index for index, name in enumerate(pattern.variables)}
        for kind, bit, written in _atoms(pattern, shapes) if able else ():
            kinds.append(kind)
            bits.append(bit)
            for term in written:
                number = slots[term] if is_variable(term) else terms.setdefault(term, len(terms))
                flat.append(number)
                own.add(number)
            term_starts.append(len(flat))
        starts.append(len(kinds))
        labels += sorted(number for number in own if number >= 0)
        label_starts.append(len(labels))
    atoms = Atoms(
        np.array(starts, np.int64),
        np.array(kinds, np.int32),
        np.array(bits, np.int8),
        np.array(term_starts, np.int64),
        np.array(flat, np.int32),
        np.array([len(pattern.variables) for pattern in patterns], np.int32),
        np.array(needed, np.uint64),
    )
    return atoms, list(terms), (np.array(label_starts, np.int64), np.array(labels, np.int32))


def _atoms(pattern: Pattern, shapes: dict[object, int]) -> list[tuple[int, int, tuple[Term, ...]]]:
    """List kind, bit and terms of the atoms: edges that hang together behind each other, then the filters."""
    atoms: list[tuple[int, int, tuple[Term, ...]]] = [
        (PATHS.index(edge.path), bit, edge[:3]) for bit, edge in _linked(pattern)
    ]
    for each in pattern.filters:
        shape, terms = shape_of(each)
        atoms.append((FILTER + shapes.setdefault(shape, len(shapes)), -1, terms))
    return atoms


def _linked(pattern: Pattern) -> list[tuple[int, Edge]]:
    """Order edges so that a search fails early: next is what has most terms that are constant or bound."""
    left = dict(enumerate(pattern.edges))
    bound: set[Term] = set()
    ordered = []
    while left:
        index, edge = max(
            left.items(),
            key=lambda each: sum(not is_variable(term) or term in bound for term in each[1][:3]),
        )
        ordered.append((index, left.pop(index)))
        bound |= {*edge[:3]}
    return ordered
