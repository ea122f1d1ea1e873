"""What requests of several jobs say: of events that are documents, of refused rows, of what matches give."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.settings import Kind, setting

INPUT, OUTPUT = Kind.INPUT, Kind.OUTPUT
REFUSED = "`OUTPUT-rejected.jsonl`"
"""Where refused rows go, if nothing is said."""
RESULTS, MOST_RESULTS = 1_000, 1_000_000
"""Rows of what a match gives: unless another number is asked for, and at most."""


def formats() -> tuple[str, ...]:
    """List the formats of documents, of all kinds of content."""
    from headgate.contents.registry import kinds

    return tuple(dict.fromkeys(short for kind in kinds().values() for short in kind.types))


@dataclass(frozen=True, kw_only=True)
class Documents:
    """What is said of events that are documents."""

    format: str | None = setting(
        "RDF, XML: what documents are written in that do not say so",
        None,
        key="events.format",
        listed=formats,
        more="These are rows that have no `datacontenttype`, and files whatever their names.",
    )


@dataclass(frozen=True, kw_only=True)
class Giving:
    """Whether matches say what they give."""

    results: bool = setting(
        "also what each match gives, [`results` and `complete`](engine.md#results-in-bulk): bindings of RDF, "
        "tuples of XML",
        False,
    )
    results_limit: int | None = setting(
        "rows of a match, at most",
        None,
        needs="results",
        metavar="N",
        least=1,
        most=MOST_RESULTS,
        shown=f"{RESULTS:,}",
    )

    @property
    def limit(self) -> int | None:
        """Return how many rows of what a match gives are wanted; None if it is not asked for."""
        return (self.results_limit or RESULTS) if self.results else None
