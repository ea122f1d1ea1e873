"""Programs read back filter by filter, and the workloads that are drawn as specifications."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from headgate.records.language.parse import parse_filter
from headgate.records.language.rewrite import normalise
from headgate.records.programs.leaves import TEXT_FACETS, Facet
from headgate.records.programs.program import compile_program
from headgate.records.programs.programs import TOP
from headgate.workloads.catalogue import SYNTHETIC, synthetic
from headgate.workloads.records.specification import texts
from tests.records.programs import in_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.records.programs.programs import Programs
    from headgate.workloads.records.specification import Specification
    from headgate.workloads.records.synthetic import Synthetic

SEED = 11
WORKLOADS: list[Synthetic] = [synthetic(name, 350_000) for name in SYNTHETIC]


def written(spec: Specification) -> list[str]:
    """Write the filters of a specification."""
    return [str(text) for text in texts(spec).to_pylist()]


def parsed(filters: Iterable[str]) -> Programs:
    """Parse filters, rewrite and compile them."""
    return in_columns(compile_program(normalise(parse_filter(text))) for text in filters)


def decode(programs: Programs) -> list[tuple[object, ...]]:
    """List the tokens of each filter, with what a leaf holds in place of its number."""
    leaves = [_leaf(programs, leaf) for leaf in range(programs.leaves)]
    shown = [leaves[token] if token >= 0 else token for token in programs.tokens.tolist()]
    starts = programs.token_start.tolist()
    return [tuple(shown[a:b]) for a, b in pairwise(starts)]


def _leaf(programs: Programs, leaf: int) -> object:
    ranges: list[tuple[object, ...]] = []
    for at in range(programs.range_start[leaf], programs.range_start[leaf + 1]):
        facet = Facet(programs.range_facet[at])
        low, high = int(programs.range_low[at]), int(programs.range_high[at])
        if facet in TEXT_FACETS:
            ranges.append((facet, _cut(programs, low), _cut(programs, high)))
        else:
            ranges.append((facet, low, high))
    assert programs.glob_start[leaf] == programs.glob_start[leaf + 1]
    path = programs.attributes[programs.leaf_attribute[leaf]]
    return path, int(programs.leaf_kind[leaf]), int(programs.leaf_on_null[leaf]), tuple(ranges)


def _cut(programs: Programs, cut: int) -> object:
    return "top" if cut == TOP else (programs.texts.text(cut >> 1), cut & 1)
