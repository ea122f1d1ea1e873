"""The formats of RDF events, by media type and short name."""

from __future__ import annotations

from headgate.core.event import JSON_LD, N_TRIPLES, RDF_TYPES, RDF_XML, RSS, TURTLE, media_type
from headgate.errors import EventError

__all__ = ["JSON_LD", "NAMES", "N_TRIPLES", "RDF_XML", "RSS", "TURTLE", "XML", "format_of"]

NAMES = {
    TURTLE: "Turtle",
    N_TRIPLES: "N-Triples",
    RDF_XML: "RDF/XML",
    JSON_LD: "JSON-LD",
    RSS: "RSS 1.0",
}
"""What people call them."""
XML = (RDF_XML, RSS)


def format_of(content_type: str) -> str:
    """Find the media type of a content type, which may be a short name; refuse what is not RDF.

    >>> format_of("turtle"), format_of("application/n-triples; charset=utf-8")
    ('text/turtle', 'application/n-triples')
    """
    kind = media_type(content_type)
    if kind not in NAMES:
        names = ", ".join(f"{kind} ({short})" for short, kind in RDF_TYPES.items())
        raise EventError(f"content type {content_type!r} is not RDF: send one of {names}")
    return kind
