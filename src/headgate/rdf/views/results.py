"""What views over RDF give: all bindings of all variables, and joins of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.rdf.language.evaluate import holds
from headgate.rdf.language.model import Options
from headgate.rdf.language.printing import print_expression, print_term
from headgate.rdf.language.terms import is_variable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.rdf.language.model import Expression, Term

_SPARQL = Options()


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
        for place, name in enumerate(given.names):
            image = images[name]
            if not is_variable(image):
                constant.append((place, image))
            elif image in places:
                alike.append((place, places[image]))
            else:
                places[image] = place
        names = tuple(sorted(places))
        order = [places[name] for name in names]
        rows = frozenset(
            tuple([row[place] for place in order])
            for row in given.rows
            if all(row[place] == term for place, term in constant)
            and all(row[place] == row[other] for place, other in alike)
        )
        return Solutions(names, rows)

    def __str__(self) -> str:
        """Say it in words."""
        words = [f"{print_term(name)} as {print_term(image)}" for name, image in self.images]
        return f"view {self.view}" + (f" with {', '.join(words)}" if words else "")


def join(one: Solutions, other: Solutions) -> Solutions:
    """Join bindings by the variables that both have."""
    common = [name for name in one.names if name in other.names]
    fresh = [place for place, name in enumerate(other.names) if name not in common]
    ours, theirs = ([each.names.index(name) for name in common] for each in (one, other))
    table: dict[tuple[Term, ...], list[tuple[Term, ...]]] = {}
    for row in other.rows:
        table.setdefault(tuple([row[place] for place in theirs]), []).append(
            tuple([row[place] for place in fresh])
        )
    rows = frozenset(
        row + rest for row in one.rows for rest in table.get(tuple([row[place] for place in ours]), ())
    )
    return Solutions(one.names + tuple(other.names[place] for place in fresh), rows)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A plan: inputs renamed and joined, filters that none of them guarantees, and the view's variables."""

    names: tuple[Term, ...]
    parts: tuple[Renamed, ...]
    filters: tuple[Expression, ...]

    def run(self, results: Sequence[Solutions]) -> Solutions:
        """Compute what the view gives from what the inputs give for one event, in their order."""
        found = Solutions((), frozenset({()}))
        # Small ones first: they leave little to join.
        for part in sorted((each.run(results) for each in self.parts), key=lambda each: len(each.rows)):
            found = join(found, part)
        order = [found.names.index(name) for name in self.names]
        rows = frozenset(
            tuple([row[place] for place in order]) for row in found.rows if self._holds(found.names, row)
        )
        return Solutions(self.names, rows)

    def _holds(self, names: tuple[Term, ...], row: tuple[Term, ...]) -> bool:
        binding: Mapping[Term, Term] = dict(zip(names, row, strict=True)) if self.filters else {}
        return all(holds(each, binding, _SPARQL) for each in self.filters)

    def lines(self) -> list[str]:
        """Say it in words."""
        found = [f"take {part}" for part in self.parts]
        if len(self.parts) > 1:
            found.append("join them by their common variables")
        return found + [f"filter {print_expression(each)}" for each in self.filters]
