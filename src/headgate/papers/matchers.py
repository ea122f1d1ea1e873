"""The algorithms by name, for comparison; `auto` is the index.

Each holds filters under numbers and answers with those that hold for a graph. None is built for speed in
Python: they say what an algorithm does, and count what it costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headgate.papers.gtopss import GToPSS
from headgate.papers.naive import Naive
from headgate.papers.ops import OpsStyle

if TYPE_CHECKING:
    from headgate.rdf.language.model import Graph, Options, Pattern
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


class Matcher(Protocol):
    """Filters under numbers."""

    def __len__(self) -> int:
        """Count the filters."""

    def insert(self, number: int, pattern: Pattern) -> None:
        """Add a filter under a number that is free."""

    def remove(self, number: int) -> None:
        """Remove a filter."""

    def match(self, graph: Graph) -> list[int]:
        """List the numbers of the filters that hold, rising."""


class Make(Protocol):
    """A matcher's class."""

    def __call__(self, taxonomy: Taxonomy | None = None, options: Options = ...) -> Matcher:
        """Make a matcher without filters."""


MATCHERS: dict[str, Make] = {"naive": Naive, "ops": OpsStyle, "gtopss": GToPSS}
