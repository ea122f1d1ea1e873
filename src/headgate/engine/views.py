"""Subscriptions as views, of the content room that their dialects belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.registry import RDF, RECORDS, XML, content_of
from headgate.core.snapshot import room_of
from headgate.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headgate.contents.views import Views
    from headgate.core.ids import Ids
    from headgate.core.subscription import Subscription
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

__all__ = ["check_views", "views_at", "views_of"]


def views_of(
    subscriptions: Sequence[Subscription], *, carries: str | None = None, taxonomy: Taxonomy | None = None
) -> Views:
    """Make views of subscriptions, in their order; their dialects must belong to one room.

    `carries` is what views over records give, ROW (as they do if it is left out) or KEY; a taxonomy is for
    those over RDF.

    >>> from headgate.core.subscription import Subscription
    >>> views = views_of([Subscription("s1", "//a{id}", "xpath"), Subscription("s2", "//a//b{id}", "xpath")])
    >>> type(views).__name__, views.plan_of(0, [0])
    ('XmlViews', ['node 0 a:', '  scan view 0 node 0 a (id)', '  project id', 'reduce along //0'])
    """
    room = content_of((each.dialect for each in subscriptions), "the views") or RECORDS
    _check_carries(carries, room)
    if taxonomy is not None and room != RDF:
        raise PlanError("a taxonomy is for views over RDF: leave it out")
    # Each room is loaded if it is asked for.
    if room == RECORDS:
        from headgate.records.language.dialects import to_sql
        from headgate.records.views.views import ROW, RecordViews

        texts = [to_sql(each.filter, each.dialect) for each in subscriptions]
        return RecordViews.build(texts, carries or ROW)
    if room == RDF:
        from headgate.rdf.language.parse import parse_filter as parse_rdf
        from headgate.rdf.views.views import RdfViews

        return RdfViews.build([parse_rdf(each.filter, each.dialect) for each in subscriptions], taxonomy)
    from headgate.xml.language.parse import parse_filter as parse_xml
    from headgate.xml.views.views import XmlViews

    return XmlViews.build([parse_xml(each.filter, each.dialect) for each in subscriptions])


def views_at(path: Path, *, carries: str | None = None) -> tuple[Ids, Views]:
    """Make views of the subscriptions in a snapshot of records, RDF or XML, in the order of their ids.

    Those over RDF see events through the snapshot's taxonomy.
    """
    room = check_views(path, carries=carries)
    if room == RECORDS:
        from headgate.records.index.base import Base as RecordBase
        from headgate.records.views.views import ROW, RecordViews

        records = RecordBase.open(path, verify=True)
        return records.ids, RecordViews.build(records.filters.texts(), carries or ROW)
    if room == RDF:
        from headgate.rdf.index.base import Base as RdfBase
        from headgate.rdf.language.model import Options
        from headgate.rdf.language.parse import parse_filter as parse_rdf
        from headgate.rdf.views.views import RdfViews

        rdf = RdfBase.open(path)
        if rdf.options != Options():
            raise PlanError(
                f"snapshot {path} was compiled with options that depart from SPARQL, and views follow it: "
                "compile it without them"
            )
        return rdf.ids, RdfViews.build([parse_rdf(text) for text in rdf.filters.texts()], rdf.taxonomy)
    from headgate.xml.index.base import Base as XmlBase
    from headgate.xml.language.parse import parse_filter as parse_xml
    from headgate.xml.views.views import XmlViews

    xml = XmlBase.open(path)
    return xml.ids, XmlViews.build([parse_xml(text) for text in xml.filters.texts()])


def check_views(path: Path, *, carries: str | None = None) -> str:
    """Return the room of a snapshot that views can be made of; refuses another."""
    room = room_of(path)
    if room not in (RECORDS, RDF, XML):
        raise PlanError(
            f"snapshot {path} belongs to the room {room!r}, and views are made of subscriptions alone: "
            "give the snapshot of the subscriptions"
        )
    _check_carries(carries, room)
    return room


def _check_carries(carries: str | None, room: str) -> None:
    if carries is not None and room != RECORDS:
        raise PlanError(f"carries={carries!r} is for views over records: leave it out")
