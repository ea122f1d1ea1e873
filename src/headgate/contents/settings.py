"""What requests of several jobs say of events that are documents, and of refused rows."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.settings import Kind, setting

INPUT, OUTPUT = Kind.INPUT, Kind.OUTPUT
REFUSED = "`OUTPUT-rejected.jsonl`"
"""Where refused rows go, if nothing is said."""


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
